"""The parameters of DeepL's ``/v2/translate`` as options of ours.

What can't be done is refused, never ignored.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.http_api.parameters import Parameters
from dragoman_server.service import offload, requests
from dragoman_server.service.errors import InvalidArgumentError
from dragoman_server.text.markup.line_breaks import has_inner_breaks, without_inner_breaks
from dragoman_server.text.markup.outline import MarkupOptions
from dragoman_server.text.markup.tokens import MalformedError

_CHOICES = {
    "formality": {"default", "prefer_more", "prefer_less", ""},
    "split_sentences": {"0", "1", "nonewlines", ""},
    "model_type": {"latency_optimized", "quality_optimized", "prefer_quality_optimized", ""},
    "tag_handling": {"xml", "html", ""},
    "tag_handling_version": {"v1", "v2", ""},
}
"""Values that parameters may have here. Of a formality that is only preferred, there is none."""
_SWITCHES = (
    *("preserve_formatting", "show_billed_characters", "enable_beta_languages"),
    "outline_detection",
)
_TAG_LISTS = {
    "splitting_tags": "splitting_tags",
    "non_splitting_tags": "inline_tags",
    "ignore_tags": "ignore_tags",
}
"""Lists of names of elements, and what our options call them."""
_OF_MARKUP = (*_TAG_LISTS, "outline_detection")
_KNOWN = {"text", "target_lang", "source_lang", "glossary_id", *_CHOICES, *_SWITCHES, *_TAG_LISTS}
_NAME = re.compile(r"[a-z_]{1,40}")
_MARKUPS = {"xml": pb.MARKUP_XML, "html": pb.MARKUP_HTML}
_FIELDS = {
    **{f"options.{ours}": theirs for theirs, ours in _TAG_LISTS.items()},
    "options.glossary_name": "glossary_id",
    "source_language": "source_lang",
}
_TEXTS = re.compile(r"\btexts\b")


def options_of(given: Parameters) -> pb.Options:
    """Return the options that a request asks for. Raises ``InvalidArgumentError`` for others."""
    _check(given)
    markup = given.choice("tag_handling")
    for name in _OF_MARKUP:
        if _is_given(given, name) and not markup:
            raise InvalidArgumentError("", f"Parameter {name} needs tag_handling.")
    options = pb.Options(markup=_MARKUPS.get(markup, pb.MARKUP_UNSPECIFIED))
    for theirs, ours in _TAG_LISTS.items():
        getattr(options, ours).extend(_tags(given, theirs))
    if _is_given(given, "outline_detection"):
        options.outline = given.switch("outline_detection")
    if given.choice("split_sentences") == "0":
        options.split_sentences = False
    return options


@dataclass(frozen=True)
class Prepared:
    """Texts as the server is to be given them."""

    texts: Sequence[str]
    options: pb.Options
    is_escaped: bool = False
    """Whether the texts are plain, and were made HTML."""

    def restored(self, translation: str) -> str:
        """Return the translation of a text as its client is to be given it."""
        return html.unescape(translation) if self.is_escaped else translation


async def prepared(texts: Sequence[str], given: Parameters, options: pb.Options) -> Prepared:
    """Return the texts of a request with no line break in them that is not to end a sentence."""
    is_kept = given.choice("split_sentences") in ("", "1") or options.markup == pb.MARKUP_HTML
    if is_kept or not any(map(has_inner_breaks, texts)):
        return Prepared(texts, options)
    letters = sum(map(len, texts))
    markup = requests.markup_options(options)
    if markup is not None:
        joined = await offload.for_letters(letters, lambda: [_joined(t, markup) for t in texts])
        return Prepared(joined, options)
    # A line break is white space in HTML, and what is escaped comes back the same.
    as_html = pb.Options()
    as_html.CopyFrom(options)
    as_html.markup = pb.MARKUP_HTML
    return Prepared([html.escape(text, quote=False) for text in texts], as_html, is_escaped=True)


def named_as_theirs(error: InvalidArgumentError) -> InvalidArgumentError:
    """Return an error with the parameter's name in place of our field's."""
    field = _TEXTS.sub("text", _FIELDS.get(error.field, error.field))
    return InvalidArgumentError(field, _TEXTS.sub("text", error.problem), reason=error.reason)


def _joined(text: str, markup: MarkupOptions) -> str:
    try:
        return without_inner_breaks(text, markup)
    except MalformedError:
        return text  # the server refuses it, and says which it is


def _check(given: Parameters) -> None:
    """Refuse what we can't do, and what nobody knows."""
    for name in given.names:
        if name not in _KNOWN and _is_given(given, name):
            shown = name if _NAME.fullmatch(name) else "of this name"
            raise InvalidArgumentError("", f"Parameter {shown} is not supported by this server.")
    for name, allowed in _CHOICES.items():
        if given.choice(name) not in allowed:
            values = ", ".join(sorted(filter(None, allowed)))
            raise InvalidArgumentError(
                "", f"Value for '{name}' not supported: this server has {values}."
            )
    for name in _SWITCHES:
        given.switch(name)


def _is_given(given: Parameters, name: str) -> bool:
    return given.get(name) not in ("", [""], None, [])


def _tags(given: Parameters, name: str) -> list[str]:
    """Return names of elements: a list, a text with commas between them, or several of these."""
    tags = [tag.strip() for each in given.texts(name) for tag in each.split(",")]
    return [tag for tag in tags if tag]
