"""The result of `reffree score`: systems × metrics, optionally documents and segments."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from reffree.evaluate.result import DECIMALS as DECIMALS
from reffree.evaluate.result import DocumentText, Field, Result, Table, columns, format_value, plain
from reffree.evaluate.result import rounded as rounded
from reffree.metrics.names import WITHOUT_SEARCH
from reffree.util.errors import InputError, check_documents, counted, listed_briefly
from reffree.util.optional import ShowsItself, require_pandas

if TYPE_CHECKING:
    import pandas as pd

    # For annotations; nothing is imported when the program runs.
    from reffree.metrics.free.attribution import Explanation
    from reffree.metrics.gold.granularity import FailureMode
    from reffree.statistics.losses import Direction

POSTERIOR = ("spread", "information", "chance_information", "assumed_segments")
"""What comes with expected errors, in this order in every output."""

IN_JSON = (
    *("value", "raw", "ci", "documents", "undefined", "direction", "ci_reason", "left_out"),
    *("reason", "weight", "segments", "null", *POSTERIOR, "allowed"),
)
ALWAYS = {"value", "raw", "ci"}
"""Of these what is there although it is undefined."""

RECOMMENDED = "expected_pk"

MANY, MOST_RIVALS, MOST_SENTINELS = 16, 10, 5
"""Systems that a screen holds, and of more those that are shown."""

MOST_COLUMNS = 7
"""Of more metrics the published ones that need no gold get a table of their own."""

SENTINEL = re.compile(r"(random|even)([^a-z]|$)|(none|all)$")
"""Names of segmentations that read no text."""

PUBLISHED = "Published scores of cohesion, which need no gold"
SYSTEMS = (
    *columns("text", "system"),
    *columns("count", segments="segs"),
    *columns("text", "metric"),
    Field("value", "value", "score", interval="ci", best="best", beside="beside", below="below"),
    *columns("interval", "ci"),
    *columns("count", best=""),
    *columns("text", "beside", "below"),
)
DOCUMENTS = (
    *columns("text", "document", "system", "metric"),
    Field("value", "value", "number", beside="beside", below="below"),
    *columns("text", "beside", "below"),
)
SCORES = (
    *columns("text", "system", "document"),
    *columns("count", "segment"),
    *columns("text", "metric"),
    *columns("number", "value", "raw"),
    *columns("interval", "ci"),
    *columns("count", "documents", "undefined"),
    *columns("number", "weight", *POSTERIOR, "null_z", "null_p"),
    *columns("text", "direction"),
    *columns("interval", "allowed"),
)
EXPLANATIONS = (
    *columns("text", "document", "system", "metric", "kind"),
    *columns("count", "at"),
    *columns("number", "contribution", "best_shift", "shift_gain"),
)


def named_like(kind: str, metrics: Iterable[str]) -> str | None:
    """Return the first name of a kind of metric, whatever its options."""
    return next((name for name in metrics if name.split(":")[0] == kind), None)


def judged_by(metrics: Sequence[str]) -> str:
    """Choose the metric that a verdict rests on: expected Pk where there is one, else the first."""
    return named_like(RECOMMENDED, metrics) or metrics[0]


@dataclass(frozen=True, slots=True)
class NullTest:
    """A loss against those of random arrangements of the same segment lengths."""

    draws: int
    mean: float
    sd: float
    z: float | None  # none where all draws are equal
    p: float

    def __str__(self) -> str:
        return f"p {self.p:.3f}".replace("p 0.", "p .")


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what there is nothing to say of is left out."""
        found = {name: getattr(self, name) for name in IN_JSON if hasattr(self, name)}
        if found.get("segments"):
            found["segments"] = [segment.to_dict() for segment in found["segments"]]
        found["left_out"] = found.get("left_out") or None
        return {
            name: rounded(x) if isinstance(x, float) else plain(x)
            for name, x in found.items()
            if x is not None or name in ALWAYS
        }


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


@dataclass(frozen=True, slots=True)
class PartScore(Score):
    """One metric of one document or segment."""

    reason: str | None = None  # why it is undefined
    weight: float | None = None  # in the corpus mean, where it is not 1
    segments: tuple[PartScore, ...] | None = None


@dataclass(frozen=True, slots=True)
class SystemScores:
    """One system over the corpus."""

    system: str
    segments: int
    unsegmented: int  # documents without a boundary
    metrics: dict[str, CorpusScore]
    failure_mode: FailureMode | None = None  # where the four figures it rests on are there


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """One system on one document."""

    id: str
    system: str
    metrics: dict[str, PartScore]
    units: tuple[str, ...] = ()  # the text, where it is needed to draw explanations
    clocks: tuple[str, ...] = ()  # where units start in time, if that is known
    explanations: dict[str, Explanation] | None = None


def _row_in_json(row: SystemScores | DocumentScores, *names: str) -> dict[str, Any]:
    result = {name: getattr(row, name) for name in names}
    result["metrics"] = {name: score.to_dict() for name, score in row.metrics.items()}
    more = "explanations" if isinstance(row, DocumentScores) else "failure_mode"
    return result if getattr(row, more) is None else result | {more: plain(getattr(row, more))}


@dataclass(frozen=True, slots=True)
class ScoreTable(ShowsItself):
    """Everything `reffree score` prints, in one value; `result` is what is shown of it."""

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
        rows = [_row_in_json(row, "system", "segments", "unsegmented") for row in self.systems]
        result = {
            "signature": self.signature,
            "corpus": dict(self.corpus),
            "systems": rows,
            "verdict": list(self.verdict),
            "notes": list(self.notes),
        }
        if self.documents is not None:
            result["documents"] = [_row_in_json(row, "id", "system") for row in self.documents]
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
        header = (
            *("system", "metric", "direction", "value", "raw", "ci_low", "ci_high", "documents"),
            *("undefined", *POSTERIOR),
        )
        rows = list(self._system_rows())
        for row in rows:
            row["ci_low"], row["ci_high"] = row["ci"] or (None, None)
        return require_pandas().DataFrame(rows, columns=header)

    def documents_to_pandas(self) -> pd.DataFrame:
        """One row per document, system and metric (needs pandas and ``per_document=True``)."""
        header = ("id", "system", "metric", "value", "raw", "weight", *POSTERIOR)
        rows = [row | {"id": row["document"]} for row in self._part_rows() if not row["segment"]]
        return require_pandas().DataFrame(rows, columns=header)

    @property
    def result(self) -> Result:
        """The tables that people read, the one for CSV, and what is to be known of them."""
        apart = [name for name in self.metrics if name.split(":")[0] in WITHOUT_SEARCH]
        if len(self.metrics) <= MOST_COLUMNS or len(apart) == len(self.metrics):
            apart = []
        of_systems, of_parts = list(self._system_rows()), list(self._part_rows())
        tables = [
            Table.of(name, title, SYSTEMS, rows, wide="metric")
            for name, title, is_apart in (("systems", "", False), ("published", PUBLISHED, True))
            if (rows := [row for row in of_systems if (row["metric"] in apart) == is_apart])
        ]
        explained = [row for row in self.documents or () if row.explanations is not None]
        if self.documents is not None:
            rows = [row for row in of_parts if not row["segment"]]
            made = Table.of("documents", "", DOCUMENTS, rows, wide="metric", shown=not explained)
            tables.append(made)
        if explained:
            effects = list(self._explanation_rows())
            tables.append(Table.of("explanations", "", EXPLANATIONS, effects))
        else:
            tables.append(Table.of("scores", "", SCORES, [*of_systems, *of_parts], shown=False))
        return Result(
            command="score",
            question="How good are these segmentations?",
            verdict=self.verdict,
            signature=self.signature,
            settings={},
            corpora=(dict(self.corpus),),
            tables=tuple(tables),
            notes=self.notes,
            texts=tuple(DocumentText("", row.id, row.units, {}, row.clocks) for row in explained),
            legend=(self._legend(), *self._gaps(), *self._failure_modes()),
        )

    def _row(self, metric: str, score: Score) -> dict[str, Any]:
        """Numbers of a score by column, and what is shown beside and below it."""
        z, p = (None, None) if score.null is None else (score.null.z, score.null.p)
        spread = "" if score.spread is None else f"± {format_value(score.spread, 'score')}"
        return {
            **dict.fromkeys((*POSTERIOR, "weight")),
            **score.to_dict(),
            **{"metric": metric, "direction": self.systems[0].metrics[metric].direction},
            **{"null_z": z, "null_p": p, "beside": spread, "below": str(score.null or "")},
        }

    def _system_rows(self) -> Iterator[dict[str, Any]]:
        """One row per system and metric; below a score may stand what is wrong with it."""
        best = {name: self.best(name) for name in self.metrics}
        for row, name in product(self.systems, self.metrics):
            score = row.metrics[name]
            cells = self._row(name, score) | {"system": row.system, "segments": row.segments}
            cells["best"] = int(row.system in best[name] and score.allowed is None)
            low, high = score.allowed or (-math.inf, math.inf)
            if score.value is None:
                cells["below"] = "undefined"
            elif not low <= score.value <= high:
                cells["below"] = "coarse" if score.value < low else "fine"
            yield cells

    def _part_rows(self) -> Iterator[dict[str, Any]]:
        """One row per document, system and metric, and after it one per segment."""
        for row in self.documents or ():
            for name, score in row.metrics.items():
                parts = [format_value(each.value, "number") for each in score.segments or ()]
                for segment, each in enumerate([score, *(score.segments or ())]):
                    cells = self._row(name, each) | {"system": row.system, "document": row.id}
                    cells |= {"segment": segment or None, "undefined": int(each.value is None)}
                    if each.weight is not None and not cells["beside"]:
                        cells["beside"] = f"× {each.weight:.3g}"
                    cells["beside"] = "" if each.value is None else cells["beside"]
                    cells["below"] = " ".join(filter(None, [*parts, cells["below"]]))
                    yield cells

    def _explanation_rows(self) -> Iterator[tuple[Any, ...]]:
        """One row per boundary, and one per document for the best addition."""
        for row in self.documents or ():
            for name, explanation in (row.explanations or {}).items():
                own, addition = (row.id, row.system, name), explanation.addition
                for e in explanation.boundaries:
                    yield (*own, "boundary", e.at, e.contribution, e.best_shift, e.shift_gain)
                if addition is not None:
                    yield (*own, "addition", addition.at, addition.gain, None, None)

    def _legend(self) -> str:
        """Say how to read the cells, as far as there is something in them."""
        cells = [score for row in self.systems for score in row.metrics.values()]
        parts = [score for row in self.documents or () for score in row.metrics.values()]
        allowed = next((score.allowed for score in cells if score.allowed), (0.0, 0.0))
        said = {
            f"{counted(self.corpus['documents'], 'document')}, "
            f"{counted(self.corpus['units'], 'unit')}. {self._directions()}; the best of a column "
            "is marked.": True,
            f"granularity: the text allows {allowed[0]:.2f} to {allowed[1]:.2f}; less is coarse, "
            "more is fine.": any(score.allowed for score in cells),
            "With each score: its 95 % interval over documents.": any(s.ci for s in cells),
            "±: standard deviation over segmentations that the text makes likely.": any(
                score.spread is not None for score in cells
            ),
            "×: what a document counts for in the corpus's score, where that is not 1.": any(
                score.weight is not None for score in parts
            ),
            "p: how often the same segment lengths in random order do as well.": any(
                score.null for score in cells
            ),
        }
        return " ".join(sentence for sentence, is_so in said.items() if is_so)

    def _directions(self) -> str:
        """Say which way is better."""
        named: dict[str, list[str]] = {}
        for name, score in self.systems[0].metrics.items():
            named.setdefault(score.direction, []).append(name)
        parts = ["lower is better"] if "lower" in named else []
        if "higher" in named:
            parts.append(
                f"for {', '.join(named['higher'])} higher" if parts else "higher is better"
            )
        if "toward_1" in named:
            parts.append(f"for {', '.join(named['toward_1'])} 1 is best")
        return "; ".join(parts).capitalize()

    def _gaps(self) -> Iterator[str]:
        """Documents without a score and scores without an interval, metrics that agree merged."""
        undefined: dict[str, list[str]] = {}
        withheld: dict[str, list[str]] = {}
        for name in self.metrics:
            scores = {row.system: row.metrics[name] for row in self.systems}
            without = [f"{system} {s.undefined}" for system, s in scores.items() if s.undefined]
            bare = [system for system, s in scores.items() if s.ci_reason is not None]
            if without:
                undefined.setdefault(listed_briefly(without), []).append(name)
            if bare:
                which = "" if len(bare) == len(scores) else f" of {listed_briefly(bare)}"
                withheld.setdefault(which, []).append(name)
        for systems, names in undefined.items():
            yield f"Documents without a defined {', '.join(names)}: {systems}."
        for which, names in withheld.items():
            of = "" if len(names) == len(self.metrics) else f" for {', '.join(names)}"
            yield f"No interval{of}{which}: too few documents with a score."
        cells = [(row.system, score) for row in self.systems for score in row.metrics.values()]
        if left_out := [f"{system} {score.left_out}" for system, score in cells if score.left_out]:
            yield f"Neighbours with equal centroids left out: {listed_briefly(left_out)}."

    def _failure_modes(self) -> Iterator[str]:
        """Name each system's regime, and by which thresholds."""
        modes = {r.system: r.failure_mode for r in self.systems if r.failure_mode is not None}
        if modes:
            regimes = listed_briefly([f"{system} {mode.label}" for system, mode in modes.items()])
            limits = next(iter(modes.values())).thresholds
            yield (
                f"Regimes of Coen's Table 2: {regimes}; high is w_f1 from {limits.high_w_f1:g}, "
                f"purity and coverage from {limits.high_overlap:g}, and bor is 1 from "
                f"{limits.sparse_bor:g} to {limits.dense_bor:g}."
            )
