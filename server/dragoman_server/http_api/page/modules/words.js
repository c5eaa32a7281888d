// Words of a sentence, and which pieces of the model's vocabulary they were written with.
//
// Pieces do not spell the text exactly: what is kept as it is stands there as a placeholder, and
// some letters are normalised. So both are compared letter by letter, and what only the text has
// belongs to the pieces that stand in its place.

import { commonPlaces } from "./common.js";

const segmenters = new Map();

/**
 * Returns the words of a sentence, in order: `{start, end, pieces}`, the places of the pieces that
 * a word has letters of. `pieces` are spellings, without the end token; "▁" stands for a space.
 */
export function wordsOf(text, language, pieces) {
  const owners = ownersOf(text, pieces);
  return spansOfWords(text, language).map(({ start, end }) => ({
    start,
    end,
    pieces: [...new Set(owners.slice(start, end))].filter((piece) => piece >= 0),
  }));
}

function spansOfWords(text, language) {
  return [...segmenterOf(language).segment(text)]
    .filter((segment) => segment.isWordLike)
    .map(({ index, segment }) => ({ start: index, end: index + segment.length }));
}

/** Returns what finds words of a language; each is made once, because making one takes long. */
function segmenterOf(language) {
  if (!segmenters.has(language)) {
    const segmenter = new Intl.Segmenter(supported(language), { granularity: "word" });
    segmenters.set(language, segmenter);
  }
  return segmenters.get(language);
}

function supported(language) {
  try {
    return Intl.Segmenter.supportedLocalesOf(language);
  } catch {
    return []; // not a tag that the browser can read: its own language's rules
  }
}

/** Returns, for each UTF-16 unit of a text, the place of the piece that it was written with. */
function ownersOf(text, pieces) {
  const letters = [];
  const places = [];
  pieces.forEach((piece, place) => {
    for (const unit of piece.replaceAll("▁", " ").split("")) {
      letters.push(unit);
      places.push(place);
    }
  });
  const owners = new Array(text.length).fill(-1);
  const anchors = [[-1, -1], ...commonPlaces(letters, text.split("")), [letters.length, text.length]];
  for (let number = 1; number < anchors.length; number += 1) {
    const [letter, unit] = anchors[number];
    if (unit < text.length) {
      owners[unit] = places[letter];
    }
    const [letterBefore, unitBefore] = anchors[number - 1];
    spread(owners, unitBefore + 1, unit, places.slice(letterBefore + 1, letter), places[letterBefore]);
  }
  return owners;
}

/** Gives units of the text that no piece spells to the pieces that spell nothing of the text. */
function spread(owners, start, end, idle, before = -1) {
  for (let unit = start; unit < end; unit += 1) {
    const share = Math.floor(((unit - start) / (end - start)) * idle.length);
    owners[unit] = idle[share] ?? before;
  }
}
