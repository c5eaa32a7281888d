"""Texts with markup: random ones, and what has to hold of tags in any."""

import re
from html.parser import HTMLParser

from hypothesis import strategies as st

WORDS = ("the", "red car", "Hello", "world.", "is", "1,250", "naïve", "a&amp;b", "&eacute;", "x,")
INLINE = ("b", "i", "a", "span", "x1")
POINTS = ("<img>", "<x2/>", "<!-- c -->", "<wbr>", "<i></i>", "<b> </b>")


def _joined(parts: list[str]) -> str:
    return "".join(parts)


_LEAVES = (
    st.sampled_from(WORDS) | st.sampled_from((" ", " ", " ", ". ", "\n")) | st.sampled_from(POINTS)
)
INLINE_HTML = st.recursive(
    _LEAVES,
    lambda inner: (
        st.tuples(st.sampled_from(INLINE), st.lists(inner, max_size=4).map(_joined)).map(
            lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0]}>"
        )
        | st.lists(inner, max_size=4).map(_joined)
    ),
    max_leaves=14,
)
"""Words, tags around them and points between them; balanced, and one line of thought."""
HTML = st.lists(
    INLINE_HTML
    | st.sampled_from(
        (
            *("<p>", "</p>", "<br>", "<li>", "<b>", "</b>", "</i>", "<code>f(x)</code>", "&copy;"),
            *("<pre>a\n b</pre>", "<script>a<b</script>", "<div class=notranslate>Hi</div>", "<"),
            *('<img alt="A dog">', "<a title='Go home. Now.'>", "<!--", "&", "\n\n", "日本。"),
        )
    ),
    max_size=8,
).map(_joined)
"""Anything that may be sent as HTML, also what is broken."""

_TAG = re.compile(r"<!--.*?-->|</?[a-z][a-z0-9]*[^<>]*>", re.DOTALL)


def tags_of(text: str) -> list[str]:
    """Return the tags and comments of a text, in order."""
    return _TAG.findall(text)


def without_tags(text: str) -> str:
    return _TAG.sub("", text)


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.is_balanced = True

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("img", "wbr", "br"):
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.is_balanced = bool(self.opened) and self.opened.pop() == tag and self.is_balanced


def is_balanced(text: str) -> bool:
    """Whether each start tag has its end tag, one within the other."""
    parser = _Balance()
    parser.feed(text)
    parser.close()
    return parser.is_balanced and not parser.opened


def empty_elements(text: str) -> int:
    """Return how many elements have no text."""
    count, stack = 0, [0]
    for piece in re.split(r"(<[^<>]*>)", text):
        if re.fullmatch(r"<[a-z][^<>]*[^/]>|<[a-z]>", piece) and piece not in ("<img>", "<wbr>"):
            stack.append(0)
        elif piece.startswith("</"):
            letters = stack.pop()
            count += not letters
            stack[-1] += letters
        elif not piece.startswith("<"):
            stack[-1] += len(piece.strip())
    return count
