"""The settings of reading documents: bounds on files, and what of them is translated."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class DocumentSettings:
    """Bounds on a document, and which columns of a table are translated."""

    max_bytes: int = 128 * MIB
    """Most bytes of a file."""
    max_text_bytes: int = 64 * MIB
    """Most bytes of a text that is taken apart: a plain file, or one member of a zip."""
    max_unpacked_bytes: int = 1024 * MIB
    """Most bytes of all members of a zip together."""
    max_members: int = 10_000
    """Most members of a zip."""
    max_ratio: int = 200
    """Most times by which a member of over 1 MiB may be larger than it is in the zip."""
    max_segments: int = 500_000
    """Most segments of a document."""
    max_depth: int = 256
    """Most elements of XML inside each other."""
    columns: tuple[str, ...] = ()
    """Columns of a table to translate, by name or by number from 1; all that hold text where there
    are none."""

    def __post_init__(self) -> None:
        for name in (
            "max_bytes",
            "max_text_bytes",
            "max_unpacked_bytes",
            "max_members",
            "max_ratio",
            "max_segments",
            "max_depth",
        ):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")
        if isinstance(self.columns, str):
            raise ValueError("columns is a str: it must be a tuple of names")
