"""What a reader must know before trusting a table of scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings
from reffree.errors import counted
from reffree.scoring.engine import Unsegmented
from reffree.study.metrics import Chosen
from reffree.study.table import SystemScores


def score_notes(
    corpus: Corpus,
    systems: Sequence[SystemScores],
    embedded: Embeddings | None,
    incomparable: Collection[str],
    unsegmented: Unsegmented,
    chosen: Chosen,
) -> list[str]:
    """Collect the sentences, as far as there is something to say."""
    notes = []
    if corpus.n_without_text:
        dropped = counted(corpus.n_without_text, "unit")
        notes.append(f"{dropped} without text dropped, the boundaries reindexed.")
    if embedded is not None and embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated:,} of {counted(corpus.n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    n_gold = sum(document.gold is not None for document in corpus.documents)
    if 0 < n_gold < len(corpus):
        notes.append(f"Gold was not scored: only {n_gold} of {len(corpus)} documents have it.")
    notes += _annotators(corpus) if chosen.gold_based else []
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
    return notes


def _annotators(corpus: Corpus) -> list[str]:
    counts = sorted({len(document.golds) for document in corpus.documents if document.golds})
    if not counts:
        return []
    several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return [f"Gold-based metrics: mean over {several} annotators of each document."]
