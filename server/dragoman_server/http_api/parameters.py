"""Parameters as other servers take them: a JSON object, a form, or the query of the address."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from dragoman_server.http_api.bodies import media_type, read_json
from dragoman_server.http_api.calls import Incoming
from dragoman_server.http_api.errors import MediaTypeError
from dragoman_server.http_api.json_messages import is_text
from dragoman_server.service.errors import InvalidArgumentError

_MAX_FIELDS = 4096
"""Most fields of a form."""
_FORM, _MULTIPART, _JSON = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json",
)


class Parameters:
    """The parameters of a request. Errors name the parameter."""

    def __init__(
        self, query: dict[str, Any], body: dict[str, Any], *, is_json: bool = False
    ) -> None:
        self.is_json = is_json
        """Whether a list is one that the client wrote, and not made of the fields of a form."""
        self._values = {**query, **body}

    @property
    def names(self) -> Iterable[str]:
        return self._values

    def get(self, name: str) -> Any:
        """Return a value as it was sent; None where it is not there. A form has lists of texts."""
        return self._values.get(name)

    def text(self, name: str, default: str = "") -> str:
        """Return a text; the last one where a form has several."""
        value = self._values.get(name)
        if isinstance(value, list) and value:
            value = value[-1]
        if value is None:
            return default
        if not isinstance(value, str):
            raise InvalidArgumentError(name, "must be a text")
        return _unicode(name, value)

    def texts(self, name: str) -> list[str]:
        """Return texts; one where there is only one, none where there is none."""
        value = self._values.get(name)
        values = [] if value is None else value if isinstance(value, list) else [value]
        for each in values:
            if not isinstance(each, str):
                raise InvalidArgumentError(name, "must be a text, or a list of texts")
            _unicode(name, each)
        return values

    def switch(self, name: str) -> bool:
        """Return what is on or off, and off where it is not there."""
        value = self._values.get(name)
        if isinstance(value, bool | None):
            return bool(value)
        if isinstance(value, int | str | list):
            said = str(value[-1] if isinstance(value, list) and value else value).lower()
            if said in ("1", "true", "0", "false"):
                return said in ("1", "true")
        raise InvalidArgumentError(name, "must be true or false")

    def choice(self, name: str) -> str:
        """Return one of several words, as a text: a number or a switch of JSON may be one."""
        value = self._values.get(name)
        if isinstance(value, bool | int):
            return str(int(value))
        return self.text(name)

    def count(self, name: str) -> int:
        """Return a whole number of at least 0, which it is where it is not there."""
        value = self._values.get(name, 0)
        if isinstance(value, list) and value:
            value = value[-1]
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
            raise InvalidArgumentError(name, "must be a whole number")
        return value


async def parameters_of(incoming: Incoming) -> Parameters:
    """Return the parameters of a request, whichever way they were sent; a body goes first."""
    body = await incoming.body()
    query = _form(incoming.request.scope["query_string"])
    kind = media_type(incoming.request)
    if not body or kind == "":
        return Parameters(query, {})
    if kind == _JSON:
        value = await read_json(body)
        if not isinstance(value, dict):
            raise InvalidArgumentError("", "the body must be an object", reason="MALFORMED")
        return Parameters(query, value, is_json=True)
    if kind == _FORM:
        return Parameters(query, _form(body))
    if kind == _MULTIPART:
        return Parameters(query, await _multipart(incoming, body))
    raise MediaTypeError("the body must be JSON or a form, with its content type")


def _form(encoded: bytes) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(
            encoded.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except UnicodeDecodeError:
        raise InvalidArgumentError("", "the form is not UTF-8", reason="INVALID_UTF8") from None
    except ValueError:
        raise InvalidArgumentError(
            "", f"the form has more than {_MAX_FIELDS} fields", reason="TOO_LARGE"
        ) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


async def _multipart(incoming: Incoming, body: bytes) -> dict[str, list[str]]:
    async def stream() -> Any:
        yield body

    try:
        body.decode()  # texts alone: there is nothing yet that takes files
        form = await MultiPartParser(
            incoming.request.headers,
            stream(),
            max_files=0,
            max_fields=_MAX_FIELDS,
            max_part_size=len(body),
        ).parse()
    except UnicodeDecodeError:
        raise InvalidArgumentError("", "the form is not UTF-8", reason="INVALID_UTF8") from None
    except (MultiPartException, KeyError, ValueError):
        raise InvalidArgumentError("", "the form can't be read", reason="MALFORMED") from None
    found: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            found.setdefault(name, []).append(value)
    return found


def _unicode(name: str, value: str) -> str:
    if not is_text(value):
        raise InvalidArgumentError(name, "is not valid UTF-8", reason="INVALID_UTF8")
    return value
