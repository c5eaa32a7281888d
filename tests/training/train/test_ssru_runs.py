"""A run of a model with an SSRU in its decoder, through the real command."""

from pathlib import Path

from safetensors.torch import load

from support.training_runs import RECIPE, losses, one_line, train, weights

SETTINGS = ("model.decoder_layers=2", "model.decoder_start=zero", "training.max_steps=12")


def test_a_run_learns_and_is_no_run_of_another_decoder(tmp_path: Path) -> None:
    recipe, run = tmp_path / "recipe.toml", tmp_path / "run"
    recipe.write_text(RECIPE)
    code, _, stderr = train(recipe, run, *SETTINGS, "model.decoder=ssru")
    assert code == 0, stderr
    assert losses(run)[-1] < losses(run)[0]
    names = load(weights(run)).keys()
    assert {"decoder.0.ssru.input.weight", "decoder.1.ssru.forget.bias"} <= names
    assert "model.decoder" in one_line(train(recipe, run, *SETTINGS))
