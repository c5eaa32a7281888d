"""Small models with made-up weights, written as Marian, Bergamot and Firefox write theirs."""

import io
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece as spm

Floats = npt.NDArray[np.float32]

END, UNKNOWN = 0, 1
WIDTH, HEADS, FEED_FORWARD, ENCODER_LAYERS, DECODER_LAYERS = 32, 4, 48, 2, 2
ACTIVATION_MULTIPLIER = 127 / 12
"""What inputs of products are multiplied by in files of 8 bits: those above 12 are cut off."""
_SYLLABLES = ["ca", "sa", "li", "vro", "gua", "so", "mar", "pão", "rua", "noi", "te", "flor", "çê"]


@cache
def sentencepiece_model(size: int, seed: int) -> bytes:
    """Return a SentencePiece model with Marian's special tokens: the end is 0, unknown is 1."""
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts(400, seed)),
        model_writer=model,
        vocab_size=size,
        bos_id=-1,
        eos_id=END,
        unk_id=UNKNOWN,
        minloglevel=2,
    )
    return model.getvalue()


def texts(count: int, seed: int) -> list[str]:
    """Return made-up sentences."""
    rng = random.Random(seed)
    return [
        " ".join(
            "".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) for _ in range(rng.randint(1, 8))
        )
        for _ in range(count)
    ]


def sources(count: int, seed: int, vocabulary: int) -> list[list[int]]:
    """Return random sentences, as ids."""
    rng = random.Random(seed)
    return [[rng.randrange(2, vocabulary) for _ in range(rng.randint(1, 12))] for _ in range(count)]


@dataclass(frozen=True, kw_only=True)
class MarianModel:
    """What is written: the kind of a model, and the form of its files."""

    decoder: str = "ssru"
    """``ssru`` or ``self-attention``."""
    norm: str = "post"
    """``post`` or ``pre``."""
    activation: str = "relu"
    vocabularies: tuple[int, ...] = (120,)
    """Sizes of the vocabularies: one for both sides, or one of each."""
    tied: str = "all"
    """Tables that are one: ``all``, ``target``, ``sides`` (but not the output) or ``none``."""
    form: str = "bin"
    """Form of the file: ``bin`` or ``npz``."""
    is_quantized: bool = False
    """Whether the file has weights of 8 bits, which only ``bin`` can have."""
    has_multipliers: bool = True
    """Whether a file of 8 bits has the multipliers of activations."""
    shortlist: str = ""
    """Form of the shortlist: ``bin``, ``txt``, or none if it is empty."""
    seed: int = 1
    scale: float = 1.0
    """Factor of all matrices. A larger one makes a model surer of what it says."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Keys of the configuration that are to be otherwise."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Tokens of both vocabularies."""
        return self.vocabularies[0], self.vocabularies[-1]

    def config(self) -> dict[str, str]:
        """Return the model's configuration, with values as text."""
        pre = self.norm == "pre"
        return {
            "type": "transformer",
            "dim-emb": str(WIDTH),
            "dim-vocabs": f"[{self.sizes[0]}, {self.sizes[1]}]",
            "enc-depth": str(ENCODER_LAYERS),
            "dec-depth": str(DECODER_LAYERS),
            "dec-cell": "ssru",
            "transformer-decoder-autoreg": "rnn" if self.decoder == "ssru" else self.decoder,
            "transformer-dim-ffn": str(FEED_FORWARD),
            "transformer-ffn-activation": self.activation,
            "transformer-heads": str(HEADS),
            "transformer-preprocess": "n" if pre else '""',
            "transformer-postprocess": "da" if pre else "dan",
            "transformer-postprocess-top": "n" if pre else '""',
            "transformer-postprocess-emb": "d",
            "transformer-tied-layers": "[]",
            "tied-embeddings-all": str(self.tied == "all").lower(),
            "tied-embeddings": str(self.tied == "target").lower(),
            "tied-embeddings-src": str(self.tied == "sides").lower(),
            "version": "v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800",
            **self.changes,
        }

    def yaml(self) -> str:
        """Return the configuration as it stands in a file."""
        return "".join(f"{key}: {value}\n" for key, value in self.config().items())

    def weights(self) -> dict[str, Floats]:
        """Return all weights; those of a file of 8 bits are such that 8 bits can have them."""
        rng = np.random.default_rng(self.seed)
        found: dict[str, Floats] = {}

        def matrix(name: str, rows: int, columns: int, spread: float) -> None:
            values = rng.normal(0, spread * self.scale, (rows, columns))
            # Of a product some outputs, and of a table some tokens, are far smaller than others.
            values *= rng.uniform(0.4, 1.0, (rows, 1) if "Wemb" in name else (1, columns))
            weights: Floats = values.astype(np.float32)
            if self.is_quantized:
                multiplier = multiplier_of(weights)
                weights = np.rint(weights * multiplier) / np.float32(multiplier)
            found[name] = weights.astype(np.float32)

        def bias(name: str, columns: int) -> None:
            found[name] = rng.normal(0, 0.05, (1, columns)).astype(np.float32)

        def linear(name: str, letter: str, rows: int, columns: int) -> None:
            # So that translations depend on the source, and do not say one token again and again:
            # the encoder keeps tokens apart, and the decoder looks at few of them.
            spread = {"q": 8.0, "k": 8.0}.get(letter, 1.5)
            if letter in "o2":
                spread = 0.5 if "encoder" in name else 3.0 if "context" in name else 1.0
            matrix(f"{name}_W{letter}", rows, columns, spread / rows**0.5)
            bias(f"{name}_b{letter}", columns)

        def norm(name: str) -> None:
            end = "_pre" if self.norm == "pre" else ""
            scale = rng.normal(1, 0.1, (1, WIDTH)).astype(np.float32)
            found[f"{name}_ln_scale{end}"] = scale
            bias(f"{name}_ln_bias{end}", WIDTH)

        def attention(name: str) -> None:
            for letter in "qkvo":
                linear(name, letter, WIDTH, WIDTH)
            norm(f"{name}_Wo")

        def feed_forward(name: str) -> None:
            linear(f"{name}_ffn", "1", WIDTH, FEED_FORWARD)
            linear(f"{name}_ffn", "2", FEED_FORWARD, WIDTH)
            norm(f"{name}_ffn_ffn")

        for number in range(1, ENCODER_LAYERS + 1):
            attention(f"encoder_l{number}_self")
            feed_forward(f"encoder_l{number}")
        for number in range(1, DECODER_LAYERS + 1):
            name = f"decoder_l{number}"
            if self.decoder == "ssru":
                linear(f"{name}_rnn", "f", WIDTH, WIDTH)
                matrix(f"{name}_rnn_W", WIDTH, WIDTH, 1 / WIDTH**0.5)
                norm(f"{name}_rnn" if self.norm == "pre" else f"{name}_rnn_ffn")
            else:
                attention(f"{name}_self")
            attention(f"{name}_context")
            feed_forward(name)
        if self.norm == "pre":
            for side in ("encoder", "decoder"):
                found[f"{side}_top_ln_scale"] = np.ones((1, WIDTH), np.float32)
                bias(f"{side}_top_ln_bias", WIDTH)
        tables = ["Wemb"] if self.tied in ("all", "sides") else ["encoder_Wemb", "decoder_Wemb"]
        for table, size in zip(tables, self.sizes, strict=False):
            matrix(table, size, WIDTH, 2 / WIDTH**0.5)
        if self.tied in ("none", "sides"):
            matrix("decoder_ff_logit_out_W", WIDTH, self.sizes[1], 1.5 / WIDTH**0.5)
        bias("decoder_ff_logit_out_b", self.sizes[1])
        return found

    def write(self, path: Path) -> Path:
        """Write the whole directory, named as Firefox names its files, and return its path."""
        path.mkdir(parents=True, exist_ok=True)
        if self.form == "npz":
            (path / "model.npz").write_bytes(npz_bytes(self.weights(), self.yaml()))
        else:
            multiplied = self.is_quantized and self.has_multipliers
            content = binary_bytes(
                self.weights(),
                self.yaml(),
                is_quantized=self.is_quantized,
                multiplier=ACTIVATION_MULTIPLIER if multiplied else None,
            )
            (path / "model.enpt.intgemm.alphas.bin").write_bytes(content)
        names = (
            ["vocab.enpt.spm"] if len(self.vocabularies) == 1 else ["srcvocab.spm", "trgvocab.spm"]
        )
        for number, (name, size) in enumerate(zip(names, self.vocabularies, strict=True)):
            (path / name).write_bytes(sentencepiece_model(size, number + 1))
        if self.shortlist == "bin":
            content = shortlist_bytes(shortlist_lines(*self.sizes), frequent=6)
            (path / "lex.50.50.enpt.s2t.bin").write_bytes(content)
        elif self.shortlist == "txt":
            (path / "lex.s2t.txt").write_text(self.shortlist_text(), encoding="utf-8")
        return path

    def shortlist_text(self) -> str:
        """Return a shortlist as text, with the likeliest pair of each source token first."""
        pieces = [
            [model.id_to_piece(token) for token in range(model.vocab_size())]
            for model in (
                spm.SentencePieceProcessor(model_proto=sentencepiece_model(size, number + 1))
                for number, size in enumerate(self.vocabularies)
            )
        ]
        lines = ["NULL ▁ca 0.5"]
        for source, targets in enumerate(shortlist_lines(*self.sizes)):
            lines += [
                f"{pieces[-1][target]} {pieces[0][source]} {0.5 / (rank + 1):.6f}"
                for rank, target in enumerate(targets)
            ]
        return "\n".join(lines) + "\n"


def shortlist_lines(source_vocabulary: int, target_vocabulary: int) -> list[list[int]]:
    """Return made-up target tokens of each source token, of which some have none."""
    rng = random.Random(7)
    return [
        [] if source % 10 == END else rng.sample(range(2, target_vocabulary), 8)
        for source in range(source_vocabulary)
    ]


def multiplier_of(values: Floats) -> float:
    """Return the number that makes the values of a matrix whole, from -127 to 127."""
    return float(np.float32(127 / np.abs(values).max()))


def npz_bytes(weights: Mapping[str, Floats], yaml: str) -> bytes:
    """Return a model in the form of an archive of arrays."""
    stream = io.BytesIO()
    config = np.frombuffer(yaml.encode() + b"\0", np.int8)
    np.savez(stream, allow_pickle=False, **{"special:model.yml": config}, **weights)
    return stream.getvalue()


def binary_bytes(
    weights: Mapping[str, Floats],
    yaml: str,
    *,
    is_quantized: bool = False,
    multiplier: float | None = None,
) -> bytes:
    """Return a model in Marian's binary form.

    ``multiplier`` is that of all activations, and there is none of them if it is None.
    """
    items: list[tuple[str, int, Sequence[int], bytes]] = []
    for name, values in sorted(weights.items()):
        if is_quantized and "_W" in f"_{name}" and "_ln_" not in name:
            items.append((name, 0x4101, values.shape, _quantized(name, values)))
            if multiplier is not None:
                data = _filled(struct.pack("<f", multiplier))
                items.append((f"{name}_QuantMultA", 0x0404, (1, 1), data))
        else:
            items.append((name, 0x0404, values.shape, _filled(values.astype("<f4").tobytes())))
    config = yaml.encode() + b"\0"
    items.append(("special:model.yml", 0x0101, (len(config),), config))
    return pack_items(items)


def pack_items(items: Sequence[tuple[str, int, Sequence[int], bytes]]) -> bytes:
    """Return a binary file of items: name, type, shape and data of each."""
    head = struct.pack("<2Q", 1, len(items))
    for name, kind, shape, data in items:
        head += struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data))
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = -(len(head) + 8) % 256
    return head + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for *_, data in items)


def _quantized(name: str, values: Floats) -> bytes:
    multiplier = multiplier_of(values)
    whole = np.rint(values * multiplier).astype(np.int8)
    stored = whole if "Wemb" in name else whole.T
    return _filled(np.ascontiguousarray(stored).tobytes() + struct.pack("<f", multiplier))


def _filled(data: bytes) -> bytes:
    """Return data that is filled up, as Marian's memory is."""
    return data + bytes(-len(data) % 256)


def shortlist_bytes(lines: Sequence[Sequence[int]], frequent: int) -> bytes:
    """Return a lexical shortlist in Marian's binary form."""
    offsets = np.cumsum([0, *map(len, lines)])
    entries = [token for line in lines for token in sorted(line)]
    body = struct.pack("<4Q", frequent, 8, len(offsets), len(entries))
    body += offsets.astype("<u8").tobytes() + np.array(entries, "<u4").tobytes()
    seed = 0
    for (word,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) % (1 << 64)
    return struct.pack("<2Q", 0xF11A48D5013417F5, seed) + body
