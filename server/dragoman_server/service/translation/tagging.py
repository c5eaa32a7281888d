"""Tags within a translation: where they stand by its alignment, or how it is done without."""

from dataclasses import replace

from dragoman_server.engine.core import Hypothesis
from dragoman_server.service.translation.detokenizer import Detokenizer
from dragoman_server.service.translation.mending import Retry, TranslatedPart, Way
from dragoman_server.service.translation.planned import Text
from dragoman_server.text.markup.aligning import Decoded, align
from dragoman_server.text.markup.placing import Placed, nodes_within, place, tree_of
from dragoman_server.text.plan import Part, Planner


def tagged(
    text: Text, done: TranslatedPart, detokenizer: Detokenizer, planner: Planner
) -> TranslatedPart | Retry:
    """Return a translated part with its tags, or its pieces, to be translated one by one."""
    if not text.has_tags(done.part):
        return done
    tags = tags_of(text, done.part, done.text, done.answer.hypotheses[0], detokenizer)
    if tags is not None:
        return replace(done, tags=tags)
    return Retry(planner.cut(text.text, done.part, text.places(done.part)), Way.PIECES, "markup")


def tags_of(
    text: Text, part: Part, translation: str, hypothesis: Hypothesis, detokenizer: Detokenizer
) -> tuple[Placed, ...] | None:
    """Return the tags within a translation in its order; None where they can't be placed."""
    if text.document is None:
        return ()
    nodes = nodes_within(text.document, part.span)
    if not nodes or translation == part.span.of(text.text):
        return ()
    attention = hypothesis.alignment
    if attention is None:
        return None
    source_pieces = detokenizer.source.split(part.masked.source)
    before = len(part.ids) - len(source_pieces)
    ids = hypothesis.ids[: len(attention)]
    decoded = Decoded(
        detokenizer.detokenize(part, hypothesis),
        detokenizer.target.shown(ids),
        source_pieces,
        attention[: len(ids), before : len(part.ids)],
    )
    aligned = align(text.text, part.span, part.masked, decoded, translation)
    tree = tree_of(text.document, part.span, nodes, aligned.source)
    placed = tree and aligned.target and place(tree, aligned.weights, aligned.target)
    return tuple(placed) if placed else None
