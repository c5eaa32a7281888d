"""Write the tables of docs/options.md out of the code: names, types and meanings of all options.

python scripts/options_page.py [--check]

With --check nothing is written; the exit code is 1 where the page is not what the code says.
"""

import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from dragoman.v1 import translation_pb2 as pb
from dragoman_cli.endpoint_options import ModelOptions, ServerOptions
from dragoman_cli.translate import translate
from dragoman_client import Options, Sampling
from dragoman_client._field_docs import field_docs

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
BLOCK = "<!-- {}: written by scripts/options_page.py -->\n\n{}\n<!-- end -->\n"
KINDS = {
    "uint32": "whole number",
    "uint64": "whole number",
    "float": "number",
    "bool": "true or false",
    "string": "text",
}


def parameters() -> dict[str, Any]:
    """Return the flags and arguments of ``dragoman translate``, by name."""
    app = typer.Typer()
    app.command()(translate)
    command: Any = typer.main.get_command(app)
    return {each.name: each for each in command.params}


def kind_of(field: Any) -> str:
    """Return the type of a field of the wire, in words."""
    if field.enum_type is not None:
        first, *others = [value.name for value in field.enum_type.values]
        prefix = first.removesuffix("UNSPECIFIED")
        return " or ".join(f"`{name.removeprefix(prefix).lower()}`" for name in others)
    is_many = getattr(field, "is_repeated", None)
    is_many = is_many if is_many is not None else field.label == field.LABEL_REPEATED
    if field.message_type is not None:
        return f"{'list of ' if is_many else ''}`{field.message_type.name}`"
    name = {1: "double", 2: "float", 4: "uint64", 8: "bool", 9: "string", 13: "uint32"}[field.type]
    if is_many:
        return f"list of {KINDS[name]}s"
    return KINDS[name]


def flags_of(parameter: Any) -> str:
    return ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))


def option_rows(kind: type, message: Any) -> list[str]:
    """Return a row for each option; Python and the wire have the same names."""
    docs, flags = field_docs(kind), parameters()
    wire = {field.name: field for field in message.DESCRIPTOR.fields}
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type] # a dataclass
    if set(names) != set(wire):
        sys.exit(f"{kind.__name__}: Python and the wire differ in {set(names) ^ set(wire)}")
    rows = []
    for name in names:
        if name in flags:
            flag = flags_of(flags[name])
        else:  # a message of its own, whose options are flags
            flag = ", ".join(flags_of(flags[field.name]) for field in fields(Sampling))
        meaning = re.sub(r"``(\w+)``", r"`\1`", docs[name])
        rows.append(f"| `{name}` | {flag} | {kind_of(wire[name])} | {meaning} |\n")
    return rows


def table(head: str, rows: list[str]) -> str:
    return f"{head}\n|{'---|' * (head.count('|') - 1)}\n{''.join(rows)}"


def flag_rows(kind: type) -> list[str]:
    """Return a row for each flag of a group that has a variable of the environment."""
    flags = parameters()
    rows = []
    for field in fields(kind):  # type: ignore[arg-type] # a dataclass
        flag = flags[field.name]
        python = {
            "address": '`Client("HOST:PORT", …)`',
            "root_certificates": "`TLS(root_certificates=…)`",
            "tls": "`tls=TLS()`",
        }.get(field.name, f"`{field.name}=…`")
        rows.append(f"| {python} | {flags_of(flag)} | `{flag.envvar}` | {flag.help} |\n")
    return rows


def written(page: str) -> str:
    """Return the page with the tables that the code says."""
    of_options = "| in Python and on the wire | in a shell | type | meaning |"
    of_flags = "| in Python | in a shell | variable | meaning |"
    tables = {
        "options": table(of_options, option_rows(Options, pb.Options)),
        "sampling": table(of_options, option_rows(Sampling, pb.Sampling)),
        "model": table(of_flags, flag_rows(ModelOptions)),
        "server": table(of_flags, flag_rows(ServerOptions)),
    }
    for name, text in tables.items():
        pattern = re.escape(BLOCK).replace(r"\{\}", "{}").format(name, ".*?")
        page, count = re.subn(pattern, lambda _: BLOCK.format(name, text), page, flags=re.DOTALL)  # noqa: B023
        if count != 1:
            sys.exit(f"{PAGE}: there is no place for the table of {name}")
    return page


def main() -> None:
    before = PAGE.read_text()
    after = written(before)
    if sys.argv[1:] == ["--check"]:
        sys.exit(before != after)
    PAGE.write_text(after)


if __name__ == "__main__":
    main()
