"""Each real program does a two-step plan against the scripted model, inside the sandbox."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.agents_real.conftest import NAMES, UNLISTED, Real
from tests.agents_real.interrupt import leaves_nothing, tool_runs
from tests.sandbox.survivors import kill_marked, marked
from tests.support.checker import check
from tests.support.model_server import script

pytestmark = pytest.mark.agents
_FILES = ["read_file", "write_file", "edit_file"]


def _step(real: Real, title: str, *actions: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"title": title, "agent": real.profile.name, "description": script(*actions), "timeout": "3m", **fields}


def _shell(real: Real) -> str | None:
    """The program's own name for its shell, where it holds to a list of tools."""
    return next((tool for tool, needed in real.profile.tools.grants.items() if "run" in needed), None)


def _plan(real: Real) -> list[dict[str, Any]]:
    """The second step stands on the first; where tools can be withheld its model calls the shell all the same."""
    first = _step(real, "First", {"write": "one.txt", "content": "one\n"}, owns=["one.txt"], checks=["test -s one.txt"])
    shell = _shell(real)
    forbidden = [{"run": "printf ran > ran.txt", "tool": shell}] if shell else []
    second = _step(
        real, "Second", *forbidden, {"write": "two.txt", "content": "two\n"}, needs=[0], checks=["grep -q one one.txt"]
    )
    return [first, {**second, "allowed_tools": _FILES} if shell else second]


@pytest.mark.parametrize("real", [*NAMES, UNLISTED.stem], indirect=True)
def test_a_plan_is_done_and_its_usage_is_in_the_report(real: Real) -> None:
    """Both steps are merged, a denied tool did nothing, the report shows the cost, and nobody's home was touched."""
    real.point_at("obey")
    result = real.bench.run(*_plan(real), flags=("--sandbox", "bwrap"))
    assert result.code == 0, result.out + real.bench.call("logs", "latest").out[-3000:]
    files = {name: text.strip() for name, text in real.bench.tree(result.data["head"]).items() if name.endswith(".txt")}
    assert files == {"one.txt": "one", "two.txt": "two"}
    for step in (0, 1):
        usage = real.report(step)["usage"]
        assert usage["agent"] == real.profile.name
        assert usage["input_tokens"] >= 100
        assert usage["output_tokens"] >= 20
    asked = [request for request in real.server.requests("obey") if "Second" in request.ask.everything]
    assert asked
    assert all(b"scripted-key" not in log.read_bytes() for log in real.bench.files.rglob("*.log"))
    assert check(real.bench.files) == []


def _endless(real: Real, word: str, timeout: str) -> dict[str, Any]:
    """A step that does not end: its tool sleeps, or its model is silent where it has no tool that could."""
    if _shell(real) or "run" in real.profile.tools.needs:
        real.point_at("slow")
        act = {"run": f"touch started; sleep 600; : {word}"}
    else:
        real.point_at("hang")
        act = {"say": word}
    return _step(real, f"Slow {word}", act, timeout=timeout, allow_empty=True)


@pytest.mark.parametrize("real", [*NAMES, UNLISTED.stem], indirect=True)
def test_a_time_limit_leaves_no_process(real: Real) -> None:
    """Neither of the program nor of what its tools had started."""
    word = f"marker-{secrets.token_hex(8)}"
    result = real.bench.run(_endless(real, word, "20s"))
    try:
        assert (result.code, result.reasons) == (124, ["timeout"])
        assert marked(word) == []
    finally:
        kill_marked(word)


@pytest.mark.parametrize("real", [*NAMES, UNLISTED.stem], indirect=True)
def test_an_interrupt_leaves_no_process(real: Real) -> None:
    """Ctrl-C while it works: the run can be resumed, and nothing goes on behind its back."""
    word = f"marker-{secrets.token_hex(8)}"
    step = _endless(real, word, "10m")
    leaves_nothing(real.bench, step, word, lambda: bool(real.server.requests("hang")) or tool_runs(word))
