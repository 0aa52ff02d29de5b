"""Registries grown from a seed: every rule gets its chance, and nothing depends on anything but the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from harness.supervisor import GenericSupervisor, HierarchicalDecision, NodeRegistry, TriggerCondition
from tests.supervisor.kit import node, subgraph

SLICES = ("request", "response", "work", "notes")


@dataclass
class Case:
    """One registry with everything needed to run it, except the driver."""

    seed: int
    registry: NodeRegistry = field(default_factory=NodeRegistry)
    options: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


def grow(seed: int) -> Case:
    rng = random.Random(seed)
    case = Case(seed)
    children = [f"c{index}" for index in range(rng.choice([0, 1, 1, 2, 2, 3]))]
    teams = ["main", *children]
    names = {team: [f"{team}_n{index}" for index in range(rng.randint(0 if children else 1, 3))] for team in teams}
    for team in teams:
        for name in names[team]:
            case.registry.register(_node(rng, name, team))
    for team in children:
        _subgraph(rng, case.registry, team, names[team])
    handlers = {team: _handler(rng, team, names[team], children) for team in teams if rng.random() < 0.7}
    limits = {team: rng.choice([0, 1, 2, 3, 6, 10]) for team in teams}
    terminal = {"final"} if rng.random() < 0.5 else None

    def factory(name: str, llm: Any) -> GenericSupervisor:
        return GenericSupervisor(
            name,
            registry=case.registry,
            max_iterations=limits[name],
            explicit_routing_handler=handlers.get(name),
            terminal_response_types=terminal,
        )

    targets = [name for team in teams for name in names[team]] + children
    case.options = {
        "supervisors": ["main"],
        "enable_subgraphs": rng.random() < 0.9,
        "supervisor_factory": factory,
        "supervisor_allowlists": {
            team: rng.choice([None, set(), set(rng.sample(targets, rng.randint(0, len(targets))))])
            for team in teams
            if rng.random() < 0.15
        }
        or None,
    }
    budgets = {"max_depth": rng.randint(0, 4), "max_steps": rng.randint(0, 22), "max_reentry": rng.randint(0, 4)}
    case.state = {"request": {"x": rng.randint(0, 2)}, "response": {}, "_internal": {}}
    if rng.random() < 0.8:
        kept = rng.sample(sorted(budgets), rng.randint(0, 3))
        case.state["_internal"]["budgets"] = {name: budgets[name] for name in kept}
    return case


def _node(rng: random.Random, name: str, team: str) -> Any:
    writes = rng.sample(["response", "work", "notes", "_internal"], rng.randint(1, 3))
    wild = rng.choice(SLICES[1:])  # now and then a slice that is not declared
    kind, crash = rng.choice(["answer", "final", "terminal", "more"]), rng.random() < (0.2 if team == "main" else 0.35)
    hint = f"{team}_n{rng.randint(0, 3)}"

    def body(inputs: Any) -> dict[str, Any]:
        count = inputs.get_slice("work").get("n", 0) if "work" in (inputs.model_extra or {}) else 0
        if crash and count % 2 == 0:
            raise ValueError(f"{name} broke at {count}")
        made = {
            "response": {"response_type": kind, "response_message": f"{name} said {count}"},
            "work": {"n": count + 1, name: True},
            "notes": {"last": name},
            "_internal": {"decision": hint, "mood": name, "step_count": -1},
        }
        return {slice_: made[slice_] for slice_ in {*writes, wild}}

    triggers = [
        TriggerCondition(
            priority=rng.randint(0, 3),
            when=rng.choice([None, {"request.x": rng.randint(0, 2)}, {"work.n": rng.choice([None, 1, 2, 3])}]),
            when_not=rng.choice([None, None, {"notes.last": name}, {"response.response_type": True}]),
        )
        for _ in range(rng.randint(0, 2))
    ]
    reads = rng.sample(SLICES, rng.randint(1, 4))
    return node(name, team, body, reads=reads, writes=writes, triggers=triggers, is_terminal=rng.random() < 0.3)


def _subgraph(rng: random.Random, registry: NodeRegistry, team: str, names: list[str]) -> None:
    subgraph(
        registry,
        team,
        supervisors=[team],
        nodes=rng.choice([None, [], names[:1], names]),
        reads=rng.sample(SLICES, rng.randint(1, 4)),
        writes=rng.sample(SLICES[1:], rng.randint(1, 3)),
        entrypoint=rng.choice([team, f"{team}_supervisor", *names]),
    )


def _handler(rng: random.Random, team: str, names: list[str], children: list[str]) -> Any:
    calls = [f"call_subgraph::{child}" for child in children]
    typed = [
        HierarchicalDecision(decision_kind="STOP_GLOBAL", reason="enough"),
        HierarchicalDecision(decision_kind="STOP_LOCAL"),
        HierarchicalDecision(decision_kind="FALLBACK", reason="lost"),
    ]
    script = [
        rng.choice([None, None, *calls, *calls, *calls, *names, rng.choice(["done", "ghost", *typed])])
        for _ in range(6)
    ]
    asynchronous = rng.random() < 0.3

    def handler(state: dict[str, Any]) -> Any:
        if state["_internal"].get("child_failure") and children and team == "main":
            return "done"
        return script[(state["_internal"].get("step_count") or 0) % len(script)]

    async def async_handler(state: dict[str, Any]) -> Any:
        return handler(state)

    return async_handler if asynchronous else handler
