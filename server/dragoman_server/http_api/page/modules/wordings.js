// Other wordings of a sentence: a menu below it, to choose from.

import * as api from "./api.js";
import { commonPlaces } from "./common.js";
import { DETAILS } from "./translator.js";

const MOST = 4;
const GAP_PX = 6;

const menu = document.getElementById("wordings");

export class Wordings {
  /**
   * @param beamOf returns the widest beam that a model may be asked for
   * @param onFailure runs with an error of a call
   */
  constructor({ beamOf, onFailure }) {
    this._beamOf = beamOf;
    this._onFailure = onFailure;
    this._asking = new AbortController();
    this._opener = undefined;
    menu.addEventListener("keydown", (event) => this._press(event));
    menu.addEventListener("toggle", (event) => {
      if (event.newState === "closed") {
        this._asking.abort();
        this._opener?.classList.remove("open");
      }
    });
  }

  /**
   * Opens the menu at an element. `sentence` is `{source, current, model, languages}`; `onChoose`
   * runs with the wording that was chosen.
   */
  async open(element, sentence, onChoose) {
    this.close();
    const { signal } = (this._asking = new AbortController());
    this._opener = element;
    element.classList.add("open");
    menu.lang = "en";
    menu.setAttribute("aria-busy", "true");
    menu.replaceChildren(remark("Looking for other wordings…"));
    menu.showPopover();
    place(element);
    try {
      const found = await this._ask(sentence, signal);
      menu.lang = sentence.languages.target;
      menu.setAttribute("aria-busy", "false");
      menu.replaceChildren(
        ...found.map((wording) => this._item(wording, sentence.current, onChoose)),
        ...(found.length > 1 ? [] : [remark("There is no other wording.")]),
      );
      place(element);
      menu.querySelector("button")?.focus();
    } catch (error) {
      if (!signal.aborted) {
        this.close();
        this._onFailure(error);
      }
    }
  }

  close() {
    if (menu.matches(":popover-open")) {
      menu.hidePopover();
    }
  }

  /** Returns wordings, the current one first, each once. */
  async _ask(sentence, signal) {
    const beam = Math.min(MOST, this._beamOf(sentence.model));
    const options = { beam_size: beam, alternatives: beam };
    const translation = await translate(sentence, options, signal);
    const segments = translation.segments ?? [];
    const others = segments.length === 1 ? segments[0].alternatives ?? [] : [translation];
    return [...new Set([sentence.current, ...others.map((each) => each.text)])].slice(0, MOST + 1);
  }

  /** Returns the tokens and the alignment of a wording; undefined where it can't be made to say it. */
  async details(wording, sentence) {
    const options = { ...DETAILS, target_prefix: wording, mend: false };
    const { text, segments } = await translate(sentence, options);
    return text === wording && segments?.length === 1 ? segments[0] : undefined;
  }

  _item(wording, current, onChoose) {
    const item = document.createElement("button");
    item.type = "button";
    item.dir = "auto";
    item.setAttribute("role", "menuitemradio");
    item.setAttribute("aria-checked", String(wording === current));
    item.append(...compared(wording, current));
    item.addEventListener("click", () => {
      const opener = this._opener;
      this.close();
      opener.focus();
      if (wording !== current) {
        onChoose(wording);
      }
    });
    return item;
  }

  _press(event) {
    const items = [...menu.querySelectorAll("button")];
    const from = items.indexOf(document.activeElement);
    const next = {
      ArrowDown: (from + 1) % items.length,
      ArrowUp: (from - 1 + items.length) % items.length,
      Home: 0,
      End: items.length - 1,
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      items[next]?.focus();
    } else if (event.key === "Tab") {
      event.preventDefault();
      this.close();
      this._opener.focus();
    }
  }
}

function translate({ source, model, languages }, options, signal) {
  const request = {
    model,
    source_language: languages.source,
    target_language: languages.target,
    options: { ...options, split_sentences: false },
  };
  return api.translate(source, request, signal);
}

/** Returns a wording with the words in bold that are new, or that follow words left out. */
function compared(wording, current) {
  const words = wording.split(/(?<=\s)/);
  const follows = new Map(commonPlaces(words, current.split(/(?<=\s)/)));
  return words.map((word, place) => {
    const before = place ? follows.get(place - 1) : -1;
    if (follows.has(place) && (before === undefined || follows.get(place) === before + 1)) {
      return word;
    }
    const bold = document.createElement("b");
    bold.textContent = word;
    return bold;
  });
}

function remark(text) {
  const paragraph = document.createElement("p");
  paragraph.lang = "en";
  paragraph.setAttribute("role", "menuitem");
  paragraph.setAttribute("aria-disabled", "true");
  paragraph.textContent = text;
  return paragraph;
}

/** Puts the menu below an element, within the pane that the element is in. */
function place(element) {
  const pane = element.closest(".pane").getBoundingClientRect();
  const { left, bottom } = element.getBoundingClientRect();
  menu.style.maxWidth = `${pane.width - 2 * GAP_PX}px`;
  const most = pane.right - GAP_PX - menu.offsetWidth;
  menu.style.left = `${Math.max(pane.left + GAP_PX, Math.min(left, most)) + scrollX}px`;
  menu.style.top = `${bottom + GAP_PX + scrollY}px`;
  menu.scrollIntoView({ block: "nearest" });
}
