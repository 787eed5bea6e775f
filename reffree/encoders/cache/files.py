"""Where the cache is on disk: one file per encoder, named by its fingerprint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from reffree.encoders.base import EncoderSpec
from reffree.encoders.cache.sentences import refuse_link, sentences
from reffree.errors import OptionError, UnknownNameError
from reffree.folders import cache_folder

SCHEMA_VERSION = 2
"""Names the folder, so that versions of reffree never read each other's files."""

LOGS = ("", "-wal", "-shm", "-journal")


def default_folder() -> Path:
    """Return the user's cache folder for embeddings."""
    return cache_folder()


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
            with sentences(path):
                if part.is_symlink() or part.is_file():
                    freed += part.lstat().st_size
                    part.unlink()
    return freed
