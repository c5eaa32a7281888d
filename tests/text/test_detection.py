"""Which language a text is in: by script where that decides, by n-grams elsewhere."""

import pytest

from dragoman_server.text.detection import detector

LANGUAGES = ("en", "pt-BR", "de", "el", "ru", "uk", "zh-Hans", "ja", "ko", "ar")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the train station?", "en"),
        ("Onde fica a estação?", "pt-BR"),
        ("Das ist gut.", "de"),
        ("ΓΕΙΆ", "el"),
        ("привіт", "uk"),
        ("Где находится вокзал?", "ru"),
        ("你好", "zh-Hans"),
        ("こんにちは世界", "ja"),
        ("안녕", "ko"),
        ("مرحبا", "ar"),
        ("OK: Πού είναι ο σταθμός;", "el"),
    ],
)
def test_the_language_is_found(text: str, language: str) -> None:
    best, second, *_ = detector(LANGUAGES).rank(text)
    assert best.language == language
    assert best.confidence > second.confidence + 0.1


def test_confidences_are_shares() -> None:
    for text in ("Hello", "Bom dia", "дом", "語"):
        ranked = detector(LANGUAGES).rank(text)
        assert {each.language for each in ranked} == set(LANGUAGES)
        assert sum(each.confidence for each in ranked) == pytest.approx(1)
        assert ranked == sorted(ranked, key=lambda each: -each.confidence)


@pytest.mark.parametrize("text", ["", " \n", "123", "😀!", "…"])
def test_without_letters_nothing_is_known(text: str) -> None:
    assert [each.confidence for each in detector(LANGUAGES).rank(text)] == [0] * len(LANGUAGES)


def test_a_script_that_no_language_has_is_no_hint() -> None:
    ranked = detector(("en", "pt")).rank("Γειά σου")
    assert sum(each.confidence for each in ranked) == pytest.approx(1)


def test_languages_that_the_classifier_does_not_know_are_equally_likely() -> None:
    ranked = detector(("tlh", "qya")).rank("nuqneH")
    assert [each.confidence for each in ranked] == [0.5, 0.5]


def test_of_two_tags_of_a_language_the_first_counts() -> None:
    assert [each.language for each in detector(("pt", "pt-BR", "por")).rank("Olá")] == ["pt"]


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    long = "Where is the train station? " * 200 + "Где находится вокзал? " * 100_000
    assert detector(LANGUAGES).rank(long)[0].language == "en"
