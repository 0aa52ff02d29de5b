"""What bubblewrap keeps out of a step's reach."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from harness.model.process import Rights
from tests.sandbox.survivors import wait_for_marked

_TRY_WRITES = """
import os, sys
for path in sys.argv[1:]:
    try:
        with open(path, "a") as file: file.write("x")
        print("wrote", path)
    except OSError as error:
        print(error.strerror)
"""


def test_nothing_outside_the_workspace_can_be_written(bwrap, bench, tmp_path) -> None:
    """Parent checkout, another workspace, home, system: all read-only; the workspace and its rights are not."""
    places = [tmp_path / "parent", tmp_path / "other", tmp_path / "granted"]
    for place in places:
        place.mkdir()
        (place / "file").write_text("as it was\n")
    targets = [*(str(place / "file") for place in places), str(Path.home() / "planted"), "/etc/planted", "inside"]
    rights = Rights(writable=(places[2],), readable=(places[0], places[1]))
    result = asyncio.run(bench.run(bwrap, bench.python(_TRY_WRITES, *targets, rights=rights)))
    refused = "Read-only file system"
    assert result.output_tail.splitlines() == [
        *(refused, refused, f"wrote {places[2] / 'file'}", refused, refused, "wrote inside")
    ]
    assert [(place / "file").read_text() for place in places] == ["as it was\n", "as it was\n", "as it was\nx"]
    assert not (Path.home() / "planted").exists()


def test_tmp_is_the_step_s_own(bwrap, bench, marker) -> None:
    """What a step writes to /tmp is not on the host, and TMPDIR names it."""
    command = f'echo x > "$TMPDIR/{marker}" && cat /tmp/{marker} && stat -c %a /tmp'
    result = asyncio.run(bench.run(bwrap, bench.spec("sh", "-c", command)))
    assert result.output_tail == "x\n1777\n"
    assert not Path("/tmp", marker).exists()


def test_a_program_named_below_tmp_is_found(bwrap, bench, tmp_path) -> None:
    """The own /tmp does not hide what the command itself names."""
    program = tmp_path / "agent.sh"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    result = asyncio.run(bench.run(bwrap, bench.spec(str(program))))
    assert result.output_tail == "found\n"


def test_hidden_paths_are_closed_and_what_is_granted_below_them_is_not(bwrap, bench, tmp_path) -> None:
    """The deeper rule wins, whichever kind it is."""
    secret, granted = tmp_path / "secret", tmp_path / "secret" / "granted"
    granted.mkdir(parents=True)
    (secret / "key").write_text("key")
    (granted / "file").write_text("file\n")
    (bench.workspace / "token").write_text("token")
    rights = Rights(writable=(granted,), hidden=(secret, bench.workspace / "token"))
    command = f"ls {secret}; cat {granted}/file; cat token; touch {secret}/new || touch {granted}/new"
    result = asyncio.run(bench.run(bwrap, bench.spec("sh", "-c", command, rights=rights)))
    lines = result.output_tail.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [
        *("granted", "file", "Permission denied", "Read-only file system")
    ]
    assert sorted(entry.name for entry in granted.iterdir()) == ["file", "new"]


def test_processes_outside_can_neither_be_seen_nor_signalled(bwrap, bench, marker) -> None:
    """The coordinator's pid is nobody inside."""
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait", marker]) as stranger:
        wait_for_marked(marker, 1)
        script = "import os, sys\ntry: os.kill(int(sys.argv[1]), 9)\nexcept ProcessLookupError: print(len(os.listdir('/proc')))"
        result = asyncio.run(bench.run(bwrap, bench.python(script, str(stranger.pid))))
        assert stranger.poll() is None
        subprocess.run(["kill", *subprocess.check_output(["pgrep", "-P", str(stranger.pid)]).split()], check=True)
    assert result.exit_code == 0


def test_the_mounts_cannot_be_loosened(bwrap, bench) -> None:
    """Also as root no capability is left that could make the system writable again."""
    command = "mount -o remount,rw / 2>&1 || unshare -Urm sh -c 'mount -o remount,rw / && touch /etc/planted' 2>&1; test ! -e /etc/planted"
    result = asyncio.run(bench.run(bwrap, bench.spec("sh", "-c", command)))
    assert result.exit_code == 0
    assert not Path("/etc/planted").exists()


OPEN_FOR_WRITING = """
import os, re, stat
MAY = re.compile(r"/proc/[0-9]+/(?!(task/[0-9]+/)?net/).*|/dev/(null|zero|full|random|urandom|tty|ptmx|pts/.*|shm/.*)")
seen = 0
for top in ("/proc", "/sys", "/dev"):
    for folder, folders, files in os.walk(top):
        for name in files:
            path = f"{folder}/{name}"
            try:
                if stat.S_ISLNK(os.lstat(path).st_mode):
                    continue
                seen += 1
                handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:
                continue
            try:
                # Root opens what is read-only by its mode; the kernel then has nothing that takes the bytes.
                os.write(handle, b"")
                if not MAY.fullmatch(path):
                    print(path)
            except OSError:
                pass
            os.close(handle)
print("looked" if seen > 100 else f"saw only {seen} files")
"""


def test_nothing_of_the_kernel_can_be_written(bwrap, bench) -> None:
    """Below /proc, /sys and /dev only the sandbox's own processes and harmless devices take a byte, also from root."""
    result = asyncio.run(bench.run(bwrap, bench.python(OPEN_FOR_WRITING)))
    assert result.output_tail.splitlines() == ["looked"]


@pytest.mark.parametrize(
    "path", ["sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/drop_caches", "sysrq-trigger"]
)
def test_the_kernels_settings_are_read_only(bwrap, bench, path) -> None:
    """The known ways out of a sandbox of root, by name."""
    script = (
        "import os, sys\ntry: os.open(sys.argv[1], os.O_WRONLY)\nexcept OSError as e: print(type(e).__name__, e.errno)"
    )
    result = asyncio.run(bench.run(bwrap, bench.python(script, f"/proc/{path}")))
    assert result.output_tail.strip() in ("OSError 30", "PermissionError 13", "FileNotFoundError 2")


def test_a_preloaded_library_never_reaches_the_sandbox_itself(bwrap, bench) -> None:
    """What a step sets in its environment acts inside only: the loader complains once for each program inside."""
    env = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/nonexistent/evil.so"}
    result = asyncio.run(bench.run(bwrap, bench.spec("true", env=env)))
    assert result.ok
    assert result.output_tail.count("/nonexistent/evil.so") == 2


def test_git_works_in_a_worktree_whose_repository_is_read_only(bwrap, bench, tmp_path) -> None:
    """Reading history is possible, moving the parent's branch is not."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path / "repo")]
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "repo")], check=True, env=env)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True, env=env)
    subprocess.run([*git, "worktree", "add", "-q", "--detach", str(tmp_path / "tree")], check=True, env=env)
    command = "git log --format=%s && git update-ref refs/heads/main HEAD~0 2>/dev/null; git branch evil 2>&1 | grep -c 'Read-only'"
    rights = Rights(readable=(tmp_path / "repo" / ".git",))
    spec = bench.spec("sh", "-c", command, cwd=tmp_path / "tree", env=env, rights=rights)
    result = asyncio.run(bench.run(bwrap, spec))
    assert result.output_tail.splitlines()[0] == "first"
    assert subprocess.check_output([*git, "branch", "--list", "evil"], env=env) == b""
