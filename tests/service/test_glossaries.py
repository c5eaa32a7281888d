"""Glossaries behind the real server: terms stand as the client said, or there is a warning."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dragoman.v1 import translation_pb2 as pb
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.importer import ImportSettings, read_origin
from support.bundles import ignore
from support.hf_models import save_marian, sentences
from support.marked_texts import is_balanced, tags_of, without_tags
from support.service_running import (
    PATIENCE,
    Running,
    few_rows,
    refusal,
    serving,
    settings_for,
    variant,
)

TERMS = {
    "red car": "viatura encarnada",
    "dog": "cachorrinho",
    "house": "mansão",
    "My Company": "",
    "terms of service": "Termos de Uso",
}


def options(terms: dict[str, str] | None = None, **more: object) -> pb.Options:
    entries = [pb.GlossaryEntry(source=s, target=t) for s, t in (terms or TERMS).items()]
    return pb.Options(glossary=entries, **more)  # type: ignore[arg-type]


def translate(running: Running, text: str, how: pb.Options) -> pb.Translation:
    (found,) = running.translate(text, options=how)
    request = pb.TranslateStreamRequest(text=text, options=how)
    *events, last = running.stub.TranslateStream(request, timeout=PATIENCE)
    assert "".join(event.delta for event in events) == last.translation.text == found.text
    assert last.translation.warnings == found.warnings
    return found


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I have a red car and a dog.", ["viatura encarnada", "cachorrinho"]),
        ("My dog likes My Company, and My Company likes the house.", ["My Company", "mansão"]),
        ("Please read the Terms of Service.", ["Termos de Uso"]),
        ("A dog, a dog, a dog, a dog, a dog, a dog, a dog, a dog, a dog, a dog.", ["cachorrinho"]),
    ],
)
def test_terms_stand_as_the_glossary_says(running: Running, text: str, terms: list[str]) -> None:
    found = translate(running, text, options())
    for term in terms:
        assert term.lower() in found.text.lower()
    assert not found.warnings
    assert found.text.count("cachorrinho") == text.count("dog")


def test_a_term_that_begins_the_sentence_has_its_capital(running: Running) -> None:
    assert translate(running, "Dogs are good.", options({"dogs": "cachorros"})).text.startswith(
        "Cachorros"
    )


def test_terms_are_found_within_markup(running: Running) -> None:
    how = options(markup=pb.MARKUP_HTML)
    found = translate(running, "<p>The <b>red</b> car &amp; my <i>dog</i>.</p>", how)
    assert "viatura encarnada</b>" in found.text
    assert "<i>cachorrinho</i>" in found.text
    assert not found.warnings


def test_tags_survive_where_a_sentence_has_more_terms_than_placeholders(running: Running) -> None:
    text = "I saw " + ", ".join(["a <b>red</b> car and <i>a dog</i>"] * 6) + "."
    found = translate(running, text, options(markup=pb.MARKUP_HTML))
    assert sorted(tags_of(found.text)) == sorted(tags_of(text))
    assert is_balanced(found.text)
    assert without_tags(found.text).count("viatura encarnada") == 6
    assert without_tags(found.text).count("cachorrinho") == 6


def test_plurals_and_letters_are_options(running: Running) -> None:
    text = "I have two dogs and a House."
    assert "cachorrinhos" in translate(running, text, options(glossary_plurals=True)).text
    assert "cachorrinho" not in translate(running, text, options()).text
    assert "mansão" in translate(running, text, options()).text
    assert "mansão" not in translate(running, text, options(glossary_case_sensitive=True)).text


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ([("dog", "a"), ("Dog", "b")], "options.glossary[1].source"),
        ([("", "a")], "options.glossary[0].source"),
        ([(f"word{number}x", "a") for number in range(1001)], "options.glossary"),
    ],
)
def test_a_glossary_that_is_no_use_is_refused(
    running: Running, terms: list[tuple[str, str]], field: str
) -> None:
    how = pb.Options(glossary=[pb.GlossaryEntry(source=s, target=t) for s, t in terms])
    refused = refusal(lambda: running.translate("Hello", options=how))
    assert refused.fields == (field,)


@pytest.fixture(scope="module")
def without_placeholders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The default model as if it had no placeholders, and one that never ends a sentence."""
    path = tmp_path_factory.mktemp("models")
    plain = variant(path, "plain", placeholders=0)
    with serving(settings_for(plain, looping(path), engine=few_rows(8, max_beam=4))) as server:
        yield server


def looping(path: Path) -> Path:
    model, _ = save_marian(path / "hf", languages=())
    with torch.no_grad():
        model.final_logits_bias[0, 0] -= 30.0  # the end token's
    model.save_pretrained(path / "hf")
    origin = read_origin(path / "hf", ImportSettings(max_length=60))
    export_bundle(origin, path / "loops", ExportSettings(name="loops"), None, ignore)
    return path / "loops"


def test_a_model_without_placeholders_is_given_names(without_placeholders: Running) -> None:
    text = "I have a red car and a dog."
    (found,) = without_placeholders.translate(text, options=options(), model="plain")
    assert "viatura encarnada" in found.text
    assert "cachorrinho" in found.text
    assert not found.warnings


def test_what_could_not_be_mended_is_a_warning(without_placeholders: Running) -> None:
    texts = sentences(20, seed=4)
    found = without_placeholders.translate(*texts, model="loops")
    codes = {warning.code for each in found for warning in each.warnings}
    assert pb.WARNING_CODE_LOOP in codes
    assert without_placeholders.metric('dragoman_warnings_total{code="loop",model="loops"}') > 0
    for each in found:
        assert all(warning.segment < len(each.segments) for warning in each.warnings)
    unmended = without_placeholders.translate(*texts, model="loops", options=pb.Options(mend=False))
    assert not any(each.warnings for each in unmended)


def test_good_translations_have_no_warning(running: Running) -> None:
    assert not any(each.warnings for each in running.translate("Good morning.", "I have 2 dogs."))
