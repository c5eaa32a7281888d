"""A program that uses all of the SDK; ``test_types`` checks its types, and runs it.

python tests/client/whole_sdk.py HOST:PORT
"""

import asyncio
import sys
from contextlib import aclosing

from dragoman_client import (
    TLS,
    Alignment,
    Alternative,
    AsyncClient,
    AuthenticationError,
    CallError,
    CancelledError,
    Client,
    ConfigurationError,
    DetectedLanguage,
    DragomanError,
    FinishReason,
    Glossary,
    InvalidRequestError,
    Model,
    ModelRefusedError,
    NotFoundError,
    Options,
    OverloadedError,
    PermissionDeniedError,
    Retries,
    Sampling,
    Score,
    Segment,
    ServerError,
    StatusCode,
    TimedOutError,
    Timing,
    Token,
    Translation,
    TranslationWarning,
    UnavailableError,
    WarningCode,
    read_glossary,
)

OPTIONS = Options(
    beam_size=2,
    alternatives=2,
    length_penalty=1.0,
    repetition_penalty=1.1,
    no_repeat_ngram_size=4,
    suppressed_pieces=["▁não"],
    min_tokens=1,
    max_tokens=40,
    overlong="split",
    split_sentences=True,
    keep_untranslatable=True,
    mend=True,
    replace_unknown=True,
    recase=True,
    markup="html",
    ignore_tags=["x-name"],
    splitting_tags=["x-block"],
    inline_tags=["x-inline"],
    outline=True,
    translate_attributes=True,
    glossary={"dog": "cachorro"},
    glossary_case_sensitive=False,
    glossary_plurals=True,
    token_scores=True,
    alignment=True,
    timing=True,
)
KEPT = Options(glossary_name="pets")
DRAWN = Options(
    sampling=Sampling(temperature=0.8, top_k=10, top_p=0.9, seed=1), target_prefix="Bom"
)
RETRIES = Retries(attempts=2, first_delay=0.1, max_delay=1.0, outage=5.0)
CERTIFIED = TLS(root_certificates="certificates.pem", server_name="mt.example.com")


def of_token(token: Token) -> tuple[str, float]:
    return token.piece, token.log_prob


def of_alternative(found: Alternative) -> tuple[str, float, float, FinishReason]:
    return found.text, found.score, found.log_prob, found.finish_reason


def of_alignment(found: Alignment) -> list[tuple[str, str, float]]:
    rows = zip(found.target_pieces, found.weights, strict=True)
    return [
        (target, source, weight)
        for target, weights in rows
        for source, weight in zip(found.source_pieces, weights, strict=True)
    ]


def of_timing(timing: Timing) -> float:
    return timing.prepare + timing.queue + timing.first_token + timing.decode + timing.encode


def of_segment(text: str, translation: str, segment: Segment) -> str:
    length: int = segment.source.stop - segment.source.start
    parts = [text[segment.source], translation[segment.target], str(length)]
    parts += [str(segment.score + segment.log_prob), segment.finish_reason.value]
    parts += [str(segment.source_tokens + segment.target_tokens)]
    parts += [piece for piece, _ in map(of_token, segment.tokens)]
    parts += [each for each, _, _, _ in map(of_alternative, segment.alternatives)]
    if segment.alignment is not None:
        parts += [target for target, _, _ in of_alignment(segment.alignment)]
    return " ".join(parts)


def of_translation(text: str, found: Translation) -> str:
    parts = [found.text, str(found.score), found.finish_reason.name, found.model]
    parts += [str(found.source_tokens + found.target_tokens)]
    parts += [of_segment(text, found.text, each) for each in found.segments]
    parts += [each for each, _, _, _ in map(of_alternative, found.alternatives)]
    if found.timing is not None:
        parts.append(str(of_timing(found.timing) <= found.timing.total))
    parts += map(of_warning, found.warnings)
    if found.detected_language is not None:
        parts.append(of_detected(found.detected_language))
    return " ".join(parts)


def of_detected(found: DetectedLanguage) -> str:
    return f"{found.language} {found.confidence}"


def of_warning(warning: TranslationWarning) -> str:
    entry: int = warning.entry if warning.entry is not None else -1
    is_term = warning.code is WarningCode.GLOSSARY
    return f"{warning.code.value} {warning.segment} {entry} {is_term}"


def of_glossary(found: Glossary) -> str:
    languages = (found.source_language, found.target_language)
    terms = [f"{term} {target}" for term, target in found.entries.items()]
    return " ".join([found.name, *languages, str(found.entry_count + found.created), *terms])


def terms_of(path: str) -> dict[str, str]:
    return read_glossary(path)


def of_score(found: Score) -> str:
    tokens = [piece for piece, _ in map(of_token, found.tokens)]
    figures = (found.score, found.log_prob, found.source_tokens, found.target_tokens)
    return " ".join([*map(str, figures), *tokens])


def of_model(model: Model) -> str:
    sizes = (model.max_source_tokens, model.max_target_tokens, model.max_beam_size, model.rows)
    names = (model.name, model.version, model.source_language, model.target_language)
    languages = (*model.source_languages, *model.target_languages)
    facts = (model.precision, model.device, model.licence)
    return " ".join([*names, *languages, *facts, *map(str, sizes)])


def of_error(error: CallError) -> str:
    parts = [error.message, error.code.name, str(error.code.value), error.reason, error.field]
    parts += [error.request_id, str(error.exit_code)]
    wait: float = error.retry_after if error.retry_after is not None else 0.0
    is_here = error.code is StatusCode.UNAVAILABLE
    return " ".join([*parts, str(wait), str(is_here)])


def advice(error: DragomanError) -> str:
    if isinstance(error, ConfigurationError):
        return str(error)
    if isinstance(error, (InvalidRequestError, NotFoundError, ModelRefusedError)):
        return of_error(error)
    if isinstance(error, (AuthenticationError, PermissionDeniedError)):
        return error.reason
    if isinstance(error, (OverloadedError, UnavailableError, TimedOutError, CancelledError)):
        return str(error.retry_after)
    return error.request_id if isinstance(error, ServerError) else ""


def translate(addresses: list[str]) -> list[str]:
    """With the client for programs without an event loop."""
    lines = []
    whole: list[Translation] = []
    with Client(*addresses, timeout=30.0, retries=RETRIES) as client:
        one = client.translate("Good morning.", options=OPTIONS, timeout=20.0)
        lines.append(of_translation("Good morning.", one))
        several = client.translate_batch(["Hello.", "Good night."], model="en-pt")
        lines += [each.text for each in several]
        lines += client.stream("Hello.", source_language="en", ended=whole.append)
        lines += [each.text for each in whole]
        results = client.translate_many(["Hello."] * 3, target_language="pt", window=8)
        for result in results:
            lines.append(of_error(result) if isinstance(result, CallError) else result.text)
        results.close()
        pairs = [("Good morning.", "Bom dia.")]
        scores = client.score(pairs, length_penalty=1.0, token_scores=True)
        lines += [of_score(score) for score in scores]
        lines += [of_model(model) for model in client.models()]
        lines += [of_detected(each) for each in client.detect("Good morning.", timeout=60.0)]
        lines.append(str(client.health(timeout=5.0)))
        try:
            made = client.create_glossary("pets", {"dog": "cachorro"}, target_language="pt")
            lines += map(of_glossary, [made, *client.glossaries(), client.glossary("pets")])
            client.translate("A dog.", options=KEPT)
            client.delete_glossary("pets")
        except NotFoundError as error:  # the server keeps none
            lines.append(advice(error))
        try:
            client.translate("Hello.", options=DRAWN, model="nobody")
        except DragomanError as error:
            lines.append(advice(error))
    return lines


async def translate_async(addresses: list[str]) -> list[str]:
    """With the client for programs with an event loop."""
    lines = []
    async with AsyncClient(*addresses, timeout=30.0, retries=RETRIES) as client:
        one = await client.translate("Good morning.", options=OPTIONS, timeout=20.0)
        lines.append(of_translation("Good morning.", one))
        lines += [each.text for each in await client.translate_batch(["Hello.", "Good night."])]
        lines += [piece async for piece in client.stream("Hello.", source_language="en")]
        many = client.translate_many(["Hello."] * 3, target_language="pt")
        async with aclosing(many) as results:
            async for result in results:
                lines.append(of_error(result) if isinstance(result, CallError) else result.text)
        lines += [of_score(score) for score in await client.score([("Good morning.", "Bom dia.")])]
        lines += [of_model(model) for model in await client.models()]
        lines += [of_detected(each) for each in await client.detect("Good morning.")]
        lines.append(str(await client.health()))
        try:
            made = await client.create_glossary("pets", {"dog": "cachorro"})
            all_of_them = await client.glossaries()
            lines += map(of_glossary, [made, *all_of_them, await client.glossary("pets")])
            await client.delete_glossary("pets")
        except NotFoundError as error:  # the server keeps none
            lines.append(advice(error))
        try:
            await client.translate("Hello.", options=DRAWN, model="nobody")
        except DragomanError as error:
            lines.append(advice(error))
    return lines


def main() -> None:
    lines = translate(sys.argv[1:])
    lines += asyncio.run(translate_async(sys.argv[1:]))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
