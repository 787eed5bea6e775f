"""What all gold-based metrics promise: functions that are the metrics, and batches of any kind."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import reffree.reference
from reffree.data.masses import masses_from_gaps
from reffree.metrics.gold import pairs as pairs_module
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.registry import GOLD_METRICS, parse_metric
from tests.metrics.gold.test_windows import pairs
from tests.properties import examples

OTHERWISE = {
    **{"k": 3, "n_t": 4, "w": 3, "c_miss": 0.75, "c_fa": 0.125, "padding": "exact"},
    **{"insertion": 1.0, "deletion": 3.0, "shift": 0.25, "unit": "words", "p_seg": 0.875},
}


NAMES = sorted(set(GOLD_METRICS) - {"sed"})  # which needs vectors
VARIANTS = [*NAMES, "windowdiff:padding=exact", "windowdiff:padding=segeval", "w_f1:w=3"]
VARIANTS += ["pk:k=3", "pk_prime:k=5", "pr_error:k=2", "winpr:k=7", "boundary_similarity:n_t=4"]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_its_metric(name):
    function, metric = getattr(reffree.reference, name), GOLD_METRICS[name]
    gaps = np.random.default_rng(0).random((2, 40, 29)) < np.array([0.1, 0.3])[:, None, None]
    units = ["one two three", "four"] * 15
    usual = function(*gaps)
    assert_array_equal(usual, metric()(*gaps))
    options = {f.name: OTHERWISE[f.name] for f in fields(metric) if f.init}
    assert [*signature(function).parameters] == ["hypothesis", "reference", "units", *options]
    for option, value in options.items():
        changed = function(*gaps, units=units, **{option: value})
        assert_array_equal(changed, metric(**{option: value})(*gaps, units))
        assert not np.array_equal(changed, usual, equal_nan=True), option


@pytest.mark.parametrize("spelling", VARIANTS)
@given(batch=st.lists(pairs(max_units=30), min_size=1, max_size=6))
@examples(20)
def test_a_batch_equals_its_pairs(spelling, batch):
    metric, together = parse_metric(spelling), Pairs.of(*map(list, zip(*batch, strict=True)))
    counts = metric.counts(together)
    assert counts.dtype == np.float64
    assert_array_equal(counts, np.concatenate([metric.counts(Pairs.of(*p)) for p in batch]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "PAIR_ELEMENTS", 50)
        assert_array_equal(count_pairs(metric, together), counts)


@pytest.mark.parametrize("spelling", VARIANTS)
def test_one_side_stands_for_all_and_inputs_are_left_alone(spelling):
    metric, gaps = parse_metric(spelling), np.random.default_rng(5).random((40, 29)) < 0.2
    masses = masses_from_gaps(gaps)
    before, rows = masses.copy(), [[m for m in row if m] for row in masses.tolist()]
    one = metric(gaps, gaps[0])
    assert_array_equal(one, metric(gaps, np.repeat(gaps[:1], 40, axis=0)))
    assert_array_equal(one, metric(rows, rows[0]))
    assert_array_equal(one, metric(masses, masses[0]))
    assert_array_equal(metric(rows[0], masses), metric(gaps[:1], gaps))
    assert_array_equal(masses, before)
    assert masses.flags.writeable
