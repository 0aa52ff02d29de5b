"""A registry as a Mermaid flowchart. Pure: text out."""

from __future__ import annotations

from collections.abc import Sequence

from harness.supervisor import scope, topology
from harness.supervisor.assembly import Allowlists
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Scope


def mermaid(
    registry: NodeRegistry,
    *,
    supervisors: Sequence[str] | None = None,
    supervisor_allowlists: Allowlists | None = None,
) -> str:
    """Supervisors, nodes and subgraph calls; a subgraph is a box, a call a dotted arrow, a terminal node is round.

    `supervisors` are those of the top level (None: those that no subgraph contains).
    """
    allowlists = supervisor_allowlists or {}
    roots = topology.roots(registry) if supervisors is None else list(supervisors)
    top = scope.root(registry, roots, None, hierarchical=True)
    lines = ["flowchart TD", "    start((start))"]
    lines += [f"    start --> {_id('', 's', name)}" for name in top.views]
    lines += _level(top, "", allowlists, "    ")
    for subgraph_id in registry.list_subgraphs():
        found, level = registry.get_subgraph(subgraph_id), topology.level_of(registry, subgraph_id)
        title = _text(found[0].description if found is not None else subgraph_id)
        lines.append(f'    subgraph {_id("", "g", subgraph_id)}["{_text(subgraph_id)}: {title}"]')
        lines += _level(level, subgraph_id, allowlists, "        ") if level is not None else []
        lines.append("    end")
    return "\n".join(lines) + "\n"


def _level(level: Scope, where: str, allowlists: Allowlists, indent: str) -> list[str]:
    lines: list[str] = []
    for supervisor, view in level.views.items():
        me = _id(where, "s", supervisor)
        lines.append(f'{indent}{me}{{{{"{_text(supervisor)}"}}}}')
        for node in view.nodes:
            it = _id(where, "n", node.name)
            shape = f'(["{_text(node.name)}"])' if node.is_terminal else f'["{_text(node.name)}"]'
            lines.append(f"{indent}{it}{shape}")
            arrow = "-->" if node.is_terminal else "<-->"
            if topology.allows(allowlists, supervisor, node.name):
                lines.append(f"{indent}{me} {arrow} {it}")
    lines += [
        f"{indent}{_id(where, 's', supervisor)} -. call .-> {_id('', 'g', target)}"
        for supervisor, target in topology.calls(level, allowlists)
        if target != where
    ]
    return lines


def _id(where: str, kind: str, name: str) -> str:
    """A Mermaid id: letters, digits and underscores; other characters by their number, so that no two names meet."""
    raw = f"{kind}_{where}_{name}" if where else f"{kind}_{name}"
    return "".join(char if (char.isascii() and char.isalnum()) or char == "_" else f"_{ord(char)}_" for char in raw)


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
