"""What the contract says to a call of a given kind on given paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import ContractViolation
from harness.model.contract import Contract
from harness.model.globs import Ownership
from harness.tools.inside import Inside
from harness.tools.permission import allows

# Any of these tools in the contract allows a call of this kind; what is not here needs a tool of its own name.
_TOOLS: Mapping[str, tuple[str, ...]] = {
    "read": ("read_file",),
    "search": ("read_file",),
    "edit": ("write_file", "edit_file", "apply_patch"),
    "delete": ("delete_file",),
    "move": ("move_file",),
    "execute": ("run",),
}
_CREATES = ("write_file", "apply_patch")
_WRITES = frozenset({"edit", "delete", "move"})
_HARMLESS = "think"
# Kinds that are known to have an effect or to reach for content: only these can be a breach when nobody was asked.
_TELLING = frozenset({*_TOOLS, "fetch"})


class Rules:
    """Pure but for looking at what exists in the workspace."""

    def __init__(self, contract: Contract, workspace: Path) -> None:
        self._contract = contract
        self._roots = tuple(dict.fromkeys((str(workspace), os.path.realpath(workspace))))
        self._inside = Inside(workspace)
        self._owned = Ownership(contract.ownership.paths)

    def relative(self, path: str) -> str | None:
        """The path from the workspace; None when it does not lie in it."""
        for root in self._roots:
            if path == root:
                return "."
            path = path.removeprefix(f"{root}/")
        return None if path.startswith("/") or ".." in path.split("/") else path

    def shown(self, path: str) -> str:
        """The path as it may be told: without where the workspace is."""
        inner = self.relative(path)
        return path if inner is None else inner

    def refusal(self, kind: str, paths: Sequence[str]) -> str:
        """Why a call that asks is refused; empty when the contract allows it."""
        if kind == _HARMLESS:
            return ""
        if kind in _WRITES and not paths:
            return f"it does not say which files it would {kind}"
        return self._not_listed(kind, paths) or self._misplaced(kind, paths)

    def breach(self, kind: str, paths: Sequence[str]) -> str:
        """Why a call must not have been made without asking; empty when the contract allows it, or nobody can tell."""
        if kind not in _TELLING:
            return ""
        not_listed = self._not_listed(kind, paths)
        return not_listed or (self._misplaced(kind, paths) if kind in _WRITES else "")

    def unowned(self, path: str) -> str:
        """Why a relative path may not be written; empty when it may."""
        if self._contract.ownership.exceptions_allowed or path == self._contract.report_path:
            return ""
        return "" if self._owned.covers(path) else f"{path} is not among the paths that the step owns"

    def _not_listed(self, kind: str, paths: Sequence[str]) -> str:
        wanted = _CREATES if kind == "edit" and self._creates(paths) else _TOOLS.get(kind, (kind,))
        if any(allows(self._contract, tool) for tool in wanted):
            return ""
        return f"the contract lists none of {', '.join(wanted)}" if wanted[1:] else f"the contract lacks {wanted[0]}"

    def _creates(self, paths: Sequence[str]) -> bool:
        inner = [self.relative(path) for path in paths]
        try:
            return any(path is not None and not self._inside.exists(path) for path in inner)
        except ContractViolation:
            return False  # told by `_misplaced`

    def _misplaced(self, kind: str, paths: Sequence[str]) -> str:
        if kind == "execute":
            return ""
        for path in paths:
            inner = self.relative(path)
            if inner is None:
                return f"{path} lies outside the workspace"
            why = self._forbidden(inner) or (self.unowned(inner) if kind in _WRITES else "")
            if why:
                return why
        return ""

    def _forbidden(self, path: str) -> str:
        if path == ".":
            return ""
        try:
            self._inside.exists(path)
        except ContractViolation as error:
            return error.message
        return ""
