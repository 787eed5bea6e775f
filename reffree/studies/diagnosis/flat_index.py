"""faiss, imported when it is needed and kept to one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from reffree.arrays import Floats

if TYPE_CHECKING:
    import faiss

FLOAT32_ERROR = 1e-3
"""Most by which faiss's cosines are off: d · 2⁻²⁴ at worst, so enough for 16,000 dimensions."""


@contextmanager
def flat_index(rows: Floats) -> Iterator[faiss.IndexFlatIP]:
    """Exhaustive search over rows by inner product.

    One thread: a document's search is short, and on macOS the threads of faiss and of torch can
    bring down the process (both load an OpenMP of their own).
    """
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(rows.astype(np.float32))
        yield index
    finally:
        faiss.omp_set_num_threads(threads)
