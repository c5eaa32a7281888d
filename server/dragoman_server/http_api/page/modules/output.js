// The translation as it is shown: growing at first, then as sentences and words that answer to the
// pointer and the keyboard.
//
// A screen reader meets each sentence as one button, so that it reads whole sentences. The output is
// one stop of the Tab key; arrows go on from there.

import { announce } from "./announce.js";

const output = document.getElementById("output");
const PLACEHOLDER = "The translation appears here";

export class Output {
  /**
   * @param onWord runs with the spans of the source that a word was made from; with none at the end
   * @param onSentence runs with the number of a sentence that was picked, and its element
   */
  constructor({ onWord, onSentence }) {
    this._onWord = onWord;
    this._onSentence = onSentence;
    this._sentences = [];
    this._source = "";
    this._word = undefined;
    output.addEventListener("pointerover", (event) => this._point(event.target.closest(".word")));
    output.addEventListener("pointerleave", () => this._point(undefined));
    output.addEventListener("focusout", () => this._point(undefined));
    output.addEventListener("keydown", (event) => this._press(event));
    output.addEventListener("click", (event) => {
      const sentence = event.target.closest(".sentence");
      if (sentence && getSelection().isCollapsed) {
        this._pick(sentence);
      }
    });
    this.clear();
  }

  /** The translation as it is shown. */
  get text() {
    return output.textContent;
  }

  /** Shows that there is nothing. */
  clear() {
    this._reset();
    const placeholder = document.createElement("span");
    placeholder.className = "placeholder";
    placeholder.textContent = PLACEHOLDER;
    output.replaceChildren(placeholder);
  }

  /** Shows that another translation is on its way; the one before stays until it comes. */
  wait() {
    output.setAttribute("aria-busy", "true");
    output.style.minHeight = `${output.offsetHeight}px`; // what stands below it stays where it is
    output.classList.remove("growing");
    output.classList.add("waiting");
    this._point(undefined);
    this._sentences = [];
  }

  /** Shows a translation that is not complete yet. */
  grow(text, language) {
    output.lang = language;
    output.classList.remove("waiting");
    output.classList.add("growing");
    output.textContent = text;
  }

  /** Shows a translation, given its sentences and the text that they were made from. */
  show(text, sentences, source, language) {
    const focused = output.contains(document.activeElement)
      ? this._elements().indexOf(document.activeElement)
      : -1;
    this._reset();
    this._sentences = sentences;
    this._source = source;
    output.lang = language;
    output.replaceChildren(...between(text, sentences, sentenceElement));
    this._elements().forEach((element, number) => {
      element.dataset.number = number;
      element.tabIndex = number === Math.max(0, focused) ? 0 : -1;
    });
    this.focus(focused);
  }

  /** Moves the keyboard's focus to a sentence. */
  focus(number) {
    this._elements()[number]?.focus();
  }

  _reset() {
    output.classList.remove("waiting", "growing");
    output.setAttribute("aria-busy", "false");
    output.style.minHeight = "";
    this._point(undefined);
    this._sentences = [];
  }

  _elements() {
    return [...output.querySelectorAll(".sentence")];
  }

  _point(word) {
    const element = word ?? undefined;
    if (element === this._word) {
      return;
    }
    this._word?.classList.remove("current");
    this._word = element;
    element?.classList.add("current");
    this._onWord(element ? this._sourcesOf(element) : []);
  }

  _sourcesOf(word) {
    const sentence = word.closest(".sentence");
    const number = [...sentence.querySelectorAll(".word")].indexOf(word);
    return this._sentences[Number(sentence.dataset.number)]?.words[number]?.sources ?? [];
  }

  _press(event) {
    const sentence = event.target.closest(".sentence");
    if (!sentence) {
      return;
    }
    const forward = getComputedStyle(output).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const actions = {
      ArrowLeft: () => this._stepWord(sentence, forward === "ArrowLeft" ? 1 : -1),
      ArrowRight: () => this._stepWord(sentence, forward === "ArrowRight" ? 1 : -1),
      ArrowUp: () => this._stepSentence(sentence, -1),
      ArrowDown: () => this._stepSentence(sentence, 1),
      Enter: () => this._pick(sentence),
      " ": () => this._pick(sentence),
      Escape: () => this._point(undefined),
    };
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  }

  _stepWord(sentence, step) {
    const words = [...sentence.querySelectorAll(".word")];
    const from = words.indexOf(this._word);
    const word = words[from < 0 ? (step > 0 ? 0 : words.length - 1) : from + step];
    if (!word) {
      return;
    }
    this._point(word);
    const made = this._sourcesOf(word)
      .filter(({ strong }) => strong)
      .map(({ start, end }) => this._source.slice(start, end))
      .join(" ");
    const unsure = word.classList.contains("unsure") ? ", uncertain" : "";
    announce(`${word.textContent}${made && `, from ${made}`}${unsure}`);
  }

  _stepSentence(sentence, step) {
    const elements = this._elements();
    const next = elements[elements.indexOf(sentence) + step];
    if (next) {
      sentence.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  }

  _pick(sentence) {
    this._onSentence(Number(sentence.dataset.number), sentence);
  }
}

/** Returns nodes for a text: those made of its parts, and what stands between the parts. */
function between(text, parts, make, offset = 0) {
  const nodes = [];
  let reached = 0;
  for (const part of parts) {
    nodes.push(text.slice(reached, part.start - offset), make(part, text, offset));
    reached = part.end - offset;
  }
  nodes.push(text.slice(reached));
  return nodes.filter((node) => node !== "");
}

function sentenceElement(sentence, text, offset) {
  const element = document.createElement("span");
  element.className = "sentence";
  element.setAttribute("role", "button");
  element.setAttribute("aria-haspopup", "menu");
  element.setAttribute("aria-describedby", "keyboard-help");
  const own = text.slice(sentence.start - offset, sentence.end - offset);
  element.append(...between(own, sentence.words, wordElement, sentence.start));
  return element;
}

function wordElement(word, text, offset) {
  const element = document.createElement("span");
  element.className = word.unsure ? "word unsure" : "word";
  element.textContent = text.slice(word.start - offset, word.end - offset);
  return element;
}
