"""A home for one attempt: the profile's files and nothing of the user's; and the sessions that outlive it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.agents.profile import File, Session, filled
from harness.model import limits
from harness.sandbox.redact import Redactor

_SESSION_BYTES = 32 * limits.MIB
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


def make(home: Path, files: Iterable[File], values: Mapping[str, str]) -> dict[str, str]:
    """Makes the home with these files in it, and gives the variables that name it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files:
        path = home / filled(file.path, dict(values))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled(file.content, dict(values)), encoding="utf-8")
    return {"HOME": str(home), **{name: str(home / folder) for name, folder in _XDG.items()}}


def slug(workspace: Path) -> str:
    """A directory's path as one name, as programs call what belongs to it."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(workspace))


def keep_session(home: Path, session: Session, session_id: str, kept: Path, secrets: Iterable[str]) -> None:
    """Copies the session's files out of the home, without secrets; what is too large or no plain file is left behind."""
    for path in _session_files(home, session, session_id):
        redactor = Redactor(secrets)
        data = redactor.feed(path.read_bytes()) + redactor.rest()
        target = kept / path.relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.write_bytes(data)


def restore_session(kept: Path, session: Session, session_id: str, home: Path, values: Mapping[str, str]) -> bool:
    """Puts an earlier attempt's session into this home; False when there is none to put."""
    found = list(_session_files(kept, session, session_id))
    for path in found:
        relative = path.relative_to(kept)
        target = home / (filled(session.place, dict(values)) if session.place else relative.parent) / relative.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return bool(found)


def _session_files(root: Path, session: Session, session_id: str) -> Iterable[Path]:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", session_id):
        return
    with contextlib.suppress(OSError):
        for path in sorted(root.glob(filled(session.files, {"session": session_id}))):
            # Walked without following: the program could have put a link to anything there.
            inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
            if inside and path.is_file() and not path.is_symlink() and path.stat().st_size <= _SESSION_BYTES:
                yield path
