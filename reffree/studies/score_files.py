"""Gap scores that studies take beside methods, and the speakers that may start a segment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from reffree.data.corpus import Corpus
from reffree.formats import read_scores
from reffree.segmenters.segment import Given, checked_scores
from reffree.util.errors import OptionError, UnknownNameError


def read_score_files(
    corpora: Mapping[str, Corpus],
    scores: Mapping[str, Mapping[str, Any]] | None,
    methods: Collection[str],
) -> dict[str, dict[str, Given]]:
    """Read scores that are named by a file, check all, and refuse names that are taken.

    ``scores`` are by corpus and then by name: a file, or lists by document id or in corpus order.
    """
    found: dict[str, dict[str, Given]] = {}
    for corpus, by_name in (scores or {}).items():
        if corpus not in corpora:
            raise UnknownNameError("corpus", corpus, corpora)
        found[corpus] = {}
        for name, given in by_name.items():
            if name in methods:
                raise OptionError(
                    f"scores called {name!r}, as a method of this study is",
                    expected="a name of their own",
                    remedy="choose another",
                )
            is_file = isinstance(given, str | Path)
            lists = read_scores(given, corpora[corpus], name) if is_file else given
            found[corpus][name] = checked_scores(corpora[corpus], name, lists)
    return found


def score_fingerprints(scores: Mapping[str, Mapping[str, Given]]) -> dict[str, str]:
    """Return every scorer once, with a hash of its scores for signatures, as ``name@hash``."""
    found = {}
    for name in dict.fromkeys(name for by_name in scores.values() for name in by_name):
        digest = blake2b(digest_size=4)
        for by_name in scores.values():
            for each in by_name.get(name, ()):
                digest.update(np.array(each, dtype=np.float64).tobytes())
        found[name] = f"{name}@{digest.hexdigest()}"
    return found


def candidates_field(speakers: Sequence[str]) -> dict[str, str]:
    """Return a signature's field for candidates, where they are restricted."""
    return {"candidates": "+".join(speakers)} if speakers else {}
