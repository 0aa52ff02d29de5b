"""The entry point: answers `--version` at once, leaves everything else to the command line."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Runs the command line and exits with the documented status."""
    _repair_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from harness import __version__  # noqa: PLC0415 - nothing heavier is needed here

        sys.stdout.write(f"orchestrix {__version__}\n")
        return
    from harness.cli.app import run  # noqa: PLC0415 - the command line costs more than a version number

    sys.exit(run(sys.argv[1:]))


def _repair_streams() -> None:
    """No stream is missing and none refuses a character.

    One that the caller closed becomes /dev/null, or its number would become the database's.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
