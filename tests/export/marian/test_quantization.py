"""8-bit weights in an int8 bundle: which are Marian's own, to the last bit."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dragoman_export.bundle_files import write_unverified
from dragoman_export.errors import ExportError
from dragoman_export.graphs.precision import quantize_rows
from dragoman_export.marian.importer import ImportSettings, read_origin
from dragoman_export.source import Origin
from support.marian_models import ACTIVATION_MULTIPLIER, WIDTH, MarianModel, multiplier_of

LARGEST_INPUT = 127 / np.float32(ACTIVATION_MULTIPLIER)
SSRU = MarianModel(is_quantized=True)
ATTENTION = MarianModel(is_quantized=True, decoder="self-attention", tied="none", seed=2)


def imported(kind: MarianModel, path: Path) -> Origin:
    return read_origin(kind.write(path / "marian"), ImportSettings(max_length=24))


def stored_in(origin: Origin, path: Path) -> dict[str, np.ndarray]:
    """Return the constants of an int8 bundle's encoder and decoder."""
    path.mkdir()
    write_unverified(
        origin.model,
        path,
        "int8",
        ends=origin.ends,
        quantization=origin.quantization,
        facts={"special_ids": origin.special},
    )
    return {
        tensor.name: numpy_helper.to_array(tensor, str(path))
        for name in ("encoder.onnx", "decoder.onnx")
        for tensor in onnx.load(path / name).graph.initializer
    }


def whole(kind: MarianModel, name: str) -> np.ndarray:
    values = kind.weights()[name]
    return np.rint(values * multiplier_of(values))


CASES = [
    (SSRU, "encoder.0.query", ["encoder_l1_self_Wq"]),
    (SSRU, "encoder.1.value", ["encoder_l2_self_Wv"]),
    (SSRU, "encoder.1.feed_forward.narrow", ["encoder_l2_ffn_W2"]),
    (SSRU, "decoder.1.ssru", ["decoder_l2_rnn_Wf", "decoder_l2_rnn_W"]),
    (SSRU, "decoder.0.cross_key", ["decoder_l1_context_Wk"]),
    (ATTENTION, "decoder.0.self_qkv", [f"decoder_l1_self_W{letter}" for letter in "qkv"]),
    (ATTENTION, "projection", ["decoder_ff_logit_out_W"]),
]


@pytest.mark.parametrize(("kind", "ours", "theirs"), CASES, ids=[case[1] for case in CASES])
def test_rows_that_7_bits_are_enough_for_are_marians(
    kind: MarianModel, ours: str, theirs: list[str], tmp_path: Path
) -> None:
    found = stored_in(imported(kind, tmp_path), tmp_path / "bundle")
    is_by_token = f"{ours}.rows_s8" in found
    matrix = found[f"{ours}.rows_s8"] if is_by_token else found[f"{ours}.matrix_s8"].T
    expected = np.concatenate([whole(kind, name).T for name in theirs])
    fits = np.abs(expected).max(axis=1) <= 63
    assert 0 < fits.sum() < len(fits)
    assert np.array_equal(matrix[fits], expected[fits])
    steps = np.repeat(
        [1 / multiplier_of(kind.weights()[name]) for name in theirs], len(fits) // len(theirs)
    )
    np.testing.assert_allclose(found[f"{ours}.steps"][fits], steps[fits], rtol=1e-6)
    # The others have the nearest of 127 values.
    values = matrix[~fits] * found[f"{ours}.steps"][~fits, None]
    allowed = np.abs(expected[~fits]).max(axis=1) / 126 * steps[~fits] * 1.001
    assert (np.abs(values - expected[~fits] * steps[~fits, None]).max(axis=1) <= allowed).all()


def test_embeddings_that_7_bits_are_enough_for_are_marians(tmp_path: Path) -> None:
    found = stored_in(imported(SSRU, tmp_path), tmp_path / "bundle")
    expected = whole(SSRU, "Wemb")
    fits = np.abs(expected).max(axis=1) <= 63
    assert 0 < fits.sum() < len(fits)
    for name in ("source", "target"):
        assert np.array_equal(found[f"{name}.rows_s8"][fits], expected[fits])
        steps = found[f"{name}.table_steps"][fits, 0] / WIDTH**0.5
        np.testing.assert_allclose(steps, 1 / multiplier_of(SSRU.weights()["Wemb"]), rtol=1e-6)


@pytest.mark.parametrize("kind", [SSRU, ATTENTION], ids=["ssru", "attention"])
def test_ranges_of_activations_are_marians(kind: MarianModel, tmp_path: Path) -> None:
    origin = imported(kind, tmp_path)
    assert origin.quantization is not None
    found = origin.quantization.highest
    assert {"projection", "encoder.0.query", "decoder.1.feed_forward.narrow"} <= found.keys()
    np.testing.assert_allclose([*found.values()], LARGEST_INPUT, rtol=1e-6)
    stored = stored_in(origin, tmp_path / "bundle")
    np.testing.assert_allclose(stored["encoder.0.query.step"], LARGEST_INPUT / 127, rtol=1e-6)
    # After a rectifier nothing is below zero, so the same range has twice as many steps.
    narrow = stored["encoder.0.feed_forward.narrow.step"]
    np.testing.assert_allclose(narrow, LARGEST_INPUT / 255, rtol=1e-6)


def test_a_file_without_multipliers_leaves_ranges_to_be_found_on_text(tmp_path: Path) -> None:
    origin = imported(MarianModel(is_quantized=True, has_multipliers=False), tmp_path)
    assert origin.quantization is not None
    assert origin.quantization.highest == {}
    assert origin.quantization.steps["projection"].min() > 0


def test_floats_are_not_quantized(tmp_path: Path) -> None:
    assert imported(MarianModel(), tmp_path).quantization is None


def test_a_multiplier_of_nothing_is_refused(tmp_path: Path) -> None:
    path = SSRU.write(tmp_path / "marian")
    (file,) = path.glob("*.bin")
    content = file.read_bytes()
    multiplier = np.float32(ACTIVATION_MULTIPLIER).tobytes()
    assert content.count(multiplier) > 10
    file.write_bytes(content.replace(multiplier, np.float32(-1).tobytes(), 1))
    with pytest.raises(ExportError, match=r"_QuantMultA is -1\.0: it must be above 0"):
        read_origin(path, ImportSettings())


def test_a_row_without_a_known_step_is_quantized_as_ever() -> None:
    matrix = np.array([[1.0, -3.0], [2.0, 63.0], [2.0, 64.0]], np.float32)
    integers, steps = quantize_rows(matrix, np.array([0.0, 1.0, 1.0]))
    plain, plain_steps = quantize_rows(matrix)
    assert integers[1].tolist() == [2, 63]
    assert steps[1] == 1
    for row in (0, 2):
        assert np.array_equal(integers[row], plain[row])
        assert steps[row] == plain_steps[row]
