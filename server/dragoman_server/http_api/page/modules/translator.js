// When to translate what: a little after the last key, one text at a time, the newest only.

import * as api from "./api.js";

const PAUSE_MS = 250;
const MAX_PAUSE_MS = 1000;
export const DETAILS = { token_scores: true, alignment: true };

/** The language of a text was asked for, and none of those that are served is likely. */
export class UnknownLanguageError extends Error {}

export class Translator {
  /**
   * @param job returns what is to be translated now: `{text, source, target}`, of which `source` is
   *   undefined where it is to be detected; undefined where there is nothing to do
   * @param on has the functions `begins`, `detects`, `grows`, `ends` and `fails`; `detects` returns
   *   the language to translate into
   */
  constructor(job, on) {
    this._job = job;
    this._on = on;
    this._running = new AbortController();
    this._timer = undefined;
    this._since = undefined;
  }

  /** Translates soon: at a pause in typing, and now and then where there is none. */
  soon() {
    this._since ??= performance.now();
    const left = this._since + MAX_PAUSE_MS - performance.now();
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this.now(), Math.max(0, Math.min(PAUSE_MS, left)));
  }

  /** Translates at once. What was under way is given up. */
  async now() {
    this.stop();
    const job = this._job();
    if (!job) {
      return;
    }
    const { signal } = (this._running = new AbortController());
    this._on.begins(job);
    try {
      const source = job.source ?? (await api.detect(job.text, signal));
      if (!source) {
        throw new UnknownLanguageError();
      }
      const target = job.source ? job.target : this._on.detects(source);
      const request = { source_language: source, target_language: target, options: DETAILS };
      let grown = "";
      const translation = await api.stream(job.text, request, signal, (delta) => {
        grown += delta;
        this._on.grows(grown);
      });
      this._on.ends({ text: job.text, source, target }, translation);
    } catch (error) {
      if (!signal.aborted) {
        this._on.fails(error);
      }
    }
  }

  /** Gives up what is under way and what was to come. */
  stop() {
    clearTimeout(this._timer);
    this._since = undefined;
    this._running.abort();
  }
}
