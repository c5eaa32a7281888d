"""Argos packages as bundles: the ids that the model in the package means, computed plainly."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from dragoman_export.argos.importer import ImportSettings, read_origin
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.source import Origin
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import Bundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.jobs import SentenceError
from dragoman_training.data.batch import pad_sources
from dragoman_training.translate.search import greedy_search
from support.argos_models import (
    KINDS,
    MARIAN,
    OPENNMT,
    Kind,
    aliased,
    as_floats,
    save_package,
    seeded_variables,
    stored_as,
    tokens_of,
)
from support.argos_plain import PlainTransformer
from support.bundles import ignore
from support.engine_bundles import one_lane, running

LIMIT = 32
_DIRECTORY = TemporaryDirectory()


@cache
def imported(kind: Kind) -> tuple[Origin, Bundle]:
    directory = Path(_DIRECTORY.name) / str(hash(kind))
    directory.mkdir()
    package = save_package(directory / "model.argosmodel", kind)
    origin = read_origin(package, ImportSettings())
    bundle = export_bundle(origin, directory / "bundle", ExportSettings(name="pt-en"), None, ignore)
    return origin, bundle


def plain_model(kind: Kind, quantisation: str) -> PlainTransformer:
    kept, aliases = aliased(seeded_variables(kind))
    floats = as_floats(stored_as(kept, quantisation))
    return PlainTransformer(kind, floats | {alias: floats[name] for alias, name in aliases.items()})


def sources(kind: Kind, count: int) -> list[tuple[int, ...]]:
    rng = random.Random(5)
    low, high = len(kind.special), len(tokens_of(kind, "source"))
    return [
        tuple(rng.randrange(low, high) for _ in range(rng.randint(1, 12))) for _ in range(count)
    ]


@pytest.mark.parametrize("kind", [MARIAN, OPENNMT], ids=["marian", "opennmt"])
def test_the_engine_gives_the_ids_that_the_package_means(kind: Kind) -> None:
    _, bundle = imported(kind)
    plain = plain_model(kind, "float32")
    wanted = sources(kind, 40)
    expected = [plain.greedy(source, LIMIT) for source in wanted]
    assert len(set(expected)) >= 30
    assert len({token for ids in expected for token in ids}) >= 40
    with running(bundle, one_lane(16)) as watched:
        answers = watched.translate([Sentence(s) for s in wanted], Options(max_tokens=LIMIT))
    assert [answer.hypotheses[0].ids for answer in answers] == expected


@pytest.mark.parametrize(
    ("name", "quantisation"),
    [
        *((name, "float32") for name in KINDS),
        *(("marian", kind) for kind in ("int8", "int16", "float16")),
        ("opennmt", "int8"),
    ],
)
def test_every_kind_and_quantisation_gives_the_ids(
    tmp_path: Path, name: str, quantisation: str
) -> None:
    kind = KINDS[name]
    package = save_package(tmp_path / "model.argosmodel", kind, quantisation)
    origin = read_origin(package, ImportSettings())
    plain = plain_model(kind, quantisation)
    ends = origin.ends
    for source in sources(kind, 12):
        batch = pad_sources([source], torch.device("cpu"), ends.end if ends.ends_source else None)
        (found,) = greedy_search(origin.model, *batch, [LIMIT], ends=ends)
        assert found.ids == plain.greedy(source, LIMIT)


def test_a_source_without_an_end_is_no_shorter_than_a_token() -> None:
    _, bundle = imported(OPENNMT)
    assert bundle.manifest.source_without_end
    assert Manifest.from_json(bundle.manifest.to_json()).source_end == ()
    with running(bundle, one_lane(2)) as watched, pytest.raises(SentenceError, match="no token"):
        watched.translate([Sentence(())], Options())


def test_an_alignment_has_no_place_for_an_end_that_is_not_there() -> None:
    for kind, more in ((OPENNMT, 0), (MARIAN, 1)):
        _, bundle = imported(kind)
        (source,) = sources(kind, 1)
        with running(bundle, one_lane(2)) as watched:
            options = Options(max_tokens=LIMIT, alignment=True)
            (answer,) = watched.translate([Sentence(source)], options)
        alignment = answer.hypotheses[0].alignment
        assert alignment is not None
        assert alignment.shape[1] == len(source) + more
        assert alignment.sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_positions_are_waves_where_they_are_and_else_a_table(tmp_path: Path) -> None:
    expected = {
        "marian": "marian",
        "opennmt": "sinusoidal",
        "opennmt, separate": "sinusoidal",
        "opennmt-tf": "learned",
    }
    for name, kind in KINDS.items():
        package = save_package(tmp_path / "model.argosmodel", kind)
        assert read_origin(package, ImportSettings()).model.settings.positions == expected[name]
    package = save_package(tmp_path / "model.argosmodel", MARIAN, "float16")
    assert read_origin(package, ImportSettings()).model.settings.positions == "learned"


def test_texts_become_the_package_s_tokens() -> None:
    origin, _ = imported(replace(MARIAN))
    tokens = tokens_of(MARIAN, "source")
    (ids,) = origin.encode(["casa mar, livro"])
    assert "".join(tokens[token] for token in ids) == "▁casa▁mar,▁livro"
    assert origin.target.decode(ids) == "casa mar, livro"
