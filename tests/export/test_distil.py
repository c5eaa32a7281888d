"""Teachers' translations as training text."""

import json
import shutil
from pathlib import Path

import pytest

from dragoman_export.distil import distil, nearest
from dragoman_export.errors import ExportError
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.importer import ImportSettings, read_origin
from dragoman_server.bundle.manifest import MANIFEST
from dragoman_server.errors import BundleError
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_server.runtime.reference_search import greedy
from dragoman_server.runtime.scoring import default_limit
from dragoman_training.data.text.corpus import Pair
from dragoman_training.translate.evaluation import translate
from support.bundles import REFERENCES, TEXTS, trained_bundle, trained_model
from support.bundles import ignore as no_stage
from support.command import dragoman
from support.hf_models import save_m2m100, sentences
from support.tokenizers import PAIR


def ignore(done: int) -> None:
    pass


def distilled(pairs: list[Pair], beam: int = 4, teachers: int = 1) -> list[str]:
    lines: list[str] = []
    paths = [trained_bundle(p).path for p in ("float32", "int8")[:teachers]]
    report = distil(paths, pairs, lines.append, beam=beam, watch=ignore)
    assert report.lines == len(pairs) == len(lines)
    return lines


def test_greedy_targets_are_the_teachers_translations() -> None:
    pairs = [Pair(text, "") for text in TEXTS]
    expected = [t.text for t in translate(trained_model(), PAIR, TEXTS)]
    assert distilled(pairs, beam=1) == expected


def test_of_the_beam_the_nearest_to_the_right_translation_is_taken() -> None:
    text = TEXTS[0]
    (best,) = distilled([Pair(text, REFERENCES[0])])
    (other,) = distilled([Pair(text, "mouse mouse mouse mouse")])
    assert best == REFERENCES[0]
    assert other != best


def test_a_second_teacher_only_adds_candidates() -> None:
    pairs = [Pair(*each) for each in zip(TEXTS, REFERENCES, strict=True)]
    one, two = distilled(pairs), distilled(pairs, teachers=2)
    for a, b, pair in zip(one, two, pairs, strict=True):
        assert nearest([a, b], pair.target) == b or a == b


def test_what_no_teacher_meets_keeps_its_right_translation() -> None:
    pairs = [Pair(TEXTS[0], REFERENCES[0]), Pair(TEXTS[1], "quite another thing")]
    lines: list[str] = []
    path = trained_bundle("float32").path
    report = distil([path], pairs, lines.append, beam=4, min_chrf=60.0, watch=ignore)
    assert lines == [REFERENCES[0], "quite another thing"]
    assert report.kept == 1


def test_nearest_is_the_first_of_equals() -> None:
    assert nearest(["abc", "abd", "abc "], "abc") == "abc"


def test_blank_and_overlong_lines_keep_their_target() -> None:
    pairs = [Pair("", "a"), Pair("mouse " * 200, "b"), Pair(TEXTS[0], REFERENCES[0])]
    assert distilled(pairs) == ["a", "b", REFERENCES[0]]


def test_a_teacher_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such bundle"):
        distil([tmp_path / "none"], [], str, beam=1, watch=ignore)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that translates from any of a hundred languages into any of them."""
    path = tmp_path_factory.mktemp("imported")
    save_m2m100(path / "hf")
    origin = read_origin(path / "hf", ImportSettings(max_length=32))
    export_bundle(origin, path / "bundle", ExportSettings(name="many"), None, no_stage)
    return path / "bundle"


def test_an_imported_teacher_has_its_own_ids_and_language_tokens(
    imported: Path, tmp_path: Path
) -> None:
    """Of one pair of languages, so that none has to be chosen."""
    settings = ImportSettings(source_languages=["en"], target_languages=["pt"], max_length=32)
    origin = read_origin(imported.parent / "hf", settings)
    bundle = export_bundle(origin, tmp_path / "b", ExportSettings(name="one"), None, no_stage)
    texts = sentences(6, seed=3)
    sources = origin.encode(texts)
    limits = [default_limit(len(source), 32 - len(origin.start)) for source in sources]
    graphs = Graphs(bundle, GraphSettings(rows=len(texts)))
    found = greedy(graphs, sources, limits, start=origin.start)
    lines: list[str] = []
    distil([bundle.path], [Pair(text, "") for text in texts], lines.append, beam=1, watch=ignore)
    assert lines == [origin.target.decode(each.ids) for each in found]
    assert len(set(lines)) > 3


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("", "pt", "translates from 100 languages: choose one with --source-language"),
        ("en", "", "translates into 100 languages: choose one with --target-language"),
        ("en", "tlh", "does not translate from en into tlh"),
        ("en", "p_t!", "--target-language p_t!: not a language tag"),
    ],
)
def test_languages_that_have_to_be_chosen(
    imported: Path, source: str, target: str, says: str
) -> None:
    with pytest.raises(ExportError, match=says):
        distil(
            [imported],
            [],
            str,
            beam=1,
            source_language=source,
            target_language=target,
            watch=ignore,
        )


def test_a_language_that_a_teacher_does_not_translate_into() -> None:
    path = trained_bundle("float32").path
    distil([path], [], str, beam=1, source_language="eng", target_language="pt-BR", watch=ignore)
    with pytest.raises(ExportError, match="does not translate into de"):
        distil([path], [], str, beam=1, target_language="de", watch=ignore)


def test_a_manifest_with_what_is_no_language_tag(tmp_path: Path) -> None:
    path = Path(shutil.copytree(trained_bundle("float32").path, tmp_path / "b"))
    table = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps({**table, "source_language": "e" * 65}))
    with pytest.raises(ExportError, match="b: not a language tag"):
        distil([path], [], str, beam=1, watch=ignore)


def test_teachers_translate_the_same_languages(imported: Path) -> None:
    both = [trained_bundle("float32").path, imported]
    with pytest.raises(ExportError, match="from 100 languages"):
        distil(both, [], str, beam=1, watch=ignore)
    distil(both, [], str, beam=1, source_language="en", target_language="pt", watch=ignore)


def test_the_command_takes_languages(imported: Path, tmp_path: Path) -> None:
    for name, text in (("s", "casa mar\n"), ("r", "pão rua\n")):
        (tmp_path / name).write_text(text)
    asked = (
        "--source",
        tmp_path / "s",
        "--reference",
        tmp_path / "r",
        "--output",
        tmp_path / "out",
    )
    run = dragoman("distil", imported, "--beam-size", "1", *asked)
    assert run.returncode == 2
    assert "choose one with --source-language" in run.stderr
    assert not (tmp_path / "out").exists()
    languages = ("--source-language", "en", "--target-language", "pt")
    run = dragoman("distil", imported, "--beam-size", "1", *asked, *languages)
    assert run.returncode == 0, run.stderr
    assert len((tmp_path / "out").read_text().splitlines()) == 1


def run_command(tmp_path: Path, output: Path) -> str:
    source, reference = tmp_path / "s", tmp_path / "r"
    source.write_text("\n".join(TEXTS) + "\n")
    reference.write_text("\n".join(REFERENCES) + "\n")
    files = ("--source", source, "--reference", reference, "--output", output)
    return dragoman("distil", trained_bundle("float32").path, *files).stderr


def test_the_command_writes_a_line_for_each(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert "36 lines" in run_command(tmp_path, output)
    assert len(output.read_text().splitlines()) == len(TEXTS)


def test_an_output_in_no_directory_is_refused_before_the_work(tmp_path: Path) -> None:
    message = run_command(tmp_path, tmp_path / "no" / "out")
    assert message.count("\n") == 1
    assert "not a file in a directory that exists" in message
