"""Directories that can't be imported: each is refused in one line that says why."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from dragoman_export.errors import ExportError
from dragoman_export.hf.importer import ImportSettings, read_origin
from support.hf_models import save_m2m100, save_marian


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    path = tmp_path_factory.mktemp("saved")
    save_marian(path / "marian", languages=())
    save_m2m100(path / "m2m100")
    for name in ("marian", "m2m100"):
        read_origin(path / name, ImportSettings())  # so it is the damage that is refused later
    return {name: path / name for name in ("marian", "m2m100")}


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda path: edit(path / "config.json", **changes)


def edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        held = load_file(path / "model.safetensors")
        change(held)
        save_file(held, path / "model.safetensors")

    return damage


def pickled(content: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        (path / "model.safetensors").unlink()
        torch.save(content, path / "pytorch_model.bin")

    return write


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("unpickled",))


FC1 = "model.encoder.layers.0.fc1.weight"
Q_BIAS = "model.decoder.layers.1.encoder_attn.q_proj.bias"
REFUSED: list[tuple[str, Callable[[Path], Any], str]] = [
    (
        "marian",
        config(model_type="bart"),
        "model_type is 'bart': it must be one of marian, m2m_100",
    ),
    ("marian", config(architectures=["MarianForCausalLM"]), "it must be MarianMTModel"),
    ("marian", config(activation_function="gelu_new"), "activation_function is 'gelu_new'"),
    ("marian", config(decoder_attention_heads=2), "encoder_attention_heads is 4 and decoder_att"),
    ("marian", config(d_model=-1), "d_model is -1: it must be a whole number"),
    ("marian", config(d_model=63), "multiple of the heads"),
    ("marian", config(normalize_embedding=True), "normalize_embedding is true"),
    (
        "marian",
        lambda path: edit(path / "generation_config.json", eos_token_id=[0, 1]),
        r"eos_token_id is \[0, 1\]",
    ),
    ("m2m100", config(pad_token_id=0), "pad_token_id is 0: M2M-100 counts positions"),
    (
        "marian",
        lambda path: edit(path / "generation_config.json", bad_words_ids=[[5, 6]]),
        "sequences of tokens",
    ),
    ("marian", lambda path: (path / "config.json").write_text("{"), "config.json: not JSON"),
    ("marian", lambda path: (path / "source.spm").unlink(), "source.spm: missing"),
    ("marian", lambda path: (path / "target.spm").write_text("x"), "no SentencePiece model"),
    ("marian", lambda path: (path / "vocab.json").unlink(), "vocab.json: missing"),
    ("marian", lambda path: edit(path / "vocab.json", casa="x"), "vocab.json: not a table of ids"),
    ("marian", lambda path: edit(path / "vocab.json", casa=10**6), "has the id 1000000"),
    ("marian", lambda path: edit(path / "vocab.json", **{"</s>": 7}), "eos_token_id 0"),
    ("m2m100", lambda path: (path / "sentencepiece.bpe.model").unlink(), "bpe.model: missing"),
    ("marian", lambda path: (path / "model.safetensors").unlink(), "neither model.safetensors nor"),
    ("marian", lambda path: (path / "model.safetensors").write_text("x"), "not safetensors"),
    ("marian", weights(lambda w: w.pop(FC1)), f"no weight is named {FC1}"),
    (
        "marian",
        weights(lambda w: w.update({FC1: torch.zeros(3, 3)})),
        r"fc1.weight is \[3, 3\], not",
    ),
    ("marian", weights(lambda w: w.update(other=torch.zeros(2))), "other: a weight that the arch"),
    (
        "marian",
        weights(lambda w: w[Q_BIAS].fill_(torch.nan)),
        "q_proj.bias has what is not a number",
    ),
    (
        "marian",
        weights(lambda w: w.update({"lm_head.weight": w["model.shared.weight"] + 1})),
        "lm_head.weight differs from model.shared.weight",
    ),
    ("marian", pickled({FC1: Harmful()}), "nothing else is unpickled"),
    ("marian", pickled([torch.zeros(2)]), "not a table of weights"),
]


@pytest.mark.parametrize(("name", "damage", "reason"), REFUSED, ids=[r for _, _, r in REFUSED])
def test_refused_with_the_reason(
    saved: dict[str, Path],
    name: str,
    damage: Callable[[Path], Any],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(saved[name], tmp_path / "hf")
    damage(tmp_path / "hf")
    with pytest.raises(ExportError, match=reason) as refused:
        read_origin(tmp_path / "hf", ImportSettings())
    assert len(str(refused.value).splitlines()) == 1
    assert "unpickled" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("m2m100", {"target_languages": ["tlh"]}, "--target-language tlh: the model has af, am"),
        ("m2m100", {"source_languages": ["p t"]}, "not a language tag"),
        ("marian", {"target_languages": ["pt", "es"]}, "the model has no tokens of languages"),
    ],
)
def test_languages_that_it_does_not_have(
    saved: dict[str, Path], name: str, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ExportError, match=reason):
        read_origin(saved[name], ImportSettings(**settings))


ODD: list[Any] = [
    None,
    -1,
    0,
    2**31,
    2**70,
    1e308,
    "",
    "a\nb",
    "\ud800",
    [],
    {},
    [[]],
    {"a": 1},
    True,
]


@settings(max_examples=100)
@given(st.data())
def test_odd_values_and_changed_bytes_are_read_or_refused(
    saved: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "odd"
    shutil.copytree(saved[data.draw(st.sampled_from(["marian", "m2m100"]))], path)
    file = path / data.draw(st.sampled_from(sorted(each.name for each in path.iterdir())))
    content = bytearray(file.read_bytes())
    if file.suffix == ".json" and data.draw(st.booleans()):
        table = json.loads(content)
        table[data.draw(st.sampled_from(sorted(table)))] = data.draw(st.sampled_from(ODD))
        content = bytearray(json.dumps(table), "utf-8")
    else:
        at = data.draw(st.integers(0, min(len(content), 9000)))
        content[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    file.write_bytes(content)
    reason = ""
    try:
        read_origin(path, ImportSettings())
    except ExportError as error:
        reason = str(error)
    shutil.rmtree(path)
    assert "\n" not in reason


def test_sizes_that_the_weights_do_not_have_take_no_memory(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    for key in ("vocab_size", "encoder_layers", "decoder_layers", "d_model"):
        shutil.copytree(saved["marian"], tmp_path / key)
        edit(tmp_path / key / "config.json", **{key: 2**40})
        with pytest.raises(ExportError):
            read_origin(tmp_path / key, ImportSettings())


def test_pickled_weights_in_parts_are_the_same_model(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(saved["m2m100"], tmp_path / "hf")
    held = load_file(tmp_path / "hf" / "model.safetensors")
    (tmp_path / "hf" / "model.safetensors").unlink()
    names = sorted(held)
    places: dict[str, str] = {}
    for part in (0, 1):
        file = f"pytorch_model-{part}.bin"
        torch.save({name: held[name].clone() for name in names[part::2]}, tmp_path / "hf" / file)
        places |= dict.fromkeys(names[part::2], file)
    index = tmp_path / "hf" / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    found, expected = (
        read_origin(path, ImportSettings()).model.state_dict()
        for path in (tmp_path / "hf", saved["m2m100"])
    )
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name
    index.write_text(json.dumps({"weight_map": {"x": "../m2m100/model.safetensors"}}))
    with pytest.raises(ExportError, match="which is no file here"):
        read_origin(tmp_path / "hf", ImportSettings())


def test_several_source_languages_without_tokens(saved: dict[str, Path]) -> None:
    settings = ImportSettings(source_languages=["fr", "es"], target_languages=["en"])
    told = read_origin(saved["marian"], settings).manifest
    assert told["source_languages"] == {"fr": None, "es": None}
    assert (told["source_language"], told["target_language"]) == ("mul", "en")


def test_languages_that_nothing_names_are_asked_for(saved: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "model"
    shutil.copytree(saved["marian"], path)
    (path / "tokenizer_config.json").unlink()
    for source, target, flags in (
        ((), (), "give --source-language and --target-language, as in"),
        (("en",), (), "give --target-language, as in"),
        ((), ("pt",), "give --source-language, as in"),
    ):
        with pytest.raises(ExportError, match="names no language") as told:
            read_origin(path, ImportSettings(source_languages=source, target_languages=target))
        assert flags in str(told.value)
    given = ImportSettings(source_languages=("en",), target_languages=("pt",))
    manifest = read_origin(path, given).manifest
    assert (manifest["source_language"], manifest["target_language"]) == ("en", "pt")
