"""The fastest backend among those that give torch's numbers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from reffree.encoders.backends.probe import PROBE
from reffree.encoders.backends.requirements import missing_packages
from reffree.encoders.backends.running import Accelerated, encode_probe
from reffree.encoders.base import EncoderSpec
from reffree.encoders.cache.graphs import GRAPHS
from reffree.encoders.remembered import recall, remember
from reffree.encoders.tokenising import Tokeniser

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TIMED_ROUNDS = 3
TIMED_TEXTS = 32


def chosen_backend(
    spec: EncoderSpec,
    kept: Path | None,
    load: Callable[[], tuple[SentenceTransformer, Tokeniser]],
) -> str:
    """Return the fastest of the exact backends that are installed, timed once and remembered.

    Interleaved, the best of three rounds each. ``compile`` is not among them: it takes a minute
    before the first vector.
    """
    candidates = ["torch", *(n for n in ("onnx", "openvino") if not missing_packages(n))]
    contestants = {name: Accelerated(name, spec, kept, load) for name in candidates}
    key = "\n".join([spec.fingerprint, str(torch.get_num_threads()), *candidates])
    digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    path = None if kept is None else kept / GRAPHS / f"fastest-{digest}.json"
    remembered = None if path is None else recall(path).get("backend")
    if remembered in candidates:
        return str(remembered)
    _, tokeniser = load()
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(TIMED_ROUNDS + 1):  # the first warms up and is beaten by the others
        for name, contestant in contestants.items():
            start = time.perf_counter()
            encode_probe(contestant.compute, tokeniser, PROBE[:TIMED_TEXTS])
            best[name] = min(best[name], time.perf_counter() - start)
    fastest = min(best, key=lambda name: best[name])
    if path is not None:
        remember(path, {"backend": fastest, "seconds": best})
    return fastest
