"""Settings: five layers, each value with its source, and every mistake named with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.config import settings
from harness.config.acp_program import AcpProgram
from harness.errors import ConfigInvalid


@pytest.fixture
def layers(tmp_path):
    """A user file and a project file to write to, and the environment that finds them."""
    user = tmp_path / "config" / "orchestrix" / "config.toml"
    project = tmp_path / "repo" / ".orchestrix" / "config.toml"
    for path in (user, project):
        path.parent.mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return user, project, environ


def test_defaults(tmp_path):
    """Without any file every value is the default and says so."""
    loaded = settings.load(None, {}, {"HOME": str(tmp_path)})
    assert list(loaded.rows()) == [
        ("jobs", 0, "default"),
        ("sandbox", "auto", "default"),
        ("reports", "local", "default"),
        ("keep", False, "default"),
        ("strict_parent", False, "default"),
        ("speculate", 0, "default"),
        ("state_home", f"{tmp_path}/.local/state/orchestrix", "default"),
        ("env_pass", [], "default"),
        ("workspace.kind", "auto", "default"),
        ("workspace.copy", [], "default"),
        ("workspace.link", [], "default"),
        ("workspace.sparse", [], "default"),
        ("timeout", "900000ms", "default"),
        ("retries", 0, "default"),
        ("backoff_base", "1000ms", "default"),
        ("resume_sessions", False, "default"),
        ("git_timeout", "300000ms", "default"),
        ("recoveries", 3, "default"),
        ("checkpoint_every", "10000ms", "default"),
        ("errors", {}, "default"),
        ("personas", {}, "default"),
        ("budget.tokens", None, "default"),
        ("budget.cost_usd", None, "default"),
        ("budget.attempts", None, "default"),
        ("budget.wall_time", None, "default"),
        ("budget.max_depth", None, "default"),
        ("budget.max_steps", None, "default"),
        ("budget.max_reentry", None, "default"),
        ("allowlists", {}, "default"),
        ("model.name", None, "default"),
        ("model.base_url", None, "default"),
        ("model.structured", "tool", "default"),
        ("model.timeout", "300000ms", "default"),
        ("builtin.turns", 50, "default"),
        ("builtin.tokens", 2_000_000, "default"),
        ("builtin.context", 100_000, "default"),
        ("builtin.enable", [], "default"),
        ("telemetry.metrics_file", None, "default"),
        ("telemetry.otlp", None, "default"),
    ]
    assert loaded.parallel == len(os.sched_getaffinity(0))


def test_each_layer_beats_the_one_before(layers):
    """Defaults, user file, project file, environment, flags: the last one that speaks wins, and is named."""
    user, project, environ = layers
    user.write_text('jobs = 1\nkeep = true\nrecoveries = 9\nsandbox = "none"\nreports = "commit"\n')
    project.write_text('# ours\njobs = 2\nkeep = false\nsandbox = "bwrap"\n')
    environ |= {"ORCHESTRIX_JOBS": "3", "ORCHESTRIX_SANDBOX": "auto"}
    loaded = settings.load(project.parents[1], {"jobs": 4, "keep": None}, environ)
    assert (loaded.jobs, loaded.sandbox, loaded.keep, loaded.recoveries) == (4, "auto", False, 9)
    assert (loaded.parallel, loaded.reports) == (4, "commit")
    assert {key: loaded.sources[key] for key in ("jobs", "sandbox", "keep", "recoveries", "env_pass")} == {
        "jobs": "flag --jobs",
        "sandbox": "environment ORCHESTRIX_SANDBOX",
        "keep": f"{project}:3",
        "recoveries": f"{user}:3",
        "env_pass": "default",
    }


def test_tables_agents_and_durations(layers):
    """Agents of both files are joined by name; lists replace each other."""
    user, project, environ = layers
    user.write_text('[agents.mine]\ncommand = ["mine", "--fast"]\n[agents.both]\ncommand = ["user"]\n')
    project.write_text(
        'env_pass = ["TOKEN_FILE"]\nbackoff_base = "2s"\nstate_home = "~/work"\n'
        '[workspace]\ncopy = [".env", "config/*.local"]\nlink = ["node_modules"]\n'
        '[agents.both]\ncommand = ["project"]\n'
    )
    loaded = settings.load(project.parents[1], {}, environ)
    assert dict(loaded.agents) == {"mine": ("mine", "--fast"), "both": ("project",)}
    assert (loaded.workspace_copy, loaded.workspace_link) == ((".env", "config/*.local"), ("node_modules",))
    assert (loaded.env_pass, loaded.backoff_base_ms) == (("TOKEN_FILE",), 2000)
    assert loaded.state_home == Path.home() / "work"
    assert loaded.sources["workspace.copy"] == f"{project}:5"
    assert loaded.sources["agents.both.command"] == f"{project}:8"
    assert ("agents.mine.command", ["mine", "--fast"], f"{user}:2") in list(loaded.rows())


def test_environment_text_is_read_by_type(tmp_path):
    """Numbers, truths, lists and durations can all be set from the environment."""
    environ = {
        "HOME": str(tmp_path),
        "ORCHESTRIX_KEEP": "TRUE",
        "ORCHESTRIX_STRICT_PARENT": "0",
        "ORCHESTRIX_ENV_PASS": "A, B,",
        "ORCHESTRIX_WORKSPACE_COPY": ".env",
        "ORCHESTRIX_BACKOFF_BASE": "250ms",
        "ORCHESTRIX_STATE_HOME": "/var/tmp/state",
        "ORCHESTRIX_RUN_ID": "not-a-setting",
    }
    loaded = settings.load(None, {}, environ)
    assert (loaded.keep, loaded.strict_parent, loaded.env_pass) == (True, False, ("A", "B"))
    assert (loaded.workspace_copy, loaded.backoff_base_ms, loaded.state_home) == (
        (".env",),
        250,
        Path("/var/tmp/state"),
    )


def test_xdg_directories_are_honoured(tmp_path):
    """An absolute XDG directory counts; a relative one is ignored, as its specification wants."""
    assert settings.load(None, {}, {"HOME": "/h", "XDG_STATE_HOME": "/s"}).state_home == Path("/s/orchestrix")
    assert settings.load(None, {}, {"HOME": "/h", "XDG_STATE_HOME": "s"}).state_home == Path(
        "/h/.local/state/orchestrix"
    )


@pytest.mark.parametrize(
    ("text", "line", "says", "hint"),
    [
        ("jbos = 2\n", 1, "unknown setting 'jbos'", "did you mean jobs?"),
        ("\n[workspace]\ncpoy = []\n", 3, "unknown setting 'workspace.cpoy'", "did you mean workspace.copy?"),
        (
            '[agents.x]\nargv = ["a"]\n',
            2,
            "unknown setting 'agents.x.argv'",
            "an agent is [agents.<name>], in lower case",
        ),
        (
            '[agents.X]\ncommand = ["a"]\n',
            2,
            "unknown setting 'agents.X.command'",
            "an agent is [agents.<name>], in lower case",
        ),
        ("jobs = -1\n", 1, "jobs: must be a whole number from 0 to 1024", ""),
        ("jobs = true\n", 1, "jobs: must be a whole number from 0 to 1024", ""),
        ("\n\njobs = 1.5\n", 3, "jobs: must be a whole number from 0 to 1024", ""),
        ('sandbox = "docker"\n', 1, "sandbox: must be one of auto, bwrap, none", ""),
        ("sandbox = []\n", 1, "sandbox: must be one of auto, bwrap, none", ""),
        ('keep = "yes"\n', 1, "keep: must be true or false", ""),
        ('state_home = "relative"\n', 1, "state_home: must be an absolute path or start with ~", ""),
        ('state_home = "~nobody-here-at-all/x"\n', 1, "state_home: has no home directory", ""),
        ('env_pass = ["A-B"]\n', 1, "env_pass: 'A-B' is not the name of an environment variable", ""),
        ('env_pass = "A"\n', 1, "env_pass: must be a list of texts", ""),
        ('[workspace]\ncopy = ["../x"]\n', 2, "workspace.copy: '../x' must lie inside the repository", ""),
        ('backoff_base = "soon"\n', 1, "backoff_base: 'soon' is not a duration", ""),
        ("backoff_base = []\n", 1, "backoff_base: must be a duration", ""),
        ('[agents.x]\ncommand = "run me"\n', 2, "agents.x.command: must be a list of arguments", ""),
        ("[agents.x]\ncommand = []\n", 2, "agents.x.command: must be a list of arguments", ""),
        ('workspace = "overlay"\n', 1, "unknown setting 'workspace'", "did you mean workspace.kind?"),
        ('[workspace]\nkind = "x"\n', 2, "workspace.kind: must be one of auto, overlay, checkout, sparse", ""),
        (
            '[workspace]\nsparse = ["a", "../x"]\n',
            2,
            "workspace.sparse: '../x' leaves its directory with ..: write it from",
            "",
        ),
        (
            '[workspace]\nsparse = ["!x"]\n',
            2,
            "workspace.sparse: '!x' starts with !, but ownership has no exclusions",
            "",
        ),
        ("agents = 3\n", 1, "unknown setting 'agents'", ""),
        ("[agents]\nx = 3\n", 2, "unknown setting 'agents.x'", ""),
    ],
)
def test_mistakes_in_a_file_are_placed(layers, text, line, says, hint):
    """Each error names file, line and key, and what is expected."""
    _, project, environ = layers
    project.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(project.parents[1], {}, environ)
    assert caught.value.message.startswith(f"{project}:{line}: {says}")
    assert hint in caught.value.hint
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "text", [b"jobs =\n", b"jobs = 1\njobs = 2\n", b"\xff", b"a = " + b"[" * 9000, b"#" * 1_100_000]
)
def test_unreadable_files_are_refused(layers, text):
    """Broken TOML, wrong encoding, deep nesting and oversize are errors that name the file."""
    _, project, environ = layers
    project.write_bytes(text)
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(project.parents[1], {}, environ)
    assert caught.value.message.startswith(str(project))


def test_a_pipe_in_place_of_the_file_does_not_hang(layers):
    """A named pipe is refused at once."""
    _, project, environ = layers
    os.mkfifo(project)
    with pytest.raises(ConfigInvalid):
        settings.load(project.parents[1], {}, environ)


@pytest.mark.parametrize(
    ("name", "value"), [("JOBS", "many"), ("KEEP", "maybe"), ("ENV_PASS", "A-B"), ("STATE_HOME", "")]
)
def test_mistakes_in_the_environment_name_the_variable(name, value):
    """The variable is named and the hint says how to get rid of it."""
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(None, {}, {"HOME": "/h", f"ORCHESTRIX_{name}": value})
    assert f"ORCHESTRIX_{name}: " in caught.value.message
    assert caught.value.hint == f"unset ORCHESTRIX_{name} or correct it"


def test_mistakes_in_flags_name_the_flag():
    """A flag's value is checked like any other."""
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(None, {"strict_parent": None, "jobs": -1}, {"HOME": "/h"})
    assert caught.value.message == "--jobs: must be a whole number from 0 to 1024"


def test_the_model_is_set_by_files_and_by_the_environment(layers):
    """`ORCHESTRIX_MODEL` is the short name of its first setting."""
    user, project, environ = layers
    user.write_text('[model]\nname = "openai:big"\nbase_url = "https://models.example.org/v1/"\ntimeout = "20s"\n')
    project.write_text('[model]\nname = "anthropic:small"\n[builtin]\nturns = 7\n')
    loaded = settings.load(project.parents[1], {}, environ)
    assert (loaded.model_name, loaded.model_base_url) == ("anthropic:small", "https://models.example.org/v1")
    assert (loaded.model_timeout_ms, loaded.builtin_turns) == (20_000, 7)
    loaded = settings.load(project.parents[1], {}, environ | {"ORCHESTRIX_MODEL": "scripted:a.yaml"})
    assert (loaded.model_name, loaded.sources["model.name"]) == ("scripted:a.yaml", "environment ORCHESTRIX_MODEL")


@pytest.mark.parametrize(
    ("text", "key", "variable"),
    [
        ('[model]\nbase_url = "https://evil.example.org"\n', "model.base_url", "ORCHESTRIX_MODEL_BASE_URL"),
        ('[builtin]\nenable = ["shell"]\n', "builtin.enable", "ORCHESTRIX_BUILTIN_ENABLE"),
    ],
)
def test_a_repository_cannot_decide_where_keys_go_or_what_a_model_may_start(layers, text, key, variable):
    """Personal settings in the project's file are an error, not a value."""
    user, project, environ = layers
    project.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(project.parents[1], {}, environ)
    assert caught.value.message == f"{project}:2: {key} cannot be set by a repository"
    assert caught.value.hint == f"set it in your own settings file, or by {variable}"
    project.unlink()
    user.write_text(text)
    settings.load(project.parents[1], {}, environ)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ORCHESTRIX_MODEL", "gpt"),
        ("ORCHESTRIX_MODEL", "openai:"),
        ("ORCHESTRIX_MODEL_BASE_URL", "models.example.org"),
        ("ORCHESTRIX_MODEL_BASE_URL", "https://user:word@models.example.org"),
        ("ORCHESTRIX_MODEL_STRUCTURED", "xml"),
        ("ORCHESTRIX_BUILTIN_ENABLE", "read_file"),
        ("ORCHESTRIX_BUILTIN_TURNS", "0"),
    ],
)
def test_a_wrong_value_of_the_model_is_refused(tmp_path, variable, value):
    """Before anything is asked of anybody."""
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(None, {}, {"HOME": str(tmp_path), variable: value})
    assert caught.value.message.startswith(f"environment {variable}: ")


def test_agents_that_are_talked_with_are_read_with_their_options(layers):
    """Each field has its own source; what is not set is not shown."""
    user, project, environ = layers
    user.write_text('[agents.talker]\nacp = ["talker", "--acp"]\nenv = ["KEY"]\n')
    project.write_text('[agents.talker]\nmode = "ask"\nauth = "key"\nserves = ["write"]\n')
    loaded = settings.load(project.parents[1], {}, environ)
    program = AcpProgram(("talker", "--acp"), mode="ask", auth="key", env=("KEY",), serves=("write",))
    assert (loaded.acp_agents, loaded.agents) == ({"talker": program}, {})
    assert [row for row in loaded.rows() if row[0].startswith("agents.")] == [
        ("agents.talker.acp", ["talker", "--acp"], f"{user}:2"),
        ("agents.talker.mode", "ask", f"{project}:2"),
        ("agents.talker.auth", "key", f"{project}:3"),
        ("agents.talker.env", ["KEY"], f"{user}:3"),
        ("agents.talker.serves", ["write"], f"{project}:4"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('acp = "talker"', "agents.talker.acp: must be a list of arguments"),
        ('acp = ["x"]\ncommand = ["x"]', "agents.talker has both `command` and `acp`"),
        ('mode = "ask"', "agents.talker.mode is for an agent that has `acp`"),
        ('acp = ["x"]\nmode = 7', "agents.talker.mode: must be a text"),
        ('acp = ["x"]\nenv = ["A B"]', "agents.talker.env: 'A B' is not the name of an environment variable"),
        ('acp = ["x"]\nserves = ["mind"]', "agents.talker.serves: 'mind' is none of read, write, terminal"),
    ],
)
def test_what_does_not_fit_an_agent_that_is_talked_with_is_named(layers, text, says):
    """A wrong field, a wrong value, or two ways at once."""
    _, project, environ = layers
    project.write_text(f"[agents.talker]\n{text}\n")
    with pytest.raises(ConfigInvalid) as caught:
        settings.load(project.parents[1], {}, environ)
    assert says in caught.value.message
