// Copying, also where the browser keeps the clipboard from pages that came without TLS.

import { note } from "./announce.js";

/** Copies a text, and says so. */
export async function copy(text, what) {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
    } else if (!copyBySelection(text)) {
      throw new Error("refused");
    }
    note(`${what} copied`);
  } catch {
    note("The browser does not allow copying");
  }
}

function copyBySelection(text) {
  const area = document.createElement("textarea");
  const focused = document.activeElement;
  area.className = "hidden";
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}
