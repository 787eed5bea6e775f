"""Batches planned by tokens: long texts in small batches, short ones in large."""

from __future__ import annotations

from collections.abc import Sequence


def plan_batches(
    lengths: Sequence[int], token_budget: int, enough: int | None = None
) -> list[list[int]]:
    """Group positions so that each padded batch holds at most ``token_budget`` tokens.

    Longest first: padding is small, and a batch that is too large for the device fails at once.
    A text longer than the budget goes alone. A batch that holds ``enough`` tokens takes no more
    texts that would need padding: for devices that are busy with few tokens already.

    >>> plan_batches([3, 9, 4, 4], token_budget=12)
    [[1], [2, 3, 0]]
    >>> plan_batches([3, 9, 4, 4], token_budget=12, enough=8)
    [[1], [2, 3], [0]]
    """
    batches: list[list[int]] = []
    longest = 0
    for position in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        held = longest * len(batches[-1]) if batches else 0
        is_open = enough is None or held < enough or lengths[position] == longest
        if batches and held + longest <= token_budget and is_open:
            batches[-1].append(position)
        else:
            batches.append([position])
            longest = max(1, lengths[position])
    return batches
