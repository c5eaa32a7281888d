"""From a text to parts and back."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.plan import OverlongError, Part, Planner, PlanOptions, join
from dragoman_server.text.protected import addresses, protect
from dragoman_server.text.segments import Span, between, has_words
from support.vocabularies import VOCABULARIES

FRAGMENTS = (
    *(
        "the house",
        "Mr. Smith",
        "Tom",
        "number",
        "goat",
        "дом",
        "日本。",
        "e\u0301",
        "3.14",
        "coat,",
    ),
    *("a@b.example", "https://x.example/A.B?C=D!E_(f)", "www.X.Example", "@user", "#tag", "{name}"),
    *(
        "`a. B`",
        "<b>",
        "</b>",
        '<a title="Go. Now">',
        "%s",
        "%(n)d",
        "😀",
        "👩\u200d👧",
        "🇧🇷",
        "1\ufe0f\u20e3",
    ),
    *(
        " ",
        " ",
        " ",
        " ",
        ". ",
        "! ",
        "? ",
        ", ",
        "\n",
        "\r\n",
        "\u2028",
        "\t",
        "\u00a0",
        "\ufffc",
        "(",
    ),
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=30).map("".join)
PLANNERS = st.sampled_from(
    [
        Planner(VOCABULARIES["en-pt"], "en", 255),
        Planner(VOCABULARIES["en-pt"], "en", 40),  # one letter of Unicode is 34 tokens
        Planner(VOCABULARIES["unigram"], "pt-BR", 9),
        Planner(VOCABULARIES["bpe"], "ja", 5),
        Planner(VOCABULARIES["without bytes"], "", 5),
    ]
)
OPTIONS = st.builds(
    PlanOptions, split_sentences=st.booleans(), keep=st.booleans(), recase=st.just(False)
)
EN_PT = Planner(VOCABULARIES["en-pt"], "en", 255)
SHORT = Planner(VOCABULARIES["en-pt"], "en", 12)


def translated(
    planner: Planner, text: str, options: PlanOptions, translate: Callable[[str], str]
) -> str:
    """As the service does it."""
    done: list[tuple[Part, str]] = []
    for part in planner.plan(text, options):
        restored = part.masked.restore(translate(part.masked.source))
        if restored is not None:
            done.append((part, restored))
        else:
            done += [(p, translate(p.masked.source)) for p in planner.around(text, part)]
    return join(text, [part for part, _ in done], [each for _, each in done]).text


def planned(planner: Planner, text: str, **options: bool) -> list[str]:
    return [part.masked.source for part in planner.plan(text, PlanOptions(**options))]


@given(text=TEXTS, planner=PLANNERS, options=OPTIONS)
def test_a_translation_that_changes_nothing_gives_the_text(
    text: str, planner: Planner, options: PlanOptions
) -> None:
    parts = planner.plan(text, options)
    # Masks that are not touched never fail.
    same = [part.masked.restore(part.masked.source) for part in parts]
    assert same == [part.span.of(text) for part in parts]
    assert translated(planner, text, options, lambda source: source) == text


@given(text=TEXTS, planner=PLANNERS, options=OPTIONS)
def test_parts_fit_are_in_order_and_leave_nothing_that_has_words_but_what_is_kept(
    text: str, planner: Planner, options: PlanOptions
) -> None:
    parts = planner.plan(text, options)
    for part in parts:
        assert len(part.ids) <= planner.max_tokens
        assert part.ids == planner.vocabulary.encode(part.masked.source)
        assert has_words(part.masked.source)
        assert part.span.of(text) == part.span.of(text).strip()
    gaps = between(Span(0, len(text)), [part.span for part in parts])
    assert all(gap.start <= gap.end for gap in gaps)
    if not options.keep:
        assert not any(has_words(gap.of(text)) for gap in gaps)
        assert not any(part.masked.kept for part in parts)


@given(text=TEXTS, planner=PLANNERS, split=st.booleans())
def test_no_address_is_given_to_the_model_even_in_part(
    text: str, planner: Planner, split: bool
) -> None:
    for part in planner.plan(text, PlanOptions(split_sentences=split)):
        for piece in [part, *planner.around(text, part)]:
            given = between(piece.span, piece.masked.kept)
            for address in addresses(text):
                assert all(s.end <= address.start or address.end <= s.start for s in given)


@given(text=TEXTS, planner=PLANNERS, options=OPTIONS)
def test_pieces_around_what_a_part_keeps_fit_and_are_all_of_it(
    text: str, planner: Planner, options: PlanOptions
) -> None:
    for part in planner.plan(text, options):
        pieces = planner.around(text, part)
        everything = sorted(
            [*(piece.span for piece in pieces), *part.masked.kept], key=lambda span: span.start
        )
        gaps = between(part.span, everything)
        assert all(gap.start <= gap.end and not has_words(gap.of(text)) for gap in gaps)
        assert all(len(piece.ids) <= planner.max_tokens for piece in pieces)
        assert all(piece.masked.source == piece.span.of(text) for piece in pieces)


@given(text=TEXTS, translation=st.sampled_from(["", "x", "Tom Tom", "Boston"]))
def test_what_is_kept_survives_any_translation(text: str, translation: str) -> None:
    result = translated(EN_PT, text, PlanOptions(), lambda _: translation)
    reached = 0
    whole = addresses(text)
    for span in protect(text, Span(0, len(text)), whole, EN_PT.vocabulary.spells).masked:
        for line in span.of(text).splitlines():
            reached = result.find(line, reached) + len(line)
            assert reached >= len(line)


def test_addresses_are_masked_and_come_back_though_the_sentence_is_turned_round() -> None:
    text = "Write to A.B@c.example. Or see https://x.example/A.B?C=D!E (now)!"
    assert planned(EN_PT, text) == ["Write to Tom.", "Or see Tom (now)!"]
    assert translated(EN_PT, text, PlanOptions(), str.upper) == (
        "WRITE TO A.B@c.example. OR SEE https://x.example/A.B?C=D!E (NOW)!"
    )
    turned = {"Write to Tom.": "Tom: escreva!", "Or see Tom (now)!": "Ou veja Tom!"}
    assert translated(EN_PT, text, PlanOptions(), turned.__getitem__) == (
        "A.B@c.example: escreva! Ou veja https://x.example/A.B?C=D!E!"
    )


def test_a_sentence_is_cut_at_symbols_and_around_what_is_within_words() -> None:
    assert planned(EN_PT, "I like 😀 you. ☃") == ["I like", "you."]
    assert planned(EN_PT, "A <b>bold</b> word") == ["A", "bold", "word"]


def test_more_than_there_are_names_for_is_cut_out() -> None:
    text = "Hello " + "".join(f"@{n} " for n in range(9)) + "good morning."
    assert planned(EN_PT, text) == ["Hello", "good morning."]


@pytest.mark.parametrize(
    "text",
    ["", " \n ", "42 %", "...", "https://x.example/a", "@you: #tag! 😀", "привет, 日本。", "`x`"],
)
def test_what_has_nothing_else_is_not_translated(text: str) -> None:
    assert planned(EN_PT, text) == []


def test_the_model_is_given_everything_where_nothing_is_to_be_kept() -> None:
    assert planned(EN_PT, "See @you, 😀 привет.", keep=False) == ["See @you, 😀 привет."]


def test_lines_are_parts_where_sentences_are_not_to_be_split() -> None:
    assert planned(EN_PT, "One. Two.\nThree.", split_sentences=False) == ["One. Two.", "Three."]


LONG = "I went to the house of my mother, and then I came home because it was late."


def test_a_sentence_that_is_too_long_is_split_or_an_error() -> None:
    assert planned(SHORT, LONG) == [
        "I went to the house of my mother,",
        "and then I came home because it was late.",
    ]
    tokens = len(SHORT.vocabulary.encode(LONG))
    with pytest.raises(OverlongError) as caught:
        planned(SHORT, f"Hello. {LONG}", split_overlong=False)
    assert str(caught.value) == f"has a sentence of {tokens} tokens: the model takes 12"
    assert planned(EN_PT, LONG, split_overlong=False) == [LONG]


def test_a_long_address_does_not_make_a_sentence_too_long() -> None:
    text = f"I saw it at https://x.example/{'long-Path.html?' * 20}y yesterday."
    assert planned(SHORT, text, split_overlong=False) == ["I saw it at Tom yesterday."]


def test_what_is_kept_is_whole_in_one_of_the_parts_of_a_long_sentence() -> None:
    text = LONG.replace("my mother", "`my, mother is a`").replace("home", "<a b='c, d e f g'>")
    assert planned(SHORT, text) == [
        "I went to the house of Tom,",
        "and then I came Tom because it was late.",
    ]


def test_where_names_are_longer_than_what_they_stand_for_there_are_none() -> None:
    pieces = VOCABULARIES["unigram"]
    text = "the goat @e @o"
    planner = Planner(pieces, "en", len(pieces.encode(text)))
    assert len(pieces.encode("the goat Tom Boston")) > planner.max_tokens
    for split in (True, False):
        parts = planner.plan(text, PlanOptions(split_overlong=split))
        assert all(len(part.ids) <= planner.max_tokens for part in parts)
        assert parts[0].masked.source.startswith("the goat")


@pytest.mark.parametrize("split", [True, False])
def test_a_letter_that_is_too_long_is_an_error(split: bool) -> None:
    # The tokenizer writes it out as a sentence.
    with pytest.raises(OverlongError, match=r"has a sentence of \d+ tokens: the model takes 12$"):
        planned(
            SHORT,
            "Hello \N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}.",
            keep=False,
            split_overlong=split,
        )


def test_the_object_character_of_a_text_is_a_letter_like_any_other() -> None:
    text = "\ufffc house" * 30
    for keep in (True, False):
        assert all(len(p.ids) <= 12 for p in SHORT.plan(text, PlanOptions(keep=keep)))


def test_translations_are_joined_with_what_is_between_their_parts() -> None:
    text = " One.\r\n\t*\n Two. Three!\n"
    parts = EN_PT.plan(text, PlanOptions())
    joined = join(text, parts, ["um", "", "três três"])
    assert joined.text == " um\r\n\t*\n  três três\n"
    assert [span.of(joined.text) for span in joined.spans] == ["um", "", "três três"]
    assert join(text, [], []).text == text


@pytest.mark.parametrize("unit", ["a", "日", "x, ", "@a ", "ж ", "{a} b ", "\ufffc", "'a"])
def test_a_long_line_takes_time_in_proportion(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    began = time.process_time()
    parts = EN_PT.plan(text, PlanOptions())
    assert time.process_time() - began < 5  # it is a tenth of that; the square was up to 18
    assert all(len(part.ids) <= 255 for part in parts)
