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


def coherence_boundaries(coherence: Sequence[float], alpha: float) -> list[int]:
    """Xing and Carenini (2021), 3.3: climb from every gap while coherence does not fall."""
    depths = []
    for i, own in enumerate(coherence):
        left = right = own
        for score in reversed(coherence[:i]):
            if score < left:
                break
            left = score
        for score in coherence[i + 1 :]:
            if score < right:
                break
            right = score
        depths.append((left + right - 2 * own) / 2)
    if not depths:
        return []
    mean = sum(depths) / len(depths)
    deviation = (sum((depth - mean) ** 2 for depth in depths) / len(depths)) ** 0.5
    return [i + 1 for i, depth in enumerate(depths) if depth > mean + alpha * deviation + 1e-12]


def ranking(scores: Sequence[Sequence[float]], margin: float) -> tuple[float, float]:
    """Margin loss over next > same > other, and the share of the three orders that hold."""
    losses, right = [], 0
    for following, same, other in scores:
        for better, worse in ((following, same), (following, other), (same, other)):
            losses.append(max(0.0, margin - (better - worse)))
            right += better > worse
    return sum(losses) / len(losses), right / len(losses)
