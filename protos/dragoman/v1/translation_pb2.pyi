from google.protobuf import duration_pb2 as _duration_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Markup(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MARKUP_UNSPECIFIED: _ClassVar[Markup]
    MARKUP_NONE: _ClassVar[Markup]
    MARKUP_HTML: _ClassVar[Markup]
    MARKUP_XML: _ClassVar[Markup]

class OverlongPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLONG_POLICY_UNSPECIFIED: _ClassVar[OverlongPolicy]
    OVERLONG_POLICY_SPLIT: _ClassVar[OverlongPolicy]
    OVERLONG_POLICY_ERROR: _ClassVar[OverlongPolicy]

class WarningCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WARNING_CODE_UNSPECIFIED: _ClassVar[WarningCode]
    WARNING_CODE_EMPTY: _ClassVar[WarningCode]
    WARNING_CODE_LOOP: _ClassVar[WarningCode]
    WARNING_CODE_NUMBERS: _ClassVar[WarningCode]
    WARNING_CODE_GLOSSARY: _ClassVar[WarningCode]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_END: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
MARKUP_UNSPECIFIED: Markup
MARKUP_NONE: Markup
MARKUP_HTML: Markup
MARKUP_XML: Markup
OVERLONG_POLICY_UNSPECIFIED: OverlongPolicy
OVERLONG_POLICY_SPLIT: OverlongPolicy
OVERLONG_POLICY_ERROR: OverlongPolicy
WARNING_CODE_UNSPECIFIED: WarningCode
WARNING_CODE_EMPTY: WarningCode
WARNING_CODE_LOOP: WarningCode
WARNING_CODE_NUMBERS: WarningCode
WARNING_CODE_GLOSSARY: WarningCode
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_END: FinishReason
FINISH_REASON_LENGTH: FinishReason

class TranslateRequest(_message.Message):
    __slots__ = ("texts", "source_language", "target_language", "model", "options")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    source_language: str
    target_language: str
    model: str
    options: Options
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("translations",)
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ...) -> None: ...

class TranslateStreamRequest(_message.Message):
    __slots__ = ("text", "source_language", "target_language", "model", "options")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    text: str
    source_language: str
    target_language: str
    model: str
    options: Options
    def __init__(self, text: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("delta", "translation")
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    delta: str
    translation: Translation
    def __init__(self, delta: _Optional[str] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ...) -> None: ...

class TranslateBulkRequest(_message.Message):
    __slots__ = ("id", "text", "source_language", "target_language", "model", "options")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    source_language: str
    target_language: str
    model: str
    options: Options
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[Options, _Mapping]] = ...) -> None: ...

class TranslateBulkResponse(_message.Message):
    __slots__ = ("id", "translation", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    translation: Translation
    error: _status_pb2.Status
    def __init__(self, id: _Optional[str] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("pairs", "source_language", "target_language", "model", "length_penalty", "token_scores")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[ScorePair]
    source_language: str
    target_language: str
    model: str
    length_penalty: float
    token_scores: bool
    def __init__(self, pairs: _Optional[_Iterable[_Union[ScorePair, _Mapping]]] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., length_penalty: _Optional[float] = ..., token_scores: bool = ...) -> None: ...

class ScorePair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "model")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[SentenceScore]
    model: str
    def __init__(self, scores: _Optional[_Iterable[_Union[SentenceScore, _Mapping]]] = ..., model: _Optional[str] = ...) -> None: ...

class SentenceScore(_message.Message):
    __slots__ = ("score", "log_prob", "source_tokens", "target_tokens", "tokens")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    score: float
    log_prob: float
    source_tokens: int
    target_tokens: int
    tokens: _containers.RepeatedCompositeFieldContainer[TokenScore]
    def __init__(self, score: _Optional[float] = ..., log_prob: _Optional[float] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., tokens: _Optional[_Iterable[_Union[TokenScore, _Mapping]]] = ...) -> None: ...

class DetectRequest(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class DetectResponse(_message.Message):
    __slots__ = ("detections",)
    DETECTIONS_FIELD_NUMBER: _ClassVar[int]
    detections: _containers.RepeatedCompositeFieldContainer[Detection]
    def __init__(self, detections: _Optional[_Iterable[_Union[Detection, _Mapping]]] = ...) -> None: ...

class Detection(_message.Message):
    __slots__ = ("languages",)
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    languages: _containers.RepeatedCompositeFieldContainer[DetectedLanguage]
    def __init__(self, languages: _Optional[_Iterable[_Union[DetectedLanguage, _Mapping]]] = ...) -> None: ...

class DetectedLanguage(_message.Message):
    __slots__ = ("language", "confidence")
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    language: str
    confidence: float
    def __init__(self, language: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "version", "source_language", "target_language", "precision", "device", "max_source_tokens", "max_target_tokens", "max_beam_size", "rows", "licence", "source_languages", "target_languages")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source_language: str
    target_language: str
    precision: str
    device: str
    max_source_tokens: int
    max_target_tokens: int
    max_beam_size: int
    rows: int
    licence: str
    source_languages: _containers.RepeatedScalarFieldContainer[str]
    target_languages: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., precision: _Optional[str] = ..., device: _Optional[str] = ..., max_source_tokens: _Optional[int] = ..., max_target_tokens: _Optional[int] = ..., max_beam_size: _Optional[int] = ..., rows: _Optional[int] = ..., licence: _Optional[str] = ..., source_languages: _Optional[_Iterable[str]] = ..., target_languages: _Optional[_Iterable[str]] = ...) -> None: ...

class Options(_message.Message):
    __slots__ = ("beam_size", "alternatives", "length_penalty", "sampling", "repetition_penalty", "no_repeat_ngram_size", "suppressed_pieces", "target_prefix", "min_tokens", "max_tokens", "overlong", "split_sentences", "keep_untranslatable", "token_scores", "alignment", "timing", "mend", "replace_unknown", "recase", "markup", "ignore_tags", "splitting_tags", "inline_tags", "outline", "translate_attributes", "glossary", "glossary_name", "glossary_case_sensitive", "glossary_plurals")
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    NO_REPEAT_NGRAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSED_PIECES_FIELD_NUMBER: _ClassVar[int]
    TARGET_PREFIX_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OVERLONG_FIELD_NUMBER: _ClassVar[int]
    SPLIT_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    KEEP_UNTRANSLATABLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    MEND_FIELD_NUMBER: _ClassVar[int]
    REPLACE_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    RECASE_FIELD_NUMBER: _ClassVar[int]
    MARKUP_FIELD_NUMBER: _ClassVar[int]
    IGNORE_TAGS_FIELD_NUMBER: _ClassVar[int]
    SPLITTING_TAGS_FIELD_NUMBER: _ClassVar[int]
    INLINE_TAGS_FIELD_NUMBER: _ClassVar[int]
    OUTLINE_FIELD_NUMBER: _ClassVar[int]
    TRANSLATE_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_NAME_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_PLURALS_FIELD_NUMBER: _ClassVar[int]
    beam_size: int
    alternatives: int
    length_penalty: float
    sampling: Sampling
    repetition_penalty: float
    no_repeat_ngram_size: int
    suppressed_pieces: _containers.RepeatedScalarFieldContainer[str]
    target_prefix: str
    min_tokens: int
    max_tokens: int
    overlong: OverlongPolicy
    split_sentences: bool
    keep_untranslatable: bool
    token_scores: bool
    alignment: bool
    timing: bool
    mend: bool
    replace_unknown: bool
    recase: bool
    markup: Markup
    ignore_tags: _containers.RepeatedScalarFieldContainer[str]
    splitting_tags: _containers.RepeatedScalarFieldContainer[str]
    inline_tags: _containers.RepeatedScalarFieldContainer[str]
    outline: bool
    translate_attributes: bool
    glossary: _containers.RepeatedCompositeFieldContainer[GlossaryEntry]
    glossary_name: str
    glossary_case_sensitive: bool
    glossary_plurals: bool
    def __init__(self, beam_size: _Optional[int] = ..., alternatives: _Optional[int] = ..., length_penalty: _Optional[float] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., repetition_penalty: _Optional[float] = ..., no_repeat_ngram_size: _Optional[int] = ..., suppressed_pieces: _Optional[_Iterable[str]] = ..., target_prefix: _Optional[str] = ..., min_tokens: _Optional[int] = ..., max_tokens: _Optional[int] = ..., overlong: _Optional[_Union[OverlongPolicy, str]] = ..., split_sentences: bool = ..., keep_untranslatable: bool = ..., token_scores: bool = ..., alignment: bool = ..., timing: bool = ..., mend: bool = ..., replace_unknown: bool = ..., recase: bool = ..., markup: _Optional[_Union[Markup, str]] = ..., ignore_tags: _Optional[_Iterable[str]] = ..., splitting_tags: _Optional[_Iterable[str]] = ..., inline_tags: _Optional[_Iterable[str]] = ..., outline: bool = ..., translate_attributes: bool = ..., glossary: _Optional[_Iterable[_Union[GlossaryEntry, _Mapping]]] = ..., glossary_name: _Optional[str] = ..., glossary_case_sensitive: bool = ..., glossary_plurals: bool = ...) -> None: ...

class GlossaryEntry(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_k", "top_p", "seed")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_k: int
    top_p: float
    seed: int
    def __init__(self, temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "score", "finish_reason", "source_tokens", "target_tokens", "model", "segments", "timing", "detected_language", "warnings")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    model: str
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    timing: Timing
    detected_language: DetectedLanguage
    warnings: _containers.RepeatedCompositeFieldContainer[TranslationWarning]
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., model: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., timing: _Optional[_Union[Timing, _Mapping]] = ..., detected_language: _Optional[_Union[DetectedLanguage, _Mapping]] = ..., warnings: _Optional[_Iterable[_Union[TranslationWarning, _Mapping]]] = ...) -> None: ...

class TranslationWarning(_message.Message):
    __slots__ = ("code", "segment", "entry")
    CODE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    code: WarningCode
    segment: int
    entry: int
    def __init__(self, code: _Optional[_Union[WarningCode, str]] = ..., segment: _Optional[int] = ..., entry: _Optional[int] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("source", "target", "score", "log_prob", "finish_reason", "source_tokens", "target_tokens", "tokens", "alignment", "alternatives")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    source: Span
    target: Span
    score: float
    log_prob: float
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    tokens: _containers.RepeatedCompositeFieldContainer[TokenScore]
    alignment: Alignment
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    def __init__(self, source: _Optional[_Union[Span, _Mapping]] = ..., target: _Optional[_Union[Span, _Mapping]] = ..., score: _Optional[float] = ..., log_prob: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., tokens: _Optional[_Iterable[_Union[TokenScore, _Mapping]]] = ..., alignment: _Optional[_Union[Alignment, _Mapping]] = ..., alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class TokenScore(_message.Message):
    __slots__ = ("piece", "log_prob")
    PIECE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    piece: str
    log_prob: float
    def __init__(self, piece: _Optional[str] = ..., log_prob: _Optional[float] = ...) -> None: ...

class Alignment(_message.Message):
    __slots__ = ("source_pieces", "target_pieces", "rows")
    SOURCE_PIECES_FIELD_NUMBER: _ClassVar[int]
    TARGET_PIECES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    source_pieces: _containers.RepeatedScalarFieldContainer[str]
    target_pieces: _containers.RepeatedScalarFieldContainer[str]
    rows: _containers.RepeatedCompositeFieldContainer[AlignmentRow]
    def __init__(self, source_pieces: _Optional[_Iterable[str]] = ..., target_pieces: _Optional[_Iterable[str]] = ..., rows: _Optional[_Iterable[_Union[AlignmentRow, _Mapping]]] = ...) -> None: ...

class AlignmentRow(_message.Message):
    __slots__ = ("weights",)
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    weights: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, weights: _Optional[_Iterable[float]] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("text", "score", "log_prob", "finish_reason", "target_tokens")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    log_prob: float
    finish_reason: FinishReason
    target_tokens: int
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ..., log_prob: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., target_tokens: _Optional[int] = ...) -> None: ...

class Timing(_message.Message):
    __slots__ = ("prepare", "queue", "first_token", "decode", "total", "encode")
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DECODE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ENCODE_FIELD_NUMBER: _ClassVar[int]
    prepare: _duration_pb2.Duration
    queue: _duration_pb2.Duration
    first_token: _duration_pb2.Duration
    decode: _duration_pb2.Duration
    total: _duration_pb2.Duration
    encode: _duration_pb2.Duration
    def __init__(self, prepare: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., queue: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., first_token: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., decode: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., total: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., encode: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Glossary(_message.Message):
    __slots__ = ("name", "source_language", "target_language", "entries", "entry_count", "created")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    name: str
    source_language: str
    target_language: str
    entries: _containers.RepeatedCompositeFieldContainer[GlossaryEntry]
    entry_count: int
    created: int
    def __init__(self, name: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[GlossaryEntry, _Mapping]]] = ..., entry_count: _Optional[int] = ..., created: _Optional[int] = ...) -> None: ...

class CreateGlossaryRequest(_message.Message):
    __slots__ = ("glossary",)
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    glossary: Glossary
    def __init__(self, glossary: _Optional[_Union[Glossary, _Mapping]] = ...) -> None: ...

class CreateGlossaryResponse(_message.Message):
    __slots__ = ("glossary",)
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    glossary: Glossary
    def __init__(self, glossary: _Optional[_Union[Glossary, _Mapping]] = ...) -> None: ...

class ListGlossariesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGlossariesResponse(_message.Message):
    __slots__ = ("glossaries",)
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[Glossary]
    def __init__(self, glossaries: _Optional[_Iterable[_Union[Glossary, _Mapping]]] = ...) -> None: ...

class GetGlossaryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetGlossaryResponse(_message.Message):
    __slots__ = ("glossary",)
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    glossary: Glossary
    def __init__(self, glossary: _Optional[_Union[Glossary, _Mapping]] = ...) -> None: ...

class DeleteGlossaryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteGlossaryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
