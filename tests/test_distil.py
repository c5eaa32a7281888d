"""Teachers' translations as training text."""

import subprocess
import sys
from pathlib import Path

import pytest

from bundles import PAIR, REFERENCES, TEXTS, trained_bundle, trained_model
from dragoman_export.distil import distil, nearest
from dragoman_server.errors import BundleError
from dragoman_training.corpus import Pair
from dragoman_training.evaluation import translate


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
    report = distil([path], pairs, lines.append, beam=4, least=60.0, watch=ignore)
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


def run_command(tmp_path: Path, output: Path) -> str:
    source, reference = tmp_path / "s", tmp_path / "r"
    source.write_text("\n".join(TEXTS) + "\n")
    reference.write_text("\n".join(REFERENCES) + "\n")
    command = [sys.executable, "-m", "dragoman_cli", "distil"]
    command += [str(trained_bundle("float32").path), "--source", str(source)]
    command += ["--reference", str(reference), "--output", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_the_command_writes_a_line_for_each(tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert "36 lines" in run_command(tmp_path, output)
    assert len(output.read_text().splitlines()) == len(TEXTS)


def test_an_output_in_no_directory_is_refused_before_the_work(tmp_path: Path) -> None:
    message = run_command(tmp_path, tmp_path / "no" / "out")
    assert message.count("\n") == 1
    assert "not a file in a directory that exists" in message
