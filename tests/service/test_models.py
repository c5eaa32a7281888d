"""Several models in one process, chosen by name or by languages; and what each says of itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc import StatusCode
from hypothesis import given
from hypothesis import strategies as st
from langcodes import Language

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import ServerError
from dragoman_server.text.languages import Tag, likeness, parse
from support import MODEL
from support.service_running import Running, few_rows, refusal, serving, settings_for, variant


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("bundles")
    bundles = [
        MODEL,
        variant(directory, "en-br", target="pt-BR"),
        variant(directory, "second", target="pt"),
        variant(directory, "sr-latin", source="sr", target="sr-Latn"),
        variant(directory, "sr-cyrillic", source="sr", target="sr-Cyrl"),
        variant(directory, "toy", source="", target=""),
    ]
    with serving(settings_for(*bundles, engine=few_rows(1))) as running:
        yield running


@pytest.mark.parametrize(
    ("source", "target", "model"),
    [
        ("en", "pt", "en-pt"),
        ("eng", "por", "en-pt"),
        ("EN", "PT", "en-pt"),
        ("en-US", "pt-PT", "en-pt"),
        ("en_GB", "por-BR", "en-br"),
        ("en", "pt-BR", "en-br"),
        ("en-Latn", "pt-Latn-BR", "en-br"),
        ("sr", "sh", "sr-latin"),
        ("srp", "sr-Cyrl-RS", "sr-cyrillic"),
    ],
)
def test_languages_choose_the_model_that_suits_them_best(
    running: Running, source: str, target: str, model: str
) -> None:
    request = pb.TranslateRequest(texts=["Yes."], source_language=source, target_language=target)
    (translation,) = running.stub.Translate(request).translations
    assert translation.model == model
    scored = pb.ScoreRequest(
        pairs=[pb.ScorePair(source="Yes.", target="Sim.")],
        source_language=source,
        target_language=target,
    )
    assert running.stub.Score(scored).model == model


@pytest.mark.parametrize("name", ["en-pt", "second", "toy"])
def test_a_name_chooses_the_model(running: Running, name: str) -> None:
    (translation,) = running.translate("Yes.", model=name)
    assert translation.model == name
    described = running.stub.GetModel(pb.GetModelRequest(model=name)).model
    assert described.name == name
    assert described in running.stub.ListModels(pb.ListModelsRequest()).models


def test_a_model_without_languages_is_chosen_by_name_only(running: Running) -> None:
    request = pb.TranslateRequest(texts=["Yes."], source_language="en", model="toy")
    found = refusal(lambda: running.stub.Translate(request))
    assert (found.code, found.reason) == (StatusCode.NOT_FOUND, "UNKNOWN_LANGUAGES")


def test_a_name_must_be_given_to_be_told_of_a_model(running: Running) -> None:
    found = refusal(lambda: running.stub.GetModel(pb.GetModelRequest()))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ("model",))


def test_a_model_says_what_it_is(running: Running) -> None:
    manifest = json.loads((MODEL / "manifest.json").read_text())
    first, *others = running.stub.ListModels(pb.ListModelsRequest()).models
    assert len(others) == 5
    assert first == pb.Model(
        name="en-pt",
        version=manifest["version"],
        source_language="en",
        target_language="pt",
        precision="int8",
        device="cpu",
        max_source_tokens=256,
        max_target_tokens=256,
        max_beam_size=1,
        rows=2,
        licence=manifest["licence"],
    )


def test_the_only_model_needs_no_name() -> None:
    with serving(settings_for(engine=few_rows(1))) as running:
        assert running.translate("Yes.")[0].model == "en-pt"


def test_what_a_model_thinks_of_a_translation(running: Running) -> None:
    """The score of a translation that it made is the one that it gave."""
    (made,) = running.translate("Good morning, my friend.", model="en-pt")
    pairs = [
        pb.ScorePair(source="Good morning, my friend.", target=made.text),
        pb.ScorePair(source="Good morning, my friend.", target="Sapatos verdes."),
        pb.ScorePair(source="Good morning, my friend.", target=""),
    ]
    request = pb.ScoreRequest(pairs=pairs, model="en-pt", token_scores=True)
    own, other, empty = running.stub.Score(request).scores
    assert own.score == pytest.approx(made.score, abs=1e-5)
    assert own.log_prob == pytest.approx(sum(token.log_prob for token in own.tokens), abs=1e-5)
    assert len(own.tokens) == own.target_tokens + 1
    assert own.target_tokens == made.target_tokens
    assert other.score < own.score
    assert (empty.target_tokens, len(empty.tokens)) == (0, 1)
    request.length_penalty = 0
    assert running.stub.Score(request).scores[0].score == own.log_prob


def test_two_bundles_of_one_name_are_refused(tmp_path: Path) -> None:
    same = variant(tmp_path, "en-pt")
    refused = pytest.raises(ServerError, match="another bundle has the name 'en-pt' too")
    with refused, serving(settings_for(MODEL, same)):
        pass


@pytest.mark.parametrize(
    ("tag", "parsed"),
    [
        ("", Tag()),
        ("pt", Tag("pt")),
        ("por", Tag("pt")),
        ("pt-BR", Tag("pt", "", "BR")),
        ("pt_br", Tag("pt", "", "BR")),
        ("zh-hant-tw", Tag("zh", "Hant", "TW")),
        ("zh-cmn-Hans", Tag("zh", "Hans")),
        ("es-419", Tag("es", "", "419")),
        ("de-1996", Tag("de")),
        ("en-x-private", Tag("en")),
        ("x-toy", Tag("x-toy")),
        ("und", Tag("und")),
    ],
)
def test_tags_are_understood_as_they_are_written(tag: str, parsed: Tag) -> None:
    assert parse(tag) == parsed


@given(st.text(max_size=80))
def test_any_text_is_a_tag_or_is_refused(text: str) -> None:
    try:
        tag = parse(text)
    except ValueError:
        return
    assert likeness(tag, tag) > 1


def test_made_up_tags_are_not_remembered() -> None:
    """langcodes keeps what it was asked for, and clients may ask for anything."""
    parse("pt")
    before = len(Language._PARSE_CACHE), len(Language._INSTANCES)
    for number in range(2000):
        parse(f"pt-x-{number:08x}")
        parse(f"pt-a{number:06x}")
        parse(f"x-{number:08x}")
    assert (len(Language._PARSE_CACHE), len(Language._INSTANCES)) == before
    assert parse.cache_info().currsize <= 1024
