"""The page for people, in a real browser: translating, pointing, choosing, copying."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from dragoman_server.engine.core import Report
from support.browser import page_of, violations, visiting
from support.engine_reports import Gate
from support.service_running import Running, held, reports_of

SENTENCE = "I forgot my keys at the office, so I had to wait in the rain until my neighbour came."
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def page(both_ways: Running, browser: Browser) -> Iterator[Page]:
    with visiting(browser, page_of(both_ways)) as page:
        yield page


def translation(page: Page) -> Locator:
    return page.locator("#output")


def sentences(page: Page) -> Locator:
    return page.locator(".sentence")


def word(page: Page, text: str) -> Locator:
    return page.locator(".word", has_text=re.compile(f"^{re.escape(text)}$"))


def marked(page: Page) -> list[str]:
    return page.locator("mark:not(.weak)").all_inner_texts()


def translate(page: Page, text: str, source: str = "en", count: int = 1) -> None:
    """Give a text, and wait for its translation of so many sentences."""
    page.get_by_label("Translate from").select_option(source)
    page.get_by_label("Text to translate").fill(text)
    expect(page.locator("#output[aria-busy=false] .sentence")).to_have_count(count)


def test_what_is_typed_is_translated(page: Page, both_ways: Running) -> None:
    page.get_by_label("Translate from").select_option("en")
    page.get_by_label("Text to translate").press_sequentially("Good morning, everyone.", delay=5)
    (expected,) = both_ways.translate("Good morning, everyone.", model="en-pt")
    expect(translation(page)).to_have_text(expected.text)
    expect(page.locator("#status")).to_have_text(expected.text)
    expect(page.locator("#counter")).to_have_text("23 / 5,000")
    page.get_by_label("Clear the text").click()
    expect(translation(page)).to_have_text("The translation appears here")
    assert violations(page) == []
    expect(page.get_by_label("Text to translate")).to_be_focused()


def test_the_translation_grows_as_it_is_decoded(page: Page, both_ways: Running) -> None:
    gate, number = Gate(), itertools.count()

    def hold(report: Report) -> None:
        if next(number) == 8:
            gate(report)

    with reports_of(both_ways.engine) as reports:
        reports.at_report = hold
        try:
            page.get_by_label("Translate from").select_option("en")
            page.get_by_label("Text to translate").fill(SENTENCE)
            gate.wait()
            expect(page.locator("#output.growing")).not_to_be_empty()
            begun = translation(page).inner_text()
        finally:
            gate.open()
    expect(sentences(page)).to_have_count(1)
    (whole,) = both_ways.translate(SENTENCE, model="en-pt")
    expect(translation(page)).to_have_text(whole.text)
    assert begun
    assert whole.text.startswith(begun)
    assert begun != whole.text


def test_who_types_on_is_not_answered_twice(page: Page, both_ways: Running) -> None:
    with held(both_ways.engine) as gate:
        page.get_by_label("Translate from").select_option("en")
        page.get_by_label("Text to translate").fill(SENTENCE)
        gate.wait()
        with page.expect_event("requestfailed") as given_up:
            page.get_by_label("Text to translate").fill("The house is red.")
        assert given_up.value.url.endswith("/v1/stream")
    (expected,) = both_ways.translate("The house is red.", model="en-pt")
    expect(translation(page)).to_have_text(expected.text)
    both_ways.wait_until_idle()


def test_languages_and_texts_are_swapped(page: Page) -> None:
    translate(page, "The house is red.")
    before = translation(page).inner_text()
    page.get_by_label("Swap languages").click()
    expect(page.get_by_label("Text to translate")).to_have_value(before)
    expect(page.get_by_label("Translate from")).to_have_value("pt")
    expect(page.get_by_label("Translate into")).to_have_value("en")
    expect(sentences(page)).to_have_count(1)


def test_the_source_language_is_detected(page: Page) -> None:
    page.get_by_label("Text to translate").fill("Onde fica a estação mais próxima, por favor?")
    expect(sentences(page)).to_have_count(1)
    expect(page.get_by_label("Translate into")).to_have_value("en")
    expect(page.locator("#source option:checked")).to_have_text("Portuguese (detected)")
    page.get_by_label("Text to translate").fill("Where is the nearest station, please?")
    expect(page.locator("#source option:checked")).to_have_text("English (detected)")
    expect(page.get_by_label("Translate into")).to_have_value("pt")


def test_pointing_at_a_word_shows_what_it_was_made_from(page: Page) -> None:
    # An emoji is one letter on the wire and two here: marks must not be beside their words.
    translate(page, "😀😀😀😀😀😀 The black dog is sleeping under the wooden table.")
    word(page, "mesa").hover()
    assert marked(page) == ["table"]
    word(page, "preto").hover()
    assert marked(page) == ["black"]
    word(page, "madeira").hover()  # of two pieces
    assert marked(page) == ["wooden"]
    mark, letters = page.locator("mark").bounding_box(), page.locator("#text").bounding_box()
    assert mark
    assert letters
    assert letters["x"] < mark["x"] < letters["x"] + letters["width"]
    page.get_by_role("heading", name="Dragoman").hover()
    expect(page.locator("mark")).to_have_count(0)
    page.get_by_label("Text to translate").press("End")
    word(page, "preto").hover()
    page.get_by_label("Text to translate").press("!")
    expect(page.locator("mark")).to_have_count(0)


def test_the_keyboard_reaches_words_and_sentences(page: Page) -> None:
    translate(page, "The dog is black. The house is red.", count=2)
    page.get_by_label("Text to translate").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(sentences(page).first).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".word.current")).to_have_count(1)
    assert marked(page) == ["dog"]
    expect(page.locator("#status")).to_contain_text("from dog")
    page.keyboard.press("ArrowDown")
    expect(sentences(page).nth(1)).to_be_focused()
    expect(page.locator("mark")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitemradio").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    expect(sentences(page).nth(1)).to_be_focused()


def test_a_sentence_has_other_wordings(page: Page) -> None:
    translate(page, "It is raining today. The dog is black.", count=2)
    second = sentences(page).nth(1).inner_text()
    sentences(page).first.click()
    items = page.get_by_role("menuitemradio")
    expect(items.first).to_have_attribute("aria-checked", "true")
    texts = items.all_inner_texts()
    assert len(texts) >= 4
    assert len(set(texts)) == len(texts)
    # One of another length, so that the next sentence is elsewhere.
    place, chosen = next(
        (place, text) for place, text in enumerate(texts) if len(text) != len(texts[0])
    )
    for _ in range(place):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(translation(page)).to_have_text(f"{chosen} {second}")
    expect(sentences(page).first).to_be_focused()
    assert sentences(page).all_inner_texts() == [chosen, second]
    # The chosen wording is aligned too, and what follows it still is.
    expect(page.locator(".sentence").first.locator(".word")).not_to_have_count(0)
    sentences(page).first.locator(".word").last.hover()
    expect(page.locator("mark").first).to_be_visible()
    word(page, "preto").hover()
    expect(page.locator("mark", has_text="black")).to_have_count(1)


def test_uncertain_words_are_marked(page: Page, both_ways: Running) -> None:
    request: dict[str, Any] = {"texts": [SENTENCE], "model": "en-pt", "options": {}}
    request["options"] = {"token_scores": True}
    answer = page.request.post(f"{page_of(both_ways)}v1/translate", data=request).json()
    tokens = answer["translations"][0]["segments"][0]["tokens"][:-1]
    unsure = [token["piece"] for token in tokens if token.get("log_prob", 0) < -1.05]
    assert unsure
    translate(page, SENTENCE)
    assert page.locator(".unsure").count() == len(unsure)
    for piece in unsure:
        expect(page.locator(".unsure", has_text=piece.lstrip("▁"))).to_have_count(1)


def test_a_link_holds_the_text(page: Page, both_ways: Running, browser: Browser) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = "Is 5 % + 3 & 4 # more?\nThe house is red."
    translate(page, text, count=2)
    page.get_by_label("Copy the translation").click()
    expect(page.locator("#toast")).to_have_text("Translation copied")
    assert page.evaluate("navigator.clipboard.readText()") == translation(page).inner_text()
    page.get_by_label("Copy a link to this text").click()
    expect(page.locator("#toast")).to_have_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    with visiting(browser, link) as other:
        expect(other.get_by_label("Text to translate")).to_have_value(text)
        expect(sentences(other)).to_have_count(2)
        expect(other.get_by_label("Translate from")).to_have_value("en")
        assert translation(other).inner_text() == translation(page).inner_text()
        other.reload()
        expect(sentences(other)).to_have_count(2)


def test_a_text_that_is_too_long_is_kept_and_not_sent(page: Page) -> None:
    page.get_by_label("Text to translate").fill("x" * 5007)
    expect(page.locator("#counter")).to_have_text("7 characters too many")
    expect(page.get_by_role("alert").filter(has_text="too long")).to_be_visible()
    expect(page.get_by_label("Text to translate")).to_have_value("x" * 5007)
    translate(page, "The house is red.")
    expect(page.locator("#notice")).to_be_hidden()


def test_text_may_run_from_right_to_left(page: Page) -> None:
    """What the model has never seen comes back as it is, so the translation is Hebrew too."""
    page.get_by_label("Translate from").select_option("en")
    for text, direction in (("שלום", "rtl"), ("Hello.", "ltr")):
        page.get_by_label("Text to translate").fill(text)
        expect(page.get_by_label("Text to translate")).to_have_css("direction", direction)
        expect(translation(page)).to_have_css("direction", direction)


def test_colours_follow_the_system_until_the_reader_chooses(
    both_ways: Running, browser: Browser
) -> None:
    with visiting(browser, page_of(both_ways), color_scheme="dark") as page:
        expect(page.locator("body")).to_have_css("background-color", "rgb(15, 20, 19)")
        page.get_by_label("Use light colours").click()
        expect(page.locator("body")).to_have_css("background-color", "rgb(245, 243, 238)")
        page.reload()
        expect(page.locator("body")).to_have_css("background-color", "rgb(245, 243, 238)")
        expect(page.get_by_label("Use dark colours")).to_be_visible()


def test_a_browser_may_keep_nothing(both_ways: Running, browser: Browser) -> None:
    forbid = """for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get() { throw new Error("forbidden"); } });
    }"""
    with visiting(browser, page_of(both_ways), script=forbid) as page:
        translate(page, "The house is red.")
        page.get_by_label("Use dark colours").click()
        expect(page.get_by_label("Use light colours")).to_be_visible()


@pytest.mark.parametrize(
    "reader",
    [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"color_scheme": "light", **PHONE}],
    ids=["light", "dark", "phone"],
)
def test_axe_finds_nothing_to_object_to(
    both_ways: Running, browser: Browser, reader: dict[str, Any]
) -> None:
    with visiting(browser, page_of(both_ways), reduced_motion="reduce", **reader) as page:
        translate(page, SENTENCE)
        page.locator(".word").first.hover()
        assert violations(page) == []
        sentences(page).first.click()
        expect(page.get_by_role("menuitemradio").first).to_be_visible()
        assert violations(page) == []
        width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0  # nothing to scroll sideways


WORDS: list[tuple[str, list[str], list[tuple[str, list[int]]]]] = [
    ("Olá, mãe.", ["▁Olá", ",", "▁m", "ãe", "."], [("Olá", [0]), ("mãe", [2, 3])]),
    # What is kept stands among the pieces as a placeholder.
    (
        "Veja a@b hoje",
        ["▁Veja", "▁", "⟨1⟩", "▁hoje"],
        [("Veja", [0]), ("a", [2]), ("b", [2]), ("hoje", [3])],
    ),
    # SentencePiece normalises letters.
    ("ﬁm Ⅳ fim", ["▁fim", "▁IV", "▁fim"], [("ﬁm", [0]), ("Ⅳ", [1]), ("fim", [2])]),
    # Words of some languages have no spaces between them.
    ("我爱北京。", ["▁我", "爱", "北京", "。"], [("我", [0]), ("爱", [1]), ("北京", [2])]),
    ("😀 dia", ["▁😀", "▁dia"], [("dia", [1])]),
    ("nada", [], [("nada", [])]),
]


def test_words_know_their_pieces(page: Page) -> None:
    for text, pieces, expected in WORDS:
        found = page.evaluate(
            """async ([text, pieces]) => {
                const { wordsOf } = await import("/modules/words.js");
                const words = wordsOf(text, "pt", pieces);
                return words.map(({ start, end, pieces }) => [text.slice(start, end), pieces]);
            }""",
            [text, pieces],
        )
        assert [(word, places) for word, places in found] == expected
