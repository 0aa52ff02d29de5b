"""`python -m bench`: the same work with the plain git script and with Orchestrix, taking turns; the best counts."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import contenders, growth, page, picture, promises, sizes
from bench.ground import Ground
from bench.matrix import Found, Matrix
from bench.sizes import Size, Sizes

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    wanted = _arguments().parse_args(arguments)
    found = Found()
    # The first interrupt ends the measurement; what it leaves is removed to the last file.
    with _on_interrupts(signal.SIG_IGN), Ground(wanted.folder) as ground:
        matrix = Matrix(ground, _tell, _names(wanted.workspace), wanted.rounds, wanted.tree)
        try:
            with _on_interrupts(signal.default_int_handler):
                matrix.measure(matrix.of_tree(wanted.steps or [8]) if wanted.tree else _sizes(wanted), found)
        except KeyboardInterrupt:
            _tell("interrupted: this is what there is")
            code = _INTERRUPTED
        else:
            _write(found, wanted.svg, wanted.page)
            code = int(wanted.check and any(verdict.kept is False for verdict in promises.verdicts(found)))
        print(json.dumps(_data(found)) if wanted.json else page.text(found), flush=True)
        _tell("removing everything")
    return code


@contextlib.contextmanager
def _on_interrupts(act: Any) -> Iterator[None]:
    before = {number: signal.signal(number, act) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes, up to 60,000 files and 1,000 steps: hours")
    parser.add_argument("--promised", action="store_true", help="the sizes that the promises are about: 20 minutes")
    parser.add_argument("--files", type=_numbers, action="extend", help="only repositories of so many files: 200,7000")
    parser.add_argument("--steps", type=_numbers, action="extend", help="only plans of so many steps: 8,32")
    parser.add_argument("--tree", type=Path, help="a real tree instead: a folder, or an archive such as an sdist")
    parser.add_argument("--workspace", choices=contenders.KINDS, help="only this kind of workspace (default: both)")
    parser.add_argument("--rounds", type=int, help="the best of so many counts; default: 3, large sizes fewer")
    parser.add_argument("--check", action="store_true", help="exit 1 when a promise is broken")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--in", dest="folder", help="measure below this folder; a busy disk tells more about itself")
    parser.add_argument("--svg", type=Path, help="draw a picture into this file")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page")
    return parser


def _numbers(said: str) -> list[int]:
    return [int(number) for number in said.split(",")]


def _names(kind: str | None) -> tuple[str, ...]:
    """Without the contenders of the other kinds of workspace."""
    others = [name for one, names in contenders.KINDS.items() if kind not in (None, one) for name in names]
    return tuple(name for name in contenders.EVERYONE if name not in others)


def _sizes(wanted: argparse.Namespace) -> Sizes:
    if not wanted.files and not wanted.steps:
        return sizes.FULL if wanted.full else sizes.PROMISED if wanted.promised else sizes.QUICK
    files = wanted.files or [500]
    return Sizes(tuple(Size(many, steps) for many in files for steps in wanted.steps or [8]), tuple(files))


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _write(found: Found, drawn: Path | None, written: Path | None) -> None:
    if drawn:
        drawn.write_text(picture.svg(_pictured(found)), encoding="utf-8")
    if written:
        page.insert(written, page.text(found))


def _pictured(found: Found) -> dict[str, Any]:
    single = {f"{name}, {files:,} files": times for (files, name), times in found.stages.items()}
    return {case.title: case.times for case in found.cases} | single


def _data(found: Found) -> dict[str, Any]:
    return {
        "load": found.load,
        "cores": os.cpu_count(),
        "runs": [
            {
                "files": case.files,
                "steps": case.steps,
                "by": {
                    name: row
                    | {"overhead_seconds_a_step": case.overhead(name)}
                    | {f"{part}_bytes": getattr(case.footprints[name], part) for part in ("first", "tree", "disk")}
                    for name, row in case.times.as_dict().items()
                },
            }
            for case in found.cases
        ],
        "stages": [
            {"files": files, "stage": name, "by": times.as_dict()} for (files, name), times in found.stages.items()
        ],
        "startup": found.startup.as_dict() if found.startup else None,
        "growth": [{name: getattr(one, name) for name in one.__slots__} for one in growth.measured(found.cases)],
        "promises": [
            {
                "work": verdict.promise.work,
                "at_most": verdict.promise.at_most,
                "unit": verdict.promise.unit,
                "measured": verdict.measured,
                "kept": verdict.kept,
            }
            for verdict in promises.verdicts(found)
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
