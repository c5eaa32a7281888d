"""What is kept as it is, and the names that stand for it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.masks import Masked, mask
from dragoman_server.text.protected import Protected, addresses, protect
from dragoman_server.text.segments import Span, between
from support.vocabularies import VOCABULARIES

EN_PT = VOCABULARIES["en-pt"]


def found(text: str) -> list[str]:
    return [span.of(text) for span in addresses(text)]


def protected(text: str, *, has_placeholders: bool = False) -> Protected:
    return protect(
        text,
        Span(0, len(text)),
        addresses(text),
        EN_PT.spells,
        has_placeholders=has_placeholders,
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # Of people
        ("Write to a@b.example.", ["a@b.example"]),
        ("(John.Smith+news@mail.x-y.co.uk), please", ["John.Smith+news@mail.x-y.co.uk"]),
        ("a@b and @ and a@ and 3 @ 5", []),
        # Of pages, without the punctuation of the sentence
        ("See https://x.example/a_b-c?q=1&r=%20#top.", ["https://x.example/a_b-c?q=1&r=%20#top"]),
        ("Is it www.x.example/A.B? Yes!", ["www.x.example/A.B"]),
        ("HTTPS://X.EXAMPLE, ftp://f.example: ok", ["HTTPS://X.EXAMPLE", "ftp://f.example"]),
        ("(see https://x.example/a)", ["https://x.example/a"]),
        ("see https://x.example/Foo_(bar), ok", ["https://x.example/Foo_(bar)"]),
        ("[here](https://x.example/Foo_(bar))", ["https://x.example/Foo_(bar)"]),
        ("https://x.example/{id}/[0]…", ["https://x.example/{id}/[0]"]),
        (
            "'https://x.example/a' <https://x.example>",
            ["https://x.example/a", "<https://x.example>"],
        ),
        ("これはhttps://x.example/a。はい", ["https://x.example/a"]),
        ("https:// and www. and awww.sweet", []),
        # Handles and tags
        ("@user_1 and #TagTwo-3, #हिन्दी!", ["@user_1", "#TagTwo-3", "#हिन्दी"]),
        ("Follow @me@host.example.", ["@me@host.example"]),
        ("C# and # 1", []),
        # Code
        ("Run `a. B` or `c` now", ["`a. B`", "`c`"]),
        ("Run ``a`` and ```b c```.", ["``a``", "```b c```"]),
        ("It's a ` and `` and", []),
        # Markup
        (
            '<b>Bold</b> <a href="x" title="Go. Now">y</a><br/>',
            [*("<b>", "</b>", '<a href="x" title="Go. Now">', "</a><br/>")],
        ),
        ("1 < 2 and 3 > 2 and <3", []),
        # Templates
        (
            "Hi {name}, {} {{ x }} {{{y}}} ${z} {% if a %}",
            [*("{name}", "{}", "{{ x }}", "{{{y}}}", "${z}", "{% if a %}")],
        ),
        ("%s of %(n)d, %1$s: %.2f, %02d", ["%s", "%(n)d", "%1$s", "%.2f", "%02d"]),
        ("100% sure, 5 %, 5%so, {open, %(a b)s", []),
    ],
)
def test_addresses_and_code_are_found(text: str, kept: list[str]) -> None:
    assert found(text) == kept


@pytest.mark.parametrize("mark", ["\n", "\r", "\v", "\x1c", "\x85", "\u2028"])
@pytest.mark.parametrize("unit", ["`a{}b`", "<a {}>", "{{a{}b}}", "https://x.example/{}a", "@a{}b"])
def test_none_goes_over_a_line_break(mark: str, unit: str) -> None:
    assert not any(mark in kept for kept in found(unit.replace("{}", mark)))


@pytest.mark.parametrize(
    "emoji",
    [
        "😀",
        "😀😀",
        "👨\u200d👩\u200d👧\u200d👦",
        "🇧🇷",
        "🇧🇷🇵🇹",
        "👍🏽",
        "1\ufe0f\u20e3",
        "#\ufe0f\u20e3",
        "❤\ufe0f",
        "☃",
        "♫",
    ]
    + [
        "👩🏽\u200d🚀",
        "🏳\ufe0f\u200d🌈",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "🧑🏻\u200d❤\ufe0f\u200d🧑🏿",
    ],
)
def test_a_sentence_is_cut_at_emoji_and_other_symbols(emoji: str) -> None:
    for text in (f"I like {emoji} and you", f"I like{emoji}and you", f"{emoji}{emoji}", emoji):
        assert [cut.of(text) for cut in protected(text).cuts] == [
            part for part in (emoji, emoji * 2) if part in text
        ][-1:]
        assert protected(text).masked == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It has 3,500 km² of land, and H₂O.", ["km²", "H₂O"]),
        ("About 10⁶ cells: CO₂, x², m/s².", ["10⁶", "CO₂", "x²", "s²"]),
        ("The treaty² and footnote¹² are 2 km away.", []),
        ("See https://x.example/km² now", ["https://x.example/km²"]),
    ],
)
def test_units_and_powers_are_masked_for_a_model_with_placeholders(
    text: str, kept: list[str]
) -> None:
    found = protected(text, has_placeholders=True)
    assert [span.of(text) for span in found.masked] == kept
    assert not found.cuts


def test_units_are_left_to_a_model_without_placeholders() -> None:
    assert "km²" not in [span.of("3 km² of it") for span in protected("3 km² of it").masked]


def test_what_a_vocabulary_can_not_spell_is_masked_by_the_word() -> None:
    text = "He said привет to 日本 people, and naïжve, in 1999."
    kept = protected(text)
    assert [span.of(text) for span in kept.masked] == ["привет", "日本", "naïжve"]
    assert kept.cuts == []


def test_what_a_vocabulary_spells_is_not_protected() -> None:
    text = "He said: ¿cómo? It is 5 % — “café” & so on…"
    kept = protected(text)
    assert ([*kept.masked], [*kept.cuts]) == ([], [])
    assert protect("😀 ж", Span(0, 3), (), lambda _: True) == Protected()


def test_a_symbol_in_an_address_is_part_of_it() -> None:
    text = "https://x.example/😀/way and `☃` 😀#tag ❤\ufe0fa@b.example"
    kept = protected(text)
    assert [span.of(text) for span in kept.masked] == [
        *("https://x.example/😀/way", "`☃`", "#tag", "a@b.example")
    ]
    assert [span.of(text) for span in kept.cuts] == ["😀", "❤\ufe0f"]


@given(text=st.text(), spells=st.sampled_from([EN_PT.spells, str.isascii, lambda _: False]))
def test_what_is_masked_and_where_it_is_cut_are_apart_and_in_order(
    text: str, spells: object
) -> None:
    assert callable(spells)
    kept = protect(text, Span(0, len(text)), addresses(text), spells)
    everything = sorted([*kept.masked, *kept.cuts], key=lambda span: span.start)
    assert all(gap.start <= gap.end for gap in between(Span(0, len(text)), everything))
    for spans in (kept.masked, kept.cuts):
        assert [*spans] == [span for span in everything if span in spans]
        assert all(span.start < span.end for span in spans)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a@",
            "<",
            "{",
            "{{",
            "www.",
            "`",
            "``",
            "a",
            "a.",
            ".",
            "a.b@",
            "@",
            "@a",
            "#",
            "%(",
            "%(a",
        ),
        *(
            "<a",
            "<a ",
            "</",
            "http://",
            "a://",
            "www.(",
            "www.(a",
            "http://a[{(",
            "a@a.",
            "@a@",
            "${",
        ),
        *(
            "😀",
            "👨\u200d",
            "\u200d",
            "\ufe0f",
            "🇧",
            "1\ufe0f",
            "1",
            "%1",
            "%.",
            "-",
            "_",
            "\u0301",
            "www..",
            "a+",
        ),
    ],
)
def test_time_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    began = time.process_time()
    protect(text, Span(0, len(text)), addresses(text), lambda part: part == "a")
    assert time.process_time() - began < 5  # it is a tenth of that; the square was a minute


def masked(text: str, *kept: str) -> Masked:
    spans: list[Span] = []
    for part in kept:
        start = text.index(part, spans[-1].end if spans else 0)
        spans.append(Span(start, start + len(part)))
    made = mask(text, Span(0, len(text)), spans)
    assert made is not None
    assert made.kept == tuple(spans)
    return made


def test_names_stand_for_what_is_kept_and_are_replaced_by_it() -> None:
    made = masked("Write to a@b.example or @me.", "a@b.example", "@me")
    assert made.source == "Write to Tom or Boston."
    assert made.restore("Boston ou Tom: escreva.") == "@me ou a@b.example: escreva."


def test_only_the_sentence_is_masked() -> None:
    text = "One. Write to @me. Two."
    made = mask(text, Span(5, 18), [Span(14, 17)])
    assert made == Masked("Write to Tom.", (Span(14, 17),), (("Tom", "@me"),))


@pytest.mark.parametrize(
    "translation",
    [
        "Escreva para Tom.",  # one is lost
        "Escreva para Tom ou Boston ou Tom.",  # repeated
        "Escreva para Tomás ou Boston.",  # part of a word
        "Escreva para Tom ou SuperBoston.",
        "Escreva para tom ou Boston.",
        "",
    ],
)
def test_a_mask_fails_where_a_name_is_not_there_once(translation: str) -> None:
    made = masked("Write to a@b.example or @me.", "a@b.example", "@me")
    assert made.restore(translation) is None


def test_a_name_in_a_longer_word_is_another_one() -> None:
    made = masked("Write to @me.", "@me")
    assert made.restore("Tomás, escreva ao Tom!") == "Tomás, escreva ao @me!"


@pytest.mark.parametrize("kept", ["\\1 \\g<0>", "Boston", "Kevin@tom.example"])
def test_what_is_kept_may_be_anything(kept: str) -> None:
    made = masked(f"Write to {kept} or @me.", kept, "@me")
    assert made.restore(made.source) == f"Write to {kept} or @me."


@pytest.mark.parametrize("text", ["Tom wrote to @me.", "tom wrote to @me.", "Atoms are @me."])
def test_a_name_that_is_in_the_sentence_is_not_a_mask(text: str) -> None:
    made = masked(text, "@me")
    assert made.source == text.replace("@me", "Boston")


def test_where_there_are_more_than_names_there_is_no_mask() -> None:
    text = "".join(f"@{n} " for n in range(9))
    spans = [Span(3 * n, 3 * n + 2) for n in range(9)]
    assert mask(text, Span(0, 24), spans[:8]) is not None
    assert mask(text, Span(0, 27), spans) is None
    assert (
        mask(f"Tom {text}", Span(0, 28), [Span(s.start + 4, s.end + 4) for s in spans[:8]]) is None
    )


@pytest.mark.parametrize("text", ["pre{x} is", "{x}post is", "_{x} is", "1{x} is"])
def test_within_a_word_there_is_no_mask(text: str) -> None:
    start = text.index("{")
    assert mask(text, Span(0, len(text)), [Span(start, start + 3)]) is None


def test_nothing_to_keep_is_no_mask_but_the_sentence() -> None:
    made = mask("Hello Tom.", Span(0, 10), [])
    assert made == Masked("Hello Tom.")
    assert made.restore("Olá Tom Tom.") == "Olá Tom Tom."
