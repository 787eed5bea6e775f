"""The result of a scoring run: systems × metrics, optionally documents and segments."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from reffree.metrics.names import WITHOUT_SEARCH
from reffree.util.errors import InputError, check_documents, listed_briefly
from reffree.util.optional import ShowsItself, require_pandas

if TYPE_CHECKING:
    import pandas as pd

    # For annotations here and in the reports; nothing is imported when the program runs.
    from reffree.metrics.free.attribution import Addition as Addition
    from reffree.metrics.free.attribution import BoundaryEffect as BoundaryEffect
    from reffree.metrics.free.attribution import Explanation as Explanation
    from reffree.metrics.gold.failure_modes import FailureMode as FailureMode
    from reffree.statistics.losses import Direction

DECIMALS = 10
"""Rounding of results: far below any meaning, far above what batching can change."""

POSTERIOR = ("spread", "information", "chance_information", "assumed_segments")
"""What comes with expected errors, in this order in every output."""


RECOMMENDED = "expected_pk"

MANY, MOST_RIVALS, MOST_SENTINELS = 16, 10, 5
"""Systems that a screen holds, and of more those that are shown."""

SENTINEL = re.compile(r"(random|even)([^a-z]|$)|(none|all)$")
"""Names of segmentations that read no text."""


def named_like(kind: str, metrics: Iterable[str]) -> str | None:
    """Return the first name of a kind of metric, whatever its options."""
    return next((name for name in metrics if name.split(":")[0] == kind), None)


def is_published(name: str) -> bool:
    """Whether a metric is one of the published scores that need no gold."""
    return name.split(":")[0] in WITHOUT_SEARCH


def judged_by(metrics: Sequence[str]) -> str:
    """Choose the metric that a verdict rests on: expected Pk where there is one, else the first."""
    return named_like(RECOMMENDED, metrics) or metrics[0]


def rounded(value: float | None) -> float | None:
    """Round for output; -0.0 becomes 0.0, and what is not finite never gets out."""
    if value is None:
        return None
    if not math.isfinite(value):
        raise InputError(
            f"the score {value}",
            expected="a finite number, or none with its reason",
            remedy="bring the vectors, or the costs of the metric, to a smaller scale",
        )
    return round(value, DECIMALS) + 0.0


@dataclass(frozen=True, slots=True)
class NullTest:
    """A loss against those of random arrangements of the same segment lengths."""

    draws: int
    mean: float
    sd: float
    z: float | None  # none where all draws are equal
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        numbers = {name: rounded(getattr(self, name)) for name in ("mean", "sd", "z", "p")}
        return {"draws": self.draws, **numbers}


@dataclass(frozen=True, slots=True)
class Score:
    """A score, and what it is to be read with, if anything; of a corpus, means over documents."""

    value: float | None  # what tables show: the loss, or a gold-based metric's own value
    raw: float | None
    _: KW_ONLY
    null: NullTest | None = None
    spread: float | None = None  # of an expected error over draws
    information: float | None = None  # nats per boundary behind an expected error
    chance_information: float | None = None  # the same with the units in random order
    assumed_segments: float | None = None  # of a document
    allowed: tuple[float, float] | None = None  # factors of granularity that the text allows

    @property
    def posterior(self) -> dict[str, float | None]:
        """What comes with an expected error; None where there is nothing of it."""
        return {name: rounded(getattr(self, name)) for name in POSTERIOR}

    def _to_dict(self, own: Mapping[str, Any], **optional: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return plain values for JSON; what there is nothing to say of is left out."""
        values = {"value": rounded(self.value), "raw": rounded(self.raw)}
        null = None if self.null is None else self.null.to_dict()
        allowed = self.allowed and [rounded(x) for x in self.allowed]
        beside = {**optional, "null": null, **self.posterior, "allowed": allowed}
        return {**values, **own, **{name: x for name, x in beside.items() if x is not None}}


@dataclass(frozen=True, slots=True)
class CorpusScore(Score):
    """One metric of one system over the corpus."""

    ci: tuple[float, float] | None = None
    ci_reason: str | None = None  # why there is no interval
    documents: int = 0  # with a score
    undefined: int = 0  # without one
    left_out: int = 0  # infinite parts left out of documents' scores
    direction: Direction = "lower"

    @property
    def loss(self) -> float:
        """The value as shown, turned so that lower is better; infinite where it is undefined."""
        from reffree.statistics.losses import as_loss  # NumPy, which --help does without

        value = rounded(self.value)
        return math.inf if value is None else as_loss(value, self.direction)

    def __str__(self) -> str:
        """Write the value with its interval."""
        if self.value is None:
            return "–"
        interval = "" if self.ci is None else " [{:.3f}, {:.3f}]".format(*self.ci)
        return f"{self.value:.3f}{interval}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; reasons and counts only where there is something to say."""
        own: dict[str, Any] = {
            "ci": None if self.ci is None else [rounded(x) for x in self.ci],
            "documents": self.documents,
            "undefined": self.undefined,
            "direction": self.direction,
        }
        return self._to_dict(own, ci_reason=self.ci_reason, left_out=self.left_out or None)


@dataclass(frozen=True, slots=True)
class PartScore(Score):
    """One metric of one document or segment."""

    reason: str | None = None  # why it is undefined
    weight: float | None = None  # in the corpus mean, where it is not 1
    segments: tuple[PartScore, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        segments = self.segments and [segment.to_dict() for segment in self.segments]
        weight = rounded(self.weight)
        return self._to_dict({}, reason=self.reason, weight=weight, segments=segments)


@dataclass(frozen=True, slots=True)
class SystemScores:
    """One system over the corpus."""

    system: str
    segments: int
    unsegmented: int  # documents without a boundary
    metrics: dict[str, CorpusScore]
    failure_mode: FailureMode | None = None  # where the four figures it rests on are there

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        result: dict[str, Any] = {
            "system": self.system,
            "segments": self.segments,
            "unsegmented": self.unsegmented,
            "metrics": {name: score.to_dict() for name, score in self.metrics.items()},
        }
        if self.failure_mode is not None:
            result["failure_mode"] = asdict(self.failure_mode)
        return result


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """One system on one document."""

    id: str
    system: str
    metrics: dict[str, PartScore]
    units: tuple[str, ...] = ()  # the text, where it is needed to draw explanations
    clocks: tuple[str, ...] = ()  # where units start in time, if that is known
    explanations: dict[str, Explanation] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        result: dict[str, Any] = {
            "id": self.id,
            "system": self.system,
            "metrics": {name: score.to_dict() for name, score in self.metrics.items()},
        }
        if self.explanations is not None:
            from reffree.evaluate.result import plain

            result["explanations"] = plain(self.explanations)
        return result


@dataclass(frozen=True, slots=True)
class ScoreTable(ShowsItself):
    """Everything `reffree score` prints, in one value."""

    signature: str
    corpus: dict[str, int]
    systems: tuple[SystemScores, ...]
    documents: tuple[DocumentScores, ...] | None = None
    notes: tuple[str, ...] = ()
    incomparable: frozenset[str] = frozenset()  # metrics defined on other documents per system
    verdict: tuple[str, ...] = ()  # what it says at a glance, in sentences
    settings: dict[str, Any] = field(default_factory=dict)  # options of the call
    every: tuple[SystemScores, ...] = ()  # all systems, where some of them are shown

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of the columns."""
        return tuple(self.systems[0].metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        result: dict[str, Any] = {
            "signature": self.signature,
            "corpus": dict(self.corpus),
            "systems": [row.to_dict() for row in self.systems],
            "verdict": list(self.verdict),
            "notes": list(self.notes),
        }
        if self.documents is not None:
            result["documents"] = [row.to_dict() for row in self.documents]
        return result

    def __str__(self) -> str:
        """One line per system with its values, for a quick look."""
        lines = [
            f"{row.system}: {', '.join(f'{name} {score}' for name, score in row.metrics.items())}"
            for row in self.systems
        ]
        return "\n".join([*lines, self.signature])

    def best(self, metric: str) -> frozenset[str]:
        """Return the systems with the best value, ties included.

        None where there is nothing to compare: one system, or systems scored on different
        documents.
        """
        losses = {row.system: row.metrics[metric].loss for row in self.every or self.systems}
        least = min(losses.values())
        if len(losses) < 2 or math.isinf(least) or metric in self.incomparable:
            return frozenset()
        return frozenset(system for system, loss in losses.items() if loss == least)

    def narrowed(self, names: Collection[str]) -> ScoreTable:
        """Keep the rows of documents and systems of these names; where no system is named, of all.

        The systems' scores over the corpus stay.
        """
        rows = self.documents or ()
        systems = {row.system for row in self.systems} & set(names)
        documents = set(names) - systems
        check_documents(sorted(documents), (row.id for row in rows))
        kept = tuple(
            row
            for row in rows
            if row.id in (documents or {row.id}) and row.system in (systems or {row.system})
        )
        return replace(self, documents=None if self.documents is None else kept)

    def shortened(self) -> ScoreTable:
        """Keep the best systems of many, sentinels and gold, in the order they have; and say so."""
        names = [row.system for row in self.systems]
        if len(names) <= MANY:
            return self
        sentinels = [name for name in names if SENTINEL.match(name)][:MOST_SENTINELS]
        rivals = [n for n in names if n != "gold" and not SENTINEL.match(n)][:MOST_RIVALS]
        kept = {"gold", *sentinels, *rivals}
        rows = tuple(row for row in self.systems if row.system in kept)
        beside = [name for name in names if name == "gold"] + sentinels
        also = f", {listed_briefly(beside, MOST_SENTINELS)}" if beside else ""
        note = (
            f"{len(rows)} of {len(names)} systems: the first {len(rivals)} by "
            f"{judged_by(self.metrics)}{also}; -f table shows all, as do all formats."
        )
        return replace(self, systems=rows, notes=(note, *self.notes), every=self.systems)

    def worse_than(self, limits: Mapping[str, float]) -> list[str]:
        """Say which systems are worse than a limit by metric, or have no score; gold aside."""
        from reffree.statistics.losses import as_loss

        judged = [row for row in self.systems if row.system != "gold"] or self.systems
        sentences = []
        for row, (metric, limit) in product(judged, limits.items()):
            self._check_metric(metric, "a limit for")
            score = row.metrics[metric]
            if score.value is None:
                sentences.append(f"system {row.system!r}: {metric} is undefined in every document")
            elif score.loss > as_loss(limit, score.direction):
                is_better = f"{score.direction} is better"
                better = "best at 1" if score.direction == "toward_1" else is_better
                sentences.append(
                    f"system {row.system!r}: {metric} is {rounded(score.value):.4g}, worse than "
                    f"{limit:g} ({better})"
                )
        return sentences

    def sorted_by(self, metric: str) -> ScoreTable:
        """Return the table with its systems in the order of a metric, best first.

        Systems without a value come last. As they are, where they were scored on different
        documents.
        """
        self._check_metric(metric, "the order by")
        if metric in self.incomparable:
            return self
        order = sorted(self.systems, key=lambda row: row.metrics[metric].loss)
        return replace(self, systems=tuple(order))

    def _check_metric(self, metric: str, what: str) -> None:
        if metric not in self.metrics:
            raise InputError(
                f"{what} {metric!r}, which is not scored here",
                expected=f"one of {', '.join(self.metrics)}",
                remedy="ask for it with -m, or name one of these",
            )

    def to_pandas(self) -> pd.DataFrame:
        """One row per system and metric (needs pandas)."""
        rows = [
            {
                "system": row.system,
                "metric": name,
                "direction": score.direction,
                "value": rounded(score.value),
                "raw": rounded(score.raw),
                "ci_low": None if score.ci is None else rounded(score.ci[0]),
                "ci_high": None if score.ci is None else rounded(score.ci[1]),
                "documents": score.documents,
                "undefined": score.undefined,
                **score.posterior,
            }
            for row in self.systems
            for name, score in row.metrics.items()
        ]
        return require_pandas().DataFrame(rows)

    def documents_to_pandas(self) -> pd.DataFrame:
        """One row per document, system and metric (needs pandas and ``per_document=True``)."""
        rows = [
            {
                "id": row.id,
                "system": row.system,
                "metric": name,
                "value": rounded(score.value),
                "raw": rounded(score.raw),
                "weight": rounded(score.weight),
                **score.posterior,
            }
            for row in self.documents or ()
            for name, score in row.metrics.items()
        ]
        columns = ("id", "system", "metric", "value", "raw", "weight", *POSTERIOR)
        return require_pandas().DataFrame(rows, columns=columns)
