"""Keys: who may call, and which models.

A file of lines, each ``NAME KEY`` or ``NAME KEY MODEL,MODEL``; blank lines and those that begin
with ``#`` are passed over. The name is what the log says; a key without models may use all of them.
"""

import hmac
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_server.errors import ServerError

_MIN_LETTERS = 16
"""Letters that a key has at least, so that it can't be guessed."""


@dataclass(frozen=True)
class Client:
    """Who calls, where keys are asked for."""

    name: str
    models: frozenset[str] | None = None
    """The models that the client may use; None for all."""
    line: int = 0
    """Line of the file of keys that says so."""

    def may_use(self, model: str) -> bool:
        """Whether the client may use the model of this name."""
        return self.models is None or model in self.models


class Keys:
    """The keys of a server, each with its client."""

    def __init__(self, clients: Sequence[tuple[bytes, Client]]) -> None:
        self._clients = clients

    def find(self, key: str) -> Client | None:
        """Return whose key it is. Takes as long whichever it is, and where it is nobody's."""
        given, found = key.encode("utf-8", "surrogatepass"), None
        for known, client in self._clients:
            if hmac.compare_digest(known, given):
                found = client
        return found

    def unknown_models(self, known: Collection[str]) -> Iterator[tuple[Client, str]]:
        """Yield the models that clients may use and that are none of the known ones."""
        for _, client in self._clients:
            for model in sorted(client.models or ()):
                if model not in known:
                    yield client, model


def key_in(header: str, scheme: str = "Bearer") -> str:
    """Return the key of an ``Authorization`` header; empty where it has none of this scheme."""
    given, _, key = header.partition(" ")
    return key.strip() if given.lower() == scheme.lower() else ""


def read_keys(path: Path) -> Keys:
    """Read a file of keys. Raises ``ServerError`` that names the line that is wrong."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ServerError(f"{path}: the file of keys can't be read") from None
    clients: list[tuple[bytes, Client]] = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) not in (2, 3) or len(fields[1]) < _MIN_LETTERS:
            raise ServerError(
                f"{path}:{number}: it must be a name, a key of at least {_MIN_LETTERS} letters, "
                "and if not all models are allowed their names, with commas"
            )
        if any(key == fields[1].encode() for key, _ in clients):
            raise ServerError(f"{path}:{number}: this key is there already")
        models = frozenset(fields[2].split(",")) if len(fields) == 3 else None
        clients.append((fields[1].encode(), Client(fields[0], models, number)))
    if not clients:
        raise ServerError(f"{path}: the file of keys has none")
    return Keys(clients)
