// The key that the server knows this reader by. It lives as long as the tab.

import { Kept } from "./storage.js";

const kept = new Kept(() => sessionStorage, "dragoman.key");

const dialog = document.getElementById("key-dialog");
const input = document.getElementById("key-input");
const reason = document.getElementById("key-reason");
const button = document.getElementById("key-button");
const advice = reason.textContent;

export function currentKey() {
  return kept.get();
}

/** Prepares the dialog; `onKey` runs when a key was given. */
export function prepareKeys(onKey) {
  button.hidden = !currentKey();
  button.addEventListener("click", () => open(advice));
  document.getElementById("key-cancel").addEventListener("click", () => dialog.close());
  document.getElementById("key-form").addEventListener("submit", () => {
    kept.set(input.value.trim());
    onKey();
  });
}

/** Asks for a key, because the server did: for the first time, or because it knows no such key. */
export function askForKey() {
  button.hidden = false;
  open(currentKey() ? "The server does not know this key." : advice);
}

function open(text) {
  reason.textContent = text;
  reason.classList.toggle("wrong", text !== advice);
  if (!dialog.open) {
    dialog.showModal();
  }
  input.select();
}
