"""What stands between translated sentences follows the language of the translation."""

import pytest

from dragoman_server.text.masks import Masked
from dragoman_server.text.plan import Part, join
from dragoman_server.text.segments import Span


def joined(text: str, language: str, *pairs: tuple[str, str]) -> str:
    """Put translations in place of the parts of a text, which come in its order."""
    parts, at = [], 0
    for source, _ in pairs:
        start = text.index(source, at)
        at = start + len(source)
        parts.append(Part(Span(start, at), Masked(source), ()))
    found = join(text, parts, [target for _, target in pairs], language=language)
    targets = [span.of(found.text) for span in found.spans]
    assert targets == [target for _, target in pairs]
    return found.text


CHINESE = ("你好。", "Hello."), ("再见！", "Goodbye!")
ENGLISH = ("Hello.", "你好。"), ("Goodbye!", "再见！")


@pytest.mark.parametrize("language", ["en", "pt", "ko"])
def test_sentences_without_a_space_between_get_one(language: str) -> None:
    assert joined("你好。再见！", language, *CHINESE) == "Hello. Goodbye!"
    # One that there is stays alone, and nothing is added at the ends.
    assert joined("  你好。 再见！ ", language, *CHINESE) == "  Hello. Goodbye! "
    assert joined("你好。\n再见！\n", language, *CHINESE) == "Hello.\nGoodbye!\n"


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_sentences_with_a_space_between_lose_it(language: str) -> None:
    assert joined("Hello. Goodbye!", language, *ENGLISH) == "你好。再见！"
    assert joined(" Hello.   Goodbye! ", language, *ENGLISH) == " 你好。再见！ "
    # Other white space is no gap between sentences of a line.
    assert joined("Hello.\nGoodbye!", language, *ENGLISH) == "你好。\n再见！"
    assert joined("Hello. 🎉 Goodbye!", language, *ENGLISH) == "你好。 🎉 再见！"


def test_a_space_after_words_in_other_letters_stays() -> None:
    pairs = ("Hello.", "Hello."), ("Goodbye!", "再见！")
    assert joined("Hello. Goodbye!", "zh", *pairs) == "Hello. 再见！"


def test_what_is_kept_in_a_chinese_sentence_is_a_word_of_its_translation() -> None:
    pairs = ("请使用", "Please use"), ("浏览器。", "the browser.")
    assert joined("请使用Firefox浏览器。", "en", *pairs) == "Please use Firefox the browser."
    assert joined("看https://a.b", "en", ("看", "See")) == "See https://a.b"
    assert joined("Firefox你好。", "en", ("你好。", "Hello.")) == "Firefox Hello."
    assert joined("你好。😀再见！", "en", *CHINESE) == "Hello.😀Goodbye!"
    assert joined("你好。”再见！", "en", *CHINESE) == "Hello.” Goodbye!"


def test_nothing_else_is_changed() -> None:
    halves = ("good", "bom"), ("bye", "adeus")
    assert joined("goodbye", "pt", *halves) == "bomadeus"
    assert joined("good  bye", "pt", *halves) == "bom  adeus"
    assert joined("你好。再见！", "", *CHINESE) == "Hello.Goodbye!"
    assert (
        joined("你好。再见！", "zh", ("你好。", "您好。"), ("再见！", "再会！")) == "您好。再会！"
    )
