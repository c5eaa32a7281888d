"""Zip files that others made: read within bounds, and written again with other members in them."""

import io
import zipfile
import zlib
from collections.abc import Mapping

from dragoman_documents.errors import DocumentError
from dragoman_documents.settings import MIB, DocumentSettings

_ENCRYPTED = 0x1
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """A zip file whose list of members is within bounds. Nothing is ever unpacked to disk."""

    def __init__(self, data: bytes, settings: DocumentSettings) -> None:
        self._data = data
        self._settings = settings
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            self._members = {info.filename: info for info in self._zip.infolist()}
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
            raise DocumentError(f"is not a whole zip file: {_line(error)}") from None
        self._check()

    @property
    def names(self) -> list[str]:
        """The members' names, in the order of the file."""
        return list(self._members)

    def _check(self) -> None:
        settings = self._settings
        infos = self._zip.infolist()
        if len(infos) > settings.max_members:
            raise DocumentError(
                f"has {len(infos):,} members, and may have {settings.max_members:,}"
            )
        if len(self._members) != len(infos):
            raise DocumentError("has two members of one name")
        if sum(info.compress_size for info in infos) > len(self._data):
            raise DocumentError("has members that overlap")
        unpacked = sum(info.file_size for info in infos)
        if unpacked > settings.max_unpacked_bytes:
            raise DocumentError(
                f"is {unpacked / MIB:,.0f} MiB unpacked, and may be "
                f"{settings.max_unpacked_bytes / MIB:,.0f}"
            )
        for info in infos:
            name = info.filename
            if name.startswith("/") or "\\" in name or ".." in name.split("/") or "\0" in name:
                raise DocumentError(f"has a member with a name that leads elsewhere: {name[:80]!r}")
            if info.flag_bits & _ENCRYPTED:
                raise DocumentError("is protected with a password")
            if info.compress_type not in _KINDS:
                raise DocumentError(f"has a member that is not deflated or stored: {name[:80]!r}")
            if info.file_size > max(MIB, settings.max_ratio * info.compress_size):
                raise DocumentError(
                    f"has a member that is over {settings.max_ratio} times larger unpacked: "
                    f"{name[:80]!r}"
                )

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Return a member that is to be taken apart."""
        if self._members[name].file_size > self._settings.max_text_bytes:
            raise DocumentError(f"has a member that is too large to be read: {name[:80]!r}")
        return self._read(self._members[name])

    def _read(self, info: zipfile.ZipInfo) -> bytes:
        try:
            return self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError) as error:
            raise DocumentError(f"is damaged: {info.filename[:80]!r}: {_line(error)}") from None
        except (NotImplementedError, RuntimeError) as error:
            raise DocumentError(f"can't be unpacked: {_line(error)}") from None

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the zip with other bytes for some members, and all else as it was."""
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as target:
            target.comment = self._zip.comment
            for name, info in self._members.items():
                data = changed[name] if name in changed else self._read(info)
                target.writestr(_copy(info), data)
        return written.getvalue()


def _copy(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return what a zip says of a member, but for where it is and how long."""
    copy = zipfile.ZipInfo(info.filename, info.date_time)
    copy.compress_type = info.compress_type
    copy.comment = info.comment
    copy.create_system = info.create_system
    copy.external_attr = info.external_attr
    copy.internal_attr = info.internal_attr
    return copy


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
