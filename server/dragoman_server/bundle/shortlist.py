"""Which target tokens a translation may have, from the tokens of its source.

Most of a vocabulary has nothing to do with a sentence. Where a bundle has a shortlist, a search
looks only at the tokens that are likely for one of the source's, and at those that are frequent
everywhere. What that is depends on the sentence alone, so its answer does too.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.errors import BundleError

MAX_SHORTLIST_TOKENS = 1024
"""Most target tokens that the shortlist of one sentence has, unless a bundle says otherwise."""
_MAX_TOKENS = 8192
"""Most that a bundle may say."""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Which target tokens are likely for each source token, and which for every sentence."""

    always: npt.NDArray[np.int32]
    """Target tokens for every sentence; the end token is the first of them."""
    likely: npt.NDArray[np.int32]
    """Target tokens that are likely for each source token, a line each: the likeliest first, -1
    where there are no more."""
    max_tokens: int = MAX_SHORTLIST_TOKENS
    """Most target tokens that the shortlist of one sentence has."""

    def check(self, source_vocabulary: int, target_vocabulary: int, end: int) -> None:
        """Raise ``ValueError`` if the shortlist can't be of a model with these vocabularies."""
        if not 2 <= self.max_tokens <= _MAX_TOKENS:
            raise ValueError(f"max_tokens is {self.max_tokens}")
        if self.always.ndim != 1 or not 1 <= len(self.always) <= self.max_tokens // 2:
            raise ValueError(f"always is of shape {self.always.shape}")
        if (
            self.likely.ndim != 2
            or self.likely.shape[0] != source_vocabulary
            or not self.likely.size
        ):
            raise ValueError(f"likely is of shape {self.likely.shape}")
        for name, tokens, min_token in (("always", self.always, 0), ("likely", self.likely, -1)):
            if tokens.dtype != np.int32:
                raise ValueError(f"{name} is of type {tokens.dtype}")
            if tokens.size and not min_token <= tokens.min() <= tokens.max() < target_vocabulary:
                raise ValueError(f"{name} has a token outside the vocabulary")
        if self.always[0] != end or len(set(self.always.tolist())) < len(self.always):
            raise ValueError("always does not begin with the end token, or has a token twice")

    def tokens_for(self, source: tuple[int, ...]) -> npt.NDArray[np.int64] | None:
        """Return the target tokens for a source: the end token, then the others by their id.

        At most ``max_tokens``: a long source gets fewer for each of its tokens. Returns None if a
        token of the source does not occur in the text that the shortlist was learnt from: it may
        be a name or a sign that is to be copied, which may take any token.
        """
        sources = np.fromiter({*source}, np.int64)
        end, each = self.always[0], self.likely.shape[1]
        if (self.likely[sources, 0] < 0).any():
            return None
        while True:
            is_listed = np.zeros(self._vocabulary + 1, np.bool_)  # the last is for -1
            is_listed[self.always] = True
            is_listed[self.likely[sources, :each]] = True
            is_listed[[end, -1]] = False
            others = np.flatnonzero(is_listed)
            if len(others) < self.max_tokens:
                return np.concatenate([[end], others])
            each = each * 3 // 4

    @cached_property
    def _vocabulary(self) -> int:
        """Number of target tokens up to the last one that is in any list."""
        return 1 + int(max(self.always.max(), self.likely.max(initial=0)))

    def save(self, path: Path) -> None:
        """Write the shortlist as a file of a bundle."""
        arrays: dict[str, npt.NDArray[np.int32]] = {"always": self.always, "likely": self.likely}
        if self.max_tokens != MAX_SHORTLIST_TOKENS:
            arrays["max_tokens"] = np.array(self.max_tokens, np.int32)
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def shortlist_of(directory: Path, manifest: Manifest) -> Shortlist | None:
    """Read the shortlist of a bundle; None if it has none. Raises ``BundleError`` if it is bad."""
    if not manifest.shortlist:
        return None
    path, sizes = directory / manifest.shortlist, manifest.dimensions
    found = read_shortlist(path)
    try:
        found.check(sizes.source_vocabulary, sizes.target_vocabulary, manifest.special_ids.end)
    except ValueError as error:
        raise BundleError(f"{path}: {error}") from None
    return found


def read_shortlist(path: Path) -> Shortlist:
    """Read the file of a shortlist. Raises ``BundleError`` if it is none."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            max_tokens = stored.get("max_tokens", MAX_SHORTLIST_TOKENS)
            return Shortlist(stored["always"], stored["likely"], int(max_tokens))
    except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile, zlib.error) as error:
        raise BundleError(f"{path}: not a shortlist ({error})") from None
