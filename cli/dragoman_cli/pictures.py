"""Pictures as files: what can be wrong is said before the work, and none is left half written."""

import errno
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_client._errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


def check_picture(path: Path) -> None:
    """Before anything is asked of a server."""
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise ConfigurationError(f"{path}: a picture's name ends with .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError:
        from dragoman_cli.extras import how_to_install

        raise ConfigurationError(f"a picture needs matplotlib: {how_to_install('plot')}") from None


def save(figure: "Figure", path: Path) -> None:
    """Written whole, or not at all."""
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
