"""Tokens that have no spelling: a source word takes their place, or they are left out."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from dragoman.v1 import translation_pb2 as pb
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_export.hf.importer import ImportSettings, read_origin
from support.bundles import ignore
from support.hf_models import save_marian, sentences
from support.service_running import Running, few_rows, serving, settings_for

UNKNOWN_ID = 1
TEXTS = [
    "".join(letter for letter in text if letter.isalpha() or letter == " ")
    for text in sentences(20, seed=11)
]
SIGNS = ("⁇", "<unk>")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A model that says unknown tokens often: its output leans towards them."""
    path = tmp_path_factory.mktemp("unknown")
    model, _ = save_marian(path / "model", languages=())
    with torch.no_grad():
        model.final_logits_bias[0, UNKNOWN_ID] += 14.0
    model.save_pretrained(path / "model")
    origin = read_origin(path / "model", ImportSettings(max_length=48))
    export_bundle(origin, path / "bundle", ExportSettings(name="model"), None, ignore)
    with serving(settings_for(path / "bundle", engine=few_rows(8, max_beam=4))) as server:
        yield server


def plain(**more: Any) -> pb.Options:
    """What the model wrote, and nothing else that changes it."""
    return pb.Options(keep_untranslatable=False, mend=False, **more)


def said_unknown(translation: pb.Translation) -> int:
    """How many unknown tokens a translation has."""
    return sum(t.piece == "<unk>" for segment in translation.segments for t in segment.tokens)


def test_an_unknown_token_never_shows(running: Running) -> None:
    translations = running.translate(*TEXTS, options=plain(token_scores=True))
    assert any(map(said_unknown, translations)), "the model is to say some"
    assert not any(sign in t.text for t in translations for sign in SIGNS)


def test_a_word_of_the_source_takes_its_place(running: Running) -> None:
    replaced = running.translate(*TEXTS, options=plain(token_scores=True))
    left_out = running.translate(*TEXTS, options=plain(replace_unknown=False))
    put = 0
    for text, with_words, without in zip(TEXTS, replaced, left_out, strict=True):
        assert not any(sign in without.text for sign in SIGNS)
        if not said_unknown(with_words):
            assert with_words.text == without.text
            continue
        added = len(with_words.text.split()) - len(without.text.split())
        assert 0 <= added <= said_unknown(with_words)
        put += sum(word in text.split() for word in with_words.text.split())
    assert put


def test_it_is_the_same_whether_the_alignment_was_asked_for_or_not(running: Running) -> None:
    """The engine aligns what it decodes; else what was decoded is aligned afterwards."""
    asked = running.translate(*TEXTS, options=plain(alignment=True))
    later = running.translate(*TEXTS, options=plain())
    assert [t.text for t in asked] == [t.text for t in later]
    assert all(segment.HasField("alignment") for t in asked for segment in t.segments)
    assert not any(segment.HasField("alignment") for t in later for segment in t.segments)


@pytest.mark.parametrize("replace", [True, False])
def test_a_stream_says_the_same(running: Running, replace: bool) -> None:
    options = plain(replace_unknown=replace)
    expected = running.translate(*TEXTS, options=options)
    for text, whole in zip(TEXTS, expected, strict=True):
        request = pb.TranslateStreamRequest(text=text, options=options)
        *events, last = running.stub.TranslateStream(request)
        assert "".join(event.delta for event in events) == whole.text == last.translation.text


def test_alternatives_show_none_either(running: Running) -> None:
    options = plain(beam_size=4, alternatives=4)
    for translation in running.translate(*TEXTS, options=options):
        for segment in translation.segments:
            assert segment.alternatives[0].text == translation.text.strip()
            assert not any(sign in a.text for a in segment.alternatives for sign in SIGNS)


def test_what_is_drawn_stays_what_was_drawn(running: Running) -> None:
    """What is aligned afterwards is the translation that was drawn, and not another one."""
    options = plain(token_scores=True, sampling=pb.Sampling(temperature=1.5))
    for translation in running.translate(*TEXTS, options=options):
        assert not any(sign in translation.text for sign in SIGNS)
        known = [
            token.piece.strip("▁")
            for segment in translation.segments
            for token in segment.tokens[:-1]
            if token.piece != "<unk>"
        ]
        assert all(piece in translation.text for piece in known)
