"""Where the tags of a sentence stand in its translation.

Each unit of the translation was made from units of the source, as an alignment says. An element
stands around the units that were made from its own: as one span, within that of the element around
it and beside those of its neighbours. So each tag comes back exactly once and all are balanced,
whatever the alignment says. An element that had text has some again, or placing fails.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman_server.text.markup.document import Document, Node
from dragoman_server.text.segments import Span

Weights = Sequence[Sequence[float]]
"""For each unit of a translation, how much of it was made from each unit of the source."""

_MAX_TAGS = 256
"""Most elements and points of a sentence that are placed one by one."""
_MAX_DEPTH = 32


@dataclass(eq=False)
class Tag:
    """An element of a sentence, or the part of it that is in this sentence."""

    node: Node | None
    """The element; None for the sentence itself."""
    source: Span
    """Units of the source that the element stands around; an empty span for a place."""
    opens: bool = True
    """Whether the element begins in this sentence."""
    closes: bool = True
    """Whether the element ends in this sentence."""
    glued: bool = False
    """Whether a place is at the end of the word before it."""
    is_apart: bool = False
    """Whether a place has a space on both sides."""
    children: "list[Tag]" = field(default_factory=list)
    target: Span = field(default_factory=lambda: Span(0, 0))
    """Units of the translation that the element stands around."""

    @property
    def is_point(self) -> bool:
        return self.source.start == self.source.end

    @property
    def elements(self) -> "list[Tag]":
        return [child for child in self.children if not child.is_point]

    def need(self) -> int:
        """Return how many units the element takes at least."""
        return max(1, sum(child.need() for child in self.elements))


@dataclass(frozen=True)
class Placed:
    """A tag in a translation."""

    place: int
    """Where in the translation the tag stands."""
    tag: Span
    """The tag in the source."""
    space_before: bool = False
    """Whether there has to be a space before the tag."""
    space_after: bool = False
    """Whether there has to be a space after the tag."""


def nodes_within(document: Document, span: Span) -> list[Node]:
    """Return what has to be placed in the translation of a span of the plain text.

    What stands around all of the span, or at its ends, is not part of it.
    """
    found: list[Node] = []
    own: set[int] = set()
    for node in document.tagged(span):
        start, end = node.start, node.end
        if node.is_point:
            belongs = span.start < start < span.end
        elif start <= span.start and end >= span.end:
            belongs = False
        else:
            belongs = start < span.end and end > span.start
        if belongs or id(node.parent) in own:
            found.append(node)
            if span.start <= start and end <= span.end:  # what is in it moves with it
                own.add(id(node))
    return found


def tree_of(
    document: Document, span: Span, nodes: Sequence[Node], units: Sequence[Span]
) -> Tag | None:
    """Return the tags of a sentence as a tree, by the units of its source; None for too many."""
    if len(nodes) > _MAX_TAGS:
        return None
    root = Tag(None, Span(0, len(units)))
    starts, ends = [unit.start for unit in units], [unit.end for unit in units]
    tags: dict[int, tuple[Tag, int]] = {}
    for node in nodes:
        parent, depth = tags.get(id(node.parent), (root, 0))
        if depth == _MAX_DEPTH:
            return None
        first, last = bisect_right(ends, node.start), bisect_left(starts, node.end)
        if node.is_point:
            last = first
        tag = Tag(
            node,
            Span(first, max(first, last)),
            opens=node.start >= span.start,
            closes=node.end <= span.end,
            glued=_is_glued(document.plain, node.start),
            is_apart=document.plain[max(0, node.start - 1) : node.start + 1].isspace(),
        )
        parent.children.append(tag)
        tags[id(node)] = (tag, depth + 1)
    return root


def place(tree: Tag, weights: Weights, units: Sequence[Span]) -> list[Placed] | None:
    """Return the tags of a sentence in the order and at the places of its translation.

    ``units`` are those of the translation. None where there are too few of them.
    """
    tree.target = Span(0, len(units))
    made_from: list[int] = []
    for row in weights:
        best = max(range(len(row)), key=row.__getitem__)
        # Of what nothing is known, it is taken to belong to what is before it.
        made_from.append(best if row[best] > 0 else made_from[-1] if made_from else 0)
    if not _settle(tree, weights):
        return None
    return list(_in_order(tree, made_from, units))


def _is_glued(plain: str, place: int) -> bool:
    if not 0 < place < len(plain):
        return place > 0
    return not plain[place - 1].isspace() and not plain[place].isalnum()


def _settle(tag: Tag, weights: Weights) -> bool:
    """Find the units of the elements in another, whose own are known."""
    elements, room = tag.elements, tag.target
    if sum(element.need() for element in elements) > room.end - room.start:
        return False
    seeds = _seeds(elements, room, weights)
    claimed = {seed: Span(seed, seed + 1) for seed in seeds.values()}
    for element in sorted(elements, key=lambda each: each.source.end - each.source.start):
        seed = seeds[id(element)]
        others = [span for start, span in claimed.items() if start != seed]
        low = max((span.end for span in others if span.start < seed), default=room.start)
        high = min((span.start for span in others if span.start > seed), default=room.end)
        element.target = _grown(element, seed, Span(low, high), weights)
        if element.target.end - element.target.start < element.need():
            return False
        claimed[seed] = element.target
    return all(_settle(element, weights) for element in elements)


def _seeds(elements: Sequence[Tag], room: Span, weights: Weights) -> dict[int, int]:
    """Return one unit for each element, most of which was made from it; no two have the same."""
    seeds: dict[int, int] = {}
    free = set(range(room.start, room.end))
    best = [
        (not (element.opens and element.closes), _mass(weights[unit], element.source), -unit, at)
        for at, element in enumerate(elements)
        for unit in _choices(element, room)
    ]
    for _, _, unit, at in sorted(best, reverse=True):
        element = elements[at]
        if id(element) not in seeds and -unit in free:
            seeds[id(element)] = -unit
            free.discard(-unit)
    return seeds


def _choices(element: Tag, room: Span) -> range:
    """Return the units that an element may be around; one from another sentence has an end here."""
    if not element.opens:
        return range(room.start, room.start + 1)
    if not element.closes:
        return range(room.end - 1, room.end)
    return range(room.start, room.end)


def _grown(element: Tag, seed: int, room: Span, weights: Weights) -> Span:
    """Return the best span around a seed: units made from the element count for it, others
    against."""

    def value(unit: int) -> float:
        return 2 * _mass(weights[unit], element.source) - 1

    end = seed + 1 + _longest_gain([value(unit) for unit in range(seed + 1, room.end)])
    start = seed - _longest_gain([value(unit) for unit in range(seed - 1, room.start - 1, -1)])
    while end - start < element.need() and (start > room.start or end < room.end):
        to_right = end < room.end and (start == room.start or value(end) >= value(start - 1))
        start, end = (start, end + 1) if to_right else (start - 1, end)
    return Span(start, end)


def _longest_gain(values: Sequence[float]) -> int:
    """Return how many values from the first on have the largest sum, 0 where all lose."""
    best, total, length = 0.0, 0.0, 0
    for number, value in enumerate(values, start=1):
        total += value
        if total > best:
            best, length = total, number
    return length


def _mass(row: Sequence[float], units: Span) -> float:
    return sum(row[units.start : units.end])


def _in_order(tag: Tag, made_from: Sequence[int], units: Sequence[Span]) -> Iterator[Placed]:
    """Yield the tags of an element in the order of the translation."""
    room = tag.target
    first, last = units[room.start].start, units[room.end - 1].end
    if tag.node and tag.opens:
        yield Placed(first, tag.node.open)
    places = _boundaries(tag, made_from)
    order = [((child.target.start, 1), child) for child in tag.elements]
    order += [((boundary, 0), child) for child, boundary in places]
    done = first
    for (boundary, _), child in sorted(order, key=lambda each: each[0]):
        if not child.is_point:
            yield from _in_order(child, made_from, units)
            done = units[child.target.end - 1].end
            continue
        at_left = boundary > room.start and (child.glued or boundary == room.end)
        done = max(done, units[boundary - 1].end if at_left else units[boundary].start)
        tags = list(_at_one_place(child, done))
        # The plain sentence has two spaces there, of which its translation keeps one.
        tags[0] = replace(tags[0], space_before=child.is_apart)
        tags[-1] = replace(tags[-1], space_after=child.is_apart)
        yield from tags
    if tag.node and tag.closes and tag.node.close:
        yield Placed(last, tag.node.close)


def _at_one_place(tag: Tag, place: int) -> Iterator[Placed]:
    """Yield the tags of what has no text, in the order of the source."""
    assert tag.node is not None
    yield Placed(place, tag.node.open)
    for child in tag.children:
        yield from _at_one_place(child, place)
    if tag.node.close:
        yield Placed(place, tag.node.close)


def _boundaries(tag: Tag, made_from: Sequence[int]) -> list[tuple[Tag, int]]:
    """Return where the places within an element are: before which unit of the translation."""
    room = tag.target
    targets = [child.target for child in tag.elements]
    inside = {place for target in targets for place in range(target.start + 1, target.end)}
    allowed = [place for place in range(room.start, room.end + 1) if place not in inside]
    found: list[tuple[Tag, int]] = []
    before = room.start
    for point in (child for child in tag.children if child.is_point):
        number = point.source.start
        # What was made from units after the place should follow it, and the others precede it.
        costs: dict[int, float] = {}
        cost = sum(made_from[unit] < number for unit in range(room.start, room.end))
        for boundary in range(room.start, room.end + 1):
            is_beside = (
                boundary > room.start and made_from[boundary - 1] == number - 1
                if point.glued
                else boundary < room.end and made_from[boundary] == number
            )
            costs[boundary] = cost - 0.5 * is_beside
            if boundary < room.end:
                cost += 1 if made_from[boundary] >= number else -1
        before = min((b for b in allowed if b >= before), key=costs.__getitem__)
        found.append((point, before))
    return found
