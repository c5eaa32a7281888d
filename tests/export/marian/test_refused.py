"""What can't be imported is refused by name, in a line, and nothing is written."""

import gzip
from pathlib import Path

import pytest

from dragoman_export.errors import ExportError
from dragoman_export.marian.directory import ModelDirectory
from dragoman_export.marian.importer import ImportSettings, read_origin
from support.marian_models import MarianModel, npz_bytes, sentencepiece_model

CONFIGURATIONS = {
    "an RNN": ({"type": "s2s"}, "type is 's2s': it must be 'transformer'"),
    "average attention": (
        {"transformer-decoder-autoreg": "average-attention"},
        "transformer-decoder-autoreg is 'average-attention'",
    ),
    "another cell": ({"dec-cell": "gru"}, "dec-cell is 'gru': it must be 'ssru'"),
    "tied layers": (
        {"transformer-tied-layers": "[1, 1]"},
        r"transformer-tied-layers is \['1', '1'\]: it must be empty",
    ),
    "factors": ({"lemma-dim-emb": "64"}, "lemma-dim-emb is '64'"),
    "a factored vocabulary": ({"vocabs": "[a.fsv, b.fsv]"}, "vocabs has 'a.fsv': factored"),
    "another norm": (
        {"transformer-postprocess": "dar"},
        "transformer-postprocess is 'dar'.*they must be",
    ),
    "norms on both sides": (
        {"transformer-preprocess": "n"},
        "transformer-preprocess is 'n'.*they must be",
    ),
    "norms before, of an old version": (
        {
            "transformer-preprocess": "n",
            "transformer-postprocess": "da",
            "transformer-postprocess-top": "n",
            "version": "v1.9.56 94aeaa46",
        },
        r"version v1.9.56: Marian before 1.11 leaves keys",
    ),
    "norms in the cell": ({"layer-normalization": "true"}, "layer-normalization is 'true'"),
    "gelu": ({"transformer-ffn-activation": "gelu"}, "transformer-ffn-activation is 'gelu'"),
    "deeper networks": ({"transformer-ffn-depth": "3"}, "transformer-ffn-depth is '3'"),
    "a narrower decoder": (
        {"transformer-decoder-dim-ffn": "16"},
        "transformer-decoder-dim-ffn is 16 and transformer-dim-ffn 48",
    ),
    "learnt positions": (
        {"transformer-train-positions": "true"},
        "transformer-train-positions is 'true'",
    ),
    "right to left": ({"right-left": "true"}, "right-left is 'true'"),
    "three vocabularies": ({"dim-vocabs": "[9, 9, 9]"}, "dim-vocabs is .*: it must be the sizes"),
    "two sizes of one table": ({"dim-vocabs": "[120, 90]"}, "one table is to serve both"),
    "a width of words": ({"dim-emb": "wide"}, "dim-emb is 'wide': it must be a whole number"),
    "a list for a width": ({"dim-emb": "[1]"}, "dim-emb is .*: it must be one value"),
    "heads that don't fit": ({"transformer-heads": "5"}, "the width must be a multiple"),
    "more layers than weights": ({"enc-depth": "3"}, "takes at least .* weights, and its file has"),
    "fewer layers than weights": ({"enc-depth": "1"}, "encoder_l2_.*no place for"),
    "a gigantic width": ({"dim-emb": "800000"}, "takes at least"),
    "yes and no": ({"tied-embeddings-all": "maybe"}, "tied-embeddings-all is 'maybe'"),
    "no YAML": ({"dim-emb": "[1"}, "special:model.yml: not YAML"),
    "references": ({"dim-emb": "&a [1]\nother: *a"}, "special:model.yml: not YAML"),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_what_does_not_fit_is_refused_by_its_name(case: str, tmp_path: Path) -> None:
    changes, says = CONFIGURATIONS[case]
    path = MarianModel(changes=changes).write(tmp_path)
    with pytest.raises(ExportError, match=says) as refused:
        read_origin(path, ImportSettings())
    assert "\n" not in str(refused.value)


def test_a_long_value_is_shortened(tmp_path: Path) -> None:
    path = MarianModel(changes={"dec-cell": "x" * 100_000}).write(tmp_path)
    with pytest.raises(ExportError, match="dec-cell is") as refused:
        read_origin(path, ImportSettings())
    assert len(str(refused.value)) < 200


def test_weights_are_missed_and_left_over_by_name(tmp_path: Path) -> None:
    kind = MarianModel(form="npz")
    path = kind.write(tmp_path)
    weights = kind.weights()
    missing = {name: values for name, values in weights.items() if name != "decoder_l1_rnn_W"}
    strange = {**weights, "decoder_l1_rnn_U": weights["decoder_l1_rnn_W"]}
    turned = {**weights, "encoder_l1_ffn_W1": weights["encoder_l1_ffn_W1"].T.copy()}
    for changed, says in (
        (missing, "no weight is named decoder_l1_rnn_W"),
        (strange, "decoder_l1_rnn_U: a weight that the architecture has no place for"),
        (turned, r"encoder_l1_ffn_W1 is \[48, 32\], not \[32, 48\]"),
    ):
        (path / "model.npz").write_bytes(npz_bytes(changed, kind.yaml()))
        with pytest.raises(ExportError, match=says):
            read_origin(path, ImportSettings())


def test_a_vocabulary_must_be_the_models(tmp_path: Path) -> None:
    path = MarianModel().write(tmp_path)
    for content, says in (
        (sentencepiece_model(90, 1), "has 90 pieces, and the model 120"),
        (b"no vocabulary", "not a SentencePiece model"),
    ):
        (path / "vocab.enpt.spm").write_bytes(content)
        with pytest.raises(ExportError, match=says):
            read_origin(path, ImportSettings())


def directory(path: Path, *names: str, config: str = "") -> Path:
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).write_bytes(b"")
    if config:
        (path / "config.yml").write_text(config, encoding="utf-8")
    return path


FIREFOX = ("model.enpt.intgemm.alphas.bin", "vocab.enpt.spm", "lex.50.50.enpt.s2t.bin")
CONFIG = (
    "relative-paths: true\nmodels:\n  - model.bin\nvocabs:\n  - s.spm\n  - t.spm\n"
    "shortlist:\n  - lex.bin\n  - false\n"
)


def test_files_are_found_by_their_names(tmp_path: Path) -> None:
    found = ModelDirectory(directory(tmp_path / "firefox", *FIREFOX, "README", "metadata.json"))
    assert found.model == FIREFOX[0]
    assert found.vocabularies == (FIREFOX[1], FIREFOX[1])
    assert found.shortlist == FIREFOX[2]
    names = ("model.npz", "model.npz.optimizer.npz", "srcvocab.enko.spm.gz", "trgvocab.enko.spm.gz")
    found = ModelDirectory(directory(tmp_path / "two", *names))
    assert (found.model, found.vocabularies, found.shortlist) == (names[0], names[2:], "")


def test_a_configuration_names_them_better(tmp_path: Path) -> None:
    path = directory(tmp_path, "model.bin", "other.npz", "s.spm", "t.spm", "lex.bin", config=CONFIG)
    found = ModelDirectory(path)
    assert found.model == "model.bin"
    assert found.vocabularies == ("s.spm", "t.spm")
    assert found.shortlist == "lex.bin"
    # Wherever the files were when it was written, they are beside it now.
    (path / "config.yml").write_text(CONFIG.replace("model.bin", "/somewhere/else/other.npz"))
    assert ModelDirectory(path).model == "other.npz"


def test_one_of_several_configurations_can_be_named(tmp_path: Path) -> None:
    names = ("model.bin", "other.bin", "s.spm", "t.spm", "lex.bin")
    path = directory(tmp_path, *names)
    for name, model in (("one.yml", "model.bin"), ("two.yml", "other.bin")):
        (path / name).write_text(CONFIG.replace("model.bin", model))
    with pytest.raises(ExportError, match=r"several configurations, one\.yml, two\.yml"):
        ModelDirectory(path)
    assert ModelDirectory(path / "two.yml").model == "other.bin"


DIRECTORIES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "no model": (("vocab.spm",), "", "has no file that looks like a model"),
    "no vocabulary": (("model.bin",), "", "has no file that looks like a SentencePiece"),
    "two models": (("a.npz", "b.npz", "v.spm"), "", "several files that look like a model"),
    "an ensemble": (
        ("a.bin", "b.bin"),
        "models: [a.bin, b.bin]\nvocabs: [v.spm, v.spm]\n",
        "models names 2 files: an ensemble",
    ),
    "a vocabulary that is not there": (
        ("model.bin", "s.spm"),
        CONFIG,
        "vocabs has 't.spm', which is no file of",
    ),
    "three vocabularies": (
        ("model.bin", "v.spm"),
        "models: [model.bin]\nvocabs: [v.spm, v.spm, v.spm]\n",
        "vocabs names 3 files",
    ),
    "no list of files": (("m",), "models: {a: b}\nvocabs: [v]\n", "models is .*must name files"),
}


@pytest.mark.parametrize("case", DIRECTORIES)
def test_a_directory_that_lacks_something_is_refused(case: str, tmp_path: Path) -> None:
    names, config, says = DIRECTORIES[case]
    with pytest.raises(ExportError, match=says):
        ModelDirectory(directory(tmp_path, *names, config=config))


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no such directory"):
        ModelDirectory(tmp_path / "nowhere")


def test_vocabularies_in_other_forms_are_refused(tmp_path: Path) -> None:
    config = "models: [model.bin]\nvocabs: [vocab.yml, vocab.yml]\n"
    path = MarianModel().write(tmp_path)
    (path / "model.enpt.intgemm.alphas.bin").rename(path / "model.bin")
    directory(path, "vocab.yml", config=config)
    with pytest.raises(ExportError, match="only SentencePiece vocabularies"):
        read_origin(path, ImportSettings())


@pytest.mark.parametrize("cut", [0, 5, 30])
def test_a_packed_file_that_is_cut_off_is_refused(cut: int, tmp_path: Path) -> None:
    path = MarianModel().write(tmp_path)
    (file,) = path.glob("*.bin")
    packed = gzip.compress(file.read_bytes())
    (path / f"{file.name}.gz").write_bytes(packed[: len(packed) * cut // 40])
    file.unlink()
    with pytest.raises(ExportError, match=r"\.bin"):
        read_origin(path, ImportSettings())


def test_languages_come_from_names_unless_they_are_given(tmp_path: Path) -> None:
    path = MarianModel().write(tmp_path)

    def languages(settings: ImportSettings) -> tuple[str, str]:
        manifest = read_origin(path, settings).manifest
        return manifest["source_language"], manifest["target_language"]

    assert languages(ImportSettings()) == ("en", "pt")
    assert languages(ImportSettings(target_language="pt-BR")) == ("en", "pt-BR")
    (path / "model_info.json").write_text('{"shortName": "de-en-tiny", "modelName": "Tiny"}')
    assert languages(ImportSettings()) == ("de", "en")
    with pytest.raises(ExportError, match="--source-language not one: not a language tag"):
        languages(ImportSettings(source_language="not one"))
    (path / "model_info.json").write_text("{")
    with pytest.raises(ExportError, match=r"model_info\.json: not JSON"):
        languages(ImportSettings())
