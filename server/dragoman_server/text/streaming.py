"""Text that grows while its tokens come one by one: nothing that was shown is taken back."""

from dragoman_server.text.faults import cut_loop, is_loop
from dragoman_server.text.vocabulary import Vocabulary


class TextStream:
    """The text of a translation whose tokens come one by one.

    What is returned never changes later: bytes are held back until their run has ended, because a
    further byte may belong to the same letter, and so is white space, which may be the end's.
    Unknown tokens are left out.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids: list[int] = []
        self.sent = 0
        """Letters that were returned; the rest of the final text is still to be sent."""

    def add(self, token: int) -> str:
        """Return the text that is certain with this token and was not before; may be empty."""
        self._ids.append(token)
        if self._vocabulary.is_byte(token) or token == self._vocabulary.unknown:
            return ""
        text = self._vocabulary.decode(self._ids)
        delta, self.sent = text[self.sent :], len(text)
        return delta


class GrowingText:
    """The text of a sentence whose tokens come one by one, and which may begin to repeat itself.

    What was shown can't be mended, so with ``stops`` the text ends where a loop begins. With
    ``waits``, nothing is shown after an unknown token: only at the end it is known which word takes
    its place.
    """

    def __init__(self, target: Vocabulary, source: str, *, stops: bool, waits: bool) -> None:
        self._stream = TextStream(target)
        self._unknown = target.unknown if waits else None
        self._is_waiting = False
        self._source = source
        self._stops = stops
        self._text = ""
        self._loops = False

    @property
    def sent(self) -> int:
        """Letters that were returned."""
        return len(self._text)

    def add(self, token: int) -> str:
        """Return the text that is certain with this token and was not before; may be empty."""
        delta = self._stream.add(token)
        self._is_waiting = self._is_waiting or token == self._unknown
        if self._is_waiting:
            return ""
        if self._stops and not self._loops:
            self._loops = is_loop(self._text + delta, self._source)
        if self._loops:
            return ""
        self._text += delta
        return delta

    def ended(self, text: str) -> str:
        """Return the whole text, given what all tokens come to: without a loop, where one began."""
        if self._is_waiting and self._stops and is_loop(text, self._source):
            text = text[: max(self.sent, len(cut_loop(text)))]
        return self._text if self._loops else text
