"""Profiles are data: strict when they are read, and never wider than the contract when they are used."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from harness.agents import profile as profiles
from harness.agents.profile_table import ProfileTable
from harness.errors import ConfigInvalid
from harness.model.contract import DEFAULT_TOOLS

BUNDLED = sorted(ProfileTable().files(()).items())
_SMALL = 'version = 1\ntitle = "T"\nprogram = "t"\ncall = {prompt = "stdin"}\ntools = {needs = ["run"]}\n'


def _subsets() -> list[frozenset[str]]:
    return [frozenset(some) for size in range(len(DEFAULT_TOOLS) + 1) for some in combinations(DEFAULT_TOOLS, size)]


@pytest.mark.parametrize(("name", "path"), BUNDLED, ids=[name for name, _ in BUNDLED])
def test_a_bundled_profile_grants_nothing_that_the_contract_does_not(name: str, path: Path) -> None:
    """For every possible list of allowed tools."""
    known = profiles.load(path)
    assert known.name == name
    for allowed in _subsets():
        for tool in known.granted(allowed):
            assert allowed.issuperset(known.tools.grants[tool])
            assert known.tools.grants[tool]
        if not known.lists_tools:
            assert known.missing(allowed) or allowed.issuperset(known.tools.needs)
    assert known.granted(frozenset()) == ()
    assert known.lists_tools or known.missing(frozenset())


@pytest.mark.parametrize(("name", "path"), BUNDLED, ids=[name for name, _ in BUNDLED])
def test_a_bundled_profile_keeps_secrets_out_of_templates(name: str, path: Path) -> None:
    """Keys travel in the environment only: no argument, no file and no setting names one."""
    known = profiles.load(path)
    texts = [
        *known.call.arguments,
        *(word for given in known.call.given for word in given.arguments),
        *known.environment.set.values(),
        *(file.content for file in known.files),
    ]
    for text in texts:
        for secret in known.environment.secrets:
            assert f"{{env:{secret}}}" not in text
    assert set(known.environment.one_of) <= {*known.environment.secrets, *known.environment.variables}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "version: Field required"),
        ("version = 2", "version: Input should be 1"),
        (_SMALL + "colour = 1", "colour: Extra inputs are not permitted"),
        (_SMALL.replace("stdin", "air"), "call.prompt: Input should be 'stdin', 'argument' or 'file'"),
        (_SMALL.replace('["run"]', '["fly"]'), "tools.needs.0: Input should be 'read_file'"),
        (_SMALL.replace('needs = ["run"]', ""), "Value error, [tools] must say what is granted by `grants`"),
        (_SMALL + 'detect = {pattern = "("}', "detect.pattern: Value error, is not a regular expression"),
        (_SMALL + 'files = [{path = "../x", content = ""}]', "files.0.path: Value error, must be a path below"),
        (_SMALL + 'files = [{path = "/x", content = ""}]', "files.0.path: Value error, must be a path below"),
        (_SMALL + 'environment = {secrets = ["A B"]}', "environment.secrets.0: String should match pattern"),
        ("version = ", "Invalid value"),
        ("[" * 5000, "Invalid"),
    ],
)
def test_a_wrong_profile_is_refused_with_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    """One line that lets a stranger correct the file."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        profiles.load(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert message in caught.value.message or "nested" in caught.value.message


def test_a_template_fills_what_it_knows_and_leaves_the_rest() -> None:
    """Braces of JSON and values that look like slots stay what they are."""
    values = {"home": "/h", "model": "{tools}", "tools": "T", "env:URL": "u"}
    assert profiles.filled('{"a":{"b":"{home}/{model}"}} {tools} {env:URL}{env:GONE} {unknown}', values) == (
        '{"a":{"b":"/h/{tools}"}} T u {unknown}'
    )


@pytest.mark.parametrize(
    ("name", "message"), [("claude", "exists already"), ("actions", "exists already"), ("Mine", "in lower case")]
)
def test_a_file_cannot_take_a_name_that_exists(tmp_path: Path, name: str, message: str) -> None:
    """Neither that of a bundled profile nor that of the table."""
    (tmp_path / f"{name}.toml").write_text(_SMALL)
    with pytest.raises(ConfigInvalid, match=message):
        ProfileTable((tmp_path,)).files(("actions", "command"))


def test_shell_in_a_contract_is_run() -> None:
    """And tools that the harness does not know allow nothing."""
    assert profiles.contract_tools(("shell", "read_file", "everything", "*")) == {"run", "read_file"}
