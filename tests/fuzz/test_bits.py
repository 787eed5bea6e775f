"""A document's scores depend on its vectors, its hypothesis and the metric alone, bit for bit."""

from __future__ import annotations

import os

import numpy as np
import pytest

from reffree.metrics.free import engine
from tests.fuzz.bits import (
    different,
    engine_differences,
    engine_values,
    random_case,
    table_differences,
)

CORPORA = int(os.environ.get("REFFREE_FUZZ_CORPORA", "24"))


@pytest.mark.parametrize("seed", range(CORPORA))
def test_scores_depend_on_vectors_and_hypothesis_alone(seed):
    assert engine_differences(random_case(seed)) == []


@pytest.mark.parametrize("seed", range(0, CORPORA, 3))
def test_tables_do_not_depend_on_what_else_is_asked(seed):
    assert table_differences(random_case(seed)) == []


def test_the_comparison_can_see():
    values = engine_values(random_case(0).part([1, 2]))
    assert different(values, values) == []
    key, value = next((k, v) for k, v in values.items() if k[1] == "documents")
    moved = np.nextafter(np.frombuffer(value, dtype="<f8")[0], np.inf).tobytes()
    assert len(different(values, {**values, key: moved})) == 1
    assert different(values, {}) == ["nothing to compare"]


def test_the_other_path_agrees_within_the_tolerance():
    for seed in range(0, CORPORA, 4):
        case = random_case(seed)
        expected = engine_values(case)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "COMPILED_DEVICES", frozenset())
            found = engine_values(case)
        for key, value in expected.items():
            ours, theirs = (np.frombuffer(x, dtype="<f8")[0] for x in (value, found[key]))
            assert np.isclose(
                ours, theirs, rtol=engine.TOLERANCE, atol=engine.TOLERANCE, equal_nan=True
            ), key
