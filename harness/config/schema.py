"""The published JSON Schema of a plan file (draft 2020-12): the models, with a sentence for every field."""

from __future__ import annotations

from typing import Any

from harness.model.plan import Plan

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXAMPLE: dict[str, Any] = {
    "version": 1,
    "goal": "Greet the world",
    "steps": [
        {
            "id": "greeting",
            "title": "Write the greeting",
            "owns": ["greeting.txt"],
            "actions": [{"write_file": {"path": "greeting.txt", "content": "hello\n"}}],
        },
        {
            "title": "Sign it",
            "needs": ["greeting"],
            "owns": ["signature.txt"],
            "command": ["sh", "-c", "echo signed > signature.txt"],
            "checks": ["test -s signature.txt"],
        },
    ],
}
_SETTINGS = {
    "agent": "The agent that does the step; `command` and `actions` speak for themselves.",
    "candidates": "How often the step is done side by side, or by which agents; the best result is taken.",
    "budget": "Dollars after which no further candidate starts, as far as agents tell what they cost.",
    "success_criteria": "What must be true afterwards: one line of text, or text with the command that shows it.",
    "checks": "Commands that must succeed in the workspace and again on the merged tree.",
    "allowed_tools": "Tools that the sub-agent may use; an empty list allows none.",
    "timeout": "Wall time of one attempt: 90s, 15m, 1h30m or a number of seconds.",
    "inactivity_timeout": "Time without output after which an attempt is ended.",
    "retries": "Attempts after the first one.",
    "can_spawn_children": "Whether the sub-agent may delegate.",
    "max_delegation_depth": "How many levels deep it may delegate.",
    "env": "Environment variables for the step's programs; those of `defaults` are merged in.",
    "setup": "Commands that prepare the workspace; a failing one fails the step.",
    "allow_empty": "Whether a step that changes nothing is a success.",
    "decompose": "Whether the step may be split into steps of its own: never, auto or always.",
}
_SENTENCES: dict[str, dict[str, str]] = {
    "Plan": {
        "$schema": "Where an editor finds this schema; ignored otherwise.",
        "version": "The version of the plan format.",
        "goal": "What the whole plan is for; every sub-agent sees it.",
        "base": "The revision to start from; the checkout's HEAD by default.",
        "defaults": "Values for steps that do not say otherwise.",
        "on_failure": "Whether independent steps go on after a failure.",
        "overlap": "What happens when steps own overlapping paths: serialize them, refuse the plan, or allow it.",
        "ownership_exceptions": "Whether a report may claim a change outside `owns`, with a reason.",
        "budget": "What the run may use at most; when one of them ends, it stops and can be resumed with more.",
        "steps": "The work, in merge order; steps count from 0.",
    },
    "Budget": {
        "tokens": "Tokens of models, as agents and the harness count them.",
        "cost_usd": "Money, where prices are known.",
        "attempts": "Attempts at steps, nested ones included.",
        "wall_time": "Time that the run is driven: 90s, 15m, 1h30m or a number of seconds.",
        "max_depth": "Levels of nested runs.",
        "max_steps": "Routing decisions, those of nested runs included.",
        "max_reentry": "Nested runs of one task, and plans of one goal.",
    },
    "Defaults": _SETTINGS,
    "Step": _SETTINGS
    | {
        "id": "A name that other steps can need.",
        "title": "One line.",
        "description": "What is to be done, as the sub-agent reads it.",
        "needs": "Indices or ids of earlier steps whose results this one starts from.",
        "priority": "Which of the steps that could start goes first: the higher number.",
        "owns": "Globs of paths that the step may change; without it, everything.",
        "command": "The program that does the step, as a list of arguments.",
        "actions": "The edits that do the step, in order.",
        "steps": "Steps that do this one, in a nested run; they count from 0 in `needs` and from 1 in names.",
    },
    "Action": {
        "write_file": "Create or replace a file.",
        "edit_file": "Replace one exact, unique piece of text in a file.",
        "delete_file": "Delete a file.",
        "move_file": "Move a file.",
        "apply_patch": "Apply a unified diff.",
        "run": "Run a command.",
    },
    "WriteFile": {
        "path": "Relative to the repository root.",
        "content": "The whole file.",
        "executable": "Whether it may be executed.",
    },
    "EditFile": {
        "path": "Relative to the repository root.",
        "old": "Text that occurs exactly once.",
        "new": "What stands there afterwards.",
    },
    "DeleteFile": {"path": "Relative to the repository root."},
    "MoveFile": {"source": "Where the file is.", "target": "Where it goes."},
    "ApplyPatch": {"patch": "A unified diff with paths relative to the repository root."},
    "Check": {
        "run": "Text for `sh -c`, or a list of arguments.",
        "may_fail_on_base": "Whether it is reported, not counted, if it fails on the base commit too.",
    },
    "Criterion": {"text": "One line.", "check": "The command that shows it."},
}


def plan_schema() -> dict[str, Any]:
    """The schema as JSON data; the same every time."""
    schema = Plan.model_json_schema()
    for name, part in {"Plan": schema, **schema["$defs"]}.items():
        for field, sentence in _SENTENCES[name].items():
            part["properties"][field]["description"] = sentence
    # What the validators enforce and pydantic does not publish.
    for name in ("Step", "Defaults"):
        schema["$defs"][name]["properties"]["env"]["anyOf"][0]["additionalProperties"] = False
    schema["$defs"]["Action"] |= {"minProperties": 1, "maxProperties": 1}
    return {"$schema": _DIALECT, "$id": "urn:orchestrix:plan:1", **schema, "examples": [_EXAMPLE]}
