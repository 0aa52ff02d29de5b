"""What the CI system around a job offers; every part may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.model.late import dataclass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`obeys` is whether somebody reads workflow commands; the files are for the runner, never for children."""

    obeys: bool
    outputs: Path | None
    step_summary: Path | None
    workspace: Path | None

    def shown(self, path: str, root: Path | None) -> str:
        """A file as annotations name it: relative to the workflow's workspace or, without one, to the checkout."""
        absolute = Path(path).resolve()
        for folder in (self.workspace, root):
            if folder is not None and absolute.is_relative_to(folder.resolve()):
                return str(absolute.relative_to(folder.resolve()))
        return path


def read(environ: Mapping[str, str]) -> Surroundings:
    return Surroundings(
        obeys=environ.get("GITHUB_ACTIONS") == "true",
        outputs=_path(environ, "GITHUB_OUTPUT"),
        step_summary=_path(environ, "GITHUB_STEP_SUMMARY"),
        workspace=_path(environ, "GITHUB_WORKSPACE"),
    )


def append(path: Path | None, text: str) -> None:
    """Adds to a file of the runner; earlier lines belong to others. Raises OSError."""
    if path is not None:
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "replace"))


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    return Path(environ[name]) if environ.get(name) else None
