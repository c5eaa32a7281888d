// The server's JSON API: one function a call, and errors as exceptions. Addresses are relative, so
// that the page also works below a path of a proxy.

import { readEvents } from "./events.js";
import { currentKey } from "./keys.js";

const TEMPORARY = ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"];

/** What the server answered in place of a result. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error?.message || `The server answered with status ${status}.`);
    this.status = status;
    this.code = error?.code ?? "";
    /** Seconds after which to come back; undefined where the server does not say. */
    this.retryAfter = error?.retry_after;
  }

  get wantsKey() {
    return this.status === 401;
  }

  /** Whether the same request may succeed later: in a stream only the code tells. */
  get isTemporary() {
    return [429, 502, 503, 504].includes(this.status) || TEMPORARY.includes(this.code);
  }
}

/** Nobody answered, or the answer broke off. */
export class ConnectionError extends Error {}

async function send(path, body, signal) {
  const headers = {};
  const key = currentKey();
  if (key) {
    headers.Authorization = `Bearer ${key}`;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  const response = await connected(signal, () =>
    fetch(new URL(path, document.baseURI), {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal,
    }),
  );
  if (!response.ok) {
    const answer = await response.json().catch(() => undefined);
    throw new ApiError(response.status, answer?.error);
  }
  return response;
}

/** Runs what reads from the network; an abort stays an abort, all else is a lost connection. */
async function connected(signal, read) {
  try {
    return await read();
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof ApiError ? error : new ConnectionError(error.message);
  }
}

async function call(path, body, signal) {
  const response = await send(path, body, signal);
  return connected(signal, () => response.json());
}

/** Returns the languages that are served: `{code, name, targets}` of each. */
export async function listLanguages(signal) {
  return (await call("v1/languages", undefined, signal)).languages ?? [];
}

export async function listModels(signal) {
  return (await call("v1/models", undefined, signal)).models ?? [];
}

/** Returns the code of the language that a text is most likely in; undefined where none is. */
export async function detect(text, signal) {
  const { detections } = await call("v1/detect", { texts: [text] }, signal);
  return detections?.[0]?.languages?.[0]?.language;
}

/** Returns the translation of one text; `request` has the other fields of TranslateRequest. */
export async function translate(text, request, signal) {
  const { translations } = await call("v1/translate", { ...request, texts: [text] }, signal);
  return translations[0];
}

/** Returns the translation of a text, and hands on its deltas as they come. */
export async function stream(text, request, signal, onDelta) {
  const response = await send("v1/stream", { ...request, text }, signal);
  return connected(signal, async () => {
    for await (const event of readEvents(response.body)) {
      const data = JSON.parse(event.data);
      if (event.type === "error") {
        throw new ApiError(response.status, data.error);
      }
      if (data.delta) {
        onDelta(data.delta);
      }
      if (data.translation) {
        return data.translation;
      }
    }
    throw new Error("the stream ended without its translation");
  });
}
