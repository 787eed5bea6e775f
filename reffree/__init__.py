"""Score any text segmentation without gold labels, in the embedding space.

>>> import reffree
>>> corpus = reffree.load("corpus.jsonl")  # doctest: +SKIP
>>> table = reffree.score(corpus, metrics=["arp_pair"], per_document=True)  # doctest: +SKIP
>>> table.to_dict()["systems"][0]["metrics"]["arp_pair"]["value"]  # doctest: +SKIP
0.41
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reffree import studies as study
    from reffree.data.corpus import Corpus, Document
    from reffree.data.segmentation import Segmentation
    from reffree.encoders.embed import embed
    from reffree.evaluate.score import score
    from reffree.evaluate.table import ScoreTable
    from reffree.formats import load, save
    from reffree.metrics.free.custom import register_metric
    from reffree.metrics.free.engine import score_document
    from reffree.segmenters.segment import segment
    from reffree.studies.chunks import chunks
    from reffree.studies.compare import compare
    from reffree.util.errors import ReffreeError

__all__ = [
    "Corpus",
    "Document",
    "ReffreeError",
    "ScoreTable",
    "Segmentation",
    "chunks",
    "compare",
    "embed",
    "load",
    "register_metric",
    "save",
    "score",
    "score_document",
    "segment",
    "study",
]

_HOMES = {
    "Corpus": "reffree.data.corpus",
    "Document": "reffree.data.corpus",
    "ReffreeError": "reffree.util.errors",
    "ScoreTable": "reffree.evaluate.table",
    "Segmentation": "reffree.data.segmentation",
    "chunks": "reffree.studies.chunks",
    "compare": "reffree.studies.compare",
    "embed": "reffree.encoders.embed",
    "load": "reffree.formats",
    "register_metric": "reffree.metrics.free.custom",
    "save": "reffree.formats",
    "score": "reffree.evaluate.score",
    "score_document": "reffree.metrics.free.engine",
    "segment": "reffree.segmenters.segment",
    "study": "reffree.studies",
}
"""Module of every name; a study is ``reffree.study.correlate``."""


def __dir__() -> list[str]:
    """List the public names, also those not imported yet."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (any exported value)
    """Import on first use: ``import reffree`` and ``reffree --help`` load no torch."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("reffree")
    if name not in _HOMES:
        raise AttributeError(f"module 'reffree' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if name == "study" else getattr(home, name)
