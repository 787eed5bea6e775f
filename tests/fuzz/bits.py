"""Random corpora scored in many ways that must give the same bits, without rounding."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.metrics.free.engine import score_documents
from reffree.metrics.registry import COMPILED, parse_metrics

METRICS = (*COMPILED, "expected_pk", "expected_windowdiff:draws=20")
SYSTEMS = ("a", "b", "c", "d")
DTYPES = (np.float64, np.float32, np.float16, np.int64)

Values = dict[tuple[str, ...], bytes]
"""What was scored → the number's bytes."""


@dataclass(frozen=True)
class Case:
    """A corpus and its vectors."""

    corpus: Corpus
    vectors: list[np.ndarray]

    def part(self, chosen: list[int]) -> Case:
        """Some of the documents, in any order."""
        documents = tuple(self.corpus.documents[i] for i in chosen)
        return Case(Corpus(documents), [self.vectors[i] for i in chosen])


def random_case(seed: int) -> Case:
    """3 to 20 documents, 3 to 384 dimensions; repeats, zeros, single units, four systems."""
    rng = np.random.default_rng([12, seed])
    d = int(np.exp(rng.uniform(np.log(3), np.log(385))))
    documents, vectors = [], []
    for i in range(int(rng.integers(3, 21))):
        n = int(rng.choice([1, 2, *range(3, 40), 64, 65, 130]))
        documents.append(
            Document.build(
                f"d{i}",
                [f"unit {i} {j}" for j in range(n)],
                systems={name: random_masses(rng, n) for name in SYSTEMS},
            )
        )
        vectors.append(random_vectors(rng, n, d, DTYPES[int(rng.integers(len(DTYPES)))]))
    return Case(Corpus(tuple(documents)), vectors)


def random_masses(rng: np.random.Generator, n: int) -> list[int]:
    """No boundary, all of them, or some."""
    k = int(rng.choice([0, n - 1, int(rng.integers(0, n)), min(n - 1, int(rng.integers(0, 6)))]))
    inner = np.sort(rng.choice(np.arange(1, n), size=k, replace=False)) if k else []
    return np.diff([0, *inner, n]).astype(int).tolist()


def random_vectors(rng: np.random.Generator, n: int, d: int, dtype: type) -> np.ndarray:
    """Topics, units that are repeated or nearly so, zero vectors, lengths that differ."""
    x = rng.normal(size=(n, d)) + 2 * np.repeat(rng.normal(size=(n // 5 + 1, d)), 5, axis=0)[:n]
    if rng.random() < 0.3:
        x *= 10.0 ** rng.integers(-3, 3, size=(n, 1))
    if rng.random() < 0.4:
        x[rng.integers(n, size=n // 3)] = x[int(rng.integers(n))]
    if rng.random() < 0.4:
        near = rng.integers(n, size=n // 3)
        x[near] = x[int(rng.integers(n))] + 1e-5 * rng.normal(size=(len(near), d))
    if rng.random() < 0.3:
        x[rng.integers(n, size=n // 6 + 1)] = 0
    return np.rint(3 * x).astype(dtype) if dtype is np.int64 else x.astype(dtype)


def engine_values(case: Case, systems: tuple[str, ...] = SYSTEMS, **how: object) -> Values:
    """Raw scores, weights and counts of every document, system and metric."""
    raw = score_documents(
        case.vectors,
        [[document.systems[name] for name in systems] for document in case.corpus.documents],
        parse_metrics(METRICS),
        names=[document.id for document in case.corpus.documents],
        **how,  # type: ignore[arg-type]
    )
    return {
        (metric, field, document.id, system): _bytes(getattr(scores[i], field)[s].item())
        for metric, scores in raw.items()
        for field in ("documents", "weights", "left_out")
        for i, document in enumerate(case.corpus.documents)
        for s, system in enumerate(systems)
    }


def table_values(case: Case, **how: object) -> Values:
    """Every number of the table of a corpus: documents, segments, chance tests, intervals."""
    table = reffree.score(
        case.corpus,
        embeddings=case.vectors,
        metrics=list(METRICS),
        per_document=True,
        **how,  # type: ignore[arg-type]
    )
    values: Values = {}
    for row in table.systems:
        for metric, score in row.metrics.items():
            _collect(values, ("corpus", row.system, metric), score)
    for row in table.documents or ():
        for metric, score in row.metrics.items():
            _collect(values, (row.id, row.system, metric), score)
    return values


def _collect(values: Values, key: tuple[str, ...], found: object) -> None:
    """Floats in nested dataclasses and tuples, by where they stand."""
    if isinstance(found, float):
        values[key] = _bytes(found)
    elif isinstance(found, tuple):
        for i, part in enumerate(found):
            _collect(values, (*key, str(i)), part)
    elif hasattr(found, "__dataclass_fields__"):
        for name in found.__dataclass_fields__:
            _collect(values, (*key, name), getattr(found, name))


def _bytes(value: float) -> bytes:
    return struct.pack("<d", value)


def different(expected: Values, found: Values) -> list[str]:
    """Values that are in both and not the same."""
    unlike = [
        f"{' '.join(key)}: {struct.unpack('<d', expected[key])[0]!r} and "
        f"{struct.unpack('<d', found[key])[0]!r}"
        for key in sorted(expected.keys() & found.keys())
        if expected[key] != found[key]
    ]
    return unlike if expected.keys() & found.keys() else ["nothing to compare"]


def _each_alone(case: Case) -> Values:
    values: Values = {}
    for i in range(len(case.corpus)):
        values |= engine_values(case.part([i]))
    return values


def _one_system_at_a_time(case: Case) -> Values:
    values: Values = {}
    for system in SYSTEMS:
        values |= engine_values(case, (system,))
    return values


def _reordered(case: Case) -> Values:
    return engine_values(case.part(list(range(len(case.corpus)))[::-1]), SYSTEMS[::-1])


def _in_company(case: Case) -> Values:
    other = random_case(10_000)
    renamed = [
        Document.build(f"other {x.id}", x.units, systems=dict(x.systems)) for x in other.corpus
    ]
    documents = (*renamed, *case.corpus.documents)
    return engine_values(Case(Corpus(documents), [*other.vectors, *case.vectors]))


ENGINE_WAYS: dict[str, Callable[[Case], Values]] = {
    "again": engine_values,
    "each document alone": _each_alone,
    "in company": _in_company,
    "one system at a time": _one_system_at_a_time,
    "reordered": _reordered,
    "with segments": lambda case: engine_values(case, keep_segments=True),
}


TABLE_WAYS: dict[str, Callable[[Case], Values]] = {
    "without chance tests": table_values,
    "with segments and explanations": lambda case: table_values(
        case, per_segment=True, explain=True, null=4
    ),
}


def engine_differences(case: Case) -> list[str]:
    """Values that depend on the way the scorer is called."""
    expected = engine_values(case)
    return [
        f"{way}: {x}" for way, run in ENGINE_WAYS.items() for x in different(expected, run(case))
    ]


def table_differences(case: Case) -> list[str]:
    """Values that depend on the way a corpus is scored."""
    expected = table_values(case, null=4)
    return [
        f"{way}: {x}" for way, run in TABLE_WAYS.items() for x in different(expected, run(case))
    ]
