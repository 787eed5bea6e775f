"""Words that the messages of several formats share."""

from __future__ import annotations

_INTO_JSONL = (
    "into a .jsonl file, one document a line such as "
    '{"id": "a", "units": ["One.", "Two."], "systems": {"mine": [1, 1]}}'
)
OWN_TEXT = f"put text of your own {_INTO_JSONL}"
ITS_TEXT = f"put its text {_INTO_JSONL}"


def not_read(n: int) -> str:
    """Say what happened to so many files that were passed over, and how to silence it."""
    was, it = ("it was", "it") if n == 1 else ("they were", "them")
    return f"{was} not read, move {it} elsewhere to silence this"
