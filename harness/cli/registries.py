"""Loads a node registry that a user names, to draw it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from harness.errors import UsageError


def picture(name: str) -> str:
    """The registry at `module:attr` as Mermaid, after validation; raises UsageError when it is not one."""
    from harness.supervisor import NodeRegistry, diagram, validation  # noqa: PLC0415 - only for --registry

    registry = _load(name)
    if not isinstance(registry, NodeRegistry):
        raise UsageError(f"{name} is not a NodeRegistry", hint="give MODULE:ATTR of a registry object")
    validation.validate(registry)
    return diagram.mermaid(registry)


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise UsageError(f"{name!r:.80} is not MODULE:ATTR", hint="for example mypackage.graph:registry")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"cannot load {name}: {error}", hint="run it from the directory that holds the module"
        ) from error
