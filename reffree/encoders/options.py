"""Everything a user can say about the encoder, named once for functions, commands and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict


class Encoding(TypedDict, total=False):
    """Keywords of every function that encodes; `EncoderOptions` has their meaning and defaults."""

    encoder: str | None
    device: str
    batch_tokens: int | None
    offline: bool
    cache: bool
    cache_dir: Path | str | None


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How texts become vectors.

    Attributes:
        encoder: alias, folder or hub id of a model; the packaged MiniLM by default.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        batch_tokens: tokens per encoder batch; chosen by device if not given.
        offline: never connect to a model hub.
        cache: keep vectors on disk.
        cache_dir: where, if not in the user's cache folder.
    """

    encoder: str | None = None
    device: str = "auto"
    batch_tokens: int | None = None
    offline: bool = False
    cache: bool = True
    cache_dir: Path | str | None = None
