"""What a contract permits: tools by their own names, or by a permission that includes them."""

from __future__ import annotations

from harness.model.contract import Contract

# A permission that allows more than the tool of its own name: both start programs.
_ALSO_ALLOWS = {"shell": "run", "run": "shell"}
# Tools that are offered to a model and carried out by the harness itself, without touching a file or starting a program.
VIRTUAL = ("finish", "delegate", "synthesize")


def allows(contract: Contract, tool: str) -> bool:
    """Whether the contract lists this tool, by its own name or by a permission that includes it.

    `finish` only ends the work, so that an agent that may do anything may do it; `delegate` is a permission of its own.
    """
    permissions = contract.permissions
    if tool == "finish":
        return bool(permissions.allowed_tools)
    if tool == "delegate":
        return permissions.can_spawn_children and permissions.max_delegation_depth > 0
    return any(tool in {name, _ALSO_ALLOWS.get(name)} for name in permissions.allowed_tools)
