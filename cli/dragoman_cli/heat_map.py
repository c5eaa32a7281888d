"""An alignment as a picture. Needs matplotlib."""

from pathlib import Path

from dragoman_cli.pictures import save
from dragoman_client._results import Alignment


def draw(alignment: Alignment, path: Path) -> None:
    from matplotlib.figure import Figure

    columns, rows = len(alignment.source_pieces), len(alignment.target_pieces)
    figure = Figure(figsize=(2 + 0.4 * columns, 1.5 + 0.35 * rows), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(alignment.weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(columns), _words(alignment.source_pieces), rotation=60, ha="left")
    axes.set_yticks(range(rows), _words(alignment.target_pieces))
    axes.xaxis.tick_top()
    save(figure, path)


def _words(pieces: tuple[str, ...]) -> list[str]:
    # What begins a word is shown with a space before it; a lone dollar would begin a formula.
    return [piece.replace("▁", " ").replace("$", r"\$") for piece in pieces]
