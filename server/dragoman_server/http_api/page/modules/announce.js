// What is said to people in passing: to all of them in a note that goes away, or only to those who
// listen to a screen reader.

const NOTE_MS = 2000;

const status = document.getElementById("status");
const toast = document.getElementById("toast");
let hiding;

/** Says something to screen readers when they are done with what they are saying. */
export function announce(text, language = "en") {
  status.lang = language;
  status.textContent = text;
}

/** Shows a note for a moment. */
export function note(text) {
  announce(text);
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => {
    toast.hidden = true;
  }, NOTE_MS);
}
