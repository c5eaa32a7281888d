// A translation with another wording of one of its sentences, as the server would have sent it.

/**
 * Returns a translation in which segment `number` says `wording`. `details` are the tokens and the
 * alignment of that wording, where they are known.
 */
export function withWording(translation, number, wording, details = {}) {
  const letters = [...translation.text];
  const { start, end } = spanOf(translation.segments[number].target);
  const written = [...wording];
  const longer = written.length - (end - start);
  const segments = translation.segments.map((segment, place) => {
    const target = spanOf(segment.target);
    if (place < number) {
      return segment;
    }
    if (place > number) {
      return { ...segment, target: { start: target.start + longer, end: target.end + longer } };
    }
    const { tokens, alignment } = details;
    return { ...segment, target: { start, end: end + longer }, tokens, alignment };
  });
  letters.splice(start, end - start, ...written);
  return { ...translation, text: letters.join(""), segments };
}

function spanOf(span) {
  return { start: span?.start ?? 0, end: span?.end ?? 0 };
}
