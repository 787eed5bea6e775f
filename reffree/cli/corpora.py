"""The corpora of a study: one per argument, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.segmentation import Convention


def load_corpora(
    paths: Sequence[str],
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
) -> dict[str, Corpus]:
    """Read every argument as a corpus of its own, called by its file's name without extension."""
    from reffree.formats import load

    names = ["stdin" if path == "-" else Path(path).stem for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise click.UsageError(f"{twice} twice: name every corpus once.")
    return {
        name: load(path, format=input_format, text=text, convention=convention)
        for name, path in zip(names, paths, strict=True)
    }
