"""The text of HTML: taken out of its markup to be translated, and put back into it.

Each run of text between two tags is translated for itself. What is not text for readers stays as it
is: scripts, styles, code, and what ``translate="no"`` or the class ``notranslate`` says so of.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence

_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
_IN_TAG = re.compile(r"""[^"'>]*""")
_UNTRANSLATED = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b)""",
    re.IGNORECASE,
)
_RAW = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in ("script", "style")}
"""Elements whose content has no tags, and how they end."""
_VERBATIM = {"code", "kbd", "samp", "var", "pre", "textarea", "svg", "math"}
_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"),
    *("track", "wbr"),
}


class HtmlText:
    """A piece of HTML, of which ``texts`` are to be translated."""

    def __init__(self, source: str) -> None:
        self._pieces = list(_pieces(source))
        self.texts = [html.unescape(piece) for piece, is_text in self._pieces if is_text]
        """Runs of text, with characters in place of their entities."""

    def with_translations(self, translations: Sequence[str]) -> str:
        """Return the HTML with each text's translation in its place, escaped again."""
        rest = iter(translations)
        return "".join(
            html.escape(next(rest), quote=False) if is_text else piece
            for piece, is_text in self._pieces
        )


def _pieces(source: str) -> Iterator[tuple[str, bool]]:
    """Yield markup and runs of text in order, and whether each is text to be translated."""
    verbatim = _Verbatim()
    begun = at = 0
    while (at := source.find("<", at)) >= 0:
        end = _markup_end(source, at)
        if end is None:
            at += 1  # a character like others
            continue
        yield from _run(source[begun:at], verbatim.is_open)
        markup = source[at:end]
        name = _NAME.match(markup)
        element = name[1].lower() if name else ""
        if element in _RAW and not markup.startswith("</"):
            close = _RAW[element].search(source, end)  # what looks like tags before it is none
            end = close.start() if close else len(source)
            markup = source[at:end]
        elif element:
            verbatim.follow(element, markup)
        yield markup, False
        begun = at = end
    yield from _run(source[begun:], verbatim.is_open)


def _markup_end(source: str, at: int) -> int | None:
    """Return where the markup ends that begins here; None where it is text.

    Looks at each character once, however the markup is broken.
    """
    if source.startswith("<!--", at):
        end = source.find("-->", at + 4)
        return end + 3 if end >= 0 else len(source)
    if source.startswith("<![CDATA[", at):
        end = source.find("]]>", at)
        return end + 3 if end >= 0 else len(source)
    if source.startswith(("<!", "<?"), at):
        end = source.find(">", at)
        return end + 1 if end >= 0 else len(source)
    name = _NAME.match(source, at)
    if name is None:
        return None
    place = name.end()
    while True:
        place = _IN_TAG.match(source, place).end()  # type: ignore[union-attr] # it always matches
        if source[place : place + 1] == ">":
            return place + 1
        closing = source.find(source[place], place + 1) if place < len(source) else -1
        if closing < 0:
            return len(source)  # a tag that is never closed hides all that follows, as in browsers
        place = closing + 1


class _Verbatim:
    """Elements that are open, from one on whose text is not to be translated."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()

    @property
    def is_open(self) -> bool:
        return bool(self._names)

    def follow(self, element: str, tag: str) -> None:
        """Take note of a tag."""
        if tag.startswith("</"):
            while self._counts[element]:
                name = self._names.pop()
                self._counts[name] -= 1
                if name == element:
                    break
        elif element not in _VOID and not tag.endswith("/>"):
            is_verbatim = element in _VERBATIM or _UNTRANSLATED.search(tag) is not None
            if self._names or is_verbatim:
                self._names.append(element)
                self._counts[element] += 1


def _run(text: str, is_verbatim: bool) -> Iterator[tuple[str, bool]]:
    if text:
        yield text, not is_verbatim and not text.isspace()
