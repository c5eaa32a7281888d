"""Variables of the environment that look like settings and are none: most likely mistyped."""

import os
import re
from collections.abc import Collection, Iterator, Mapping

import typer

from dragoman_server.service.suggestions import did_you_mean

_PREFIX = "DRAGOMAN_"
_OF_A_SERVICE = re.compile(
    r"DRAGOMAN_(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_\w+)?)"
)
"""Variables that Kubernetes gives every pod for a service whose name begins with ``dragoman``."""


def known_variables(context: typer.Context) -> set[str]:
    """Return the variables that any command beside the one of this context reads.

    A server and its clients often share one environment.
    """
    root = context.find_root().command
    commands = (context.command, *getattr(root, "commands", {}).values())
    found: set[str] = set()
    for command in commands:
        for parameter in command.params:
            names = parameter.envvar or ()
            found.update([names] if isinstance(names, str) else names)
    return found


def unknown_variables(
    known: Collection[str], environment: Mapping[str, str] = os.environ
) -> Iterator[str]:
    """Yield a line for each variable that no command reads, without its value."""
    for name in sorted(environment):
        if name.startswith(_PREFIX) and name not in known and not _OF_A_SERVICE.fullmatch(name):
            yield f"{name} is set, and is no setting{did_you_mean(name, known, _PREFIX)}"
