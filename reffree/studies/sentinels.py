"""Metrics that read nothing of the text: what any metric must beat to say something.

After the sentinel metrics of Perrella et al. (2024, arXiv 2408.13831). Perturbations and random
baselines change how many segments there are, so that a count of segments alone correlates with
every gold-based metric.
"""

from __future__ import annotations

import numpy as np

from reffree.corpus import Corpus
from reffree.seeds import rng_for
from reffree.statistics.losses import MeanOverDocuments, SystemLosses

SENTINELS = {
    "n_segments": "number of segments of a document; reads no text",
    "mean_length": "mean units per segment of a document; reads no text",
    "random_score": "a random number for every system and document; knows nothing",
}


def sentinel_scores(corpus: Corpus, seed: int) -> dict[str, SystemLosses]:
    """All sentinels over the systems and documents of a corpus, as if lower were better."""
    systems = corpus.hypotheses
    counts = np.array([[len(s) for s in each] for each in systems.values()], dtype=np.float64)
    n_units = np.array([len(document.units) for document in corpus.documents])
    chance = [
        [rng_for(seed, "random_score", name, document.id).random() for document in corpus]
        for name in systems
    ]
    return {
        "n_segments": MeanOverDocuments(counts),
        "mean_length": MeanOverDocuments(n_units / counts),
        "random_score": MeanOverDocuments(np.array(chance)),
    }
