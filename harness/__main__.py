"""The entry point: answers `--version` at once, leaves everything else to the command line."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import types
from typing import NoReturn

from harness import __version__
from harness.cli import streams

# New objects: the start of a run makes 75,000 that stay, and looking through them takes a tenth of it.
_COLLECT_AFTER = 100_000
_CANNOT_WORK = 3  # Exit.ENVIRONMENT, without loading the error tree for a version number


def main() -> None:
    """Runs the command line and exits with the documented status."""
    _require_utf8()
    streams.install()
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"orchestrix {__version__}\n")
        _leave(0)
    gc.set_threshold(_COLLECT_AFTER)
    _refuse_plugins()
    from harness.cli.app import run  # noqa: PLC0415 - the command line costs more than a version number

    _leave(run(sys.argv[1:]))


def _require_utf8() -> None:
    """Begins anew in Python's UTF-8 mode where the locale has another encoding: paths in git are UTF-8, here and elsewhere."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this very program


def _refuse_plugins() -> None:
    """Pydantic would look for plugins in every installed package, and loads the readers of metadata, mail and archives for it."""
    if os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__") != "__all__":
        return
    name = "pydantic.plugin._loader"
    empty = types.ModuleType(name)

    def real(wanted: str) -> object:
        """Whatever else is asked of it comes from the real one; importing asks for some names of its own."""
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        sys.modules.pop(name, None)
        return getattr(importlib.import_module(name), wanted)

    empty.__dict__.update(get_plugins=tuple, __getattr__=real)
    sys.modules[name] = empty


def _leave(status: int) -> NoReturn:
    """Ends the process at once where nothing is left to do: taking hundreds of modules apart takes longer than a step."""
    sys.stdout.flush()
    if error := streams.lost():
        status = status or _CANNOT_WORK
        sys.stderr.write(f"orchestrix: {error.strerror}\n")
    sys.stderr.flush()
    if threading.active_count() > 1:
        sys.exit(status)
    if "harness.store.sqlite" in sys.modules:
        from harness.store.sqlite import close_all  # noqa: PLC0415 - loaded already

        close_all()
    os._exit(status)


if __name__ == "__main__":
    main()
