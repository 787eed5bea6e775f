"""The five metrics as one compiled loop per hypothesis: the CPU's fast path.

With the tables of a document (`reffree.scoring.tables`) a hypothesis costs a few look-ups per unit,
whatever the embedding size, and hypotheses are shared out over threads. The definitions are those
of the torch modules, which score everything else; tests hold the two together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.masses import Masses, distinct_rows
from reffree.parallel import over_rows
from reffree.scoring.compiled_kernel import score_hypotheses
from reffree.scoring.dots_kernel import LANES
from reffree.scoring.inputs import check_finite
from reffree.scoring.metrics import COMPILED
from reffree.scoring.pairs import rounding_of
from reffree.scoring.pairs_kernel import take_vectors
from reffree.scoring.tables import Band, Tables, band_of, build_tables, table_bytes
from reffree.scoring.workspace import give_back, take

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SHORT = 2.0**-100
"""Vectors all shorter than this, or one longer than its inverse: squares may vanish or overflow."""

SMALL = 1 << 24
"""Bytes of tables that are made without asking how much memory there is."""

THREADED = 1 << 15
"""Hypotheses × units from which threads are worth starting."""


class CompiledScores(NamedTuple):
    """Scores of all hypotheses of one document."""

    raw: Floats  # (hypotheses, COMPILED) NaN where undefined or without a boundary
    left_out: Integers  # (hypotheses,) pairs that SegReFree left out
    is_single: NDArray[np.bool_]  # (hypotheses,) without a boundary


def score_compiled(
    document: Tensor,
    name: str,
    parts: Iterable[Masses],
    memory: Callable[[], int],
    progress: Callable[[int], None],
) -> CompiledScores | None:
    """Score all hypotheses of a matrix, a part at a time; None if its tables do not fit.

    ``progress`` is told how many were just done, and takes them back if it all was in vain.
    """
    compiled = CompiledDocument(document)
    if not np.isfinite(compiled.length).all():
        check_finite(document, name)
    done: list[CompiledScores] = []
    for masses in parts:
        distinct, place = distinct_rows(masses)
        if not compiled.prepare(distinct, memory):
            compiled.discard()
            progress(-sum(len(scores.raw) for scores in done))
            return None
        raw, left_out = compiled.score(distinct, torch.get_num_threads())
        if distinct is not masses:
            raw, left_out = raw[place], left_out[place]
        done.append(CompiledScores(raw, left_out, np.count_nonzero(masses, axis=1) == 1))
        progress(len(masses))
    compiled.discard()
    if len(done) == 1:
        return done[0]
    return CompiledScores(*map(np.concatenate, zip(*done, strict=True)))


class CompiledDocument:
    """One document's tables, made when first needed and as wide as needed."""

    def __init__(self, document: Tensor) -> None:
        """Take the vectors to float64; the caller's tensor is not touched."""
        # Not by torch, which would start threads for a tenth of a millisecond's work.
        known = document.detach() if document.dtype != torch.bfloat16 else document.detach().float()
        given = np.ascontiguousarray(known.numpy(), dtype=np.float64)
        n, d = given.shape
        width = -(-d // LANES) * LANES
        self._memory = take(n * width + LANES)
        # Rows that start where registers' worth of memory does are read twice as fast.
        start = -(self._memory.__array_interface__["data"][0] // self._memory.itemsize) % LANES
        self.vectors: Floats = self._memory[start : start + n * width].reshape(n, width)
        self.length = np.empty(n)
        longest = take_vectors(given, self.vectors, self.length)
        if not SHORT < longest < 1 / SHORT:
            # Scores do not depend on scale: by a power of two, nothing overflows, no bit is lost.
            exponent = math.frexp(float(np.abs(given).max()))[1]
            scaled = np.ldexp(given, -max(-1000, min(exponent, 1000)))
            take_vectors(scaled, self.vectors, self.length)
        self.rounding = rounding_of(document.dtype)
        self.band: Band | None = None
        self.tables: Tables | None = None

    def prepare(self, masses: Masses, memory: Callable[[], int]) -> bool:
        """Make tables that hold every look-up of these hypotheses, unless they are too large.

        ``memory`` is asked only for tables that are not small.
        """
        band = band_of(masses, len(self.vectors), self.band)
        if self.band is None or band.size > self.band.size:
            needed = table_bytes(band, self.vectors.size)
            if needed > SMALL and needed > memory():
                return False
            self._discard_tables()  # before the larger ones are made
            threads = torch.get_num_threads()
            self.tables = build_tables(self.vectors, self.rounding, band, self.length, threads)
            self.band = band
        return True

    def score(self, masses: Masses, threads: int) -> tuple[Floats, Integers]:
        """Score hypotheses given as masses padded with zeros at the end, after `prepare`.

        Returns:
            Raw scores (hypotheses, `COMPILED`), NaN where undefined or without a boundary, and the
            pairs that SegReFree left out.
        """
        if self.tables is None:
            raise RuntimeError("no tables: call prepare first")
        tables = self.tables[:-1]
        scores = np.empty((len(masses), len(COMPILED)))
        left_out = np.zeros(len(masses), dtype=np.int64)
        shares = 1 if masses.shape[0] * len(self.vectors) < THREADED else threads

        def work(rows: slice) -> None:
            score_hypotheses(masses[rows], scores[rows], left_out[rows], *tables)

        over_rows(work, len(masses), shares)
        return scores, left_out

    def discard(self) -> None:
        """Give the memory to the next document; nothing can be scored any more."""
        self._discard_tables()
        give_back(self._memory)

    def _discard_tables(self) -> None:
        if self.tables is not None:
            give_back(self.tables.memory)
        self.tables = self.band = None
