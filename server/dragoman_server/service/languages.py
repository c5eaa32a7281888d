"""Language tags as clients write them: ``pt``, ``por`` and ``pt-BR`` are all understood."""

from functools import lru_cache

import langcodes


@lru_cache(maxsize=1024)  # clients choose the tags
def canonical(tag: str) -> str:
    """The shortest standard form of a tag. Raises ``ValueError`` for what is none."""
    if len(tag) > 64:
        raise ValueError("not a language tag")
    return langcodes.standardize_tag(tag)


def likeness(wanted: str, offered: str) -> int:
    """How well a model's language suits a wanted one; both canonical. 0: not at all, 2: the same.

    A model of Portuguese translates for who wants Brazilian, and the other way round; one script
    does not stand for another.
    """
    if wanted == offered:
        return 2
    if not offered:  # a model that does not say
        return 0
    one, other = langcodes.get(wanted), langcodes.get(offered)
    scripts = {one.script, other.script} - {None}
    return int(one.language == other.language and len(scripts) < 2)
