"""What else is below a cache folder: graphs of backends, and facts about models and devices."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from reffree.encoders.cache.sentences import refuse_link, sentences
from reffree.encoders.options import BACKENDS
from reffree.encoders.remembered import BUDGETS, recall

GRAPHS = "graphs"
MEASURED = "measured.json"
MAKING = ".reffree-"
"""So begins a graph's name while it is made."""

_GRAPH = re.compile(f"(?:{'|'.join(BACKENDS)})-[0-9a-f]+")
_OURS = {
    GRAPHS: re.compile(rf"{_GRAPH.pattern}|\{MAKING}.*\.tmp|\.?fastest-[0-9a-f]+\.json.*"),
    BUDGETS: re.compile(r"\.?[0-9a-f]+-.*\.json.*"),
}
"""What reffree writes; a folder of such a name may have been there before it was a cache."""


@dataclass(frozen=True, slots=True)
class Graph:
    """What ``reffree cache ls`` shows of one exported model."""

    path: Path
    encoder: str
    size: int


def graphs(folder: Path) -> list[Graph]:
    """List the models that backends have exported; one that is damaged has no encoder's name."""
    with sentences(folder / GRAPHS):
        return [
            Graph(path, str(recall(path / MEASURED).get("encoder", "(unreadable)")), size_of(path))
            for path in sorted((folder / GRAPHS).glob("*"))
            if _GRAPH.fullmatch(path.name)
        ]


def size_of(path: Path) -> int:
    """Add up the bytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def digest_of(graph: Path) -> str:
    """Hash all files of a graph but the one that has this hash."""
    digest = hashlib.blake2b(digest_size=16)
    with sentences(graph):
        for path in sorted(graph.iterdir()):
            if path.name == MEASURED:
                continue
            digest.update(path.name.encode())
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, hashlib.blake2b).digest())
    return digest.hexdigest()


def remove_graphs(folder: Path) -> tuple[int, int]:
    """Delete all graphs and facts; they are made again when needed. Returns graphs and bytes.

    Where one of them is a link, the link goes and what it leads to stays.
    """
    for name in _OURS:
        refuse_link(folder / name)
    n, freed = len(graphs(folder)), 0
    for name, ours in _OURS.items():
        with sentences(folder / name):
            for path in (folder / name).glob("*"):
                if ours.fullmatch(path.name):
                    is_link = path.is_symlink()
                    freed += 0 if is_link else size_of(path)
                    shutil.rmtree(path) if path.is_dir() and not is_link else path.unlink()
            if (folder / name).is_dir() and not any((folder / name).iterdir()):
                (folder / name).rmdir()
    return n, freed
