"""A bundle as a table for people."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from rich.markup import escape
from rich.table import Table

from dragoman_server.bundle.graph_io import SSRU
from dragoman_server.bundle.manifest import Manifest
from dragoman_server.bundle.reading import Bundle

_MAX_NAMED = 8
"""Most languages that are all named."""


def describe(bundle: Bundle) -> Table:
    """Return a table of sizes, limits, languages, quality, and what serving takes."""
    manifest, d = bundle.manifest, bundle.manifest.dimensions
    table = Table(title=escape(str(bundle.path)), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    quality = manifest.quality
    rows = {
        "model": f"{manifest.name}, version {manifest.version}",
        "languages": languages_of(manifest),
        "precision": manifest.precision,
        "architecture": f"{d.encoder_layers} + {d.decoder_layers} layers, width {d.width}, "
        f"{d.heads} heads, feed-forward {d.feed_forward}",
        **({"decoder": "SSRU, no self-attention"} if manifest.decoder == SSRU else {}),
        "vocabulary": f"{d.source_vocabulary:,} source, {d.target_vocabulary:,} target",
        "limits": f"{manifest.max_source_tokens} source and {manifest.max_target_tokens} target "
        "tokens",
        "size": human_bytes(sum(file.bytes for file in manifest.files.values())),
        "cache per row": human_bytes(manifest.cache_bytes_per_row),
        "licence": manifest.licence,
        "made with": ", ".join(f"{k} {v}" for k, v in manifest.made_with.items()),
    }
    if bundle.shortlist is not None:
        always, likely = len(bundle.shortlist.always), bundle.shortlist.likely.shape[1]
        rows["shortlist"] = f"{always} tokens always, {likely} for each source token"
    if "bleu" in quality:
        rows["quality"] = (
            f"BLEU {quality['bleu']:.1f} (float32 {quality['bleu_float32']:.1f}), "
            f"chrF {quality['chrf']:.1f}, greedy, {quality['sentences']} sentences"
            + (f" of {quality['text']}" if "text" in quality else "")
            + f"; {quality['identical']:.1%} as float32"
        )
    if "bleu_lost_interval" in quality and manifest.precision != "float32":
        rows["against float32"] = _lost(quality)
    if "float32_log_prob_error" in quality:
        rows["against PyTorch"] = (
            f"log-probabilities within {quality['float32_log_prob_error']:.1e}"
        )
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table


def _lost(quality: Mapping[str, Any]) -> str:
    """Return how much BLEU a bundle loses against float32, and how sure that is."""
    lost = quality["bleu_float32"] - quality["bleu"]
    low, high = quality["bleu_lost_interval"]
    text = f"BLEU lost: {lost:.2f}, with 95% confidence between {low:.2f} and {high:.2f}"
    if lost > quality["max_bleu_lost"]:
        return f"{text}: more sentences would tell"
    return text


def languages_of(manifest: Manifest) -> str:
    """Return what a model translates from and into; of many languages, their number and a few."""
    return " → ".join(
        _languages(*side)
        for side in (
            (manifest.source_language, manifest.source_languages),
            (manifest.target_language, manifest.target_languages),
        )
    )


def _languages(language: str, several: Mapping[str, int | None]) -> str:
    if len(several) <= _MAX_NAMED:
        return ", ".join(several) or language or "?"
    return f"{len(several)} languages ({', '.join(islice(several, _MAX_NAMED))}, …)"


def human_bytes(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"
