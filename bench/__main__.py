"""`python -m bench`: the same work with the plain git script and with Orchestrix, taking turns; the best counts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from bench import contenders, growth, matrix, page, picture, promises
from bench.matrix import Found, Sizes


def main(arguments: list[str] | None = None) -> int:
    wanted = _arguments().parse_args(arguments)
    kinds = [wanted.workspace] if wanted.workspace else list(contenders.KINDS)
    if wanted.tree:
        found = matrix.measure_tree(wanted.tree, wanted.steps or 8, wanted.rounds, kinds, wanted.folder)
    else:
        found = matrix.measure(_sizes(wanted), wanted.rounds, kinds, wanted.folder, _tell)
        _tell("start-up")
        found = matrix.measure_startup(found, 2 * wanted.rounds, wanted.folder)
    if wanted.svg:
        wanted.svg.write_text(picture.svg(_pictured(found)), encoding="utf-8")
    if wanted.page:
        page.insert(wanted.page, page.text(found))
    print(json.dumps(_data(found)) if wanted.json else page.text(found))
    return int(wanted.check and any(verdict.kept is False for verdict in promises.verdicts(found)))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes, up to 60,000 files and 1,000 steps: hours")
    parser.add_argument("--promised", action="store_true", help="the sizes that the promises are about: an hour or so")
    parser.add_argument("--files", type=int, help="only a repository of so many files")
    parser.add_argument("--steps", type=int, help="only plans of so many steps")
    parser.add_argument("--tree", type=Path, help="a real tree instead: a folder, or an archive such as an sdist")
    parser.add_argument("--workspace", choices=contenders.KINDS, help="only this kind of workspace (default: both)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many rounds counts; large sizes take one")
    parser.add_argument("--check", action="store_true", help="exit 1 when a promise is broken")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--in", dest="folder", help="measure below this folder; a busy disk tells more about itself")
    parser.add_argument("--svg", type=Path, help="draw a picture into this file")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page")
    return parser


def _sizes(wanted: argparse.Namespace) -> Sizes:
    if not wanted.files and not wanted.steps:
        return matrix.FULL if wanted.full else matrix.PROMISED if wanted.promised else matrix.QUICK
    files = wanted.files or 500
    return Sizes({files: (wanted.steps or 8,)}, (files,))


def _tell(what: str) -> None:
    print(what, file=sys.stderr)


def _pictured(found: Found) -> dict[str, Any]:
    single = {f"{name}, {files:,} files": times for (files, name), times in found.stages.items()}
    return {case.title: case.times for case in found.cases} | single


def _data(found: Found) -> dict[str, Any]:
    return {
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "runs": [
            {
                "files": case.files,
                "steps": case.steps,
                "by": {
                    name: row
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
