"""The vocabularies of a CTranslate2 model and its special tokens, as files and ids of a bundle.

config.json               which tokens are special; before version 6, variables say so
shared_vocabulary.json    the tokens in the order of their ids, or a line each in a .txt;
                          source_vocabulary and target_vocabulary where they are two
sentencepiece.model       of the package: cuts the text of both sides into pieces
"""

from dataclasses import dataclass
from typing import Any

from dragoman_export.argos.architecture import Architecture
from dragoman_export.argos.model_file import ModelFile
from dragoman_export.argos.package import Package
from dragoman_export.errors import ExportError
from dragoman_export.importing.vocabularies import Vocabularies, bundle_vocabularies
from dragoman_server.bundle.manifest import SpecialIds

CONFIG, SENTENCEPIECE = "model/config.json", "sentencepiece.model"
_PADDINGS = ("<blank>", "<pad>")
_EPSILON = 1e-5
"""Number that norms add to the variance where nothing else is said."""
_TOKENS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}


@dataclass(frozen=True, kw_only=True)
class Config:
    """What ``config.json`` says, or the variables of an earlier file."""

    unknown: str
    """Token for what a vocabulary does not have."""
    begin: str
    """Token that a source begins with, if ``adds_begin``."""
    end: str
    """Token that ends a translation, and a source, if ``adds_end``."""
    start: str | None
    """Token that decoding begins with. If None, it is the first of the target prefix."""
    adds_begin: bool
    """Whether a source begins with a token of its own."""
    adds_end: bool
    """Whether a source ends with the end token."""
    norm_epsilon: float = _EPSILON
    """Number that norms add to the variance."""


def read_config(package: Package, model: ModelFile) -> Config:
    """Read the configuration. Raises ``ExportError`` for what a bundle can't say."""
    if not package.has(CONFIG):
        return _early_config(model)
    table = package.table(CONFIG)
    tokens = {key: table.get(key, usual) for key, usual in _TOKENS.items()}
    tokens["decoder_start_token"] = table.get("decoder_start_token", tokens["bos_token"])
    for key, value in tokens.items():
        if not isinstance(value, str) and (key != "decoder_start_token" or value is not None):
            raise ExportError(f"{CONFIG}: {key} is {value!r}, and not a token")
    epsilon = _EPSILON if (found := table.get("layer_norm_epsilon")) is None else found
    if type(epsilon) is not float or not 0 < epsilon < 1:
        raise ExportError(f"{CONFIG}: layer_norm_epsilon is {epsilon!r}: it must be in (0, 1)")
    return Config(
        unknown=tokens["unk_token"],
        begin=tokens["bos_token"],
        end=tokens["eos_token"],
        start=tokens["decoder_start_token"],
        adds_begin=_flag(table, "add_source_bos"),
        adds_end=_flag(table, "add_source_eos"),
        norm_epsilon=epsilon,
    )


def _flag(table: dict[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ExportError(f"{CONFIG}: {key} is {value!r}: it must be true or false")
    return value


def _early_config(model: ModelFile) -> Config:
    """Return what a file before version 6 says of special tokens, in variables."""
    unknown, begin, end = (model.texts.get(key, usual) for key, usual in _TOKENS.items())
    start = begin if model.numbers.get("with_target_bos", 1) else end
    return Config(
        unknown=unknown,
        begin=begin,
        end=end,
        start=None if model.numbers.get("user_decoder_start_tokens", 0) else start,
        adds_begin=bool(model.numbers.get("with_source_bos", 0)),
        adds_end=bool(model.numbers.get("with_source_eos", 0)),
    )


def read_tokens(package: Package, side: str) -> list[str]:
    """Return the tokens of a side, in the order of their ids."""
    for name in (f"model/{which}_vocabulary" for which in ("shared", side)):
        if package.has(f"{name}.json"):
            tokens = package.json(f"{name}.json")
            if not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
                raise ExportError(f"{package.path}: {name}.json is not a list of tokens")
            if any("\ud800" <= letter <= "\udfff" for token in tokens for letter in token):
                raise ExportError(f"{package.path}: {name}.json has half a letter for a token")
            return tokens
        if package.has(f"{name}.txt"):
            return _lines(package.text(f"{name}.txt"))
    raise ExportError(f"{package.path}: has no model/shared_vocabulary.json and no .txt of it")


def _lines(text: str) -> list[str]:
    """Return the lines of a text. Tokens may be line breaks of other kinds than ``\\n``."""
    lines = text.removesuffix("\n").split("\n")
    if all(line.endswith("\r") for line in lines):
        return [line[:-1] for line in lines]
    return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class Tokens:
    """Vocabularies of a package, and the ids of its special tokens."""

    vocabularies: Vocabularies
    """Vocabularies of both sides, as files of a bundle."""
    special: SpecialIds
    """Ids of the tokens that are no text."""
    source_begin: int | None
    """Id of the token that a source begins with, if any."""
    prefix: int | None
    """Id of the token that follows the one which decoding begins with, if any."""


def read_vocabularies(
    package: Package, architecture: Architecture, config: Config, prefix: str
) -> Tokens:
    """Read tokens and tokenizer. Raises ``ExportError`` if they don't fit the model.

    ``prefix`` is the token that the package has before every translation; empty if it has none.
    """
    sizes = architecture.source_vocabulary, architecture.target_vocabulary
    source, target = (
        _ids(package, side, size) for side, size in zip(("source", "target"), sizes, strict=True)
    )
    unknown = _special(package, config.unknown, target)
    end = _special(package, config.end, target)
    if source.get(config.unknown) != unknown or (config.adds_end and source.get(config.end) != end):
        raise ExportError(
            f"{package.path}: {config.unknown} and {config.end} have not the same ids on both sides"
        )
    first = _special(package, prefix, target) if prefix else None
    begin = first if config.start is None else target.get(config.start, unknown)
    if begin is None:
        raise ExportError(f"{CONFIG}: decoder_start_token is null, and there is no target_prefix")
    control = {config.begin, config.end, config.start, prefix, *_PADDINGS} - {config.unknown}
    made = bundle_vocabularies(
        package.path,
        [package.content(SENTENCEPIECE)] * 2,
        (source, target),
        sizes,
        unknown=unknown,
        hidden=[{ids[name] for name in ids.keys() & control} for ids in (source, target)],
    )
    return Tokens(
        vocabularies=made,
        special=SpecialIds(
            pad=_padding(source, target, {unknown, end}), unknown=unknown, begin=begin, end=end
        ),
        source_begin=_special(package, config.begin, source) if config.adds_begin else None,
        prefix=None if config.start is None else first,
    )


def _padding(source: dict[str, int], target: dict[str, int], taken: set[int]) -> int:
    """Return the token to fill up sentences with: nothing looks at it, so any other may serve."""
    for name in _PADDINGS:
        if name in source and source[name] == target.get(name):
            return source[name]
    return min({*range(len(taken) + 1)} - taken)


def _ids(package: Package, side: str, size: int) -> dict[str, int]:
    tokens = read_tokens(package, side)
    if len(tokens) != size:
        raise ExportError(
            f"{package.path}: the {side} vocabulary has {len(tokens)} tokens, and the model {size}"
        )
    ids: dict[str, int] = {}
    for number, token in enumerate(tokens):
        ids.setdefault(token, number)  # of a token that is there twice, the first id is used
    return ids


def _special(package: Package, token: str, ids: dict[str, int]) -> int:
    if token not in ids:
        raise ExportError(f"{package.path}: the vocabulary has no {token!r}")
    return ids[token]
