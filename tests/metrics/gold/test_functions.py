"""The functions of the gold-based metrics: each is its metric, with its defaults and options."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import reffree.reference
from reffree.metrics.registry import GOLD_METRICS

OTHERWISE = {
    **{"k": 3, "n_t": 4, "w": 3, "c_miss": 0.75, "c_fa": 0.125, "padding": "exact"},
    **{"insertion": 1.0, "deletion": 3.0, "shift": 0.25, "unit": "words", "p_seg": 0.875},
}


@pytest.mark.parametrize("name", sorted(set(GOLD_METRICS) - {"sed"}))
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
