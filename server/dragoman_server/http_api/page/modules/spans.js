// Spans of the wire count code points; strings of JavaScript count UTF-16 units.

/** Returns a function from a span of a text to its `{start, end}` in UTF-16 units. */
export function unitSpans(text) {
  const places = [];
  let unit = 0;
  for (const letter of text) {
    places.push(unit);
    unit += letter.length;
  }
  places.push(unit);
  const at = (place) => places[Math.min(place ?? 0, places.length - 1)];
  return (span) => ({ start: at(span?.start), end: at(span?.end) });
}

/** Returns how many code points a text has. */
export function countLetters(text) {
  let count = 0;
  for (const _ of text) {
    count += 1;
  }
  return count;
}
