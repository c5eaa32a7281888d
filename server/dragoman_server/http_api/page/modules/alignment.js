// What the words of a translation were made from, and how sure the model was of them.

import { unitSpans } from "./spans.js";
import { wordsOf } from "./words.js";

const LEAST_WEIGHT = 0.12;
const STRONG_SHARE_OF_BEST = 0.6;
const UNSURE_BELOW = Math.log(0.35);

/**
 * Returns the sentences of a translation, in order: `{start, end, source, words}` with spans of both
 * texts in UTF-16 units. A word is `{start, end, sources, unsure}`; `sources` are spans of the
 * source text, `strong` where the word was mostly made from there.
 */
export function sentencesOf(text, translation, languages) {
  const inSource = unitSpans(text);
  const inTarget = unitSpans(translation.text ?? "");
  return (translation.segments ?? []).map((segment) => {
    const source = inSource(segment.source);
    const target = inTarget(segment.target);
    return {
      ...target,
      source,
      words: alignedWords(
        segment,
        text.slice(source.start, source.end),
        (translation.text ?? "").slice(target.start, target.end),
        languages,
      ).map((word) => ({
        ...word,
        start: word.start + target.start,
        end: word.end + target.start,
        sources: word.sources.map((span) => ({
          ...span,
          start: span.start + source.start,
          end: span.end + source.start,
        })),
      })),
    };
  });
}

function alignedWords(segment, sourceText, targetText, languages) {
  const tokens = (segment.tokens ?? []).slice(0, -1); // the last is the end token
  const alignment = segment.alignment;
  const sources = wordsOf(sourceText, languages.source, alignment?.source_pieces?.slice(0, -1) ?? []);
  const targets = wordsOf(
    targetText,
    languages.target,
    alignment?.target_pieces?.slice(0, -1) ?? tokens.map((token) => token.piece),
  );
  return targets.map(({ start, end, pieces }) => ({
    start,
    end,
    sources: madeFrom(pieces, sources, alignment?.rows ?? []),
    unsure: pieces.some((place) => (tokens[place]?.log_prob ?? 0) < UNSURE_BELOW),
  }));
}

/** Returns the source words that a word's pieces looked at most, in the order of the source. */
function madeFrom(pieces, sources, rows) {
  const weights = sources.map((source) => {
    let sum = 0;
    for (const piece of pieces) {
      for (const place of source.pieces) {
        sum += rows[piece]?.weights?.[place] ?? 0;
      }
    }
    return sum / Math.max(1, pieces.length);
  });
  const strong = STRONG_SHARE_OF_BEST * Math.max(0, ...weights);
  return sources
    .map(({ start, end }, number) => ({ start, end, weight: weights[number] }))
    .filter(({ weight }) => weight >= LEAST_WEIGHT)
    .map(({ start, end, weight }) => ({ start, end, strong: weight >= strong }));
}
