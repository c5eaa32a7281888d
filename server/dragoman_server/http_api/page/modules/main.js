// The page put together: what is typed, what is shown, and what happens when something fails.

import { sentencesOf } from "./alignment.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { copy } from "./clipboard.js";
import { Connection } from "./connection.js";
import { askForKey, prepareKeys } from "./keys.js";
import { Languages } from "./languages.js";
import { linkTo, readLink } from "./link.js";
import { showMarks } from "./mirror.js";
import { Output } from "./output.js";
import { Pickers } from "./pickers.js";
import { withWording } from "./replacing.js";
import { countLetters } from "./spans.js";
import { Translator, UnknownLanguageError } from "./translator.js";
import { Wordings } from "./wordings.js";

const MAX_LETTERS = 5000;

const text = document.getElementById("text");
const sheet = text.parentElement; // with the mirror, which has to look the same
const counter = document.getElementById("counter");
const notice = document.getElementById("notice");
const model = document.getElementById("model");
const legend = document.getElementById("legend");
const copyButton = document.getElementById("copy");
const clearButton = document.getElementById("clear");
const linkButton = document.getElementById("link");

/** What is shown: `{job, translation}`; undefined where nothing is, or not yet. */
let shown;
let models = new Map();

const pickers = new Pickers({ onChange: () => changed({ atOnce: true }), onSwap: swapTexts });
const output = new Output({
  onWord: (sources) => showMarks(text.value, isCurrent() ? sources : []),
  onSentence: openWordings,
});
const wordings = new Wordings({
  beamOf: (name) => models.get(name)?.max_beam_size ?? 1,
  onFailure: failed,
});
const connection = new Connection(load, () => translator.now());
const translator = new Translator(currentJob, {
  begins(job) {
    shown = undefined;
    sheet.lang = job.source ?? "";
    hideNotice();
    output.wait();
  },
  detects(language) {
    pickers.detected(language);
    sheet.lang = language;
    return pickers.target;
  },
  grows: (grown) => output.grow(grown, pickers.target),
  ends(job, translation) {
    connection.worked();
    show(job, translation);
    announce(translation.text ?? "", job.target);
  },
  fails(error) {
    output.wait();
    failed(error);
  },
});

text.addEventListener("input", () => changed());
clearButton.addEventListener("click", () => {
  setText("");
  text.focus();
});
copyButton.addEventListener("click", () => copy(output.text, "Translation"));
linkButton.addEventListener("click", () => {
  const source = pickers.detects ? "" : pickers.source;
  const address = linkTo({ source, target: pickers.target, text: text.value });
  history.replaceState(null, "", address);
  copy(address, "Link");
});
window.addEventListener("hashchange", openLink);
prepareKeys(start);
openLink();
start();

/** Asks the server what it has, and begins. */
async function start() {
  try {
    await load();
    connection.worked();
  } catch (error) {
    failed(error);
    return;
  }
  if (pickers.isReady) {
    translator.now();
  } else {
    showNotice("The models of this server do not say which languages they translate between.");
  }
}

async function load() {
  const [languages, listed] = await Promise.all([api.listLanguages(), api.listModels()]);
  models = new Map(listed.map((each) => [each.name, each]));
  pickers.show(new Languages(languages));
}

function openLink() {
  const held = readLink();
  if (held) {
    pickers.choose(held);
  }
  setText(held?.text ?? text.value); // a browser may have kept what was typed before a reload
}

function setText(value) {
  text.value = value;
  changed({ atOnce: true });
}

function swapTexts() {
  setText(shown && isCurrent() ? shown.translation.text : text.value);
}

/** Takes note that the text or the languages are others. */
function changed({ atOnce = false } = {}) {
  wordings.close();
  showMarks(text.value);
  count();
  if (!text.value.trim()) {
    translator.stop();
    hideNotice();
    showNothing();
  } else if (isTooLong()) {
    translator.stop();
    showNotice("The text is too long. It is translated as soon as it is short enough.");
  } else if (atOnce) {
    translator.now();
  } else {
    translator.soon();
  }
}

function currentJob() {
  if (!pickers.isReady || connection.isLost || !text.value.trim() || isTooLong()) {
    return undefined;
  }
  const source = pickers.detects ? undefined : pickers.source;
  return { text: text.value, source, target: pickers.target };
}

function isTooLong() {
  return countLetters(text.value) > MAX_LETTERS;
}

/** Whether what is shown was made from the text as it stands. */
function isCurrent() {
  return shown?.job.text === text.value;
}

function count() {
  const letters = countLetters(text.value);
  const number = new Intl.NumberFormat("en");
  const over = letters - MAX_LETTERS;
  counter.textContent =
    over > 0
      ? `${number.format(over)} characters too many`
      : `${number.format(letters)} / ${number.format(MAX_LETTERS)}`;
  counter.classList.toggle("wrong", over > 0);
  text.setAttribute("aria-invalid", String(over > 0));
  clearButton.disabled = linkButton.disabled = !text.value;
}

function show(job, translation) {
  shown = { job, translation };
  const sentences = sentencesOf(job.text, translation, job);
  output.show(translation.text ?? "", sentences, job.text, job.target);
  model.textContent = translation.model ? `Translated by ${translation.model}` : "";
  copyButton.disabled = legend.hidden = false;
}

function showNothing() {
  shown = undefined;
  output.clear();
  model.textContent = "";
  copyButton.disabled = legend.hidden = true;
}

function openWordings(number, element) {
  if (!shown) {
    return; // another translation is on its way
  }
  const { job, translation } = shown;
  const { start, end, source } = sentencesOf(job.text, translation, job)[number];
  const sentence = {
    source: job.text.slice(source.start, source.end),
    current: translation.text.slice(start, end),
    model: translation.model,
    languages: { source: job.source, target: job.target },
  };
  wordings.open(element, sentence, async (wording) => {
    show(job, withWording(translation, number, wording));
    output.focus(number);
    const chosen = shown;
    const details = await wordings.details(wording, sentence).catch(() => undefined);
    if (details && shown === chosen) {
      show(job, withWording(translation, number, wording, details));
    }
  });
}

/** Does what there is to do about an error of a call. */
function failed(error) {
  if (error.wantsKey) {
    askForKey();
  } else if (error instanceof api.ConnectionError) {
    connection.lost("The server can't be reached.");
  } else if (error.isTemporary) {
    const busy = error.status === 429 || error.code === "RESOURCE_EXHAUSTED";
    connection.lost(busy ? "The server is busy." : "The server is not ready.", error.retryAfter);
  } else if (error instanceof UnknownLanguageError) {
    showNotice("The language was not recognised. Choose it above.");
  } else {
    showNotice(error.message);
  }
}

function showNotice(message) {
  showNothing();
  notice.textContent = message;
  notice.hidden = false;
}

function hideNotice() {
  notice.hidden = true;
}
