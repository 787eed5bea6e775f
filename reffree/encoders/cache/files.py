"""What is below a cache folder: a file per encoder, and graphs of backends and other facts."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reffree.encoders.base import EncoderSpec
from reffree.encoders.cache.errors import cache_errors, refuse_link
from reffree.encoders.device import BUDGETS, DEVIATIONS, ENDPOINTS, recall
from reffree.encoders.options import BACKENDS
from reffree.util.errors import OptionError, UnknownNameError

SCHEMA_VERSION = 2
"""Names the folder, so that versions of reffree never read each other's files."""

LOGS = ("", "-wal", "-shm", "-journal")
GRAPHS = "graphs"
MEASURED = "measured.json"
_GRAPH = re.compile(f"(?:{'|'.join(BACKENDS)})-[0-9a-f]+")
_UNFINISHED = r"\.reffree-.*\.tmp"
_OURS = {
    GRAPHS: re.compile(rf"{_GRAPH.pattern}|{_UNFINISHED}|\.?fastest-[0-9a-f]+\.json.*"),
    BUDGETS: re.compile(rf"{_UNFINISHED}|\.?[0-9a-f]+-.*\.json.*"),
    DEVIATIONS: re.compile(rf"{_UNFINISHED}|\.?[0-9a-f]+-.*\.json.*"),
    ENDPOINTS: re.compile(rf"{_UNFINISHED}|\.?[0-9a-f]+\.json.*"),
}
"""What reffree writes; a folder of such a name may have been there before it was a cache."""


def cache_files(folder: Path) -> list[Path]:
    """List the cache files below a cache folder."""
    return sorted((folder / "embeddings" / f"v{SCHEMA_VERSION}").glob("*.sqlite"))


def old_files(folder: Path) -> list[Path]:
    """List the cache files that other versions of reffree left below a cache folder."""
    current = set(cache_files(folder))
    return sorted(set((folder / "embeddings").glob("v*/*.sqlite")) - current)


def cache_path(folder: Path, spec: EncoderSpec) -> Path:
    """Return the file that holds an encoder's vectors: readable name, then fingerprint."""
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.rsplit("/", 1)[-1].lower()).strip("-")
    name = f"{slug[:60] or 'model'}-{spec.fingerprint[:16]}.sqlite"
    return folder / "embeddings" / f"v{SCHEMA_VERSION}" / name


def choose_files(names: Iterable[str], paths: Sequence[Path]) -> list[Path]:
    """Find files by the names ``reffree cache ls`` shows; a unique beginning will do."""
    chosen = []
    for name in names:
        matching = [path for path in paths if path.stem.startswith(name)]
        if not matching:
            raise UnknownNameError("cache file", name, [path.stem for path in paths])
        exact = [path for path in matching if path.stem == name]
        if len(exact or matching) > 1:
            raise OptionError(
                f"{name!r}, with which several cache files begin",
                expected=f"one of {', '.join(path.stem for path in matching)}",
                remedy="write more of its name",
            )
        chosen.append((exact or matching)[0])
    return chosen


def remove(paths: Iterable[Path]) -> int:
    """Delete cache files with their logs; returns the bytes freed.

    Where one of them is a link, the link goes and what it leads to stays.
    """
    freed = 0
    paths = list(paths)
    for folder in {above for path in paths for above in (path.parent, path.parent.parent)}:
        refuse_link(folder)
    for path in paths:
        for part in (Path(f"{path}{log}") for log in LOGS):
            with cache_errors(path):
                if part.is_symlink() or part.is_file():
                    freed += part.lstat().st_size
                    part.unlink()
    return freed


@dataclass(frozen=True, slots=True)
class Graph:
    """What ``reffree cache ls`` shows of one exported model."""

    path: Path
    encoder: str
    size: int


def graphs(folder: Path) -> list[Graph]:
    """List the models that backends have exported; one that is damaged has no encoder's name."""
    with cache_errors(folder / GRAPHS):
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
    with cache_errors(graph):
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
        with cache_errors(folder / name):
            for path in (folder / name).glob("*"):
                if ours.fullmatch(path.name):
                    is_link = path.is_symlink()
                    freed += 0 if is_link else size_of(path)
                    shutil.rmtree(path) if path.is_dir() and not is_link else path.unlink()
            if (folder / name).is_dir() and not any((folder / name).iterdir()):
                (folder / name).rmdir()
    return n, freed
