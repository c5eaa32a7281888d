"""The flags of ``dragoman translate``: each reaches the server, and alternatives are shown."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.v1 import translation_pb2 as pb
from support.client_servers import Scripted, dragoman, error_of, listening


class Recording(Scripted):
    """A peer that keeps the options of what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def Translate(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        return super().Translate(request, context)


TERMS = Path(__file__).with_name("terms.tsv")
"""A glossary of two terms."""


@pytest.fixture(scope="module")
def peer() -> Iterator[tuple[Recording, str]]:
    recording = Recording()
    with listening(recording) as address:
        yield recording, address


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", pb.Options()),
        (
            (
                "--beam-size 4 --alternatives 2 --length-penalty 0.5 --repetition-penalty 1.5 "
                "--no-repeat-ngram-size 3 --suppressed-pieces a --suppressed-pieces b "
                "--target-prefix Oi --min-tokens 2 --max-tokens 9 --overlong error "
                "--no-split-sentences --no-keep-untranslatable --no-mend --no-replace-unknown "
                "--no-recase --token-scores --alignment --timing --json"
            ),
            pb.Options(
                beam_size=4,
                alternatives=2,
                length_penalty=0.5,
                repetition_penalty=1.5,
                no_repeat_ngram_size=3,
                suppressed_pieces=["a", "b"],
                target_prefix="Oi",
                min_tokens=2,
                max_tokens=9,
                overlong=pb.OVERLONG_POLICY_ERROR,
                split_sentences=False,
                keep_untranslatable=False,
                mend=False,
                replace_unknown=False,
                recase=False,
                token_scores=True,
                alignment=True,
                timing=True,
            ),
        ),
        (
            "--temperature 0.5 --top-k 3 --top-p 0.9 --seed 7 --split-sentences --overlong split",
            pb.Options(
                sampling=pb.Sampling(temperature=0.5, top_k=3, top_p=0.9, seed=7),
                split_sentences=True,
                overlong=pb.OVERLONG_POLICY_SPLIT,
            ),
        ),
        ("--alternatives 3", pb.Options(beam_size=3, alternatives=3)),
        (
            (
                "--markup html --ignore-tags a --ignore-tags b --splitting-tags c --inline-tags d "
                f"--no-outline --translate-attributes --glossary {TERMS} --glossary-plurals "
                "--glossary-case-sensitive --glossary-name n"
            ),
            pb.Options(
                markup=pb.MARKUP_HTML,
                ignore_tags=["a", "b"],
                splitting_tags=["c"],
                inline_tags=["d"],
                outline=False,
                translate_attributes=True,
                glossary=[
                    pb.GlossaryEntry(source="dog", target="cão"),
                    pb.GlossaryEntry(source="Apple"),
                ],
                glossary_name="n",
                glossary_plurals=True,
                glossary_case_sensitive=True,
            ),
        ),
    ],
)
def test_every_flag_is_an_option_of_the_wire(
    peer: tuple[Recording, str], flags: str, expected: pb.Options
) -> None:
    recording, address = peer
    languages = ("-s", "en", "-t", "pt", "--model", "mine")
    run = dragoman("translate", "Hello.", *flags.split(), *languages, "--address", address)
    assert (run.returncode, run.stderr) == (0, b"")
    (request,) = recording.asked[-1:]
    request.options.token_scores = request.options.token_scores  # unset and false are the same
    assert request.options == expected
    asked = (request.source_language, request.target_language, request.model)
    assert asked == ("en", "pt", "mine")


SCORED = re.compile(r"^ +(-\d+\.\d{3})  (\S.*)$")


def test_alternatives_are_shown_below_their_text(at: dict[str, str]) -> None:
    run = dragoman("translate", "--alternatives", "3", "Good morning.", environment=at)
    assert (run.returncode, run.stderr) == (0, b"")
    first, *others = run.stdout.decode().splitlines()
    assert first == "Bom dia."
    found = [SCORED.match(line) for line in others]
    assert len(found) == 3
    assert all(found)
    texts = [each[2] for each in found if each]
    assert texts[0] == "Bom dia."
    scores = [float(each[1]) for each in found if each]
    assert scores == sorted(scores, reverse=True)

    asked = ("translate", "--json", "--alternatives", "3", "Good morning.")
    (segment,) = json.loads(dragoman(*asked, environment=at).stdout)["segments"]
    assert [each["text"] for each in segment["alternatives"]] == texts


def test_alternatives_of_several_sentences_say_of_which(at: dict[str, str]) -> None:
    given = b"Hello. Good night.\n\nHello."
    run = dragoman("translate", "--alternatives", "2", given=given, environment=at)
    lines = run.stdout.decode().splitlines()
    assert (lines[0], lines[5], lines[6]) == ("Olá. Boa noite.", "", "Olá.")
    assert [line.split()[0] for line in lines[1:5]] == ["1", "1", "2", "2"]
    assert [bool(SCORED.match(line)) for line in lines[7:]] == [True, True]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--alternatives", "2", "--output", "out"), "--json"),
        (("--alternatives", "2", "--stream"), "--json"),
        (("--timing",), "--timing needs --json"),
        (("--token-scores",), "--token-scores needs --json"),
        (("--alignment",), "--alignment needs --json"),
        (("--overlong", "cut"), "see 'dragoman translate --help'"),
        (("--top-k", "-1"), "top_k is -1"),
        (("--beam", "2"), "No such option"),
        (("--source", "en"), "No such option"),
    ],
)
def test_what_would_not_be_shown_is_refused(flags: tuple[str, ...], says: str) -> None:
    assert says in error_of(dragoman("translate", "Hello.", *flags), 2)
