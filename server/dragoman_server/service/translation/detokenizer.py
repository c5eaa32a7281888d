"""From a hypothesis to text: the tokens' pieces, and source words in place of unknown tokens."""

from dataclasses import dataclass

from dragoman_server.engine.core import Hypothesis
from dragoman_server.text.plan import Part
from dragoman_server.text.unknown import SourceWords, words_for_unknown
from dragoman_server.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Detokenizer:
    """Makes text of the tokens that one model writes."""

    source: Vocabulary
    target: Vocabulary
    replaces_unknown: bool = True
    """Whether the source word that an unknown token was made from takes its place; else it is left
    out."""

    def detokenize(self, part: Part, hypothesis: Hypothesis) -> str:
        """Return the text of a hypothesis, before masks are restored."""
        weights, unknown = hypothesis.alignment, self.target.unknown
        if not self.replaces_unknown or weights is None or unknown not in hypothesis.ids:
            return self.target.decode(hypothesis.ids)
        words = SourceWords(self.source, part.masked.source)
        # Around the text's own tokens are those of languages, and the end.
        before = len(part.ids) - len(words)
        ids = hypothesis.ids[: len(weights)]
        sources = weights[: len(ids), before : len(part.ids)].argmax(axis=1).tolist()
        return self.target.decode(hypothesis.ids, words_for_unknown(ids, unknown, sources, words))

    def needs_alignment(self, hypothesis: Hypothesis) -> bool:
        """Whether a hypothesis lacks the alignment that its text takes."""
        return (
            self.replaces_unknown
            and hypothesis.alignment is None
            and self.target.unknown in hypothesis.ids
        )
