"""The comparison as a picture: one bar for each contender, on a scale of the slowest."""

from __future__ import annotations

from html import escape

from bench.timing import Comparison

_BAR, _GAP, _LEFT, _WIDTH = 18, 10, 260, 420


def svg(found: dict[str, Comparison]) -> str:
    """All comparisons below each other; the text says milliseconds and the ratio to the yardstick of each."""
    rows: list[str] = []
    height = _GAP
    for title, comparison in found.items():
        rows.append(f'<text x="8" y="{height + 13}" font-weight="bold">{escape(title)}</text>')
        height += _BAR + 4
        longest = max(best.clock for best in comparison.spent.values())
        for name, best in comparison.spent.items():
            width = max(1.0, _WIDTH * best.clock / longest)
            ratio = comparison.ratio(name)
            label = f"{best.clock * 1000:.1f} ms" + (f" ({ratio:.3g}x)" if ratio is not None else "")
            rows += [
                f'<text x="{_LEFT - 8}" y="{height + 13}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{_LEFT}" y="{height}" width="{width:.1f}" height="{_BAR}" fill="#4a78b5"/>',
                f'<text x="{_LEFT + width + 6:.1f}" y="{height + 13}">{escape(label)}</text>',
            ]
            height += _BAR + 4
        height += _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 160}" height="{height}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *rows, "</svg>", ""])
