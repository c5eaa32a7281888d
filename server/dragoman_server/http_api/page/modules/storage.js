// Values that the browser keeps for this page. Where it is told to keep nothing, they last as long
// as the page is open.

export class Kept {
  /** @param area returns the browser's storage; looking at it is an error where it is forbidden */
  constructor(area, name) {
    this._area = area;
    this._name = name;
    this._value = "";
  }

  get() {
    try {
      return this._area().getItem(this._name) ?? "";
    } catch {
      return this._value;
    }
  }

  set(value) {
    this._value = value;
    try {
      this._area().setItem(this._name, value);
    } catch {
      // forbidden or full: what is remembered here has to do
    }
  }
}
