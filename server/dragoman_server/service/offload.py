"""What takes long is done in a thread, so that the event loop goes on; the rest is not worth it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_INLINE_LETTERS = 2000
"""Splitting and tokenizing so much text takes a few milliseconds."""


async def for_letters(letters: int, work: Callable[[], T]) -> T:
    """Do work that grows with so many letters of text."""
    if letters > _INLINE_LETTERS:
        return await asyncio.to_thread(work)
    return work()
