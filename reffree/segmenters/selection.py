"""From boundary scores to boundaries: selection apart from scoring (Coen, "When F1 Fails", §5).

A document of ``n`` units has ``n - 1`` scores, one per gap, higher = more of a boundary; score
``i`` (from 0) belongs to the boundary ``i + 1``. Every rule keeps boundaries ``min_gap`` units
apart: ``|b - b'| >= min_gap``, as §5.1 ("at least g messages") and Appendix F have it. The
document's ends are no boundaries and keep no distance.

Where only some gaps may become boundaries, such as those before a user's turn (§9.3), they are
given as ``candidates``, a truth value per gap: shares and rates are then of these, distances stay
in units.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.util.arrays import Booleans, Floats
from reffree.util.bounds import Positive, check_whole
from reffree.util.errors import InputError, listed, shorten
from reffree.util.naming import check_options, parse_named

MIN_GAP = 3
"""Units between boundaries in all of the paper's experiments."""

Candidates = Booleans
"""Which gaps of a document may become boundaries."""

Rule = Callable[[Floats, Candidates | None], Segmentation]
"""Selects boundaries of a document from the scores of its gaps, among candidates if given."""


def select_above(
    scores: ArrayLike,
    threshold: float = 0.5,
    min_gap: int = MIN_GAP,
    candidates: ArrayLike | None = None,
) -> Segmentation:
    """Static rule (§5.1): every score of at least ``threshold``, by non-maximum suppression.

    Candidates are taken from the highest score down, the left one of two equal scores first; one
    is accepted unless an accepted boundary is nearer than ``min_gap`` units. The defaults are the
    paper's, for scores that are probabilities.

    >>> select_above([0.9, 0.8, 0.1, 0.7, 0.6, 0.9]).boundaries
    (1, 6)
    """
    checked, mask = _checked(scores, candidates)
    return _suppress(checked, (checked >= threshold) & mask, len(checked), min_gap)


def select_top(
    scores: ArrayLike, k: int, min_gap: int = 1, candidates: ArrayLike | None = None
) -> Segmentation:
    """Target density: the ``k`` highest scores, by the same suppression.

    Fewer than ``k`` where the document has fewer gaps, or where the boundaries accepted so far
    leave no gap that is ``min_gap`` units away from all of them.

    >>> select_top([0.9, 0.8, 0.1, 0.7, 0.6, 0.9], k=3).boundaries
    (1, 2, 6)
    """
    check_whole("k", k, 0)
    return _suppress(*_checked(scores, candidates), k, min_gap)


def select_share(
    scores: ArrayLike, share: float, min_gap: int = 1, candidates: ArrayLike | None = None
) -> Segmentation:
    """Target density: `select_top` with ``share`` of the candidates, rounded (half up).

    >>> select_share([0.9, 0.8, 0.1, 0.7, 0.6, 0.9], 0.5).boundaries
    (1, 2, 6)
    """
    if not 0 <= share <= 1:
        raise InputError(
            f"share = {share}", expected="a number from 0 to 1", remedy="write 0.1 for every tenth"
        )
    checked, mask = _checked(scores, candidates)
    return select_top(checked, math.floor(share * int(mask.sum()) + 0.5), min_gap, mask)


@dataclass(slots=True)
class AdaptiveThreshold:
    r"""Online rule (Appendix F): a threshold that steers the rate of boundaries to a target.

    At every step one gap becomes a candidate and stays active for ``lifetime`` steps. Each step
    adds a candidate's own score to its evidence, :math:`e_i \leftarrow e_i + s_i`, and commits it
    if :math:`e_i \ge \tau` and no boundary is nearer than ``min_gap``, older candidates first.
    Then, with :math:`\hat\rho` the boundaries committed per step over the last ``window`` steps,

    .. math:: \tau \leftarrow \tau + \eta (\hat\rho - \rho).

    So :math:`\sum_t (\hat\rho_t - \rho) = (\tau_T - \tau_0) / \eta`: the realised rate approaches
    the target whatever the scores and however they drift. The threshold outlives documents: hand
    one controller through a corpus, and expect nothing of a single short document.

    Settled where the paper is silent or of two minds: ``window``, ``step_size`` and the first
    threshold suit scores from 0 to 1; ``lifetime``, without which evidence and threshold would grow
    without end, is ours (1 is no accumulation); a position counts once, as in the definition of the
    target rate, not at every step as in the pseudocode. A gap that scores below ``least`` (Figure
    3's candidate threshold) counts for the rate, but never becomes a boundary.
    """

    rate: float
    min_gap: int = MIN_GAP
    window: int = 50
    step_size: float = 0.2
    threshold: float = 0.5
    lifetime: int = 3
    least: float = -math.inf
    _recent: deque[int] = field(default_factory=deque, init=False, repr=False)  # commits per step
    _n_recent: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        for option in ("min_gap", "lifetime", "window"):
            check_whole(option, getattr(self, option), 1)
        _check_rate("rate", self.rate, self.min_gap)
        if not 0 < self.step_size < math.inf or not math.isfinite(self.threshold):
            raise InputError(
                f"step_size = {self.step_size} and threshold = {self.threshold}",
                expected="a step above 0 and a finite threshold",
                remedy="leave them out for scores from 0 to 1",
            )

    def steer(self, n_committed: int) -> None:
        """Move the threshold after a step in which so many boundaries were committed."""
        self._recent.append(n_committed)
        self._n_recent += n_committed
        if len(self._recent) > self.window:
            self._n_recent -= self._recent.popleft()
        self.threshold += self.step_size * (self._n_recent / len(self._recent) - self.rate)


def select_adaptive(
    scores: ArrayLike, controller: AdaptiveThreshold, candidates: ArrayLike | None = None
) -> Segmentation:
    """Run the online rule over a whole document; the controller keeps its threshold for the next.

    >>> select_adaptive([0.9, 0.1, 0.1, 0.1, 0.8, 0.1], AdaptiveThreshold(rate=0.2)).boundaries
    (1, 5)
    """
    checked, mask = _checked(scores, candidates)
    boundaries: list[int] = []
    active: deque[tuple[int, int, float]] = deque()  # step, place and evidence of candidates
    for step, gap in enumerate(np.flatnonzero(mask).tolist()):
        if checked[gap] >= controller.least:
            active.append((step, gap + 1, 0.0))
        n_before = len(boundaries)
        for _ in range(len(active)):
            since, at, evidence = active.popleft()
            evidence += float(checked[at - 1])
            among = bisect_left(boundaries, at)
            neighbours = boundaries[max(0, among - 1) : among + 1]
            if any(abs(at - boundary) < controller.min_gap for boundary in neighbours):
                continue
            if evidence >= controller.threshold:
                insort(boundaries, at)
            elif step - since + 1 < controller.lifetime:
                active.append((since, at, evidence))
        controller.steer(len(boundaries) - n_before)
    return Segmentation.from_boundaries(boundaries, len(checked) + 1)


class Selection(ABC):
    """A rule with its options, over the documents of a corpus; frozen dataclasses extend it."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def _rule(self) -> Rule:
        """Return what selects in one document after the other."""

    def __call__(
        self, scores: Sequence[Floats], candidates: Sequence[Candidates] | None = None
    ) -> tuple[Segmentation, ...]:
        """Select in every document, in order."""
        masks = [None] * len(scores) if candidates is None else candidates
        return tuple(map(self._rule(), scores, masks))


@dataclass(frozen=True, slots=True)
class StaticSelection(Selection):
    """Every gap that scores ``tau`` or more, ``gap`` units apart (`select_above`)."""

    tau: float = 0.5
    gap: Positive = MIN_GAP
    name: ClassVar[str] = "static"

    def _rule(self) -> Rule:
        return lambda scores, candidates: select_above(scores, self.tau, self.gap, candidates)


@dataclass(frozen=True, slots=True)
class DensitySelection(Selection):
    """In every document the highest, ``rate`` of its candidates (`select_share`)."""

    rate: float | None = None
    gap: Positive = MIN_GAP
    name: ClassVar[str] = "density"

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        _check_rate("rate", self.rate, self.gap, "density:rate=0.1")

    def _rule(self) -> Rule:
        share = self.rate or 0.0  # None was refused
        return lambda scores, candidates: select_share(scores, share, self.gap, candidates)


@dataclass(frozen=True, slots=True)
class AdaptiveSelection(Selection):
    """Online, steered to ``rho`` boundaries a candidate over the corpus (`AdaptiveThreshold`).

    ``tau`` is the first threshold and ``step`` how far one can move, on the scores' own scale.
    """

    rho: float | None = None
    gap: Positive = MIN_GAP
    window: int = 50
    step: float = 0.2
    tau: float = 0.5
    lifetime: int = 3
    least: float | None = None
    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        _check_rate("rho", self.rho, self.gap, "adaptive:rho=0.1")
        self.controller()

    def controller(self) -> AdaptiveThreshold:
        """Return a controller that has seen nothing."""
        least = -math.inf if self.least is None else self.least
        return AdaptiveThreshold(
            self.rho or 0.0, self.gap, self.window, self.step, self.tau, self.lifetime, least
        )

    def _rule(self) -> Rule:
        controller = self.controller()
        return lambda scores, candidates: select_adaptive(scores, controller, candidates)


SELECTIONS: dict[str, type[Selection]] = {
    kind.name: kind for kind in (StaticSelection, DensitySelection, AdaptiveSelection)
}


def parse_selection(text: str) -> Selection:
    """Read a rule, such as ``static:tau=0.5,gap=3`` or ``adaptive:rho=0.1``."""
    return parse_named(text, SELECTIONS, "selection", "--select")


def speaker_candidates(
    corpus: Corpus, speakers: str | Sequence[str]
) -> tuple[Candidates, ...] | None:
    """Of every document the gaps before a turn of one of the speakers; None where none is named.

    Coen, §9.3: in talk with an assistant users open topics, and its own turns answer them.
    """
    wanted = [speakers] if isinstance(speakers, str) else list(speakers)
    if not wanted:
        return None
    found: dict[str, None] = {}
    for document in corpus.documents:
        if document.speakers is None:
            raise InputError(
                "units without speakers",
                expected=f"a speaker for every unit, as only those of {listed(map(repr, wanted))} "
                "may start a segment",
                remedy='add "speakers" to the document, or leave out --candidates-speaker',
                place=document.place,
            )
        found |= dict.fromkeys(document.speakers)
    for name in wanted:
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            few = ", ".join(repr(shorten(each)) for each in list(found)[:8])
            raise InputError(
                f"no unit of the speaker {shorten(name)!r}",
                expected=f"one of the corpus's, {few}{', …' if len(found) > 8 else ''}",
                remedy=f"did you mean {near[0]!r}?" if near else "name one of them",
            )
    named = frozenset(wanted)
    return tuple(
        np.array([speaker in named for speaker in document.speakers or ()][1:], dtype=bool)
        for document in corpus.documents
    )


def _check_rate(option: str, rate: float | None, gap: int, example: str = "") -> None:
    if rate is None or not 0 < rate <= 1 / gap:
        name = "gap" if example else "min_gap"
        raise InputError(
            f"no {option}" if rate is None else f"{option} = {rate} with {name} = {gap}",
            expected=f"boundaries a candidate, above 0 and at most 1/{gap}, all that the gap "
            "leaves room for",
            remedy=f"write {example}" if rate is None else "lower it or the gap",
        )


def _checked(scores: ArrayLike, candidates: ArrayLike | None) -> tuple[Floats, Candidates]:
    """Scores as numbers and candidates as truth values, all gaps where none are given."""
    checked = np.asarray(scores, dtype=np.float64)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        is_flat = checked.ndim == 1
        raise InputError(
            "a score that is no number" if is_flat else f"scores of shape {checked.shape}",
            expected="one finite number per gap between units",
            remedy="leave out the document's ends, and score every gap",
        )
    mask = np.ones(len(checked), bool) if candidates is None else np.asarray(candidates, bool)
    if mask.shape != checked.shape:
        raise InputError(
            f"candidates of shape {mask.shape} for {len(checked)} scores",
            expected="a truth value for every gap",
            remedy="give as many as there are scores",
        )
    return checked, mask


def _suppress(scores: Floats, candidates: Candidates, k: int, min_gap: int) -> Segmentation:
    """Greedy non-maximum suppression until ``k`` candidates are accepted."""
    check_whole("min_gap", min_gap, 1)
    places = np.flatnonzero(candidates)
    is_blocked = np.zeros(len(scores), dtype=bool)
    accepted: list[int] = []
    for i in places[np.argsort(-scores[places], kind="stable")].tolist():
        if len(accepted) == k:
            break
        if not is_blocked[i]:
            accepted.append(i + 1)
            is_blocked[max(0, i - min_gap + 1) : i + min_gap] = True
    return Segmentation.from_boundaries(accepted, len(scores) + 1)
