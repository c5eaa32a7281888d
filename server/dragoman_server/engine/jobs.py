"""From a sentence and options to a job: checked against the model, with limits decided."""

import secrets

from dragoman_server.bundle.manifest import Manifest
from dragoman_server.engine.core import FieldError, Options, Sentence, Ticket
from dragoman_server.engine.rows import Job
from dragoman_server.runtime.reference_search import default_limit


class SentenceError(FieldError):
    """A sentence or option that this model can't take."""


class JobMaker:
    def __init__(self, manifest: Manifest, max_beam: int) -> None:
        self._manifest = manifest
        self._max_beam = max_beam

    def job(self, sentence: Sentence, options: Options, *, stream: bool) -> Job:
        self._check_tokens(sentence, options)
        if options.beam > self._max_beam:
            raise SentenceError("beam", f"is {options.beam}: this engine takes {self._max_beam}")
        if 2 * options.beam > self._manifest.dimensions.target_vocabulary:
            raise SentenceError("beam", f"is {options.beam}: too large for the vocabulary")
        limit = self._limit(sentence, options)
        forced = (*sentence.start, *sentence.prefix)
        if sentence.target is not None:
            options = Options(length_penalty=options.length_penalty, alignment=options.alignment)
            forced = (*sentence.start, *sentence.target, self._manifest.special_ids.end)
        seed = options.sampling.seed if options.sampling else 0
        if seed is None:
            seed = secrets.randbits(64)
        return Job(Ticket(-1, -1), sentence, options, forced, limit, seed, stream)

    def _check_tokens(self, sentence: Sentence, options: Options) -> None:
        sizes, end = self._manifest.dimensions, self._manifest.special_ids.end
        for name, ids, vocabulary in (
            ("source", sentence.source, sizes.source_vocabulary),
            ("start", sentence.start, sizes.target_vocabulary),
            ("prefix", sentence.prefix, sizes.target_vocabulary),
            ("target", sentence.target or (), sizes.target_vocabulary),
            ("suppressed", options.suppressed, sizes.target_vocabulary),
        ):
            if ids and not 0 <= min(ids) <= max(ids) < vocabulary:
                raise SentenceError(name, f"has a token outside the vocabulary of {vocabulary}")
            if name != "source" and end in ids:
                raise SentenceError(name, f"has the end token, {end}")
        most = self._manifest.max_source_tokens - 1
        if len(sentence.source) > most:
            raise SentenceError(
                "source", f"has {len(sentence.source)} tokens: the model takes {most}"
            )

    def _limit(self, sentence: Sentence, options: Options) -> int:
        """Most tokens, the end token included."""
        most = self._manifest.max_target_tokens - len(sentence.start)
        if sentence.target is not None:
            if len(sentence.target) >= most:
                raise SentenceError(
                    "target", f"has {len(sentence.target)} tokens: the model takes {most - 1}"
                )
            return len(sentence.target) + 1
        limit = options.max_tokens
        if limit is None:
            limit = default_limit(len(sentence.source), most) + len(sentence.prefix)
            limit = max(limit, options.min_tokens + 1)
        limit = min(limit, most)
        for name, tokens in (("prefix", len(sentence.prefix)), ("min_tokens", options.min_tokens)):
            if tokens >= limit:
                raise SentenceError(
                    name, f"is {tokens} tokens: the translation may have {limit}, end included"
                )
        return limit
