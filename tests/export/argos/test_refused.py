"""Packages that can't be imported: each is refused in one line that says why."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman_export.argos.importer import ImportSettings, read_origin
from dragoman_export.errors import ExportError
from dragoman_export.source import Origin
from support.argos_models import (
    HEADS,
    MARIAN,
    METADATA,
    OPENNMT,
    POSITIONS,
    WIDTH,
    Kind,
    Variables,
    aliased,
    package_files,
    seeded_variables,
    tokens_of,
    write_model,
    zipped,
)

Files = dict[str, bytes]
Change = Callable[[Files], None]


@cache
def _files(kind: Kind) -> Files:
    return package_files(kind)


def read(
    tmp_path: Path, change: Change, kind: Kind = MARIAN, settings: ImportSettings | None = None
) -> Origin:
    files = dict(_files(kind))
    change(files)
    (tmp_path / "model.argosmodel").write_bytes(zipped(files))
    return read_origin(tmp_path / "model.argosmodel", settings or ImportSettings())


def table(name: str, **changes: Any) -> Change:
    def change(files: Files) -> None:
        files[name] = json.dumps({**json.loads(files[name]), **changes}).encode()

    return change


def config(key: str, value: Any) -> Change:
    return table("model/config.json", **{key: value})


def metadata(**changes: Any) -> Change:
    return table("metadata.json", **changes)


def tokens(change: Callable[[list[Any]], None]) -> Change:
    def write(files: Files) -> None:
        held = json.loads(files["model/shared_vocabulary.json"])
        change(held)
        files["model/shared_vocabulary.json"] = json.dumps(held).encode()

    return write


def model(
    changes: Mapping[str, Any] | None = None,
    *,
    kind: Kind = MARIAN,
    specification: str = "TransformerSpec",
    revision: int = 7,
) -> Change:
    """Change variables; one that becomes None is left out."""

    def write(files: Files) -> None:
        variables: Variables = seeded_variables(kind)
        for name, value in (changes or {}).items():
            variables[name] = np.asarray(value)
            if value is None:
                del variables[name]
        files["model/model.bin"] = write_model(
            *aliased(variables), specification=specification, revision=revision
        )

    return write


def without(name: str) -> Change:
    return lambda files: files.__delitem__(name)


FLOATS = np.zeros((4, WIDTH), np.float32)
LAYER = "encoder/layer_0/self_attention"
REFUSED: list[tuple[Change, str]] = [
    (metadata(type="sbd"), "type is 'sbd': it must be 'translate'"),
    (metadata(from_code="??"), "from_code is '\\?\\?', which is no language tag: give --source-l"),
    (metadata(to_code=None), "to_code is None, which is no language tag: give --target-language"),
    (metadata(target_prefix=3), "target_prefix is 3, and not a token"),
    (metadata(target_prefix=">>por<<"), "the vocabulary has no '>>por<<'"),
    (lambda files: files.update({"bpe.model": b""}), "has bpe.model: only packages with a Sent"),
    (without("README.md"), "says which licence the model has: give --licence"),
    (
        lambda files: files.update({"README.md": b"The data is licensed CC-BY 4.0"}),
        "says which licence the model has",
    ),
    (lambda files: files.update({"sentencepiece.model": b"x"}), "is no SentencePiece model"),
    (config("unk_token", None), "unk_token is None, and not a token"),
    (config("unk_token", "<no>"), "the vocabulary has no '<no>'"),
    (config("eos_token", "<no>"), "the vocabulary has no '<no>'"),
    (config("add_source_eos", "yes"), "add_source_eos is 'yes': it must be true or false"),
    (config("add_source_bos", True), "the vocabulary has no '<s>'"),
    (
        config("decoder_start_token", None),
        "decoder_start_token is null, and there is no target_pre",
    ),
    (
        config("layer_norm_epsilon", "small"),
        r"layer_norm_epsilon is 'small': it must be in \(0, 1\)",
    ),
    (config("layer_norm_epsilon", float("nan")), "layer_norm_epsilon is nan"),
    (tokens(lambda held: held.append("more")), r"has \d+ tokens, and the model \d+"),
    (tokens(lambda held: held.__setitem__(5, 5)), "is not a list of tokens"),
    (tokens(lambda held: held.__setitem__(5, "\ud800")), "has half a letter for a token"),
    (model(specification="WhisperSpec"), "holds a 'WhisperSpec': it must be a Transf"),
    (model(revision=99), "is of revision 99: revisions 3 to 7 are read"),
    (model({"encoder/num_heads": np.int16(2)}), "encoder/num_heads is 2 and decoder/num_heads 4"),
    (
        model({"encoder/num_heads": np.int16(5), "decoder/num_heads": np.int16(5)}),
        "the width must be a multiple of the heads",
    ),
    (
        model({"encoder/num_heads": np.int16(0), "decoder/num_heads": np.int16(0)}),
        "heads is 0: it must be at least 1",
    ),
    (
        model({"encoder/activation": np.int8(1), "decoder/activation": np.int8(1)}),
        r"encoder/activation is 1 \(GELU by tanh\): it must be one of 0 \(relu\)",
    ),
    (model({"encoder/pre_norm": np.float32(1)}), "encoder/pre_norm is 1.0 and decoder/pre_norm 0"),
    (
        model({"encoder/scale_embeddings": np.float32(2)}),
        "scale_embeddings is 2: it must be 1 or √32",
    ),
    (model({"decoder/scale_embeddings": np.int8(0)}), "decoder/scale_embeddings must be the same"),
    (model({f"{LAYER}/queries_scale": np.float32(1)}), "queries_scale is 1: it must be 1 / √8"),
    (model({"decoder/alibi": np.int8(1)}), "decoder/alibi: the model has ALiBi's positions"),
    (model({"encoder/multi_query_attention": np.int8(1)}), "the model has multi-query attention"),
    (model({f"{LAYER}/num_heads_kv": np.int32(1)}), "the model has multi-query attention"),
    (model({f"{LAYER}/relative_position_keys": FLOATS}), "the model has relative positions"),
    (model({f"{LAYER}/rotary_dim": np.int32(8)}), "the model has rotary positions"),
    (model({"encoder/layer_0/ffn/linear_0_noact/weight": FLOATS}), "has gated linear units"),
    (model({"encoder/layernorm_embedding/gamma": FLOATS[0]}), "has a norm of the embeddings"),
    (model({"encoder/embeddings_1/weight": FLOATS}), "has features beside the tokens"),
    (model({"encoder/new": np.int8(1)}), "encoder/new: a setting that is not known"),
    (
        model({"encoder/new/weight": FLOATS}),
        "encoder/new/weight: a weight that the architecture has",
    ),
    (model({"encoder/layer_0/ffn/layer_norm/beta": None}), "gamma: the model has RMS norms"),
    (model({"decoder/embeddings/weight": None}), "no weight is named decoder/embeddings/weight"),
    (model({"encoder/layer_1/ffn/linear_1/weight": None}), "no weight is named encoder/layer_1/"),
    (
        model({"encoder/layer_3/ffn/linear_1/weight": FLOATS}),
        "the layers of the encoder are 0, 1, 3",
    ),
    (
        model({"encoder/layer_0/ffn/linear_1/weight": FLOATS}),
        r"ffn/linear_1/weight is \[4, 32\], not \[32, 64\]",
    ),
    (
        model({"encoder/position_encodings/encodings": np.zeros((POSITIONS, 4), np.float32)}),
        r"encodings is \[64, 4\]: its width must be 32",
    ),
    (model(kind=OPENNMT), r"the source vocabulary has \d+ tokens, and the model \d+"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, change: Change, reason: str) -> None:
    with pytest.raises(ExportError, match=reason) as caught:
        read(tmp_path, change)
    assert "\n" not in str(caught.value)


class SmallTensors(TorchDispatchMode):
    """Fails a test when a tensor takes more memory than the weights of the seeded models."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.device.type != "meta":
            assert made.numel() < 1 << 21
        return made


LARGE = 1 << 20
MANY = {f"encoder/layer_{number}/x": np.zeros(1, np.float32) for number in range(2, 300)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"encoder/layer_0/ffn/linear_0/weight": np.zeros((LARGE, 1), np.float16)},
            r"linear_0/weight is \[1048576, 1\], not \[1048576, 32\]",
        ),
        (
            {"encoder/embeddings_0/weight": np.zeros((1, LARGE), np.float16)},
            "encoder/embeddings_0/weight has a width of 1048576",
        ),
        (MANY, "the layers of the encoder are 0, 1, 2, 3"),
    ],
    ids=["feed-forward", "width", "layers"],
)
def test_no_memory_is_taken_for_what_only_a_shape_says(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    watch: Any = SmallTensors  # has no types
    with watch(), pytest.raises(ExportError, match=reason):
        read(tmp_path, model(changes))


def test_norms_before_sublayers_need_one_at_the_end(tmp_path: Path) -> None:
    variables = seeded_variables(OPENNMT)
    del variables["decoder/layer_norm/gamma"]
    kept, aliases = aliased(variables)
    with pytest.raises(ExportError, match="no weight is named decoder/layer_norm/gamma"):
        read(tmp_path, lambda f: f.update({"model/model.bin": write_model(kept, aliases)}), OPENNMT)


def test_what_a_package_says_of_itself(tmp_path: Path) -> None:
    told = read(tmp_path, metadata(from_code="pb", to_code="zt")).manifest
    assert (told["source_language"], told["target_language"]) == ("pt-BR", "zh-Hant")
    assert told["licence"] == "CC-BY-4.0"
    imported = told["provenance"]["imported"]
    assert imported["from"] == "Argos Translate"
    assert imported["package_version"] == METADATA["package_version"]
    assert "licensed CC-BY 4.0" in imported["notice"]
    assert len(imported["sha256"]) == 64


def test_options_say_otherwise(tmp_path: Path) -> None:
    settings = ImportSettings(
        source_language="pt-PT", target_language="en-GB", licence="MIT", max_tokens=20
    )
    origin = read(tmp_path, without("README.md"), settings=settings)
    assert origin.manifest["licence"] == "MIT"
    assert origin.manifest["source_language"] == "pt-PT"
    assert origin.measured_language == "en-GB"
    assert origin.model.settings.max_length == 20
    with pytest.raises(ExportError, match="--source-language x-: not a language tag"):
        read(tmp_path, without("README.md"), settings=ImportSettings(source_language="x-"))


def test_tokens_that_stand_before_texts(tmp_path: Path) -> None:
    """A token that sources begin with, and a prefix of translations."""

    def change(files: Files) -> None:
        config("add_source_bos", True)(files)
        metadata(target_prefix="▁")(files)

    origin = read(tmp_path, change, OPENNMT)
    prefix = tokens_of(OPENNMT, "target").index("▁")
    assert origin.before == (OPENNMT.special.index("<s>"),)
    assert origin.start == (prefix,)
    assert origin.manifest["source_languages"] == {"pt": 2}
    assert origin.manifest["target_languages"] == {"en": prefix}
    assert origin.manifest["target_language_in"] == "target"

    def begin_with_prefix(files: Files) -> None:
        change(files)
        config("decoder_start_token", None)(files)

    started = read(tmp_path, begin_with_prefix, OPENNMT)
    assert (started.special.begin, started.start) == (prefix, ())


def test_files_before_version_6(tmp_path: Path) -> None:
    """They name special tokens in variables, and list a vocabulary in lines."""
    kind = OPENNMT

    def change(files: Files) -> None:
        del files["model/config.json"], files["model/shared_vocabulary.json"]
        files["model/shared_vocabulary.txt"] = "\n".join(tokens_of(kind, "source")).encode() + b"\n"
        variables = {
            name: value
            for name, value in seeded_variables(kind).items()
            if not name.endswith(("num_heads", "pre_norm", "activation", "multi_query_attention"))
        }
        variables |= {
            "num_heads": np.asarray(np.int8(HEADS)),
            "pre_norm": np.asarray(np.int8(1)),
            "with_source_bos": np.asarray(np.int8(0)),
            "with_source_eos": np.asarray(np.int8(1)),
            "with_target_bos": np.asarray(np.int8(0)),
            "unk_token": np.frombuffer(b"<unk>", np.int8),
        }
        kept, aliases = aliased(variables)
        files["model/model.bin"] = write_model(kept, aliases, version=5, revision=4)

    origin = read(tmp_path, change, kind)
    assert origin.model.settings.heads == HEADS
    assert origin.model.settings.norm == "pre"
    assert origin.special.begin == origin.special.end == kind.special.index("</s>")
    assert not origin.manifest["source_without_end"]


def test_lines_of_windows(tmp_path: Path) -> None:
    def change(files: Files) -> None:
        del files["model/shared_vocabulary.json"]
        lines = [f"{token}\r\n" for token in tokens_of(MARIAN, "source")]
        files["model/shared_vocabulary.txt"] = "".join(lines).encode()

    assert read(tmp_path, change).special.unknown == 1
