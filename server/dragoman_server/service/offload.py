"""Work that takes long is done in a thread, so that the event loop goes on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_MAX_INLINE_LETTERS = 2000
"""Most letters whose splitting and tokenizing, a few milliseconds, is not worth a thread."""


async def for_letters(letters: int, work: Callable[[], T]) -> T:
    """Do work that grows with the letters of a text, and return what it returns."""
    if letters > _MAX_INLINE_LETTERS:
        return await asyncio.to_thread(work)
    return work()
