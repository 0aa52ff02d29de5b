"""A finished run is a commit that can be read again, here or elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import NotFound
from harness.model.ids import record_ref
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

FILES = {
    "plan.yaml": b"version: 1\n",
    "reports/step-0.md": b"# done\n",
    "events.jsonl": bytes(range(256)),
    "empty": b"",
}


def test_a_record_is_read_as_it_was_written(checkout: Checkout, vcs: Repository) -> None:
    """Byte for byte; the same content is the same commit; later content replaces it."""
    first = vcs.write_record(RUN, FILES, 5)
    assert vcs.read_record(RUN) == FILES
    assert vcs.write_record(RUN, FILES, 5) == first == vcs.read_ref(record_ref(RUN))
    vcs.write_record(RUN, {"only": b"x"}, 6)
    assert vcs.read_record(RUN) == {"only": b"x"}
    assert checkout.git("log", "--format=%s|%P", record_ref(RUN)) == "Orchestrix run r1|"


def test_a_record_travels(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """Pushed and fetched like any ref, it is inspected at home."""
    vcs.write_record(RUN, FILES, 5)
    checkout.git("clone", "--quiet", str(checkout.root), str(tmp_path / "home-clone"))
    away = Repository.discover(tmp_path / "home-clone", tmp_path / "state")
    with pytest.raises(NotFound) as caught:
        away.read_record(RUN)
    assert "refs/orchestrix/" in caught.value.hint
    checkout.git("fetch", "--quiet", "origin", "refs/orchestrix/*:refs/orchestrix/*", cwd=away.root)
    assert away.read_record(RUN) == FILES
