// A server that does not answer, or has no time: says so, tries again after growing delays, and
// tells when it is back.

const FIRST_DELAY_S = 1;
const MAX_DELAY_S = 30;
const SECOND_MS = 1000;

const banner = document.getElementById("banner");
const reasonText = document.getElementById("banner-reason");
const waitText = document.getElementById("banner-wait");

export class Connection {
  /**
   * @param probe resolves when the server answers
   * @param onRegained runs when it does so again
   */
  constructor(probe, onRegained) {
    this._probe = probe;
    this._onRegained = onRegained;
    this._delay = FIRST_DELAY_S;
    this._timer = undefined;
    document.getElementById("banner-retry").addEventListener("click", () => this._try());
  }

  get isLost() {
    return !banner.hidden;
  }

  /** Takes note that the server is away; `retryAfter` are seconds that it asked for, if it did. */
  lost(reason, retryAfter = 0) {
    if (reasonText.textContent !== reason || banner.hidden) {
      reasonText.textContent = reason;
    }
    banner.hidden = false;
    this._wait(Math.min(MAX_DELAY_S, Math.max(this._delay, retryAfter)));
    this._delay = Math.min(MAX_DELAY_S, 2 * this._delay);
  }

  _wait(seconds) {
    clearTimeout(this._timer);
    const left = Math.ceil(seconds);
    waitText.textContent = `Trying again in ${left} s.`;
    this._timer =
      left > 0
        ? setTimeout(() => this._wait(left - 1), SECOND_MS)
        : setTimeout(() => this._try(), 0);
  }

  async _try() {
    clearTimeout(this._timer);
    waitText.textContent = "Trying again…";
    try {
      await this._probe();
    } catch (error) {
      if (!error.wantsKey) {
        this.lost(reasonText.textContent, error.retryAfter);
        return;
      }
    }
    banner.hidden = true;
    this._onRegained();
  }

  /** Takes note that the server did what it was asked for. */
  worked() {
    this._delay = FIRST_DELAY_S;
    clearTimeout(this._timer);
    banner.hidden = true;
  }
}
