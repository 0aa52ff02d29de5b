"""`python -m bench [--files N] [--steps N] [--rounds N] [--json]`: times against plain tools, with the promised limits."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from bench import startup, work
from bench.places import Place
from bench.timing import Comparison


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--files", type=int, default=500, help="files in the generated repository")
    parser.add_argument("--steps", type=int, default=8, help="steps of the plan")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many rounds counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), wanted.files, wanted.steps)
        found = {
            "run": work.measure(place, wanted.rounds),
            "startup": startup.measure(place, 2 * wanted.rounds),
        }
    if wanted.json:
        print(json.dumps(vars(wanted) | {name: comparison.as_dict() for name, comparison in found.items()}))
        return
    print(f"{wanted.steps} steps on {wanted.files} files")
    print(table(found["run"]))
    print("\nstart-up")
    print(table(found["startup"]))


def table(comparison: Comparison) -> str:
    """One line for each contender: best times, ratio on the clock to the first one, promised limit."""
    lines = [f"{'':36}{'ms':>9}{'cpu ms':>9}{'ratio':>8}{'limit':>8}"]
    for name, row in comparison.as_dict().items():
        limit = f"{row['limit']:g}" if row["limit"] else ""
        lines.append(
            f"{name:36}{row['seconds'] * 1000:>9.1f}{row['cpu_seconds'] * 1000:>9.1f}{row['ratio']:>8.2f}{limit:>8}"
        )
    return "\n".join([*lines, *comparison.broken])


if __name__ == "__main__":
    main()
