// Which languages are served, and which of them can be translated into which.

export class Languages {
  /** @param listed `{code, name, targets}` of each language, as the server lists them */
  constructor(listed) {
    this._byCode = new Map(listed.map((language) => [language.code, language]));
    this.sources = sorted(listed.filter((language) => language.targets?.length));
  }

  /** Returns the name of a language; the browser knows those that only are targets. */
  name(code) {
    return this._byCode.get(code)?.name ?? nameInBrowser(code);
  }

  /** Whether there is a choice of sources, so that guessing one makes sense. */
  get canDetect() {
    return this.sources.length > 1;
  }

  canTranslate(source, target) {
    return this._byCode.get(source)?.targets?.includes(target) ?? false;
  }

  /** Returns what can be translated into: from one source, or from any where it is not settled. */
  targets(source) {
    const from = source ? [this._byCode.get(source)] : this.sources;
    const codes = new Set(from.flatMap((language) => language?.targets ?? []));
    return sorted([...codes].map((code) => ({ code, name: this.name(code) })));
  }
}

function nameInBrowser(code) {
  try {
    return new Intl.DisplayNames(navigator.languages, { type: "language" }).of(code) ?? code;
  } catch {
    return code; // not a tag that the browser can read
  }
}

function sorted(languages) {
  return [...languages].sort((one, other) => one.name.localeCompare(other.name));
}
