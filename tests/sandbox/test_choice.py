"""Which confinement is used, and what is said when it is not the wanted one."""

from __future__ import annotations

import pytest

from harness.errors import EnvironmentProblem
from harness.sandbox import choice


def test_where_bwrap_works_it_is_chosen(bwrap) -> None:
    """Automatic means the strongest that works."""
    chosen = choice.choose("auto")
    assert (chosen.name, chosen.protects_parent, chosen.why) == ("bwrap", True, "bubblewrap works here")


def test_none_means_no_confinement_but_still_an_end(door) -> None:
    """Processes are ended, files are not protected, and that is said."""
    chosen = choice.choose("none")
    assert (chosen.name, chosen.protects_parent) == ("subreaper", False)
    assert chosen.why == "asked for: steps may write wherever the user may"


def test_without_bwrap_automatic_falls_back_and_an_explicit_wish_fails(monkeypatch, tmp_path) -> None:
    """A wish that cannot be met is an environment problem with its cause."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (choice.choose("auto").name, choice.choose("auto").why) == (
        "subreaper",
        "the program bwrap is not installed",
    )
    with pytest.raises(EnvironmentProblem, match="but the program bwrap is not installed") as caught:
        choice.choose("bwrap")
    assert "install bubblewrap" in caught.value.hint


def test_a_bwrap_that_does_not_work_is_found_out_by_using_it(monkeypatch, tmp_path) -> None:
    """Installed is not enough: some systems forbid namespaces."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert choice.choose("auto").why == "bwrap does not work here: bwrap: No permissions to create new namespace"


def test_a_trial_that_was_begun_ahead_is_the_one_that_is_asked(monkeypatch, tmp_path) -> None:
    """Once begun, bwrap is not started again, and its answer counts."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/trials\necho no >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    choice.begin("none")
    for _ in range(2):
        choice.begin("auto")
    assert choice.choose("auto").why == "bwrap does not work here: no"
    assert (tmp_path / "trials").read_text() == "x\n"


def test_a_bwrap_that_cannot_even_be_started_is_told(monkeypatch, tmp_path) -> None:
    """A file that only looks like a program."""
    program = tmp_path / "bwrap"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    choice.begin("auto")
    assert choice.choose("auto").why.startswith("bwrap does not run: [Errno 2]")
