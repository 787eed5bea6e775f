"""Labels beside points that do not overlap: by Vega in a browser, by hand for files.

Vega's own label transform needs a canvas, which vl-convert does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reffree.report.charts.chart import Row

Spec = dict[str, Any]

FONT_SIZE = 10
LIMIT = 130  # pixels of a label
CHARACTER = 5.5  # pixels, on average
LINE = 11
OFFSET = 7
MARGIN = 0.07  # of the range of values, on both sides

SIDES = {"right": (1, 0), "left": (-1, 0), "center": (0, -1)}


def label_in_browser(spec: Spec, ink: str) -> None:
    """Give the compiled text mark Vega's label transform, which Vega-Lite has no name for."""
    labels = _labels(spec, ink)
    labels["transform"] = [
        {
            "type": "label",
            "size": {"signal": "[width, height]"},
            "offset": [3],
            "anchor": ["right", "left", "top", "bottom", "top-right", "bottom-right"],
        }
    ]


def label_in_file(spec: Spec, rows: Sequence[Row], ink: str) -> list[Row]:
    """Fix the scales, and add to every row where its label goes, hidden where there is no room."""
    size = (spec["width"], spec["height"])
    spans = []
    for axis, length in zip("xy", size, strict=True):
        values = [float(row[axis]) for row in rows]  # type: ignore[arg-type]
        margin = MARGIN * (max(values) - min(values)) or 1.0
        spans.append((min(values) - margin, max(values) + margin, length))
        scale = next(each for each in spec["scales"] if each["name"] == axis)
        scale.update(domain=list(spans[-1][:2]), nice=False, zero=False, padding=0)
    (x_low, x_high, width), (y_low, y_high, height) = spans
    points = [
        (
            (float(row["x"]) - x_low) / (x_high - x_low) * width,  # type: ignore[arg-type]
            (y_high - float(row["y"])) / (y_high - y_low) * height,  # type: ignore[arg-type]
        )
        for row in rows
    ]
    update = _labels(spec, ink)["encode"]["update"]
    update |= {
        "x": {"field": "x"},
        "y": {"field": "y"},
        "align": {"field": "datum.label_align"},
        "dx": {"field": "datum.label_dx"},
        "dy": {"field": "datum.label_dy"},
        "opacity": {"field": "datum.label_opacity"},
        "baseline": {"value": "middle"},
    }
    placed = placements(points, [str(row["system"]) for row in rows], (width, height))
    return [row | where for row, where in zip(rows, placed, strict=True)]


def placements(
    points: Sequence[tuple[float, float]], texts: Sequence[str], size: tuple[float, float]
) -> list[Row]:
    """Try right of the point (aligned left), left of it, above: free of points, labels, edges.

    >>> [p["label_align"] for p in placements([(5, 50), (95, 50)], ["a", "b"], (100, 100))]
    ['left', 'right']
    """
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    placed: list[Row] = []
    for (x, y), text in zip(points, texts, strict=True):
        wide = min(LIMIT, CHARACTER * len(text))
        for side, (across, up) in SIDES.items():
            left = x + across * OFFSET - {"right": 0, "left": wide, "center": wide / 2}[side]
            top = y + up * (OFFSET + LINE / 2) - LINE / 2
            box = (left, top, left + wide, top + LINE)
            is_inside = left >= 0 and top >= 0 and box[2] <= size[0] and box[3] <= size[1]
            if is_inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                placed.append(_placement(side, across * OFFSET, up * (OFFSET + LINE / 2), 1))
                break
        else:
            placed.append(_placement("right", 0, 0, 0))
    return placed


def _placement(side: str, dx: float, dy: float, opacity: int) -> Row:
    # Text that starts at its place is left-aligned, and so on.
    align = {"right": "left", "left": "right", "center": "center"}[side]
    return {"label_align": align, "label_dx": dx, "label_dy": dy, "label_opacity": opacity}


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _labels(spec: Spec, ink: str) -> Spec:
    """Make labels follow the points, not the data."""
    points = next(mark for mark in spec["marks"] if mark["type"] == "symbol")
    labels: Spec = next(mark for mark in spec["marks"] if mark["type"] == "text")
    labels["from"] = {"data": points["name"]}
    labels["encode"] = {
        "update": {
            "text": {"field": "datum.system"},
            "fill": {"value": ink},
            "fontSize": {"value": FONT_SIZE},
            "limit": {"value": LIMIT},
        }
    }
    return labels
