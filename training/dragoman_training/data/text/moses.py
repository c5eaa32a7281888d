"""Text as published systems saw it: normalised and split into words by the rules of Moses.

Our own models don't need it: SentencePiece learns from text as it is. It is for comparing with
papers whose figures are of such text.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer  # type: ignore[import-untyped]
from sacremoses.corpus import NonbreakingPrefixes  # type: ignore[import-untyped]

from dragoman_training.data.text.corpus import read_lines
from dragoman_training.errors import CorpusError
from dragoman_training.files import staged_text

_CHUNK = 1000


class MosesWords:
    """Lower-cases (if asked to), normalises punctuation, and puts a space between any two words.

    That order is the one in which Multi30k's own script makes its ``lc.norm.tok`` files. Characters
    that are special to Moses' later stages stay as they are, instead of becoming ``&apos;`` and
    the like: that changes how words are spelt, and nothing about which there are.
    """

    def __init__(self, language: str, *, lowercase: bool) -> None:
        code = language.partition("-")[0]
        known = set(NonbreakingPrefixes().available_langs.values())
        if code not in known:  # sacremoses would take the rules of English
            raise CorpusError(
                f"--language {language}: Moses has rules for {', '.join(sorted(known))}"
            )
        self._lowercase = lowercase
        self._normalizer = MosesPunctNormalizer(lang=code)
        self._tokenizer = MosesTokenizer(lang=code)

    def __call__(self, text: str) -> str:
        if self._lowercase:
            text = text.lower()
        text = self._normalizer.normalize(text)
        return " ".join(self._tokenizer.tokenize(text, escape=False))


def tokenize_file(
    source: Path, output: Path, words: Callable[[str], str], watch: Callable[[int], None]
) -> int:
    """Write a line for each line; gzip where the name ends with it. Returns how many there are."""
    count = 0
    with staged_text(output) as lines:
        for line in _watched(read_lines(source), watch):
            lines.write(f"{words(line)}\n".encode())
            count += 1
        if not count:
            raise CorpusError(f"{source}: empty")
    return count


def _watched(lines: Iterable[str], watch: Callable[[int], None]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        yield line
        if number % _CHUNK == 0:
            watch(number)
