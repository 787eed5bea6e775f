"""Where reffree keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return ``REFFREE_CACHE_DIR``, or the user's cache folder for reffree."""
    return Path(os.environ.get("REFFREE_CACHE_DIR") or platformdirs.user_cache_dir("reffree"))


def user_path(name: str) -> Path:
    """Read a path as a shell does: ``~`` is the user's home, where there is such a user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
