// Links that hold a text. It is in the fragment, which browsers do not send to any server.

/** Returns the address of this page with a text and its languages. */
export function linkTo({ source, target, text }) {
  const address = new URL(document.baseURI);
  const fields = { ...(source && { from: source }), to: target, text };
  address.hash = new URLSearchParams(fields).toString();
  return address.href;
}

/** Returns what the address of this page holds; undefined where it holds no text. */
export function readLink() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("text")) {
    return undefined;
  }
  return { source: fields.get("from") ?? "", target: fields.get("to"), text: fields.get("text") };
}
