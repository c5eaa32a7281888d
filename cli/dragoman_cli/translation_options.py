"""The flags of how to translate: the options of the SDK, with the names and docstrings they have
there."""

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_client._errors import ConfigurationError
from dragoman_client._field_docs import field_docs
from dragoman_client._glossaries import read_glossary
from dragoman_client._options import Options, Sampling

_HOW, _MORE = "How to translate", "What else to return, with --json"
_DOCS = {**field_docs(Options), **field_docs(Sampling)}


def flag_of(option: str) -> str:
    """Return the flag of an option of the SDK."""
    return f"--{option.replace('_', '-')}"


def _help(option: str) -> str:
    return re.sub(r"``(\w+)``", lambda found: flag_of(found[1]), _DOCS.get(option, ""))


def _option(option: str, *short: str, also: str = "", panel: str = _HOW, **more: Any) -> Any:
    text = f"{_help(option)} {also}".rstrip()
    return typer.Option(flag_of(option), *short, help=text, rich_help_panel=panel, **more)


def _switch(option: str) -> Any:
    """Return a flag for what is on by default, and its opposite."""
    flags = f"{flag_of(option)}/--no-{option.replace('_', '-')}"
    return typer.Option(flags, help=_help(option), rich_help_panel=_HOW, show_default=False)


class Overlong(StrEnum):
    """What to do with a sentence that is longer than the model takes."""

    SPLIT = "split"
    ERROR = "error"


class Markup(StrEnum):
    """How texts are marked up."""

    NONE = "none"
    HTML = "html"
    XML = "xml"


def _tags(option: str) -> Any:
    """Return a flag for names of elements."""
    return _option(option, also="May be repeated.", metavar="NAME")


@dataclass(frozen=True)
class SearchOptions:
    """The options that change how long a translation takes."""

    beam_size: Annotated[int | None, _option("beam_size", "-b")] = None
    max_tokens: Annotated[int | None, _option("max_tokens")] = None

    def options(self) -> Options:
        """Return the options of the SDK."""
        return Options(beam_size=self.beam_size, max_tokens=self.max_tokens)


@dataclass(frozen=True)
class TranslationOptions:
    """All options of a translation, in the order of the SDK's."""

    beam_size: Annotated[int | None, _option("beam_size", "-b")] = None
    alternatives: Annotated[
        int | None, _option("alternatives", also="Without --beam-size, the beam is as large.")
    ] = None
    length_penalty: Annotated[float | None, _option("length_penalty")] = None
    temperature: Annotated[
        float | None, _option("temperature", also="This and the next three draw tokens at random.")
    ] = None
    top_k: Annotated[int | None, _option("top_k")] = None
    top_p: Annotated[float | None, _option("top_p")] = None
    seed: Annotated[int | None, _option("seed")] = None
    repetition_penalty: Annotated[float | None, _option("repetition_penalty")] = None
    no_repeat_ngram_size: Annotated[int | None, _option("no_repeat_ngram_size")] = None
    suppressed_pieces: Annotated[
        list[str] | None,
        _option("suppressed_pieces", also="May be repeated.", metavar="PIECE"),
    ] = None
    target_prefix: Annotated[str | None, _option("target_prefix")] = None
    min_tokens: Annotated[int | None, _option("min_tokens")] = None
    max_tokens: Annotated[int | None, _option("max_tokens")] = None
    overlong: Annotated[Overlong | None, _option("overlong")] = None
    split_sentences: Annotated[bool | None, _switch("split_sentences")] = None
    keep_untranslatable: Annotated[bool | None, _switch("keep_untranslatable")] = None
    mend: Annotated[bool | None, _switch("mend")] = None
    replace_unknown: Annotated[bool | None, _switch("replace_unknown")] = None
    recase: Annotated[bool | None, _switch("recase")] = None
    markup: Annotated[Markup | None, _option("markup")] = None
    ignore_tags: Annotated[list[str] | None, _tags("ignore_tags")] = None
    splitting_tags: Annotated[list[str] | None, _tags("splitting_tags")] = None
    inline_tags: Annotated[list[str] | None, _tags("inline_tags")] = None
    outline: Annotated[bool | None, _switch("outline")] = None
    translate_attributes: Annotated[bool, _option("translate_attributes")] = False
    glossary: Annotated[
        Path | None,
        typer.Option(
            "--glossary",
            help="File of terms: in each line a term, a tab, and what is to stand for it in the "
            "translation. A term without that stays as it is.",
            rich_help_panel=_HOW,
            metavar="FILE.tsv",
        ),
    ] = None
    glossary_name: Annotated[str | None, _option("glossary_name")] = None
    glossary_case_sensitive: Annotated[bool, _option("glossary_case_sensitive")] = False
    glossary_plurals: Annotated[bool, _option("glossary_plurals")] = False
    token_scores: Annotated[bool, _option("token_scores", panel=_MORE)] = False
    alignment: Annotated[bool, _option("alignment", panel=_MORE)] = False
    timing: Annotated[bool, _option("timing", panel=_MORE)] = False

    def options(self, *, as_json: bool) -> Options:
        """Return the options of the SDK."""
        for name in ("token_scores", "alignment", "timing"):
            if getattr(self, name) and not as_json:
                raise ConfigurationError(f"{flag_of(name)} needs --json, which shows it")
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        drawn = {each.name: given.pop(each.name) for each in fields(Sampling)}
        sampling = {name: value for name, value in drawn.items() if value is not None}
        given["sampling"] = Sampling(**sampling) if sampling else None
        for name in ("suppressed_pieces", "ignore_tags", "splitting_tags", "inline_tags"):
            given[name] = given[name] or ()
        given["glossary"] = read_glossary(self.glossary) if self.glossary else {}
        given["markup"] = self.markup.value if self.markup else None
        given["overlong"] = self.overlong.value if self.overlong else None
        given["beam_size"] = self.alternatives if self.beam_size is None else self.beam_size
        return Options(**given)
