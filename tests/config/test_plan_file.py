"""Plan files: every good sample loads, every bad one is explained at its place, nothing else ever escapes."""

from __future__ import annotations

import hashlib
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import plan_file
from harness.errors import PlanInvalid

PLANS = Path(__file__).parents[2] / "fixtures" / "plans"
GOOD = sorted(PLANS.joinpath("good").iterdir())
EXPECTED = yaml.safe_load(PLANS.joinpath("bad", "EXPECTED.yaml").read_text(encoding="utf-8"))
CHECK_FORM = (
    "a command is text, which `sh -c` runs, or a list of arguments; "
    "a check may also be {run: command, may_fail_on_base: true}"
)


def _refusal(path):
    with pytest.raises(PlanInvalid) as caught:
        plan_file.load(path)
    return caught.value


def _write(folder, text, name="plan.yaml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_good_plans_load(path):
    """Every good sample is a scheduled plan with the digest of its bytes."""
    loaded = plan_file.load(path)
    assert loaded.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.path == str(path)
    assert loaded.text == path.read_text(encoding="utf-8")
    assert len(loaded.schedule.steps) == len(loaded.plan.steps)


def test_every_bad_sample_is_expected():
    """The corpus and its expectations name the same files."""
    assert sorted(EXPECTED) == sorted(
        path.name for path in PLANS.joinpath("bad").iterdir() if path.name != "EXPECTED.yaml"
    )
    assert len(EXPECTED) >= 40


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_bad_plans_are_explained(name):
    """The first problem has the expected code, line, field and words; the message is one line that names its place."""
    path = PLANS / "bad" / name
    expected = EXPECTED[name]
    error = _refusal(path)
    first = error.details["errors"][0]
    assert (error.code, error.exit_code) == (expected["code"], 2)
    assert (first["file"], first["line"], first["field"]) == (str(path), expected["line"], expected["field"])
    assert expected["says"] in first["message"]
    assert "\n" not in error.message
    assert error.message.startswith(f"{path}:{first['line']}:{first['column']}: " if first["line"] else f"{path}: ")


def test_all_problems_come_at_once(tmp_path):
    """One error for each mistake, in the order of the file, each with what to write."""
    path = _write(
        tmp_path,
        "goal: a\ngoal: b\non_failure: stopp\nsteps:\n"
        "  - titel: x\n    command: ls -l 'a b'\n    checks: [1, {rn: x}]\n    env: {PORT: 8080}\n",
    )
    error = _refusal(path)
    assert error.message == f"{path}:2:1: 'goal' is given twice; the first is on line 1 (and 8 more)"
    assert [
        (entry["line"], entry["column"], entry["field"], entry["message"], entry["suggestion"])
        for entry in error.details["errors"]
    ] == [
        (2, 1, "", "'goal' is given twice; the first is on line 1", "keep one of them"),
        (3, 13, "on_failure", "must be continue or stop", "write stop"),
        (5, 5, "steps[0].title", "is required", ""),
        (5, 5, "steps[0].titel", "unknown field", "did you mean title?"),
        (6, 14, "steps[0].command", "must be a list of arguments, not text", 'write ["ls", "-l", "a b"]'),
        (
            7,
            14,
            "steps[0].checks[0]",
            CHECK_FORM,
            "",
        ),
        (7, 17, "steps[0].checks[1].run", "is required", ""),
        (7, 18, "steps[0].checks[1].rn", "unknown field", "did you mean run?"),
        (8, 17, "steps[0].env.PORT", "must be text, not the number 8080", 'write it in quotes: "8080"'),
    ]


def test_meaning_is_checked_in_one_go(tmp_path):
    """Patterns, needs and ways of working are reported together."""
    path = _write(
        tmp_path,
        "steps:\n  - title: a\n    owns: [/abs]\n  - title: b\n    needs: [5]\n    command: [echo]\n    agent: claude\n",
    )
    assert [(entry["line"], entry["field"]) for entry in _refusal(path).details["errors"]] == [
        (2, "steps[0]"),
        (3, "steps[0].owns[0]"),
        (5, "steps[1].needs[0]"),
        (7, "steps[1].agent"),
    ]


def test_a_default_agent_gives_way_to_the_step(tmp_path):
    """`defaults.agent` is for steps that list neither a command nor actions."""
    path = _write(tmp_path, "defaults: {agent: claude}\nsteps: [{title: a}, {title: b, command: [ls]}]\n")
    assert len(plan_file.load(path).plan.steps) == 2


def test_older_yaml_types_stay_text():
    """`no`, `1:30`, dates and numbers with odd prefixes are the text that the author wrote."""
    plan = plan_file.load(PLANS / "good" / "yaml-1.2-text.yaml").plan
    step = plan.steps[0]
    assert (plan.goal, step.title, step.description, step.id) == ("no", "yes", "1:30", "off")
    assert step.env == {
        "A": "on",
        "B": "2024-01-01",
        "C": "010",
        "D": "0o17",
        "E": "0x1F",
        "F": "1_000",
        "G": "=",
        "H": "null",
        "I": "12:30:45",
    }


def test_json_places_are_exact_behind_tabs_and_escapes(tmp_path):
    """Lines and columns count characters of the JSON text itself."""
    path = _write(
        tmp_path, '{\n\t"goal": "\\u0041\\"",\n\t"steps": [{"title": "a",\t"retries": "2"}]\n}\n', "plan.json"
    )
    first = _refusal(path).details["errors"][0]
    assert (first["line"], first["column"], first["field"]) == (3, 38, "steps[0].retries")
    assert first["suggestion"] == "write 2 without quotes"


@pytest.mark.parametrize(("name", "text"), [("a.yaml", '{"steps": [{"title": "\\ud83d\\ude00", "command": ["ls"]}]}')])
def test_json_is_recognised_by_its_first_character(tmp_path, name, text):
    """JSON under another name is read as JSON, escapes that YAML does not know included."""
    assert plan_file.load(_write(tmp_path, text, name)).plan.steps[0].title == "😀"


def test_flow_yaml_is_not_mistaken_for_json(tmp_path):
    """A YAML file may start with a brace."""
    assert plan_file.load(_write(tmp_path, "{steps: [{title: a, command: [ls]}]}\n")).plan.steps[0].title == "a"


def test_a_byte_order_mark_is_dropped(tmp_path):
    """Editors on some systems write one."""
    text = b"\xef\xbb\xbfsteps: [{title: a, command: [ls]}]\n"
    loaded = plan_file.load(_write(tmp_path, text))
    assert loaded.digest == hashlib.sha256(text).hexdigest()


def test_standard_input(monkeypatch):
    """`-` reads the plan from standard input."""
    text = b"steps: [{title: a, command: [ls]}]\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert plan_file.load("-").path == "-"


def test_paths_that_are_no_plan_files(tmp_path):
    """Missing files, folders, pipes, devices and odd names are errors at once, never a wait."""
    os.mkfifo(tmp_path / "pipe")
    _write(tmp_path, b"#" * (4 * 1024 * 1024 + 1), "big.yaml")
    told = {
        name: _refusal(name if name.startswith("/") else f"{tmp_path}/{name}").details["errors"][0]["message"]
        for name in ("missing.yaml", ".", "pipe", "big.yaml", "nul\x00.yaml", "/dev/zero", "big.yaml/below")
    }
    pipe = "is not a regular file; to read from a pipe, give - and redirect it"
    assert told == {
        "missing.yaml": "does not exist",
        ".": "is a directory",
        "pipe": pipe,
        "big.yaml": "is larger than 4194304 bytes",
        "nul\x00.yaml": "has a NUL character in its name",
        "/dev/zero": pipe,
        "big.yaml/below": "cannot be read: Not a directory",
    }


def test_thousands_of_problems_are_listed_up_to_a_limit(tmp_path):
    """The list is bounded; the message counts all."""
    path = _write(tmp_path, "steps:\n" + "".join(f"- {{title: a, agent: b, x{n}: 1}}\n" for n in range(3000)))
    error = _refusal(path)
    assert len(error.details["errors"]) == 200
    assert error.message == f"{path}:2:24: steps[0].x0: unknown field (and 2999 more)"


def _loads_or_refuses(text: bytes, folder: Path, suffix: str) -> None:
    path = folder / f"fuzz{suffix}"
    path.write_bytes(text)
    refusal = None
    try:
        plan_file.load(path)
    except PlanInvalid as error:
        refusal = error
    assert refusal is None or (refusal.details["errors"] and "\n" not in refusal.message)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
def test_arbitrary_bytes_never_escape(tmp_path_factory, text):
    """Whatever the bytes: a plan or PlanInvalid."""
    for suffix in (".yaml", ".json"):
        _loads_or_refuses(text, tmp_path_factory.getbasetemp(), suffix)


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b": ",
    b"\n",
    b"\n  - ",
    b"\t",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!int ",
    b"~",
    b"null",
]
PIECES += [
    b"-1",
    b"1e9",
    b"true",
    b"''",
    b'"',
    b"steps:",
    b"title:",
    b"needs: [0]",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b"%",
    b"|",
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data(), source=st.sampled_from(GOOD))
def test_mutated_good_plans_never_escape(tmp_path_factory, data, source):
    """Good plans with pieces cut out and put in: a plan or PlanInvalid."""
    text = source.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(st.sampled_from([b"", *PIECES])) + text[start + cut :]
    _loads_or_refuses(text, tmp_path_factory.getbasetemp(), source.suffix)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 5),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = "id title description needs owns checks success_criteria agent command actions allowed_tools timeout retries env setup"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(step=st.dictionaries(st.sampled_from(FIELDS.split()), VALUES, max_size=6), field=st.sampled_from(FIELDS.split()))
def test_any_value_in_any_field_never_escapes(tmp_path_factory, step, field):
    """Every field survives every type of value, in steps and in defaults."""
    text = yaml.safe_dump({"steps": [{"title": "a", **step}], "defaults": {field: step.get(field)}}).encode()
    _loads_or_refuses(text, tmp_path_factory.getbasetemp(), ".yaml")
