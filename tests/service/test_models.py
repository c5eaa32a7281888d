"""Several models in one process, chosen by name or by languages; and what each says of itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from hypothesis import given
from hypothesis import strategies as st
from langcodes import Language

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import Client
from dragoman_server.errors import ServerError
from dragoman_server.text.language_aliases import CODES, WIDER
from dragoman_server.text.languages import Tag, likeness, parse
from support import MODEL, ROOT
from support.service_running import Running, few_rows, refusal, serving, settings_for, variant

MANY = (
    *(
        "nno-Latn",
        "nob-Latn",
        "por",
        "pob",
        "spa",
        "cmn-Hans",
        "cmn-Hant",
        "prs",
        "pes",
        "srp-Latn",
    ),
    *("srp-Cyrl", "ns", "ita", "fra", "ron", "deu", "nld", "dan"),
)
"""Languages as OPUS-MT, NLLB and M2M-100 call them."""
STANDARD = tuple({"pob": "pt-BR", "ns": "nso"}.get(tag, tag) for tag in MANY)
NONE, SERBIAN = "no model translates", "sr-Latn, sr-Cyrl"
FIRST_TOKEN = 300
"""Of the first of these languages; the others follow."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("bundles")
    bundles = [
        MODEL,
        variant(directory, "en-br", target="pt-BR"),
        variant(directory, "second", target="pt"),
        variant(directory, "sr-latin", source="srp", target="sr-Latn"),
        variant(directory, "sr-cyrillic", source="sr", target="sr-Cyrl"),
        variant(directory, "toy", source="", target=""),
        variant(
            directory,
            "many",
            target="mul",
            target_languages={tag: FIRST_TOKEN + place for place, tag in enumerate(MANY)},
            target_language_in="source",
        ),
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
    assert len(others) == 6
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
        source_languages=["en"],
        target_languages=["pt"],
    )
    *_, toy, many = others
    assert (toy.name, list(toy.source_languages), list(toy.target_languages)) == ("toy", [], [])
    assert (many.source_language, many.target_language) == ("en", "mul")
    assert tuple(many.target_languages) == STANDARD
    with Client(running.server.address) as client:
        seen = next(each for each in client.models() if each.name == "many")
    assert (seen.source_languages, seen.target_languages) == (
        tuple(many.source_languages),
        tuple(many.target_languages),
    )


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        ("pt", "por"),
        ("pt-PT", "por"),
        ("pt-BR", "pob"),
        ("pb", "pob"),
        ("zh", "cmn-Hans"),
        ("zh-CN", "cmn-Hans"),
        ("zh-TW", "cmn-Hant"),
        ("zh-HK", "cmn-Hant"),
        ("zt", "cmn-Hant"),
        ("no", "nob-Latn"),
        ("nn", "nno-Latn"),
        ("fa", "pes"),
        ("fa-AF", "prs"),
        ("sr", "srp-Cyrl"),
        ("sr-ME", "srp-Latn"),
        ("nso", "ns"),
        ("es-MX", "spa"),
    ],
)
def test_a_region_is_honoured_where_the_model_has_it(
    running: Running, wanted: str, taken: str
) -> None:
    vocabulary = next(iter(running.server.models)).source
    request = pb.TranslateRequest(
        texts=["Yes."], target_language=wanted, model="many", options=pb.Options(alignment=True)
    )
    (translation,) = running.stub.Translate(request).translations
    told = translation.segments[0].alignment.source_pieces[0]
    assert told == vocabulary.piece(FIRST_TOKEN + MANY.index(taken))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"source_language": "ja", "target_language": "pt"},
            f"{NONE} from this source language; there are en, srp, sr",
        ),
        (
            {"source_language": "sr", "target_language": "ja"},
            f"{NONE} from this source language into this target language; there are {SERBIAN}",
        ),
        (
            {"target_language": "ja", "model": "second"},
            f"{NONE} into this target language; there is pt",
        ),
        (
            {"target_language": "ja", "model": "many"},
            f"{NONE} into this target language; there are {', '.join(STANDARD[:16])} and 2 more",
        ),
        (
            {"target_language": "ja", "model": "toy"},
            f"{NONE} into this target language",
        ),
    ],
)
def test_an_unknown_language_is_told_which_there_are(
    running: Running, fields: dict[str, Any], problem: str
) -> None:
    request = pb.TranslateRequest(texts=["Yes."], **fields)
    found = refusal(lambda: running.stub.Translate(request))
    assert (found.code, found.reason) == (StatusCode.NOT_FOUND, "UNKNOWN_LANGUAGES")
    assert found.message == f"{problem}: ListModels lists the models that are loaded"


def test_a_language_that_is_missing_is_asked_for_with_those_there_are(running: Running) -> None:
    request = pb.TranslateRequest(texts=["Yes."], model="many")
    found = refusal(lambda: running.stub.Translate(request))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ("target_language",))
    assert "is not given, and the model has 18: nno-Latn, nob-Latn, por, pt-BR," in found.message


def test_sentences_and_numbers_are_known_by_whatever_name_a_model_has_for_a_language(
    running: Running,
) -> None:
    models = {model.name: model for model in running.server.models}
    assert models["sr-latin"].towards("sr", "sr-Latn").planner.language == "sr"
    told = models["many"].towards("", "pt-BR")
    assert told.examiner.numbers.differ("It costs 1,250.50.", "Custa 1,250.50.")
    assert not told.examiner.numbers.differ("It costs 1,250.50.", "Custa 1.250,50.")


def test_the_page_has_all_aliases() -> None:
    page = (ROOT / "docs" / "wire.md").read_text()
    for code, tag in CODES.items():
        assert f"| `{code}` | `{tag}` |" in page
    for narrow, wide in WIDER.items():
        assert f"| `{narrow}` | `{wide}` |" in page


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
        ("pob", Tag("pt", "", "BR")),
        ("PB", Tag("pt", "", "BR")),
        ("zt", Tag("zh", "Hant")),
        ("prs", Tag("fa", "", "AF")),
        ("nob-Latn", Tag("nb", "Latn", "", "no")),
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
