"""`python -m bench [--files N] [--steps N] [--rounds N] [--json] [--svg FILE]`: times against plain tools, with limits."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from bench import picture, stages, startup, work
from bench.places import Place
from bench.timing import Comparison


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--files", type=int, default=500, help="files in the generated repository")
    parser.add_argument("--steps", type=int, default=8, help="steps of the plan")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many rounds counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--in", dest="folder", help="measure below this folder; a busy disk tells more about itself")
    parser.add_argument("--svg", type=Path, help="draw a picture into this file")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        place = Place(Path(folder), wanted.files, wanted.steps)
        found = {
            f"{wanted.steps} steps on {wanted.files} files": work.measure(place, wanted.rounds),
            **stages.measure(place, wanted.rounds),
            "start-up": startup.measure(place, 2 * wanted.rounds),
        }
    if wanted.svg:
        wanted.svg.write_text(picture.svg(found), encoding="utf-8")
    if wanted.json:
        shown = {name: comparison.as_dict() for name, comparison in found.items()}
        sizes = {"files": wanted.files, "steps": wanted.steps, "rounds": wanted.rounds, "load": os.getloadavg()[0]}
        print(json.dumps(sizes | {"found": shown}))
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    for name, comparison in found.items():
        print(f"\n{name}\n{table(comparison)}")


def table(comparison: Comparison) -> str:
    """One line for each contender: best times, ratio on the clock to the first one, promised limit."""
    lines = [f"{'':36}{'ms':>9}{'cpu ms':>9}{'ratio':>8}{'limit':>8}"]
    for name, row in comparison.as_dict().items():
        limit = f"{row['limit']:.3g}" if row["limit"] else ""
        lines.append(
            f"{name:36}{row['seconds'] * 1000:>9.1f}{row['cpu_seconds'] * 1000:>9.1f}{row['ratio']:>8.3f}{limit:>8}"
        )
    return "\n".join([*lines, *comparison.broken])


if __name__ == "__main__":
    main()
