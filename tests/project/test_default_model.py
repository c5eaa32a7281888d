"""The model that comes with the repository."""

from dragoman_server.bundle.reading import read_bundle
from dragoman_server.engine.core import Options, Sentence
from dragoman_server.engine.settings import EngineSettings
from dragoman_server.engine.translator import Translator
from dragoman_server.runtime.checks.golden import replay
from dragoman_server.runtime.graphs import Graphs, GraphSettings
from dragoman_training.data.tokenizer import TokenizerPair
from support import MODEL

LARGEST = 25_000_000


def test_it_is_whole_small_and_decodes_as_it_did_when_it_was_made() -> None:
    bundle = read_bundle(MODEL)
    assert sum(file.stat().st_size for file in MODEL.iterdir()) <= LARGEST
    assert (bundle.manifest.source_language, bundle.manifest.target_language) == ("en", "pt")
    assert bundle.manifest.licence == "CC-BY-SA-4.0"
    replay(bundle, Graphs(bundle, GraphSettings(rows=1)))


def test_it_translates() -> None:
    tokenizers = TokenizerPair.load(MODEL)
    texts = ["Good morning.", "The children are playing in the park."]
    sentences = [Sentence(tuple(tokenizers.source.encode(text))) for text in texts]
    settings = EngineSettings(rows=8, lanes=1, threads=1)
    with Translator(read_bundle(MODEL), settings) as translator:
        answers = translator.translate(sentences, Options(beam=4))
    assert [tokenizers.target.decode(answer.hypotheses[0].ids) for answer in answers] == [
        "Bom dia.",
        "As crianças estão brincando no parque.",
    ]
