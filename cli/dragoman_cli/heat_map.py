"""An alignment as a picture, word by word. Needs matplotlib."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from dragoman_cli.pictures import save
from dragoman_client._results import Alignment

_WORD_BEGINS = "▁"
"""What SentencePiece writes in place of a space."""
_END = "</s>"
_BYTES = re.compile(r"(<0x[0-9A-F]{2}>)+")
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that put no space between words: their pieces stay as they are."""


def draw(alignment: Alignment, path: Path) -> None:
    from matplotlib.figure import Figure

    sources, targets, weights = by_words(alignment)
    figure = Figure(
        figsize=(2 + 0.4 * len(sources), 1.5 + 0.35 * len(targets)), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(sources)), _plain(sources), rotation=60, ha="left")
    axes.set_yticks(range(len(targets)), _plain(targets))
    axes.xaxis.tick_top()
    save(figure, path)


def by_words(alignment: Alignment) -> tuple[list[str], list[str], list[list[float]]]:
    """Join the pieces of words. Returns source words, target words, and a row for each of these.

    What a piece looks at of a word is the sum over the word's pieces; what a word looks at is the
    mean over its own. So each row still sums to 1.
    """
    sources, targets = (words_of(p) for p in (alignment.source_pieces, alignment.target_pieces))
    rows = [
        [sum(row[place] for place in places) for _, places in sources] for row in alignment.weights
    ]
    joined = [
        [
            sum(column) / len(places)
            for column in zip(*(rows[place] for place in places), strict=True)
        ]
        for _, places in targets
    ]
    return [word for word, _ in sources], [word for word, _ in targets], joined


def words_of(pieces: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return each word with the places of its pieces. Marks before and after a word are apart."""
    groups: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if groups and not piece.startswith(_WORD_BEGINS) and piece != _END:
            groups[-1].append(place)
        else:
            groups.append([place])
    return [
        (_spelling([pieces[place] for place in places]), places)
        for group in groups
        for places in _cut(group, pieces)
    ]


def _cut(group: list[int], pieces: Sequence[str]) -> list[list[int]]:
    """Cut what stands between two spaces into words. A space that is a piece joins the first."""
    if len(group) > 1 and pieces[group[0]] == _WORD_BEGINS:
        first, *others = _without_marks(group[1:], pieces)
        return [[group[0], *first], *others]
    return _without_marks(group, pieces)


def _without_marks(group: list[int], pieces: Sequence[str]) -> list[list[int]]:
    """Cut pieces into marks, a word, and marks again; pieces of other scripts are all apart."""
    if any(_is_without_spaces(letter) for place in group for letter in pieces[place]):
        return [[place] for place in group]
    inside = [place for place in group if not _is_marks(pieces[place])]
    if not inside:
        return [[place] for place in group]
    before = [[place] for place in group if place < inside[0]]
    after = [[place] for place in group if place > inside[-1]]
    return [*before, list(range(inside[0], inside[-1] + 1)), *after]


def _spelling(pieces: Sequence[str]) -> str:
    """Return pieces as one text; what is spelt in bytes is decoded."""
    text = "".join(pieces).replace(_WORD_BEGINS, "")
    return _BYTES.sub(
        lambda found: bytes.fromhex(re.sub("<0x|>", "", found[0])).decode(errors="replace"), text
    )


def _is_marks(piece: str) -> bool:
    text = piece.replace(_WORD_BEGINS, "")
    is_special = piece == _END or _BYTES.fullmatch(piece) is not None
    return not is_special and all(unicodedata.category(letter)[0] in "PS" for letter in text)


def _is_without_spaces(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_WITHOUT_SPACES)


def _plain(words: Sequence[str]) -> list[str]:
    return [word.replace("$", r"\$") for word in words]  # a lone dollar would begin a formula
