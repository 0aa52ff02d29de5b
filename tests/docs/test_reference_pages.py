"""The reference pages and the code name the same things: a table that lacks a name, or has one too many, fails."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
import tomllib
from contextlib import closing
from dataclasses import fields

import pytest

import harness
from harness.agents import profile
from harness.config import settings
from harness.config.setting_kinds import AGENT_FIELDS, KINDS, variable
from harness.errors import Exit, ModelFault, OrchestrixError
from harness.model import contract, plan, view
from harness.model import events as ev
from harness.model.events import Envelope
from harness.model.state import StepState, initial
from harness.model.verdict import Failure, Reason, exit_code
from harness.orchestrator import workflow
from harness.store import connection
from tests.docs import pages
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"
PLAN = REFERENCE / "plan.md"
CODES = REFERENCE / "exit-codes.md"
EVENTS = REFERENCE / "events.md"


def _errors() -> dict[str, type[OrchestrixError]]:
    """Every error class by its code, also those that a surface defines for itself."""
    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if not module.name.endswith(("__main__", ".langgraph")):
            importlib.import_module(module.name)
    waiting, found = [OrchestrixError], {}
    while waiting:
        cls = waiting.pop()
        found[cls.code] = cls
        waiting += cls.__subclasses__()
    return found


def _fields(model) -> set[str]:
    return {info.alias or name for name, info in model.model_fields.items()}


@pytest.mark.parametrize("kind", ev.TYPES)
def test_every_event_type_is_described_with_its_payload(kind):
    """The table of a type lists its own fields; those of all step facts stand once."""
    fact = ev.TYPES[kind]
    common = set(ev.StepFact.fields) if issubclass(fact, ev.StepFact) else set()
    assert set(pages.table(EVENTS, f"`{kind}`")) == set(fact.fields) - common


def test_no_event_is_described_that_does_not_exist():
    """Headings in backticks are types."""
    described = [title.strip("`") for title in pages.headings(EVENTS) if title.startswith("`")]
    assert sorted(described) == sorted(ev.TYPES)
    assert set(pages.table(EVENTS, "Common fields")) == set(ev.StepFact.fields)
    assert list(pages.table(EVENTS, "The envelope")) == [field.name for field in fields(ev.Envelope)]


def test_every_exit_code_is_described():
    """Number and name."""
    codes = {str(value): name for name, value in vars(Exit).items() if name.isupper()}
    assert {code: row[0].strip("`") for code, row in pages.table(CODES, "Exit codes").items()} == codes


def test_every_error_code_is_described_with_exit_and_retry_class():
    """The tree of errors, as a table."""
    known = {code: [str(int(cls.exit_code)), cls.retry.value] for code, cls in _errors().items()}
    assert {code: row[:2] for code, row in pages.table(CODES, "Error codes").items()} == known


def test_every_model_fault_is_described():
    """The kinds of `model_failed`."""
    assert list(pages.table(CODES, "Model faults")) == [kind.value for kind in ModelFault]


def test_every_close_reason_is_described_with_exit_and_whether_it_is_retried():
    """The reasons, as a table."""
    known = {
        reason.value: [
            str(exit_code(reason)),
            "" if reason is Reason.MERGED else ["no", "yes"][Failure(reason, "").retryable],
        ]
        for reason in Reason
    }
    assert {reason: row[:2] for reason, row in pages.table(CODES, "Close reasons").items()} == known


def test_the_readme_lists_the_same_exit_codes():
    """A summary that leaves none out."""
    listed = [code.strip() for cell in pages.table(ROOT / "README.md", "Exit codes") for code in cell.split(",")]
    assert listed == [str(value) for name, value in vars(Exit).items() if name.isupper()]


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Plan fields", plan.Plan),
        ("Step fields", plan.Step),
        ("`write_file`", plan.WriteFile),
        ("`edit_file`", plan.EditFile),
        ("`delete_file`", plan.DeleteFile),
        ("`move_file`", plan.MoveFile),
        ("`apply_patch`", plan.ApplyPatch),
        ("Checks", plan.Check),
        ("Success criteria", plan.Criterion),
    ],
)
def test_every_field_of_a_plan_is_described(heading, model):
    """No field is missing, none is invented."""
    assert set(pages.table(PLAN, heading)) == _fields(model)


def test_the_plan_page_says_which_fields_can_be_defaults():
    """The column "in defaults" is right, and every action has its heading."""
    rows = pages.table(PLAN, "Step fields")
    assert {name for name, row in rows.items() if row[0] == "yes"} == _fields(plan.Defaults)
    assert {f"`{name}`" for name in plan.Action.model_fields} <= set(pages.headings(PLAN))


def test_every_field_of_a_contract_is_described():
    """Parts by their headings, plain fields in a table of their own."""
    page = REFERENCE / "contract.md"
    parts = {
        "parent": contract.Parent,
        "step": contract.StepText,
        "permissions": contract.Permissions,
        "execution": contract.Execution,
        "outputs": contract.Outputs,
        "ownership": contract.Ownership,
        "checks": contract.ContractCheck,
        "limits": contract.Limits,
        "work": contract.Work,
    }
    for name, model in parts.items():
        assert set(pages.table(page, f"`{name}`")) == _fields(model), name
    assert set(pages.table(page, "Other fields")) == _fields(contract.Contract) - set(parts)


def test_every_setting_is_described_with_its_variable():
    """Keys, and how they are spelled in the environment."""
    rows = pages.table(REFERENCE / "settings.md", "Settings")
    spelled = {key: variable(key) for key in KINDS}
    assert {key: row[0].strip("`") for key, row in rows.items()} == spelled | {
        **{f"agents.<name>.{field}": "" for field in AGENT_FIELDS},
    }


def test_sample_settings_are_accepted(tmp_path):
    """TOML blocks of all pages are settings files that load: of the project, or with the note `user`, of the user.

    A block with the note `profile` is a profile.
    """
    files = {False: tmp_path / settings.PROJECT_FILE, True: tmp_path / "config" / "orchestrix" / "config.toml"}
    found = [block for page in pages.markdown() for block in pages.blocks(page) if block.language == "toml"]
    for block in found:
        file = files["user" in block.notes]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.body)
        if "profile" in block.notes:
            profile.load(file)
        else:
            settings.load(tmp_path, {}, {"XDG_CONFIG_HOME": str(tmp_path / "config")})
        file.unlink()
    assert {"profile" in block.notes for block in found} == {True, False}


def test_the_machine_surface_is_described():
    """The fields of a run and of a step, in the order in which they are printed."""
    page = REFERENCE / "json.md"
    item = StepState(sub_agent_id="r/0", task_id="0", step_idx=0, step_id=None, title="t", contract={})
    assert list(pages.table(page, "Run fields")) == list(view.run(initial("r"), held=False))
    assert list(pages.table(page, "Step fields")) == list(view.step(item, "r"))


def test_every_table_of_the_database_is_described(tmp_path):
    """Tables and columns of the migrated schema, in order."""
    with closing(connection.open_for_writing(tmp_path / "state.db")) as db:
        db.row_factory = sqlite3.Row
        tables = [
            row["name"] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        ]
        columns = {name: [row["name"] for row in db.execute(f"PRAGMA table_info({name})")] for name in tables}
    page = REFERENCE / "database.md"
    assert {name: list(pages.table(page, f"`{name}`")) for name in columns} == columns


def test_every_dependency_has_a_reason():
    """ADR 7 names what pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    wanted = [name for name in wanted if not name.startswith(f"{project['name']}[")]  # one extra made of others
    text = (ROOT / "docs" / "adr" / "0007-dependencies.md").read_text().lower()
    assert [name for name in wanted if name.partition(">")[0].partition("[")[0].lower() not in text] == []


# The events of the specification with the fields of their sample payloads.
SPECIFIED = {
    "agent.subagent_created": (),
    "agent.subagent_started": (),
    "agent.subagent_attempt": (),
    "agent.subagent_waiting_for_merge": (),
    "agent.subagent_failed": (),
    "agent.worktree_merged": (),
    "agent.subagent_closed": ("sub_agent_id", "step_idx", "final_status", "close_reason"),
    "routing_decision": ("workflow_id", "chosen_node", "reason", "task_id", "persona"),
    "task_started": ("event", "workflow_id", "task_id", "node", "timestamp", "persona"),
    "task_succeeded": ("event", "workflow_id", "task_id", "result_summary", "duration_ms"),
    "task_failed": ("event", "workflow_id", "task_id", "error", "fail_count"),
    "subagent_spawned": ("event", "workflow_id", "subagent_id", "parent_task_id", "tasks_count"),
    "workflow_checkpoint": ("event", "workflow_id", "path", "timestamp"),
    "workflow_finalized": ("event", "workflow_id", "status", "final_response_length"),
}


def test_every_name_of_the_specification_has_its_name_here():
    """Events are types that exist, and each of their fields is one of the envelope or of the payload."""
    rows = dict(
        re.findall(r"^\| `([\w.]+)` \| `([\w.]+)`", _section(EVENTS, "The specification's names"), re.MULTILINE)
    )
    envelope = set(Envelope.__annotations__)
    for event, named in SPECIFIED.items():
        fact = ev.TYPES[rows[event]]
        places = {rows.get(field, field) for field in named}
        assert places - envelope - set(fact.fields) == set(), event


def test_every_checkpoint_version_stands_in_the_migration_guide():
    """And there is a migration from each but the last."""
    versions = set(pages.table(REFERENCE / "migration-guide.md", "Versions"))
    assert versions == {str(number) for number in range(1, workflow.SCHEMA_VERSION + 1)}
    assert set(workflow.MIGRATIONS) == set(range(1, workflow.SCHEMA_VERSION))


def _section(page, title: str) -> str:
    return page.read_text().split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
