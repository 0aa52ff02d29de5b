"""Find a registry by `module:attribute`, as a command line names it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness.errors import NotFound, UsageError
from harness.supervisor.registry import NodeRegistry


def registry_at(spec: str) -> NodeRegistry:
    """Import a module and take the registry from it; the attribute may be a function that returns one.

    Raises:
        UsageError: the text is not `module:attribute`, or what it names is no registry.
        NotFound: there is no such module or attribute.
    """
    module_name, colon, attribute = spec.partition(":")
    if not (module_name and colon and attribute):
        raise UsageError(f"{spec!r} is not module:attribute", hint="for example my_app.graph:registry")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        raise NotFound(f"no module {error.name!r}", hint="run where it can be imported, or set PYTHONPATH") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotFound(f"{module_name} has no attribute {attribute!r}", hint="name a NodeRegistry in the module")
        found = getattr(found, part)
    if callable(found) and not isinstance(found, NodeRegistry):
        found = found()
    if not isinstance(found, NodeRegistry):
        raise UsageError(f"{spec} is a {type(found).__name__}, not a NodeRegistry", hint="name a NodeRegistry")
    return found
