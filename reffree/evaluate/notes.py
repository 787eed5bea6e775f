"""What a reader must know before trusting a table of scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reffree.encoders.embed import Embeddings
from reffree.errors import counted, listed
from reffree.evaluate.corpus_counts import Survey
from reffree.evaluate.metric_set import Chosen
from reffree.evaluate.table import SystemScores
from reffree.scoring.engine import Unsegmented
from reffree.scoring.expected import INFORMED, Expected


def score_notes(
    survey: Survey,
    systems: Sequence[SystemScores],
    embedded: Embeddings | None,
    incomparable: Collection[str],
    unsegmented: Unsegmented,
    chosen: Chosen,
) -> list[str]:
    """Collect the sentences, as far as there is something to say."""
    notes = reading_notes(survey, embedded)
    if 0 < survey.n_gold < survey.n_documents:
        notes.append(
            f"Gold was not scored: only {survey.n_gold} of {survey.n_documents} documents have it."
        )
    notes += _annotators(survey) if chosen.gold_based else []
    differing: dict[str, list[str]] = {}
    for name in systems[0].metrics:
        if name in incomparable:
            listed = ", ".join(f"{row.system} {row.metrics[name].documents}" for row in systems)
            differing.setdefault(listed, []).append(name)
    for listed, names in differing.items():
        notes.append(
            f"{', '.join(names)}: the systems were scored on different documents ({listed}) and "
            "must not be compared."
        )
    single = [row for row in systems if row.unsegmented]
    if single and chosen.reference_free:
        listed = ", ".join(f"{row.system} {row.unsegmented}" for row in single)
        notes.append(f"Documents without a boundary ({unsegmented}): {listed}.")
    return notes + _posterior_notes(systems, chosen)


def _posterior_notes(systems: Sequence[SystemScores], chosen: Chosen) -> list[str]:
    """How finely expected errors assume that documents are cut, and whether the text says much."""
    assumed: dict[str, list[str]] = {}
    uninformed: dict[tuple[str, str], list[str]] = {}
    for name, metric in chosen.reference_free.items():
        score = systems[0].metrics[name]  # the posterior is the same for all systems
        if not isinstance(metric, Expected) or score.information is None:
            continue
        chance = score.chance_information or 0.0
        if metric.length is None and score.assumed_segments is not None:
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


def reading_notes(survey: Survey, embedded: Embeddings | None) -> list[str]:
    """Say what was dropped or cut off while a corpus was read and encoded."""
    notes = []
    if survey.n_without_text:
        dropped = counted(survey.n_without_text, "unit")
        notes.append(f"{dropped} without text dropped, the boundaries reindexed.")
    if embedded is not None and embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated:,} of {counted(survey.n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    return notes


def _annotators(survey: Survey) -> list[str]:
    counts = sorted(survey.annotators)
    if not counts:
        return []
    several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return [f"Gold-based metrics: mean over {several} annotators of each document."]
