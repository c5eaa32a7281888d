// The two lists of languages, and the button that swaps them.

import { Kept } from "./storage.js";

const DETECT = "";
const kept = new Kept(() => localStorage, "dragoman.languages");

const sourceList = document.getElementById("source");
const targetList = document.getElementById("target");
const swapButton = document.getElementById("swap");

export class Pickers {
  /**
   * @param onChange runs when the reader has chosen other languages
   * @param onSwap runs after a swap
   */
  constructor({ onChange, onSwap }) {
    this._languages = undefined;
    this._detected = undefined;
    this._wanted = stored();
    const changed = () => {
      this._detected = undefined;
      this._refresh();
      this._remember();
      onChange();
    };
    sourceList.addEventListener("change", changed);
    targetList.addEventListener("change", changed);
    swapButton.addEventListener("click", () => {
      this.choose({ source: targetList.value, target: this.source });
      this._remember();
      onSwap();
    });
  }

  /** Shows the languages of a server; what was chosen before stays where it can. */
  show(languages) {
    const wanted = this._languages
      ? { source: sourceList.value, target: targetList.value }
      : this._wanted;
    this._languages = languages;
    sourceList.disabled = targetList.disabled = false;
    const options = languages.sources.map(option);
    if (languages.canDetect) {
      options.unshift(option({ code: DETECT, name: "Detect language" }));
    }
    sourceList.replaceChildren(...options);
    this.choose(wanted);
  }

  /** Chooses languages; those that are not served are passed over. */
  choose({ source, target }) {
    if (!this._languages) {
      this._wanted = { source, target };
      return;
    }
    if (hasOption(sourceList, source)) {
      sourceList.value = source;
    }
    this._detected = undefined;
    this._refresh(target);
  }

  /**
   * Takes note of the language that the text was found to be in. Where that can't be translated
   * into the chosen target, another target is chosen.
   */
  detected(code) {
    this._detected = code;
    const targets = this._languages.targets(code).map((each) => each.code);
    this._refresh(targets.includes(this.target) ? this.target : targets[0]);
  }

  get isReady() {
    return this._languages !== undefined && this._languages.sources.length > 0;
  }

  get detects() {
    return sourceList.value === DETECT;
  }

  /** The source language, chosen or found; undefined while it is neither. */
  get source() {
    return sourceList.value || this._detected;
  }

  get target() {
    return targetList.value;
  }

  _refresh(wanted = targetList.value) {
    const targets = this._languages.targets(sourceList.value);
    targetList.replaceChildren(...targets.map(option));
    if (hasOption(targetList, wanted)) {
      targetList.value = wanted;
    }
    if (this._languages.canDetect) {
      sourceList.options[0].textContent = this._detected
        ? `${this._languages.name(this._detected)} (detected)`
        : "Detect language";
    }
    const { source, target } = this;
    swapButton.disabled = !this._languages.canTranslate(target, source);
    swapButton.title =
      source && target && swapButton.disabled
        ? `Nothing here translates from ${this._languages.name(target)} into ${this._languages.name(source)}`
        : "Swap languages";
  }

  _remember() {
    kept.set(JSON.stringify({ source: sourceList.value, target: this.target }));
  }
}

function stored() {
  try {
    return JSON.parse(kept.get() || "{}") ?? {};
  } catch {
    return {}; // not ours
  }
}

function option({ code, name }) {
  return new Option(name, code);
}

function hasOption(list, code) {
  return [...list.options].some((each) => each.value === code);
}
