"""Options have one name in Python, in a shell and on the wire, and a page that lists all."""

import pydoc
import subprocess
import sys
from dataclasses import fields
from inspect import signature

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import Client, Options, Retries, Sampling, Translation
from dragoman_client._field_docs import field_docs
from support import ROOT

SCRIPT = ROOT / "scripts" / "options_page.py"


def test_python_has_the_names_of_the_wire() -> None:
    for kind, message in ((Options, pb.Options), (Sampling, pb.Sampling)):
        names = {field.name for field in fields(kind)}
        assert names == {field.name for field in message.DESCRIPTOR.fields}
    chosen = {field.name for field in pb.TranslateRequest.DESCRIPTOR.fields} - {"texts"}
    for call in (Client.translate, Client.translate_batch, Client.stream, Client.translate_many):
        assert chosen <= set(signature(call).parameters)
    asked = {field.name for field in pb.ScoreRequest.DESCRIPTOR.fields}
    assert asked <= set(signature(Client.score).parameters)


def test_the_page_is_what_the_code_says() -> None:
    """``make options`` writes it again."""
    run = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("kind", [Options, Sampling, Retries, Translation])
def test_help_shows_the_docstring_of_every_field(kind: type) -> None:
    docs = field_docs(kind)
    assert set(docs) == {field.name for field in fields(kind)}
    shown = " ".join(pydoc.plain(pydoc.render_doc(kind)).replace("|", " ").split())
    for name, text in docs.items():
        assert f"{name}: {text}" in shown


def test_a_class_without_source_has_its_own_docstring() -> None:
    """As in a program that was frozen into one file."""
    made: dict[str, object] = {}
    exec("class Made:\n    'What it is.'\n    field: int = 1", made)  # noqa: S102
    kind = made["Made"]
    assert isinstance(kind, type)
    assert field_docs(kind) == {}
