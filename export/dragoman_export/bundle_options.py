"""Options that ``dragoman export`` and ``dragoman import-hf`` share."""

from pathlib import Path
from typing import Annotated

import typer

BundleArgument = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The directory to write.")]
PrecisionOption = Annotated[str, typer.Option(help="float32; int8 for CPUs; float16 for CUDA.")]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="With int8: products that stay float32 because quality suffers, as in "
        "'projection' or 'decoder.*'; may be repeated.",
    ),
]
NameOption = Annotated[
    str | None, typer.Option(help="Name of the model.  \\[default: that of the directory]")
]
VersionOption = Annotated[str, typer.Option(help="Version of the model.")]
LicenceOption = Annotated[str, typer.Option(help="Licence of the model, as an SPDX id.")]
ShortlistSourceOption = Annotated[
    Path | None,
    typer.Option(
        help="With int8: parallel text to learn from which target tokens are likely for which "
        "source tokens. Searches look at no others, which is much faster; the quality is measured "
        "with it. May be gzip."
    ),
]
ShortlistTargetOption = Annotated[Path | None, typer.Option(help="Its translations.")]
ShortlistLikelyOption = Annotated[
    int, typer.Option(min=1, help="Target tokens that are likely for each source token.")
]
