"""Glossaries and markup in the SDK: from files, in options, and in what comes back."""

from pathlib import Path

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import (
    ConfigurationError,
    Options,
    TranslationWarning,
    WarningCode,
    read_glossary,
)
from dragoman_client._results import translation


def test_a_file_has_a_term_a_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeff# ours\nred car\tviatura\n\nApple\nBus\t\n", encoding="utf-8")
    assert read_glossary(path) == {"red car": "viatura", "Apple": "", "Bus": ""}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\tb\na\tc\n", ":2: 'a' is there already"),
        (b"a\tb\tc\n", ":1: it must be a term, a tab"),
        (b"\tb\n", ":1: it must be a term, a tab"),
        (b"\xff\n", ": not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as raised:
        read_glossary(path)
    assert f"{path}{problem}" in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_glossary(tmp_path / "none.tsv")


def test_options_become_a_message() -> None:
    options = Options(
        markup="xml",
        ignore_tags=["x"],
        inline_tags=["y"],
        splitting_tags=("z",),
        outline=False,
        translate_attributes=True,
        glossary={"dog": "cão", "Apple": ""},
        glossary_plurals=True,
    )
    assert options.to_message() == pb.Options(
        markup=pb.MARKUP_XML,
        ignore_tags=["x"],
        inline_tags=["y"],
        splitting_tags=["z"],
        outline=False,
        translate_attributes=True,
        glossary=[
            pb.GlossaryEntry(source="dog", target="cão"),
            pb.GlossaryEntry(source="Apple"),
        ],
        glossary_plurals=True,
        glossary_case_sensitive=False,
        token_scores=False,
        alignment=False,
        timing=False,
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"markup": "sgml"}, ConfigurationError),
        ({"ignore_tags": "b"}, TypeError),
        ({"glossary": [("a", "b")]}, TypeError),
        ({"glossary": {"a": None}}, TypeError),
    ],
)
def test_options_that_can_not_be_sent_are_refused(
    options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Options(**options)  # type: ignore[arg-type]


def test_warnings_come_back_as_values() -> None:
    message = pb.Translation(
        warnings=[
            pb.TranslationWarning(code=pb.WARNING_CODE_NUMBERS, segment=1),
            pb.TranslationWarning(code=pb.WARNING_CODE_GLOSSARY, segment=2, entry=0),
            pb.TranslationWarning(code=99),  # type: ignore[arg-type] # of a later version
        ]
    )
    assert translation(message).warnings == (
        TranslationWarning(WarningCode.NUMBERS, 1),
        TranslationWarning(WarningCode.GLOSSARY, 2, 0),
        TranslationWarning(WarningCode.OTHER, 0),
    )
