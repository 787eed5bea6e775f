"""What a reader must know before trusting a table of scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.scores import Scores
from reffree.evaluate.table import SystemScores
from reffree.util.errors import counted, listed, listed_briefly

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings

UNREAD = 0.05
"""Share of units that an encoder may not have been made for before it is worth a note."""


def score_notes(
    scores: Scores,
    counts: CorpusCounts,
    systems: Sequence[SystemScores],
    incomparable: Collection[str],
) -> list[str]:
    """Collect the sentences, as far as there is something to say."""
    notes = dropped_notes(counts, scores.embedded)
    if 0 < counts.n_gold < counts.n_documents:
        notes.append(
            f"Gold was not scored: only {counts.n_gold} of {counts.n_documents} documents have it."
        )
    if scores.metrics.gold_based and counts.annotators:
        numbers = " to ".join(map(str, sorted({min(counts.annotators), max(counts.annotators)})))
        notes.append(f"Gold-based metrics: mean over {numbers} annotators of each document.")
    differing: dict[str, list[str]] = {}
    for name in systems[0].metrics:
        if name in incomparable:
            having = [f"{row.system} {row.metrics[name].documents}" for row in systems]
            differing.setdefault(listed_briefly(having), []).append(name)
    for numbers, names in differing.items():
        notes.append(
            f"{', '.join(names)}: the systems were scored on different documents ({numbers}) and "
            "must not be compared."
        )
    single = [row for row in systems if row.unsegmented]
    if single and scores.metrics.reference_free:
        numbers = listed_briefly([f"{row.system} {row.unsegmented}" for row in single])
        notes.append(f"Documents without a boundary ({scores.settings.unsegmented}): {numbers}.")
    return notes + _posterior_notes(systems, scores.metrics)


def _posterior_notes(systems: Sequence[SystemScores], metrics: MetricSet) -> list[str]:
    """How finely expected errors assume that documents are cut, and whether the text says much."""
    assumed: dict[str, list[str]] = {}
    uninformed: dict[tuple[str, str], list[str]] = {}
    for name, metric in metrics.reference_free.items():
        score = systems[0].metrics[name]  # the posterior is the same for all systems
        if score.information is None:
            continue
        from reffree.metrics.free.expected import INFORMED

        chance = score.chance_information or 0.0
        if getattr(metric, "length", None) is None and score.assumed_segments is not None:
            assumed.setdefault(f"{score.assumed_segments:.1f}", []).append(name)
        if score.information <= INFORMED * chance:
            key = (f"{score.information:.2f}", f"{chance:.2f}")
            uninformed.setdefault(key, []).append(name)
    return [
        *(
            f"{listed(names)}: {segments} segments a document assumed; give length=N, units a "
            "segment, if you know better."
            for segments, names in assumed.items()
        ),
        *(
            f"{listed(names)}: this rests on the prior. The text adds {found} nats a boundary to "
            f"it, its units in random order {chance}; information is more than {INFORMED:g} times "
            "that."
            for (found, chance), names in uninformed.items()
        ),
    ]


def dropped_notes(counts: CorpusCounts, embedded: Embeddings | None) -> list[str]:
    """Say what was dropped or cut off while a corpus was read and encoded."""
    notes = []
    if counts.n_without_text:
        dropped = counted(counts.n_without_text, "unit")
        notes.append(f"{dropped} without text dropped, the boundaries reindexed.")
    if embedded is not None and embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated:,} of {counted(counts.n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    return notes + ([] if embedded is None else _unread(embedded, counts.n_units))


def _unread(embedded: Embeddings, n_units: int) -> list[str]:
    """Say which text the encoder was not made for, if it is more than here and there."""
    many = {kind: n for kind, n in embedded.unread.items() if n > UNREAD * n_units}
    if not many:
        return []
    told = listed(f"{n:,} of {counted(n_units, 'unit')} in {kind}" for kind, n in many.items())
    from reffree.encoders.aliases import readers

    better = readers(many)
    remedy = f"choose one that was: {' or '.join(better)}" if better else "choose one that was"
    return [
        f"{told}: {embedded.spec.name} was not made for that, and its vectors may say little; "
        f"{remedy} (reffree models)."
    ]
