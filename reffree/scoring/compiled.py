"""The metrics as one compiled loop per hypothesis: what scores every document on CPUs.

With the tables of a document (`reffree.scoring.tables`) a hypothesis costs a few look-ups per unit,
whatever the embedding size, and hypotheses are shared out over threads. Where the tables do not fit
into memory, hypotheses are scored in groups that do (`reffree.scoring.sweep`). A score depends on
the document's vectors and the hypothesis alone, to the last bit. The definitions are those of the
torch modules, which score on other devices; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from reffree.arrays import Floats, Integers
from reffree.errors import InputError, Place, counted
from reffree.masses import Masses, distinct_rows
from reffree.parallel import over_rows
from reffree.scoring.compiled_kernel import score_hypotheses
from reffree.scoring.inputs import check_finite
from reffree.scoring.metrics import COMPILED
from reffree.scoring.sweep import fitting_groups, sweep_tables
from reffree.scoring.tables import Band, Tables, band_of, build_tables, table_bytes
from reffree.scoring.vectors import Vectors
from reffree.scoring.workspace import give_back

SMALL = 1 << 24
"""Bytes of tables that are made without asking how much memory there is."""

MOST_MEASURED = 1 << 37
"""Pairs measured at most where pairs are measured more than once: some hours' work."""

THREADED = 1 << 15
"""Hypotheses × units from which threads are worth starting."""


class CompiledScores(NamedTuple):
    """Scores of hypotheses of one document."""

    raw: Floats  # (hypotheses, COMPILED) NaN where undefined or without a boundary
    within: Floats  # (hypotheses,) squared distances to the segments' centroids, summed; NaN alike
    left_out: Integers  # (hypotheses,) pairs that SegReFree left out
    n_segments: Integers  # (hypotheses,)
    segments: Floats  # (hypotheses or 0, COMPILED, segments) NaN where a segment has no score

    def taken(self, rows: Integers) -> CompiledScores:
        """Some hypotheses, any of them several times."""
        segments = self.segments[rows] if len(self.segments) else self.segments
        first = self.raw[rows], self.within[rows], self.left_out[rows], self.n_segments[rows]
        return CompiledScores(*first, segments)


class CompiledDocument:
    """One document's tables, made when first needed and as wide as needed."""

    def __init__(self, document: Tensor, name: str = "0") -> None:
        """Take the vectors to float64; the caller's tensor is not touched."""
        self.name = name
        self.vectors = Vectors.of(document)
        if not np.isfinite(self.vectors.length).all():
            check_finite(document, name)
        self.band: Band | None = None
        self.tables: Tables | None = None

    def score_all(
        self,
        parts: Sequence[Callable[[], Masses]],
        memory: Callable[[], int],
        progress: Callable[[int], None],
        *,
        keep_segments: bool = False,
    ) -> CompiledScores:
        """Score hypotheses that are made a part at a time, with tables of so many bytes at most.

        ``memory`` is asked only for tables that are not small; ``progress`` is told how many
        hypotheses were just done.
        """
        only = parts[0]() if len(parts) == 1 else None  # made once; several have no place together
        threads = torch.get_num_threads()
        band = None
        for part in parts:
            band = band_of(part() if only is None else only, len(self.vectors), band)
        fits = self._make_tables(band, memory) if band is not None else True
        done = []
        for part in parts:
            masses = part() if only is None else only
            distinct, place = distinct_rows(masses)
            if fits:
                found = self.score(distinct, threads, keep_segments=keep_segments)
            else:
                found = self._score_groups(distinct, memory(), threads, keep_segments)
            if distinct is not masses:
                found = found.taken(place)
            done.append(found)
            progress(len(masses))
        return joined(done)

    def prepare(self, masses: Masses, memory: Callable[[], int]) -> bool:
        """Make tables that hold every look-up of these hypotheses, unless they are too large."""
        return self._make_tables(band_of(masses, len(self.vectors), self.band), memory)

    def _make_tables(self, band: Band, memory: Callable[[], int]) -> bool:
        if self.band is None or band.size > self.band.size:
            needed = table_bytes(band)
            if needed > SMALL and needed > memory():
                return False
            self._discard_tables()  # before the larger ones are made
            self.tables = build_tables(self.vectors, band, torch.get_num_threads())
            self.band = band
        return True

    def _score_groups(
        self, masses: Masses, memory: int, threads: int, keep_segments: bool
    ) -> CompiledScores:
        """Score hypotheses whose tables do not fit, as many at a time as do."""
        done = []
        groups = fitting_groups(masses, len(self.vectors), memory)
        self._check_passes(masses, len(groups), memory)
        for group in groups:
            self._discard_tables()
            self.tables = sweep_tables(self.vectors, masses[group], threads)
            done.append(self.score(masses[group], threads, keep_segments=keep_segments))
        self._discard_tables()
        return joined(done)

    def _check_passes(self, masses: Masses, count: int, memory: int) -> None:
        """Refuse what would measure a long document's pairs again and again."""
        band = band_of(masses, len(self.vectors))
        n_pairs = int((band.high - np.arange(len(band.high))).sum())
        if count > 1 and count * n_pairs > MOST_MEASURED:
            raise InputError(
                f"{len(masses):,} hypotheses of "
                f"{counted(len(self.vectors), 'unit')}, for which scoring would measure "
                f"{n_pairs:.1e} pairs of units {count} times",
                expected=f"tables of {table_bytes(band) / 1e9:.1f} GB, or fewer hypotheses",
                remedy=f"give scoring twice that memory instead of {2 * memory / 1e9:.1f} GB "
                "(--memory), or leave out --explain and --null",
                place=Place(document=self.name),
            )

    def score(self, masses: Masses, threads: int, *, keep_segments: bool = False) -> CompiledScores:
        """Score hypotheses given as masses padded with zeros at the end, after `prepare`."""
        if self.tables is None:
            raise RuntimeError("no tables: call prepare first")
        tables = self.tables[:-1]
        count, width = masses.shape
        raw, within = np.empty((count, len(COMPILED))), np.empty(count)
        left_out = np.zeros(count, dtype=np.int64)
        segments = np.full((count if keep_segments else 0, len(COMPILED), width), np.nan)
        shares = 1 if count * len(self.vectors) < THREADED else threads

        def work(rows: slice) -> None:
            into = (raw[rows], within[rows], left_out[rows], segments[rows])
            score_hypotheses(masses[rows], *into, *tables)

        over_rows(work, count, shares)
        return CompiledScores(raw, within, left_out, np.count_nonzero(masses, axis=1), segments)

    def discard(self) -> None:
        """Give the memory to the next document; nothing can be scored any more."""
        self._discard_tables()
        self.vectors.discard()

    def _discard_tables(self) -> None:
        if self.tables is not None:
            give_back(self.tables.memory)
        self.tables = self.band = None


def joined(parts: Sequence[CompiledScores]) -> CompiledScores:
    """Put scores of several groups of hypotheses under one another."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.segments.shape[2] for part in parts)
    padded = [
        np.pad(x, ((0, 0), (0, 0), (0, width - x.shape[2])), constant_values=np.nan)
        for x in (part.segments for part in parts)
    ]
    return CompiledScores(
        raw=np.concatenate([part.raw for part in parts]),
        within=np.concatenate([part.within for part in parts]),
        left_out=np.concatenate([part.left_out for part in parts]),
        n_segments=np.concatenate([part.n_segments for part in parts]),
        segments=np.concatenate(padded),
    )
