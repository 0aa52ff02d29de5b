"""What `orchestrix agents check` claims of each real program holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.agents.conformance.check import Claim, check
from harness.sandbox import choice
from tests.agents_real.conftest import NAMES, UNLISTED, Real, load
from tests.support.model_server import script

pytestmark = pytest.mark.agents


@pytest.mark.parametrize("name", [*NAMES, UNLISTED.stem])
def test_a_program_keeps_what_its_profile_says(name: str, state_home: Path) -> None:
    """Every claim, with the detail of the first that does not hold."""

    async def claims() -> list[Claim]:
        return [claim async for claim in check(load(name), choice.choose("bwrap"), state_home)]

    found = asyncio.run(claims())
    assert [(claim.name, claim.detail) for claim in found if not claim.ok] == []
    assert len(found) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_the_pinned_version_is_the_proven_one(name: str, programs: Path) -> None:
    """A profile names what the suite ran, not what somebody remembers."""
    from harness.agents.detect import version  # noqa: PLC0415 - this test only

    assert asyncio.run(version(load(name), choice.choose("bwrap"))).version == load(name).proven


@pytest.mark.parametrize("real", ["claude", "codex"], indirect=True)
def test_a_retry_carries_on_with_the_session(real: Real) -> None:
    """The second attempt's model sees what was said in the first one."""
    real.point_at("obey")
    real.patch.setenv("ORCHESTRIX_RESUME_SESSIONS", "true")
    step = {
        "title": "Never enough",
        "agent": real.profile.name,
        "description": script({"write": "made.txt", "content": "made\n"}),
        "checks": ["test -e other.txt"],
        "retries": 1,
        "timeout": "3m",
    }
    result = real.bench.run(step)
    assert result.reasons == ["check_failed"]
    prompts = [sum("Never enough" in text for text in request.ask.users) for request in real.server.requests("obey")]
    assert max(prompts) == 2
    assert real.report(0)["usage"]["session_id"]
