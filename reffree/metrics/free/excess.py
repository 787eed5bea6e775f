r"""Whether a system agrees with the vectors more than with what else speaks of boundaries.

A segmenter that looks for what vectors see is placed far better by them than by words and cues; an
annotator, and gold with mistakes, by all about alike. With :math:`p_v` the placement (`placement`)
by vectors alone and :math:`p_o` that by words and cues,

.. math:: excess(h) = p_v(h) - p_o(h)

both with the window of the number of segments that all sources suggest. A document counts
:math:`r_v r_o / (r_v + r_o)`, with r the expected Pk between chance and the best: little where
either says little. It is a finding and not a score: no metric of its own, it is what a verdict
says of a system.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reffree.data.masses import Masses
from reffree.metrics.free.expected import Expected
from reffree.metrics.free.placement import LEAST_ROOM, Granularity, Placement
from reffree.metrics.free.posterior import Posterior
from reffree.metrics.free.result import FreeMetric
from reffree.util.arrays import Floats


@dataclass(frozen=True, slots=True)
class Excess(Placement):
    """Placement by vectors alone less that by words and cues, from -1 to 1 and beyond."""

    name: ClassVar[str] = "excess"
    undefined: ClassVar[str] = "vectors, or words and cues, say nothing"

    def weighted_scores(self, posterior: Posterior, masses: Masses) -> tuple[Floats, Floats]:
        """Excess of each hypothesis, NaN where undefined, and what the document counts for."""
        vectors, others = posterior.read_by("vectors"), posterior.read_by("words", "cues")
        if vectors is None or others is None:
            return np.full(len(masses), np.nan), np.ones(len(masses))
        by_vectors, v = self.gains(vectors, masses)
        by_others, o = self.gains(others, masses)
        defined = (v > LEAST_ROOM) & (o > LEAST_ROOM)
        v, o = np.where(defined, v, 1.0), np.where(defined, o, 1.0)
        excess = np.where(defined, by_vectors / v - by_others / o, np.nan)
        return excess, np.where(defined, v * o / (v + o), 1.0)


def watched_excess(metrics: Iterable[FreeMetric]) -> list[Excess]:
    """Return what is looked at beside metrics: nothing, unless one of them reads all sources."""
    for metric in metrics:
        if not isinstance(metric, Expected) or isinstance(metric, Granularity):
            continue
        if metric.evidence == "all" and metric.without is None:
            return [Excess(length=metric.length)]
    return []
