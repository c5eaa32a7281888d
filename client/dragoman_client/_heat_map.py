"""An alignment as a picture."""

import errno
import warnings
from pathlib import Path

from dragoman_client._errors import ConfigurationError
from dragoman_client._results import Alignment

FORMATS = ("png", "svg", "pdf")


def check_name(path: Path) -> None:
    """Before anything is asked of a server."""
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise ConfigurationError(f"{path}: a picture's name ends with .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))


def draw(alignment: Alignment, path: Path) -> None:
    """Written whole, or not at all."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ConfigurationError(
            "a picture needs matplotlib: pip install 'dragoman[plot]'"
        ) from None

    columns, rows = len(alignment.source_pieces), len(alignment.target_pieces)
    figure = Figure(figsize=(2 + 0.4 * columns, 1.5 + 0.35 * rows), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(alignment.weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(columns), _words(alignment.source_pieces), rotation=60, ha="left")
    axes.set_yticks(range(rows), _words(alignment.target_pieces))
    axes.xaxis.tick_top()
    partial = path.with_name(f".partial-{path.name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of letters that the font does not have
            figure.savefig(partial, dpi=150, format=path.suffix.lower().removeprefix("."))
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        partial.unlink(missing_ok=True)


def _words(pieces: tuple[str, ...]) -> list[str]:
    # What begins a word is shown with a space before it; a lone dollar would begin a formula.
    return [piece.replace("▁", " ").replace("$", r"\$") for piece in pieces]
