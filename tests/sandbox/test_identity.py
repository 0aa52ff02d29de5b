"""Orphans are ended, strangers never."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from harness.sandbox import identity, tree
from tests.sandbox.survivors import marked, wait_for_marked


def test_this_process_is_alive_and_known() -> None:
    """A probe of oneself is oneself."""
    assert identity.probe(os.getpid()) == identity.own()
    assert identity.alive(identity.own())


def test_an_orphan_ends_with_everything_below_it(marker) -> None:
    """The tree of a dead coordinator goes, children that ignore TERM included."""
    script = "trap '' TERM; sleep 600 & sh -c 'sleep 600 & wait' $0 & wait"
    with subprocess.Popen(["sh", "-c", script, marker]) as orphan:
        wait_for_marked(marker, 2)
        who = identity.probe(orphan.pid)
        below = tree.descendants(orphan.pid)
        assert identity.end(who)
    assert marked(marker) == []
    assert all(tree.read(process.pid) is None or tree.read(process.pid).dead for process in below)
    assert not identity.alive(who)
    assert not identity.end(who)


@pytest.mark.parametrize("change", [{"start_time": "1"}, {"boot_id": "another"}])
def test_a_stranger_with_the_same_pid_is_left_alone(change) -> None:
    """A reused pid, or one from before a reboot, is somebody else."""
    with subprocess.Popen(["sleep", "600"]) as stranger:
        try:
            who = replace(identity.probe(stranger.pid), **change)
            assert not identity.alive(who)
            assert not identity.end(who)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_signal_does_not_reach_who_took_over_a_pid() -> None:
    """The start time is looked at again just before the signal."""
    with subprocess.Popen(["sleep", "600"]) as stranger:
        seen = tree.read(stranger.pid)
        tree.send(tree.Process(seen.pid, seen.parent, seen.session, "1", seen.state), 9)
        assert tree.read(stranger.pid).state == seen.state
        tree.send(seen, 9)
        assert stranger.wait() == -9


def test_a_zombie_is_not_alive() -> None:
    """Dead but unburied is dead."""
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not identity.alive(identity.probe(child.pid))
    assert identity.probe(child.pid) is None
