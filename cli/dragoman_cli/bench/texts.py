"""What to translate: lines of a file over and over, or everyday sentences made up on the spot."""

import random
from collections.abc import Iterator
from pathlib import Path

from dragoman_cli.line_files import read_lines
from dragoman_client._errors import ConfigurationError

_WHO = (
    *("My sister", "The old man", "Our neighbour", "A friend of mine", "The teacher", "Tom"),
    *("Nobody in the office", "The woman in the red coat", "My parents' doctor", "Mary"),
)
_DOES = (
    *("wants to buy", "has never seen", "will not forget", "is looking for", "talks about"),
    *("would like to sell", "is afraid of losing", "asked me to bring", "cannot find"),
)
_WHAT = (
    *("the house", "a new book", "this city", "her children", "a good plan", "the keys"),
    *("the letter that came yesterday", "an umbrella", "two tickets for the concert"),
)
_WHEN = (
    *("", "", "today", "every year", "in the morning", "before the train leaves", "this time"),
    *("when the weather is fine", "for the third time this week", "after dinner"),
)
_MORE = (
    *("", "", "", "", "and nobody knows why", "but I don't think that it matters"),
    *("because there was nothing else to do", "although we had told them to wait for us"),
    *("so we stayed at home and played cards until it was late",),
)
_SHORT = (
    *("How are you?", "I don't know.", "Where is the station?", "That's a good idea."),
    *("Thank you very much.", "What time is it?", "Please wait a moment.", "See you tomorrow!"),
)
_SHORT_SHARE = 0.15


def everyday_sentences(seed: int) -> Iterator[str]:
    """English, of 3 to 30 words, without end; few come twice, so that no cache is flattered."""
    draws = random.Random(seed)  # noqa: S311 - sentences, not secrets
    while True:
        if draws.random() < _SHORT_SHARE:
            yield draws.choice(_SHORT)
            continue
        number = draws.randint(2, 9999)
        words = [draws.choice(part) for part in (_WHO, _DOES, _WHAT, _WHEN)]
        more = draws.choice(_MORE)
        sentence = " ".join(word for word in words if word) + (f", {more}" if more else "")
        if draws.random() < 0.5:
            sentence += f", number {number}" if draws.random() < 0.5 else f", in {number} days"
        yield f"{sentence}{draws.choice('...?')}"


def lines_of(path: Path) -> Iterator[str]:
    """The lines that have text, over and over, read as they are needed."""
    while True:
        found = False
        with path.open("rb") as lines:
            for line in read_lines(lines, str(path)):
                if text := line.strip():
                    found = True
                    yield text
        if not found:
            raise ConfigurationError(f"{path}: there is no text in it")
