"""Texts with markup behind the real server: tags come back around the words they stood around."""

import html

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from support.marked_texts import is_balanced, tags_of, without_tags
from support.service_running import PATIENCE, Running, refusal

HTML = pb.Options(markup=pb.MARKUP_HTML)
XML = pb.Options(markup=pb.MARKUP_XML)
PAGE = """<!doctype html>
<h1 title="A dog">The  big <em>dog</em></h1>
<p>I have <a href="x">a red car</a> and <b>two <i>old</i> cats</b>.<br>Do you
like <b>them</b>? I do.</p><!-- end -->
<ul><li>First day<li>Second <b>day</b></ul><pre>The dog</pre>
"""


def translate(running: Running, text: str, options: pb.Options = HTML) -> pb.Translation:
    (found,) = running.translate(text, options=options)
    request = pb.TranslateStreamRequest(text=text, options=options)
    *events, last = running.stub.TranslateStream(request, timeout=PATIENCE)
    assert "".join(event.delta for event in events) == last.translation.text == found.text
    items = running.stub.TranslateBulk(
        iter([pb.TranslateBulkRequest(id="1", text=text, options=options)]), timeout=PATIENCE
    )
    assert [item.translation.text for item in items] == [found.text]
    return found


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("I have a <b>red car</b>.", "I have a red car."),
        ("<i>The</i> <b>white house</b> is <u>very old</u>.", "The white house is very old."),
        ("<b>White</b> houses<img> are <!-- c -->big &amp; old.", "White houses are big & old."),
        ("Where is <a href='x'>my <b>old</b> dog</a>?", "Where is my old dog?"),
    ],
)
def test_the_text_is_that_of_the_plain_sentence_and_each_tag_is_there(
    running: Running, text: str, plain: str
) -> None:
    found = translate(running, text).text
    (of_plain,) = running.translate(plain)
    assert html.unescape(without_tags(found)) == of_plain.text
    assert sorted(tags_of(found)) == sorted(tags_of(text))
    assert is_balanced(found)


def test_tags_move_with_their_words(running: Running) -> None:
    found = translate(running, "The <b>red</b> car is <i>very</i> fast.").text
    assert found == "O carro <b>vermelho</b> é <i>muito</i> rápido."


def test_a_page_keeps_all_that_is_not_read(running: Running) -> None:
    found = translate(running, PAGE)
    assert sorted(tags_of(found.text)) == sorted(tags_of(PAGE))
    assert found.text.startswith('<!doctype html>\n<h1 title="A dog">')
    assert found.text.endswith("</b></ul><pre>The dog</pre>\n")
    assert "</p><!-- end -->\n<ul><li>" in found.text
    sources = [PAGE[each.source.start : each.source.end] for each in found.segments]
    assert len(sources) == 6
    assert sources[2:4] == ["Do you\nlike <b>them</b>?", "I do."]
    for segment in found.segments:
        target = found.text[segment.target.start : segment.target.end]
        assert target.strip() == target
        assert target
    joined = "".join(found.text[s.target.start : s.target.end] for s in found.segments)
    assert "<p>" not in joined
    assert "cão" in joined or "cachorro" in joined


def test_attributes_are_translated_on_request(running: Running) -> None:
    options = pb.Options(markup=pb.MARKUP_HTML, translate_attributes=True)
    text = '<p>My dog <img alt="A big dog." title="Good morning"> is <b title="x">old</b>.</p>'
    found = translate(running, text, options)
    assert 'alt="A big dog."' not in found.text
    assert 'title="Bom dia"' in found.text
    shown = [found.text[each.target.start : each.target.end] for each in found.segments]
    assert shown[1] == "Bom dia"
    assert translate(running, text).text.count('title="Good morning"') == 1


def test_what_is_kept_stays_as_it_is(running: Running) -> None:
    options = pb.Options(markup=pb.MARKUP_HTML, ignore_tags=["x-name"])
    text = (
        "Use <code>print(&quot;dog&quot;)</code> and <span translate='no'>the dog</span> in "
        "<x-name>My House</x-name>."
    )
    found = translate(running, text, options).text
    for kept in (
        "<code>print(&quot;dog&quot;)</code>",
        "<span translate='no'>the dog</span>",
        "<x-name>My House</x-name>",
    ):
        assert found.count(kept) == 1
    assert found.startswith("Use ")


def test_more_elements_than_words_are_done_in_pieces(running: Running) -> None:
    before = running.metric('dragoman_retried_sentences_total{model="en-pt",reason="markup"}')
    text = "<a>D</a><b>o</b> <i>n</i><u>ot</u> <s>g</s><q>o</q>!"
    found = running.translate(text, options=HTML)[0].text
    after = running.metric('dragoman_retried_sentences_total{model="en-pt",reason="markup"}')
    assert after > before
    assert tags_of(found) == tags_of(text)
    assert is_balanced(found)


def test_alternatives_have_their_tags_too(running: Running) -> None:
    options = pb.Options(markup=pb.MARKUP_HTML, beam_size=4, alternatives=3)
    (found,) = running.translate("The <b>big</b> &amp; old dog.", options=options)
    (segment,) = found.segments
    assert segment.alternatives[0].text == found.text
    for each in segment.alternatives:
        assert tags_of(each.text) == ["<b>", "</b>"]


def test_malformed_xml_is_refused_and_html_is_not(running: Running) -> None:
    text = "A <b>dog</i>."
    refused = refusal(lambda: running.translate("ok", text, options=XML))
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.reason == "MALFORMED_MARKUP"
    assert refused.fields == ("texts[1]",)
    assert "line 1, column 9" in refused.message
    assert "dog" not in refused.message
    found = translate(running, text).text
    assert sorted(tags_of(found)) == ["</i>", "<b>"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (pb.Options(markup=99), "options.markup"),  # type: ignore[arg-type]
        (pb.Options(ignore_tags=["b"]), "options.ignore_tags"),
        (pb.Options(markup=pb.MARKUP_XML, splitting_tags=["b"] * 257), "options.splitting_tags"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    running: Running, options: pb.Options, field: str
) -> None:
    refused = refusal(lambda: running.translate("Hello", options=options))
    assert refused.fields == (field,)


def test_the_number_of_tags_has_a_bound(running: Running) -> None:
    refused = refusal(lambda: running.translate("a", "<b></b>" * 50_001, options=HTML))
    assert (refused.reason, refused.fields) == ("TOO_LARGE", ("texts",))


def test_xml_splits_at_blocks_and_keeps_its_entities(running: Running) -> None:
    text = "<doc>\n  <t>Good morning</t>\n  <p>I have &co; and <b>a car</b>.</p>\n</doc>"
    found = translate(running, text, XML).text
    assert found.startswith("<doc>\n  <t>Bom dia</t>\n  <p>")
    assert found.count("&co;") == 1
    assert sorted(tags_of(found)) == sorted(tags_of(text))


def test_an_alignment_is_returned_only_where_it_was_asked_for(running: Running) -> None:
    (found,) = running.translate("The <b>red</b> car.", options=HTML)
    assert not found.segments[0].HasField("alignment")
