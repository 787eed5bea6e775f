"""What else is below a cache folder: graphs of backends, and facts about models and devices."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from reffree.encoders.remembered import BUDGETS, recall

GRAPHS = "graphs"
MEASURED = "measured.json"


@dataclass(frozen=True, slots=True)
class Graph:
    """What ``reffree cache ls`` shows of one exported model."""

    path: Path
    encoder: str
    size: int


def graphs(folder: Path) -> list[Graph]:
    """List the models that backends have exported; one that is damaged has no encoder's name."""
    return [
        Graph(path, str(recall(path / MEASURED).get("encoder", "(unreadable)")), size_of(path))
        for path in sorted((folder / GRAPHS).glob("[!.]*"))
        if path.is_dir()
    ]


def size_of(path: Path) -> int:
    """Add up the bytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def remove_graphs(folder: Path) -> tuple[int, int]:
    """Delete all graphs and facts; they are made again when needed. Returns graphs and bytes."""
    n, freed = len(graphs(folder)), 0
    for name in (GRAPHS, BUDGETS):
        freed += size_of(folder / name)
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
    return n, freed
