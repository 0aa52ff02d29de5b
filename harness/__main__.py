"""The entry point: answers `--version` at once, leaves everything else to the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with the documented status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from harness import __version__  # noqa: PLC0415 - nothing heavier is needed here

        sys.stdout.write(f"orchestrix {__version__}\n")
        return
    from harness.cli.app import run  # noqa: PLC0415 - the command line costs more than a version number

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
