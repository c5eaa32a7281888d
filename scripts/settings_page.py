"""Write docs/settings.md out of the code: all settings of a recipe, with types, defaults, meanings.

python scripts/settings_page.py [--check]

With --check nothing is written; the exit code is 1 where the page is not what the code says.
"""

import dataclasses
import re
import sys
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dragoman_client._field_docs import field_docs
from dragoman_training.config.recipe import Recipe
from dragoman_training.models.settings import PRESETS, TransformerSettings

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
HEAD = """# Settings of a recipe

A recipe is a TOML file with a section for each of the tables below; [training](training.md) has
examples. What is left out has its default. On the command line any setting is changed by
`--set section.key=value`, as in `--set training.max_steps=500`. `RUN/recipe.json` has the settings
that a run began with, the defaults filled in.

This page is written by `make settings`, out of the classes that read a recipe.
"""
KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def kind_of(hint: Any) -> str:
    """Return a type in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return kind_of(next(each for each in arguments if each is not type(None)))
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"{count}{'text or texts' if arguments[0] is str else kind_of(arguments[0]) + 's'}"
    if origin is dict:
        return f"table of {kind_of(arguments[1])}s"
    return KINDS[hint]


def default_of(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, float) else f"`{value}`" if value else ""


def sections_of(kind: type, name: str) -> list[tuple[str, type]]:
    """Return the sections inside one, each with the class of its settings."""
    found: list[tuple[str, type]] = []
    for key, hint in get_type_hints(kind).items():
        choices = get_args(hint) if get_origin(hint) is not Literal else ()
        found += [
            (f"{name}{key}", each)
            for each in (hint, *choices)
            if dataclasses.is_dataclass(each) and isinstance(each, type)
        ]
    return found


def all_sections(kind: type, name: str = "") -> list[tuple[str, type]]:
    """Return the sections of a class of settings and, each after its parent, those inside them."""
    found = []
    for section, inner in sections_of(kind, f"{name}." if name else ""):
        found += [(section, inner), *all_sections(inner, section)]
    return found


def table(kind: type) -> str:
    """Return the table of a class's own settings. Sections inside it have tables of their own."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    inside = {section for section, _ in sections_of(kind, "")}
    rows = ["| setting | type | default | meaning |\n|---|---|---|---|\n"]
    for field in dataclasses.fields(kind):
        if field.name in inside:
            continue
        if field.name not in docs:
            sys.exit(f"{kind.__name__}.{field.name} has no docstring")
        meaning = re.sub(r"``(.+?)``", r"`\1`", docs[field.name])
        rows.append(
            f"| `{field.name}` | {kind_of(hints[field.name])} | {default_of(field)} | {meaning} |\n"
        )
    return "".join(rows)


def title_of(section: str, kind: type) -> str:
    """Return the line that opens a section in a recipe; lists of tables have two brackets."""
    many = section in ("data.corpora", "data.validation")
    kinds = [field.default for field in dataclasses.fields(kind) if field.name == "kind"]
    name = f"`[[{section}]]`" if many else f"`[{section}]`"
    return f'{name}, `kind = "{kinds[0]}"`' if kinds and section == "model" else name


def presets() -> str:
    """Return the table of the models with a name."""
    keys = list(dict.fromkeys(key for preset in PRESETS.values() for key in preset))
    head = f"| `preset` | {' | '.join(f'`{key}`' for key in keys)} |\n|{'---|' * (len(keys) + 1)}\n"
    rows = (
        f"| `{name}` | {' | '.join(str(preset.get(key, '')) for key in keys)} |\n"
        for name, preset in PRESETS.items()
    )
    return (
        "`preset` names the sizes of a Transformer; any other key overrides them.\n\n"
        f"{head}{''.join(rows)}"
    )


def written() -> str:
    """Return the page that the code says."""
    parts = [HEAD, "## Outside of all sections\n", table(Recipe)]
    docs = field_docs(Recipe)
    shown: dict[type, str] = {}
    for section, kind in all_sections(Recipe):
        parts.append(f"## {title_of(section, kind)}\n")
        if kind in shown:
            parts.append(f"The same settings as of `[{shown[kind]}]`.\n")
            continue
        shown[kind] = section
        summary = (kind.__doc__ or "").partition("\n\n")[0]
        if summary.startswith(kind.__name__):  # what dataclasses say of themselves
            summary = docs.get(section, "")
        if summary:
            parts.append(" ".join(re.sub(r"``(.+?)``", r"`\1`", summary).split()) + "\n")
        parts.append(table(kind))
        if kind is TransformerSettings:
            parts.append(presets())
    return "\n".join(parts)


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        sys.exit(not PAGE.exists() or PAGE.read_text() != written())
    PAGE.write_text(written())


if __name__ == "__main__":
    main()
