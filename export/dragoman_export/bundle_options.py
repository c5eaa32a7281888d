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
