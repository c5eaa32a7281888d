"""Imported models behind the real server: the language that a request names picks the token."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman_client import Client, Options
from dragoman_export.distil import distil
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.importer import ImportSettings, read_origin
from dragoman_export.source import Origin
from dragoman_server.bundle.reading import read_bundle
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.runtime.scoring import default_limit
from dragoman_training.data.text.corpus import Pair
from support.bundles import ignore
from support.command import dragoman
from support.hf_models import FAMILIES, sentences
from support.service_running import Running, few_rows, refusal, serving, settings_for

TEXTS = ["".join(c for c in t if c.isalpha() or c == " ") for t in sentences(8, seed=11)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles of both families."""
    path = tmp_path_factory.mktemp("bridges")
    for name, save in FAMILIES.items():
        save(path / f"{name}.hf")
        origin = read_origin(path / f"{name}.hf", ImportSettings(max_length=48))
        export_bundle(origin, path / name, ExportSettings(name=name), None, ignore)
    return path


@pytest.fixture(scope="module")
def running(directory: Path) -> Iterator[Running]:
    bundles = (directory / name for name in FAMILIES)
    with serving(settings_for(*bundles, engine=few_rows(8))) as server:
        yield server


def translated(directory: Path, name: str, source: str, target: str) -> tuple[Origin, list[str]]:
    """By plain search over the graphs, with the tokens that the importer would use."""
    settings = ImportSettings(source_languages=[source], target_languages=[target], max_length=48)
    origin = read_origin(directory / f"{name}.hf", settings)
    graphs = Graphs(read_bundle(directory / name), GraphSettings(rows=len(TEXTS)))
    sources = origin.encode(TEXTS)
    limits = [default_limit(len(s), 48 - len(origin.start)) for s in sources]
    found = greedy(graphs, sources, limits, start=origin.start)
    return origin, [origin.target.decode(each.ids) for each in found]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("marian", "en", "pt"),
        ("marian", "en", "spa"),
        ("marian", "en", "zh"),
        ("m2m100", "en", "pt"),
        ("m2m100", "de", "pt-BR"),
        ("m2m100", "en", "nl"),
    ],
)
def test_the_languages_of_a_request_pick_the_tokens(
    running: Running, directory: Path, name: str, source: str, target: str
) -> None:
    _, expected = translated(directory, name, source, target)
    plain = Options(
        split_sentences=False, keep_untranslatable=False, mend=False, replace_unknown=False
    )
    with Client(running.server.address) as client:
        found = client.translate_batch(
            TEXTS, source_language=source, target_language=target, model=name, options=plain
        )
        assert [each.text for each in found] == expected
        stream = client.stream(
            TEXTS[0], source_language=source, target_language=target, model=name, options=plain
        )
        assert "".join(stream) == expected[0]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("marian", "", "pt"), ("marian", "", "spa"), ("m2m100", "en", "pt"), ("m2m100", "de", "nl")],
)
def test_distil_writes_what_the_server_translates(
    running: Running, directory: Path, name: str, source: str, target: str
) -> None:
    lines: list[str] = []
    distil(
        [directory / name],
        [Pair(text, "") for text in TEXTS],
        lines.append,
        beam=1,
        source_language=source,
        target_language=target,
        watch=lambda done: None,
    )
    plain = Options(
        split_sentences=False, keep_untranslatable=False, mend=False, replace_unknown=False
    )
    with Client(running.server.address) as client:
        found = client.translate_batch(
            TEXTS, source_language=source, target_language=target, model=name, options=plain
        )
    assert lines == [each.text for each in found]
    assert len(set(lines)) > 4


def test_another_language_is_another_translation(running: Running, directory: Path) -> None:
    for name in FAMILIES:
        seen = {tuple(translated(directory, name, "en", target)[1]) for target in ("pt", "es")}
        assert len(seen) == 2


def test_a_language_that_has_to_be_given_is_asked_for(running: Running) -> None:
    def asks(**fields: Any) -> tuple[str, str]:
        request = pb.TranslateRequest(texts=["casa"], **fields)
        found = refusal(lambda: running.stub.Translate(request))
        return found.reason, next(iter(found.fields), "")

    assert asks(model="marian") == ("INVALID_FIELD", "target_language")
    assert asks(model="m2m100", target_language="pt") == ("INVALID_FIELD", "source_language")
    assert asks(model="m2m100", source_language="pt") == ("INVALID_FIELD", "target_language")
    assert asks(model="marian", target_language="de") == ("UNKNOWN_LANGUAGES", "")


def test_scores_are_of_the_translation_alone(running: Running, directory: Path) -> None:
    """A score counts neither the token of the language nor its price, in a search and as given."""
    origin, texts = translated(directory, "m2m100", "en", "pt")
    request = pb.TranslateRequest(
        texts=TEXTS[:3],
        source_language="en",
        target_language="pt",
        model="m2m100",
        options=pb.Options(token_scores=True, alignment=True, replace_unknown=False),
    )
    for translation, text in zip(running.stub.Translate(request).translations, texts, strict=False):
        (segment,) = translation.segments
        assert translation.text == text
        assert len(segment.tokens) == segment.target_tokens + 1 == len(segment.alignment.rows)
        assert segment.log_prob == pytest.approx(sum(t.log_prob for t in segment.tokens), abs=1e-4)
        assert segment.alignment.source_pieces[0] == "__en__"
        assert segment.tokens[0].piece != "__pt__"
    pair = pb.ScorePair(source=TEXTS[0], target="casa")
    scored = pb.ScoreRequest(
        pairs=[pair], source_language="en", target_language="pt", model="m2m100", token_scores=True
    )
    (score,) = running.stub.Score(scored).scores
    (ids,) = origin.target.encode_all(["casa"])
    assert score.target_tokens == len(ids)
    assert score.log_prob == pytest.approx(sum(t.log_prob for t in score.tokens), abs=1e-4)
    assert score.score == pytest.approx(score.log_prob / (len(ids) + 1))


def test_the_command_imports_and_describes(directory: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    languages = ("--source-language", "en", "--target-language", "pt", "--target-language", "es")
    run = dragoman(
        *("import-hf", directory / "m2m100.hf", bundle, *languages, "--max-tokens", "16"),
        *("--licence", "MIT", "--name", "mine"),
    )
    assert run.returncode == 0, run.stderr
    for part in ("en → pt, es", "mine, version 1", "MIT", "16 source", "reading the model"):
        assert part in run.stderr
    told = read_bundle(bundle).manifest
    assert list(told.source_languages) == ["en"]
    assert list(told.target_languages) == ["pt", "es"]
    assert (told.source_language, told.target_language) == ("en", "mul")
    run = dragoman("import-hf", tmp_path, tmp_path / "none")
    assert (run.returncode, run.stderr.count("\n")) == (2, 2)
    assert "config.json: missing" in run.stderr
    assert not (tmp_path / "none").exists()
