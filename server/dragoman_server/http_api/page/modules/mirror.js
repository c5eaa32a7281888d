// Marks in the text that is typed. A textarea can't have any, so a copy of its text lies behind it,
// in the same place and the same type; it also makes the textarea as high as its text.

const mirror = document.getElementById("mirror");

/** Copies the text, with spans of it marked. */
export function showMarks(text, spans = []) {
  const parts = [];
  let reached = 0;
  for (const { start, end, strong } of spans) {
    parts.push(text.slice(reached, start));
    const mark = document.createElement("mark");
    mark.className = strong ? "" : "weak";
    mark.textContent = text.slice(start, end);
    parts.push(mark);
    reached = end;
  }
  // A line break at the end takes no room without something after it.
  parts.push(text.slice(reached), "\u200b");
  mirror.replaceChildren(...parts);
}
