"""Which target tokens translate which source tokens, learnt from parallel text: a shortlist.

IBM Model 1 (Brown et al. 1993): each target token comes from one token of its source sentence, or
from none, which is called NULL; any of them may be the one. Knows ids only: equal ids of the two
sides need not be the same piece, so what is copied is learnt like everything else.

A *link* is one target token of a sentence with one token of its source, or with NULL. An *entry*
is a pair of tokens that occur in a link, with the probability t(target | source).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman_export.errors import ExportError
from dragoman_export.progress import Watch
from dragoman_server.bundle.shortlist import MAX_SHORTLIST_TOKENS, Shortlist
from dragoman_server.runtime.arrays import Ints
from dragoman_training.config.checks import at_least, at_most

_CHUNK_LINKS = 2_000_000
"""Links of a chunk. What is made for one chunk at a time stays small beside what is kept of all."""

_Ints32 = npt.NDArray[np.int32]
_Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LexiconSettings:
    """How a shortlist is learnt."""

    likely: int = 50
    """Target tokens that are kept for each source token, however improbable: improbable ones are
    needed too."""
    always: int = 200
    """Target tokens for every sentence: the end token, and the most frequent ones."""
    iterations: int = 5
    """Rounds of expectation maximisation."""
    max_pairs: int = 200_000
    """Most sentence pairs that are used; those that follow are not read."""
    max_links: int = 150_000_000
    """Number of links after which no more pairs are read. Each takes about twelve bytes."""
    max_sentence_tokens: int = 128
    """Most tokens that either side of a pair may have; pairs with a longer side are skipped."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            at_least(1, name, value)
        at_most(MAX_SHORTLIST_TOKENS // 2, "always", self.always)
        at_most(MAX_SHORTLIST_TOKENS // 2, "likely", self.likely)


def shortlist_from(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    source_vocabulary: int,
    target_vocabulary: int,
    end: int,
    settings: LexiconSettings = LexiconSettings(),  # noqa: B008 - frozen
    watch: Watch,
) -> Shortlist:
    """Learn a shortlist from sentences and their translations, as ids without the end token."""
    _check("end", [end], target_vocabulary)
    text = _read(pairs, source_vocabulary, target_vocabulary, settings)
    codes, chunks = _pair_tokens(text, target_vocabulary, watch)
    sources, targets = np.divmod(codes, target_vocabulary)
    probabilities = _learn(sources, chunks, settings.iterations, watch)
    always = _frequent(text.targets, end, settings.always)
    real = sources < source_vocabulary  # all but NULL

    def ranked(these: npt.NDArray[np.bool_], max_tokens: int) -> _Ints32:
        entries = (sources[these], targets[these], probabilities[these])
        return _ranked(*entries, source_vocabulary, max_tokens)

    # What every sentence has anyway takes no place in a line, unless it would be empty: an empty
    # line is of a token that does not occur.
    likely = ranked(real & ~np.isin(targets, always), settings.likely)
    likely[:, :1] = np.where(likely[:, :1] < 0, ranked(real, 1), likely[:, :1])
    shortlist = Shortlist(always, likely)
    shortlist.check(source_vocabulary, target_vocabulary, end)
    return shortlist


@dataclass(frozen=True, eq=False)
class _Text:
    """Sentence pairs one after the other; each source has NULL at its end."""

    sources: _Ints32
    """Source tokens of all pairs."""
    targets: _Ints32
    """Target tokens of all pairs."""
    source_lengths: Ints
    """Source tokens of each pair, NULL included."""
    target_lengths: Ints
    """Target tokens of each pair."""

    @property
    def links(self) -> Ints:
        """Number of links of each pair."""
        return self.source_lengths * self.target_lengths


def _read(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    source_vocabulary: int,
    target_vocabulary: int,
    settings: LexiconSettings,
) -> _Text:
    null = source_vocabulary
    sources, targets = array("i"), array("i")
    source_lengths, target_lengths = array("q"), array("q")
    links = 0
    for source, target in pairs:
        lengths = len(source), len(target)
        if min(lengths) == 0 or max(lengths) > settings.max_sentence_tokens:
            continue
        _check("source", source, source_vocabulary)
        _check("target", target, target_vocabulary)
        sources.extend(source)
        sources.append(null)
        targets.extend(target)
        source_lengths.append(len(source) + 1)
        target_lengths.append(len(target))
        links += source_lengths[-1] * target_lengths[-1]
        if len(source_lengths) == settings.max_pairs or links >= settings.max_links:
            break
    if not links:
        raise ExportError(
            f"no sentence pair to learn a shortlist from: each is empty, or has a side of more "
            f"than {settings.max_sentence_tokens} tokens"
        )
    return _Text(*map(np.asarray, (sources, targets, source_lengths, target_lengths)))


def _check(side: str, ids: Sequence[int], vocabulary: int) -> None:
    for token in (min(ids), max(ids)):
        if not 0 <= token < vocabulary:
            raise ExportError(f"{side} token {token} is outside the vocabulary of {vocabulary}")


@dataclass(frozen=True, eq=False)
class _Chunk:
    """The links of some sentence pairs, those of the same target token side by side."""

    entries: _Ints32
    """Entries that occur in the chunk, as places in the list of all entries."""
    links: _Ints32
    """Entry of each link, as a place in ``entries``."""
    widths: _Ints32
    """Number of links of each target token."""


def _pair_tokens(text: _Text, target_vocabulary: int, watch: Watch) -> tuple[Ints, list[_Chunk]]:
    """Return the codes of all entries, source × target vocabulary + target, and the links."""
    found, done, total = [], 0, int(text.links.sum())
    for codes, widths in _coded(text, target_vocabulary):
        # What is sorted here is found in no time where all entries are looked up, and what is
        # close together here is close in memory each time that the links are gone through.
        own, links = np.unique(codes, return_inverse=True)
        found.append((own, links.astype(np.int32), widths))
        done += len(links)
        watch("pairing tokens", done, total)
    every = np.unique(np.concatenate([own for own, _, _ in found]))
    chunks = [
        _Chunk(np.searchsorted(every, own).astype(np.int32), links, widths)
        for own, links, widths in found
    ]
    return every, chunks


def _coded(text: _Text, target_vocabulary: int) -> Iterator[tuple[Ints, _Ints32]]:
    """Yield for each chunk the code of each link, and the number of links of each target token."""
    cuts = np.flatnonzero(np.diff(np.cumsum(text.links) // _CHUNK_LINKS)) + 1
    source_end = target_end = 0
    for source_lengths, target_lengths in zip(
        np.split(text.source_lengths, cuts), np.split(text.target_lengths, cuts), strict=True
    ):
        source_start, source_end = source_end, source_end + int(source_lengths.sum())
        target_start, target_end = target_end, target_end + int(target_lengths.sum())
        widths = np.repeat(source_lengths, target_lengths)
        # A target token's links begin at the first token of its source.
        firsts = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
        offsets = np.repeat(firsts - (np.cumsum(widths) - widths), widths)
        codes = text.sources[source_start:source_end].astype(np.int64) * target_vocabulary
        codes = codes[offsets + np.arange(len(offsets))]
        codes += np.repeat(text.targets[target_start:target_end], widths)
        yield codes, widths.astype(np.int32)


def _learn(
    sources: Ints, chunks: Sequence[_Chunk], iterations: int, watch: Watch
) -> _Probabilities:
    """Return t(target | source) of each entry, found by expectation maximisation.

    The entries come in order of ``sources``.
    """
    firsts = np.flatnonzero(np.diff(sources, prepend=-1))
    entries_of_source = np.diff(firsts, append=len(sources))
    probabilities = np.ones(len(sources))  # all equal; what they add up to cancels out
    for iteration in range(iterations):
        counts = np.zeros(len(sources))
        for chunk in chunks:
            shares = probabilities[chunk.entries][chunk.links]
            starts = np.cumsum(chunk.widths) - chunk.widths
            shares /= np.repeat(np.add.reduceat(shares, starts), chunk.widths)
            counts[chunk.entries] += np.bincount(chunk.links, shares)
        probabilities = counts / np.repeat(np.add.reduceat(counts, firsts), entries_of_source)
        watch("learning translations of tokens", iteration + 1, iterations)
    return probabilities


def _ranked(
    sources: Ints,
    targets: Ints,
    probabilities: _Probabilities,
    source_vocabulary: int,
    max_tokens: int,
) -> _Ints32:
    """Return a line for each source token: its most probable target tokens, filled up with -1.

    The entries come in order of source, then of target.
    """
    # Stable, so that of equals the smaller target stays in front; and in single precision, so that
    # what differs by rounding is equal.
    order = np.lexsort((-probabilities.astype(np.float32), sources))
    rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
    order, rank = order[rank < max_tokens], rank[rank < max_tokens]
    likely = np.full((source_vocabulary, max_tokens), -1, np.int32)
    likely[sources[order], rank] = targets[order]
    return likely


def _frequent(targets: _Ints32, end: int, max_tokens: int) -> _Ints32:
    """Return the end token, followed by the most frequent tokens of the text."""
    tokens, counts = np.unique(targets[targets != end], return_counts=True)
    order = np.argsort(-counts, kind="stable")[: max_tokens - 1]
    return np.array([end, *tokens[order]], np.int32)
