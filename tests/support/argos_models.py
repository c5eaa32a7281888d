"""Argos packages with small seeded models, written in CTranslate2's format as its converters do.

``write_model`` follows ``ModelSpec._serialize`` of CTranslate2 4.8.4, and ``stored_as`` its
``LayerSpec._quantize``; ``tests/export/argos/test_ctranslate2.py`` loads what they write there.
"""

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from support.hf_models import pieces_of, sentencepiece_model

Variables = dict[str, npt.NDArray[Any]]
WIDTH, HEADS, INNER, LAYERS, POSITIONS = 32, 4, 64, 2, 64
RELU, GELU_BY_TANH, SWISH, GELU = 0, 1, 2, 3
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
ROOT_NAME = "translate-pt_xx-1_9"
README = "# Credits\n\nThe model from which this one is derived is licensed CC-BY 4.0\n"
METADATA = {
    "package_version": "1.9",
    "argos_version": "1.9.0",
    "from_code": "pt",
    "from_name": "Portuguese",
    "to_code": "en",
    "to_name": "English",
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a seeded model is."""

    special: tuple[str, ...]
    pre_norm: bool
    activation: int
    positions: str
    zero_start: bool
    adds_end: bool
    shared: bool = True
    biases: bool = True
    seed: int = 1


MARIAN = Kind(
    special=("</s>", "<unk>"),
    pre_norm=False,
    activation=SWISH,
    positions="halves",
    zero_start=True,
    adds_end=True,
)
"""As CTranslate2's converter of Marian and OPUS-MT makes them."""
OPENNMT = Kind(
    special=("<unk>", "<blank>", "<s>", "</s>"),
    pre_norm=True,
    activation=RELU,
    positions="interleaved",
    zero_start=False,
    adds_end=False,
    seed=5,
)
"""As its converter of OpenNMT-py makes them: most Argos packages."""
KINDS = {
    "marian": MARIAN,
    "opennmt": OPENNMT,
    "opennmt, separate": replace(OPENNMT, shared=False, biases=False, activation=GELU, seed=3),
    "opennmt-tf": replace(OPENNMT, positions=""),
}


def tokens_of(kind: Kind, side: str) -> list[str]:
    """The vocabulary of a side, in the order of ids."""
    model = sentencepiece_model(seed=1 if kind.shared or side == "source" else 2)
    return [*kind.special, *pieces_of(model)]


def seeded_variables(kind: Kind) -> Variables:
    """Random weights whose outputs vary and come to an end: see ``hf_models.lively``."""
    rng = np.random.default_rng(kind.seed)

    def noise(*shape: int) -> npt.NDArray[Any]:
        return rng.standard_normal(shape)

    def linear(name: str, rows: int, columns: int, gain: float) -> None:
        made[f"{name}/weight"] = gain * WIDTH**-0.5 * noise(rows, columns)
        if kind.biases:
            made[f"{name}/bias"] = 0.1 * noise(rows)

    def norm(name: str) -> None:
        made[f"{name}/gamma"], made[f"{name}/beta"] = 1 + 0.1 * noise(WIDTH), 0.1 * noise(WIDTH)

    made: Variables = {}
    sizes = {side: len(tokens_of(kind, side)) for side in ("source", "target")}
    for side in ("encoder", "decoder"):
        quiet = 1.5 if side == "encoder" else 2.0 if kind.pre_norm else 0.44
        for number in range(LAYERS):
            layer = f"{side}/layer_{number}"
            linear(f"{layer}/self_attention/linear_0", 3 * WIDTH, WIDTH, 1.5)
            linear(f"{layer}/self_attention/linear_1", WIDTH, WIDTH, quiet)
            norm(f"{layer}/self_attention/layer_norm")
            if side == "decoder":
                linear(f"{layer}/attention/linear_0", WIDTH, WIDTH, 1.5)
                linear(f"{layer}/attention/linear_1", 2 * WIDTH, WIDTH, 1.5)
                linear(f"{layer}/attention/linear_2", WIDTH, WIDTH, quiet)
                norm(f"{layer}/attention/layer_norm")
            linear(f"{layer}/ffn/linear_0", INNER, WIDTH, 1.5)
            linear(f"{layer}/ffn/linear_1", WIDTH, INNER, quiet)
            norm(f"{layer}/ffn/layer_norm")
        if kind.pre_norm:
            norm(f"{side}/layer_norm")
        if kind.positions:
            made[f"{side}/position_encodings/encodings"] = waves(kind.positions)
    turn, mix = (np.linalg.qr(noise(WIDTH, WIDTH))[0] for _ in range(2))
    last = f"decoder/layer_{LAYERS - 1}/ffn"
    gain = 18.0 if kind.pre_norm else 6.0
    made[f"{last}/linear_0/weight"] = np.concatenate((mix, -mix))
    made[f"{last}/linear_1/weight"] = gain * np.concatenate((turn @ mix.T, -turn @ mix.T), axis=1)
    target = 3.0 * orbit(turn, sizes["target"], rng)
    source = target if kind.shared else 3.0 * orbit(turn, sizes["source"], rng)
    made["encoder/embeddings_0/weight"], made["decoder/embeddings/weight"] = source, target
    made["decoder/projection/weight"] = target if kind.shared else target[:, ::-1]
    bias = noise(sizes["target"])
    bias[kind.special.index("</s>")] += 4.0
    made["decoder/projection/bias"] = bias
    return {name: value.astype(np.float32) for name, value in made.items()} | _attributes(kind)


def _attributes(kind: Kind) -> Variables:
    told: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        told[f"{side}/num_heads"] = np.int16(HEADS)
        told[f"{side}/pre_norm"] = np.int8(kind.pre_norm)
        told[f"{side}/activation"] = np.int8(kind.activation)
        told[f"{side}/scale_embeddings"] = np.int8(1)
    told |= {
        "encoder/embeddings_merge": np.int8(0),
        "encoder/multi_query_attention": np.int8(0),
        "decoder/alignment_layer": np.int16(-1),
        "decoder/alignment_heads": np.int16(1),
        "decoder/alibi": np.int8(0),
        "decoder/alibi_use_positive_positions": np.int8(0),
        "decoder/scale_alibi": np.int8(0),
        "decoder/start_from_zero_embedding": np.int8(kind.zero_start),
    }
    return {name: np.asarray(value) for name, value in told.items()}


def waves(kind: str) -> npt.NDArray[Any]:
    """The table of positions that a converter stores."""
    angle = np.arange(POSITIONS)[:, None] * 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    if kind == "halves":
        return np.concatenate((np.sin(angle), np.cos(angle)), axis=1)
    return np.stack((np.sin(angle), np.cos(angle)), axis=2).reshape(POSITIONS, WIDTH)


def orbit(turn: npt.NDArray[Any], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """The places of one vector that is turned again and again, in a random order."""
    vector = rng.standard_normal(len(turn))
    rows = np.empty((size, len(turn)))
    for place in rng.permutation(size):
        rows[place] = vector / np.linalg.norm(vector)
        vector = turn @ vector
    return rows


def stored_as(variables: Mapping[str, npt.NDArray[Any]], kind: str) -> Variables:
    """Variables as CTranslate2 stores them in a quantisation: only matrices of maps and tables."""
    stored: Variables = {}
    for name, value in variables.items():
        stored[name] = value
        if value.dtype != np.float32 or value.ndim == 0:
            continue
        if not name.endswith("weight"):
            stored[name] = value.astype(np.float16) if kind == "float16" else value
        elif kind == "int8":
            scale = np.float32(127) / np.abs(value).max(axis=1)
            stored[name] = np.rint(value * scale[:, None]).astype(np.int8)
            stored[f"{name}_scale"] = scale.astype(np.float32)
        elif kind == "int16":
            scale = np.float32(2**10 / np.abs(value).max())
            stored[name] = np.rint(value * scale).astype(np.int16)
            stored[f"{name}_scale"] = np.asarray(scale)
        elif kind == "float16":
            stored[name] = value.astype(np.float16)
    return stored


def as_floats(stored: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.float64]]:
    """What stored variables mean, in float64."""
    floats = {name: value.astype(np.float64) for name, value in stored.items()}
    for name in [name for name in floats if name.endswith("weight_scale")]:
        scale = floats.pop(name)
        floats[name.removesuffix("_scale")] /= scale[:, None] if scale.ndim else scale
    return floats


def aliased(variables: Variables) -> tuple[Variables, dict[str, str]]:
    """Variables without those that equal another, and which other each of them equals."""
    kept: Variables = {}
    aliases: dict[str, str] = {}
    for name in sorted(variables):
        value = variables[name]
        for other, same in kept.items():
            if value.ndim and value.shape == same.shape and np.array_equal(value, same):
                aliases[name] = other
                break
        else:
            kept[name] = value
    return kept, aliases


def write_model(
    variables: Mapping[str, npt.NDArray[Any]],
    aliases: Mapping[str, str],
    *,
    version: int = 6,
    specification: str = "TransformerSpec",
    revision: int = 7,
) -> bytes:
    """The bytes of ``model.bin``, of version 4 or later."""

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value.encode()) + 1) + value.encode() + b"\0"

    parts = [struct.pack("<I", version), text(specification), struct.pack("<I", revision)]
    parts.append(struct.pack("<I", len(variables)))
    for name, value in sorted(variables.items()):
        parts += [text(name), struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)]
        kind = TYPES.index("bfloat16" if value.dtype == np.uint16 else value.dtype.name)
        parts += [struct.pack("<BI", kind, value.nbytes), value.tobytes()]
    parts.append(struct.pack("<I", len(aliases)))
    parts += [text(alias) + text(name) for alias, name in sorted(aliases.items())]
    return b"".join(parts)


def package_files(kind: Kind, quantisation: str = "float32") -> dict[str, bytes]:
    """The files of a package, by their names in its directory."""
    config = {
        "add_source_bos": False,
        "add_source_eos": kind.adds_end,
        "bos_token": "<s>",
        "decoder_start_token": "<s>",
        "eos_token": "</s>",
        "layer_norm_epsilon": None,
        "multi_query_attention": False,
        "unk_token": "<unk>",
    }
    kept, aliases = aliased(seeded_variables(kind))
    vocabularies = {"shared": "source"} if kind.shared else {s: s for s in ("source", "target")}
    return {
        "metadata.json": json.dumps(METADATA).encode(),
        "README.md": README.encode(),
        "sentencepiece.model": sentencepiece_model(),
        "model/config.json": json.dumps(config).encode(),
        "model/model.bin": write_model(stored_as(kept, quantisation), aliases),
        **{
            f"model/{name}_vocabulary.json": json.dumps(tokens_of(kind, side), indent=2).encode()
            for name, side in vocabularies.items()
        },
    }


def zipped(files: Mapping[str, bytes], root: str = ROOT_NAME) -> bytes:
    """A package's file."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.mkdir(root)
        for name, content in files.items():
            out.writestr(f"{root}/{name}", content)
    return archive.getvalue()


def save_package(path: Path, kind: Kind, quantisation: str = "float32") -> Path:
    """Write a package's file."""
    path.write_bytes(zipped(package_files(kind, quantisation)))
    return path
