"""An imported package behind the real server, whose sources have no end token."""

from pathlib import Path

from dragoman_client import Client, Options
from dragoman_export.argos.importer import ImportSettings, read_origin
from dragoman_export.export import ExportSettings, export_bundle
from dragoman_server.runtime.scoring import default_limit
from support.argos_models import OPENNMT, as_floats, save_package, seeded_variables
from support.argos_plain import PlainTransformer
from support.bundles import ignore
from support.hf_models import sentences
from support.service_running import few_rows, serving, settings_for

TEXTS = ["".join(c for c in t if c.isalpha() or c == " ") for t in sentences(6, seed=11)]


def test_texts_are_translated_as_the_package_means(tmp_path: Path) -> None:
    package = save_package(tmp_path / "model.argosmodel", OPENNMT)
    origin = read_origin(package, ImportSettings())
    export_bundle(origin, tmp_path / "pt-en", ExportSettings(name="pt-en"), None, ignore)
    plain = PlainTransformer(OPENNMT, as_floats(seeded_variables(OPENNMT)))
    sources = origin.encode(TEXTS)
    limits = [default_limit(len(source), origin.model.settings.max_length) for source in sources]
    expected = [
        origin.target.decode(plain.greedy(source, limit))
        for source, limit in zip(sources, limits, strict=True)
    ]
    options = Options(
        split_sentences=False,
        keep_untranslatable=False,
        mend=False,
        replace_unknown=False,
        alignment=True,
    )
    with (
        serving(settings_for(tmp_path / "pt-en", engine=few_rows(8))) as running,
        Client(running.server.address) as client,
    ):
        found = client.translate_batch(TEXTS, options=options)
    assert [each.text for each in found] == expected
    for each, source in zip(found, sources, strict=True):
        (segment,) = each.segments
        assert segment.alignment is not None
        assert len(segment.alignment.source_pieces) == len(source)
        assert {len(row) for row in segment.alignment.weights} == {len(source)}
