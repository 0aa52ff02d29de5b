"""A recording as one file: a zip with `recording.json`, `plan.json`, contents by their id, and output.

The same run gives the same bytes. A file that is read may come from anybody: sizes are bounded, and no name of it
becomes a path.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from harness.errors import NotFound, UsageError
from harness.model import limits
from harness.model.recording import Recording

_MANIFEST, _PLAN = "recording.json", "plan.json"
_MIDNIGHT = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can hold
_HINT = "make it again with `orchestrix record`"
# What the library raises for a file that is damaged, encrypted or packed in a way that it does not know.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,
)


def write(path: Path, recording: Recording, plan: Mapping[str, Any], parts: Iterable[tuple[str, bytes]]) -> None:
    """Writes the file whole or not at all; `parts` are contents and output, each by its name in the file."""
    aside = path.with_name(f".{path.name}.tmp")
    with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as file:
        _put(file, _MANIFEST, (recording.model_dump_json(indent=1) + "\n").encode())
        _put(file, _PLAN, (json.dumps(plan, indent=1) + "\n").encode())
        for name, content in parts:
            _put(file, name, content)
    aside.replace(path)


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(name, _MIDNIGHT)
    about.external_attr = 0o644 << 16
    file.writestr(about, content, zipfile.ZIP_DEFLATED)


def blob_name(oid: str) -> str:
    return f"blobs/{oid}"


class RecordingFile:
    """One recording on disk; its parts are read when they are asked for."""

    def __init__(self, path: Path, recording: Recording) -> None:
        self._path = path
        self.recording = recording

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises NotFound, or UsageError when it is not a recording."""
        try:
            with zipfile.ZipFile(path) as file:
                if sum(about.file_size for about in file.infolist()) > limits.RECORDING_BYTES:
                    raise UsageError(f"{path} holds more than {limits.RECORDING_BYTES} bytes", hint=_HINT)
                return cls(path, Recording.model_validate_json(file.read(_MANIFEST)))
        except FileNotFoundError as error:
            raise NotFound(f"there is no recording {path}", hint=_HINT) from error
        except (*_DAMAGE, ValidationError) as error:
            raise _broken(path, error) from error

    @property
    def digest(self) -> str:
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def part(self, name: str) -> bytes:
        """The content of one part; raises UsageError when the file lacks it."""
        try:
            with zipfile.ZipFile(self._path) as file:
                return file.read(name)
        except _DAMAGE as error:
            raise _broken(self._path, error) from error


def _broken(path: Path, error: Exception) -> UsageError:
    first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return UsageError(f"{path} is not a whole recording: {first:.200}", hint=_HINT)
