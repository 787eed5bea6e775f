"""What trained scorers are judged by, written out literally."""

from __future__ import annotations

from collections.abc import Sequence


def training_figures(
    passages: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> tuple[float, float, float | None, int]:
    """Coen, Tables 7 and 8, from logits and labels of every gap of every passage.

    The static rule at .5 with boundaries 3 apart: F1 over all boundaries, the mean of W-F1, BOR;
    and how many boundaries there are.
    """
    hits = n_found = n_gold = 0
    tolerant = []
    for logits, labels in passages:
        found: set[int] = set()
        for i in sorted(range(len(logits)), key=lambda i: (-logits[i], i)):
            if logits[i] >= 0 and all(abs(i - j) >= 3 for j in found):
                found.add(i)
        gold = {i for i, label in enumerate(labels) if label}
        hits, n_found, n_gold = hits + len(found & gold), n_found + len(found), n_gold + len(gold)
        near = sum(any(abs(i - j) <= 1 for j in gold) for i in found)
        recalled = sum(any(abs(i - j) <= 1 for j in found) for i in gold)
        if not found and not gold:
            tolerant.append(1.0)
        elif not near:
            tolerant.append(0.0)
        else:
            precision, recall = near / len(found), recalled / len(gold)
            tolerant.append(2 * precision * recall / (precision + recall))
    f1 = 2 * hits / (n_found + n_gold) if n_found + n_gold else 1.0
    return f1, sum(tolerant) / len(tolerant), n_found / n_gold if n_gold else None, n_found
