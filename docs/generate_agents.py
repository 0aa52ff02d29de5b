"""Writes docs/reference/agents.md from the bundled profiles: `python docs/generate_agents.py`."""  # noqa: INP001 - a script, no package

from __future__ import annotations

from pathlib import Path

from harness.agents import profile as profiles
from harness.agents.profile import Profile
from harness.agents.profile_table import ProfileTable

PAGE = Path(__file__).parent / "reference" / "agents.md"
_INTRODUCTION = """# Agent programs

Generated from the profiles in `harness/agents/profiles/` by `python docs/generate_agents.py`; do not edit.

A profile is a TOML file that says everything that the harness knows of a program: how it is started, what it sees, how a contract binds
it and how its output is read. `orchestrix agents` shows which programs are there; `orchestrix agents check NAME` tries the
installed one against a scripted model, without a key. How to add one is in [use your agent](../how-to/use-your-agent.md#add-a-program).

## Who keeps the contract

| part of the contract | who keeps it |
|---|---|
| `allowed_tools` | the program, where it holds to a list of tools: a tool of it is granted only if the contract allows all that it stands for. Where it has no such list, the step is refused before it starts unless the contract allows what the program cannot be kept from |
| directories | the sandbox: only the workspace, a private `/tmp` and the attempt's own home are writable. Without a sandbox the step is refused, unless you asked for `--sandbox none` |
| network | nobody yet: the sandbox shares the network, because the program must reach its model. Tools of the program that fetch pages are not granted where it holds to a list |
| `owns`, `checks`, `success_criteria` | the harness, on the files that the program leaves |
| `timeout`, `inactivity_timeout`, processes | the sandbox; the whole process tree ends with the attempt |
| `can_spawn_children` | tools of the program that start further agents are not granted where it holds to a list |

Every attempt has a home of its own, with the files that the profile lists and nothing of yours: a login in your home is not seen. The program gets
the variables named below if you have set them, and never others.

The result that the program tells ends the attempt; a process that lingers is ended a few seconds later. Its exit code counts only where
it tells no result. What it says of rate limits becomes a pause (`rate_limited`); a refused key (`auth_failed`) and a full context
(`context_full`) end the step. Values of the variables marked as secret never reach a log.
"""


def page() -> str:
    """The whole page."""
    known = [profiles.load(path) for _, path in sorted(ProfileTable().files(()).items())]
    rows = "\n".join(_row(profile) for profile in known)
    head = "| agent | program | proven with | its own list of tools | session |\n|---|---|---|---|---|"
    return "\n".join([_INTRODUCTION, f"## Programs\n\n{head}\n{rows}\n", *map(_section, known)])


def _row(profile: Profile) -> str:
    tools = "yes" if profile.lists_tools else f"no; needs {_codes(profile.tools.needs)}"
    session = "can be resumed" if profile.session else "begins anew"
    return f"| [`{profile.name}`](#{profile.name}) | `{profile.program}` | {profile.proven or 'not run'} | {tools} | {session} |"


def _section(profile: Profile) -> str:
    environment = profile.environment
    facts = [
        ("start", f"`{profile.program}` {_codes(profile.call.arguments)}"),
        ("prompt", {"stdin": "on stdin", "argument": "as an argument", "file": "in a file"}[profile.call.prompt]),
        ("model", _codes(profile.call.model) or "in its settings file"),
        ("variables", _codes(environment.variables) or "none"),
        ("secrets", _codes(environment.secrets) or "none"),
        ("set", _codes(f"{name}={value}" for name, value in environment.set.items()) or "nothing"),
        ("files", _codes(file.path for file in profile.files) or "none"),
    ]
    rows = "\n".join(f"| {name} | {text} |" for name, text in facts)
    return f"## {profile.name}\n\n{profile.title}. {profile.notes}\n\n| | |\n|---|---|\n{rows}\n\n{_tools(profile)}"


def _tools(profile: Profile) -> str:
    if not profile.lists_tools:
        return f"The contract must allow {_codes(profile.tools.needs)}; otherwise the step is refused (`contract_refused`).\n"
    rows = "\n".join(f"| `{tool}` | {_codes(needed)} |" for tool, needed in profile.tools.grants.items())
    return f"| tool of the program | granted if the contract allows |\n|---|---|\n{rows}\n"


def _codes(words: object) -> str:
    return " ".join("`" + str(word).replace("|", "\\|").replace("\n", " ") + "`" for word in words)  # type: ignore[attr-defined]  # any iterable


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
