"""From boundary scores to boundaries: selection apart from scoring (Coen, "When F1 Fails", §5).

A document of ``n`` units has ``n - 1`` scores, one per gap, higher = more of a boundary; score
``i`` (from 0) belongs to the boundary ``i + 1``. Every rule keeps boundaries ``min_gap`` units
apart: ``|b - b'| >= min_gap``. That is how §5.1 ("at least g messages") and Appendix F have it; the
"within g positions" of the static rule, which could also forbid a distance of exactly ``g``, is
read the same way. The document's ends are no boundaries and keep no distance.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reffree.arrays import Floats
from reffree.bounds import check_whole
from reffree.errors import InputError
from reffree.segmentation import Segmentation

MIN_GAP = 3
"""Units between boundaries in all of the paper's experiments."""


def select_above(scores: ArrayLike, threshold: float = 0.5, min_gap: int = MIN_GAP) -> Segmentation:
    """Static rule (§5.1): every score of at least ``threshold``, by non-maximum suppression.

    Candidates are taken from the highest score down, the left one of two equal scores first; one
    is accepted unless an accepted boundary is nearer than ``min_gap`` units. The defaults are the
    paper's, for scores that are probabilities.

    >>> select_above([0.9, 0.8, 0.1, 0.7, 0.6, 0.9]).boundaries
    (1, 6)
    """
    checked = _checked(scores)
    candidates = np.flatnonzero(checked >= threshold)
    return _suppress(checked, candidates, len(candidates), min_gap)


def select_top(scores: ArrayLike, k: int, min_gap: int = 1) -> Segmentation:
    """Target density: the ``k`` highest scores, by the same suppression.

    Fewer than ``k`` where the document has fewer gaps, or where the boundaries accepted so far
    leave no gap that is ``min_gap`` units away from all of them.

    >>> select_top([0.9, 0.8, 0.1, 0.7, 0.6, 0.9], k=3).boundaries
    (1, 2, 6)
    """
    check_whole("k", k, 0)
    checked = _checked(scores)
    return _suppress(checked, np.arange(len(checked)), k, min_gap)


def select_share(scores: ArrayLike, share: float, min_gap: int = 1) -> Segmentation:
    """Target density: `select_top` with ``share`` of the gaps, rounded (half up).

    >>> select_share([0.9, 0.8, 0.1, 0.7, 0.6, 0.9], 0.5).boundaries
    (1, 2, 6)
    """
    if not 0 <= share <= 1:
        raise InputError(
            f"share = {share}", expected="a number from 0 to 1", remedy="write 0.1 for every tenth"
        )
    checked = _checked(scores)
    return select_top(checked, math.floor(share * len(checked) + 0.5), min_gap)


@dataclass(slots=True)
class AdaptiveThreshold:
    r"""Online rule (Appendix F): a threshold that steers the rate of boundaries to a target.

    At every step one gap becomes a candidate and stays active for ``lifetime`` steps. Each step
    adds a candidate's own score to its evidence, :math:`e_i \leftarrow e_i + s_i`, and commits it
    if :math:`e_i \ge \tau` and no boundary is nearer than ``min_gap``, older candidates first.
    Then, with :math:`\hat\rho` the boundaries committed per step over the last ``window`` steps,

    .. math:: \tau \leftarrow \tau + \eta (\hat\rho - \rho).

    So :math:`\sum_t (\hat\rho_t - \rho) = (\tau_T - \tau_0) / \eta`: as long as thresholds stay
    within bounds, the realised rate approaches the target like :math:`1 / (\eta T)`, whatever the
    scores and however they drift. The threshold outlives documents: hand one controller through a
    corpus to steer its rate, and expect nothing of a single short document.

    Settled where the paper is silent or of two minds. It has no values for ``window``,
    ``step_size`` and the first threshold; the defaults suit scores from 0 to 1. It does not say
    when a candidate stops being active, so ``lifetime`` and its default are ours: if none ever did,
    evidence would grow without end, the threshold would have to climb after it, and a target of .05
    would end at .15 to .24 (depth scores of meetings). ``lifetime = 1`` is no accumulation. The
    paper's text counts a position once, its pseudocode at every step that it is active; here it
    counts once, as in the definition of the target rate. With a fixed threshold and ``lifetime =
    1`` this is not the static rule, as the paper has it, but its online counterpart: of two
    candidates too near each other the first wins, not the higher.
    """

    rate: float
    min_gap: int = MIN_GAP
    window: int = 50
    step_size: float = 0.2
    threshold: float = 0.5
    lifetime: int = 3
    boundaries: list[int] = field(default_factory=list, init=False)  # of this document
    _n_seen: int = field(default=0, init=False)  # candidates of this document
    _active: deque[tuple[int, float, float]] = field(default_factory=deque, init=False, repr=False)
    _recent: deque[int] = field(default_factory=deque, init=False, repr=False)  # commits per step
    _n_recent: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse rates that the gap forbids and steps that lead nowhere."""
        check_whole("min_gap", self.min_gap, 1)
        check_whole("lifetime", self.lifetime, 1)
        check_whole("window", self.window, 1)
        if not 0 < self.rate <= 1 / self.min_gap:
            raise InputError(
                f"rate = {self.rate} with min_gap = {self.min_gap}",
                expected=f"above 0 and at most 1/{self.min_gap}, all that the gap leaves room for",
                remedy="lower the rate or the gap",
            )
        if not 0 < self.step_size < math.inf or not math.isfinite(self.threshold):
            raise InputError(
                f"step_size = {self.step_size} and threshold = {self.threshold}",
                expected="a step above 0 and a finite threshold",
                remedy="leave them out for scores from 0 to 1",
            )

    def start_document(self) -> None:
        """Forget boundaries and candidates; threshold and recent rate go on."""
        self.boundaries = []
        self._active.clear()
        self._n_seen = 0

    def step(self, score: float) -> bool:
        """Take the next gap's score; return whether a boundary was committed.

        It may lie up to ``lifetime - 1`` gaps back: see ``boundaries``, which has them in order. A
        ``lifetime`` above ``min_gap`` leaves room for several at once.
        """
        self._n_seen += 1
        self._active.append((self._n_seen, score, 0.0))
        n_committed = 0
        for _ in range(len(self._active)):
            at, own, evidence = self._active.popleft()
            evidence += own
            if self._is_blocked(at):
                continue
            if evidence >= self.threshold:
                insort(self.boundaries, at)
                n_committed += 1
            elif self._n_seen - at + 1 < self.lifetime:
                self._active.append((at, own, evidence))
        self._recent.append(n_committed)
        self._n_recent += n_committed
        if len(self._recent) > self.window:
            self._n_recent -= self._recent.popleft()
        self.threshold += self.step_size * (self._n_recent / len(self._recent) - self.rate)
        return n_committed > 0

    def _is_blocked(self, at: int) -> bool:
        place = bisect_left(self.boundaries, at)
        return any(
            abs(at - b) < self.min_gap for b in self.boundaries[max(0, place - 1) : place + 1]
        )


def select_adaptive(scores: ArrayLike, controller: AdaptiveThreshold) -> Segmentation:
    """Run the online rule over a whole document; the controller keeps its threshold for the next.

    >>> select_adaptive([0.9, 0.1, 0.1, 0.1, 0.8, 0.1], AdaptiveThreshold(rate=0.2)).boundaries
    (1, 5)
    """
    checked = _checked(scores)
    controller.start_document()
    for score in checked.tolist():
        controller.step(score)
    return Segmentation.from_boundaries(controller.boundaries, len(checked) + 1)


def _suppress(scores: Floats, candidates: NDArray[np.int64], k: int, min_gap: int) -> Segmentation:
    """Greedy non-maximum suppression until ``k`` candidates are accepted."""
    check_whole("min_gap", min_gap, 1)
    is_blocked = np.zeros(len(scores), dtype=bool)
    accepted: list[int] = []
    for i in candidates[np.argsort(-scores[candidates], kind="stable")].tolist():
        if len(accepted) == k:
            break
        if not is_blocked[i]:
            accepted.append(i + 1)
            is_blocked[max(0, i - min_gap + 1) : i + min_gap] = True
    return Segmentation.from_boundaries(accepted, len(scores) + 1)


def _checked(scores: ArrayLike) -> Floats:
    checked = np.asarray(scores, dtype=np.float64)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        raise InputError(
            f"scores of shape {checked.shape}"
            if checked.ndim != 1
            else "a score that is no number",
            expected="one finite number per gap between units",
            remedy="leave out the document's ends, and score every gap",
        )
    return checked
