"""Bearer tokens: who may call, and which models.

A file of lines, each ``NAME TOKEN`` or ``NAME TOKEN MODEL,MODEL``; blank lines and those that begin
with ``#`` are passed over. The name is what the log says; a token without models may use all.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_server.errors import ServerError

_LEAST = 16
"""Letters of a token, so that it can't be guessed."""


@dataclass(frozen=True)
class Client:
    name: str
    models: frozenset[str] | None = None
    """Those it may use; None: all."""

    def may_use(self, model: str) -> bool:
        return self.models is None or model in self.models


class Tokens:
    def __init__(self, clients: Sequence[tuple[bytes, Client]]) -> None:
        self._clients = clients

    def find(self, token: str) -> Client | None:
        """Whose token it is. Takes as long whichever it is, and where it is none."""
        given, found = token.encode("utf-8", "surrogatepass"), None
        for known, client in self._clients:
            if hmac.compare_digest(known, given):
                found = client
        return found


def read_tokens(path: Path) -> Tokens:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ServerError(f"{path}: the file of tokens can't be read") from None
    clients: list[tuple[bytes, Client]] = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) not in (2, 3) or len(fields[1]) < _LEAST:
            raise ServerError(
                f"{path}:{number}: it must be a name, a token of at least {_LEAST} letters, and "
                "if not all models are allowed their names, with commas"
            )
        if any(token == fields[1].encode() for token, _ in clients):
            raise ServerError(f"{path}:{number}: this token is there already")
        models = frozenset(fields[2].split(",")) if len(fields) == 3 else None
        clients.append((fields[1].encode(), Client(fields[0], models)))
    if not clients:
        raise ServerError(f"{path}: the file of tokens has none")
    return Tokens(clients)
