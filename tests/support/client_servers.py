"""What tests of the SDK and the command need: certificates, keys, servers that say one thing."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypedDict

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import (
    TranslationServiceServicer,
    add_TranslationServiceServicer_to_server,
)
from dragoman_client import Retries
from support.command import DRAGOMAN, clean_environment
from support.service_running import PATIENCE


class Languages(TypedDict):
    """Arguments of a call that name the languages."""

    source_language: str
    target_language: str


PT: Languages = {"source_language": "en", "target_language": "pt"}
ONCE = Retries(attempts=1)
KEY = "0123456789abcdef"
COMMAND = (sys.executable, "-W", "error", *DRAGOMAN[1:])
# Python's own way to change a process before it begins forks gRPC's threads too, and they complain.
SMALL_FILES = ("bash", "-c", 'ulimit -f 1 && exec "$@"', "bash")
"""Before a command: it can write 1,024 bytes to a file."""
CTRL_C = ("env", "--default-signal=INT")
"""Before a command: it hears Ctrl-C, which who runs tests in the background has ignored."""


def make_certificate(directory: Path, *, expired: bool = False) -> tuple[Path, Path]:
    """A certificate of ``localhost``, signed by itself, and its key."""
    directory.mkdir(parents=True)
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    # A certificate request, and then the certificate: only so can its time be in the past.
    run = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    if not expired:
        _run(*run, "-x509", "-days", "2", *names, "-keyout", key, "-out", certificate)
        return certificate, key
    request, database = directory / "request.pem", directory / "index.txt"
    _run(*run, *names, "-keyout", key, "-out", request)
    database.touch()
    settings = directory / "ca.cnf"
    settings.write_text(
        f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\nnew_certs_dir={directory}\n"
        "rand_serial=yes\ndefault_md=sha256\npolicy=any\ncopy_extensions=copy\n"
        "[any]\ncommonName=supplied\n"
    )
    _run(
        *("openssl", "ca", "-batch", "-selfsign", "-notext", "-config", settings, "-keyfile", key),
        *("-startdate", "20200101000000Z", "-enddate", "20200201000000Z"),
        *("-in", request, "-out", certificate),
    )
    return certificate, key


def _run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def packed(*details: Any) -> list[Packed]:
    found = []
    for detail in details:
        found.append(Packed())
        found[-1].Pack(detail)
    return found


def status(
    code: grpc.StatusCode, *, reason: str = "", field: str = "", retry_after: float | None = None
) -> Status:
    """As our server makes them."""
    details: list[Any] = [
        ErrorInfo(reason=reason, domain="dragoman", metadata={"request_id": "id-7"})
    ]
    if field:
        violation = BadRequest.FieldViolation(field=field, description="wrong")
        details.append(BadRequest(field_violations=[violation]))
    if retry_after is not None:
        duration = Duration()
        duration.FromMilliseconds(round(1000 * retry_after))
        details.append(RetryInfo(retry_delay=duration))
    return Status(code=code.value[0], message="so it is", details=packed(*details))


class Scripted(TranslationServiceServicer):
    """A peer that ends each call as a test says: with a status, or well where there is None left.

    Not a server of ours: what ours can't be made to say on purpose, as a full queue of an exact
    delay, twice.
    """

    def __init__(self, *statuses: Status | None) -> None:
        self.statuses = list(statuses)
        self.calls = 0
        self.metadata: list[dict[str, str]] = []

    def _next(self, context: grpc.ServicerContext) -> None:
        self.calls += 1
        self.metadata.append(dict(context.invocation_metadata()))
        said = self.statuses.pop(0) if self.statuses else None
        if said is not None:
            self._end(context, said)

    def _end(self, context: grpc.ServicerContext, said: Status) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", said.SerializeToString()),))
        code = next(c for c in grpc.StatusCode if c.value[0] == said.code)
        context.abort(code, said.message)

    def Translate(self, request: Any, context: Any) -> Any:
        self._next(context)
        return pb.TranslateResponse(translations=[pb.Translation(text=t) for t in request.texts])

    def TranslateStream(self, request: Any, context: Any) -> Iterator[Any]:
        self.calls += 1
        while self.statuses:
            said = self.statuses.pop(0)
            if said is not None:
                self._end(context, said)
            yield pb.TranslateStreamResponse(delta="piece ")
        yield pb.TranslateStreamResponse(translation=pb.Translation(text="piece "))

    def TranslateBulk(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self._next(context)
        for request in requests:
            translation = pb.Translation(text=request.text)
            yield pb.TranslateBulkResponse(id=request.id, translation=translation)


@contextmanager
def listening(servicer: TranslationServiceServicer, address: str = "127.0.0.1:0") -> Iterator[str]:
    """Yields its address."""
    with ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
        add_TranslationServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port(address)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(PATIENCE)


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens, nor will anybody meanwhile."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{kept.getsockname()[1]}"


def dragoman(
    *arguments: str | Path,
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
    **more: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Runs the command to its end."""
    return subprocess.run(
        [*before, *COMMAND, *map(str, arguments)],
        input=given,
        capture_output=True,
        env=clean_environment(environment),
        timeout=2 * PATIENCE,
        **more,
    )


@contextmanager
def running_dragoman(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    **more: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command beside a test, which talks with it."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(
        [*CTRL_C, *COMMAND, *map(str, arguments)],
        env=clean_environment(environment),
        **{**pipes, **more},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def error_of(run: subprocess.CompletedProcess[bytes], code: int) -> str:
    """The one line that a run said before it ended with this code."""
    said = run.stderr.decode()
    assert run.returncode == code, said
    assert said.startswith("dragoman: "), said
    assert said.count("\n") == 1, said
    return said.removeprefix("dragoman: ").rstrip("\n")


def sentences(count: int) -> Sequence[str]:
    """All different, and short."""
    return [f"The number is {number}." for number in range(count)]


def write_lines(path: Path, count: int) -> Path:
    path.write_text("".join(f"{each}\n" for each in sentences(count)) + "\nThe last one.")
    return path
