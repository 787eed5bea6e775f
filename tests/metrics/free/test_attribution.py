"""Explanations are differences of losses: every one is checked by scoring the neighbour itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.metrics.free import attribution, engine
from reffree.metrics.free.attribution import explain_document
from reffree.metrics.free.fast import document as compiled
from reffree.metrics.registry import parse_metrics
from reffree.report.render import render
from reffree.util.errors import InputError
from tests.metrics.free.test_scoring import documents, hypotheses, oracle
from tests.properties import examples


def loss_of(x, boundaries, metric):
    masses = Segmentation.from_boundaries(boundaries, len(x)).masses
    raw = 0.0 if len(masses) == 1 and metric != "segrefree" else oracle(x, list(masses), metric)
    if raw is None:
        return math.nan
    return raw if metric == "segrefree" else (1 - raw) / 2


@given(st.data())
@examples(40)
def test_every_effect_is_a_difference_of_losses(data):
    x = data.draw(documents(min_units=2, max_units=9)).astype(np.float64)
    masses = data.draw(hypotheses(len(x)))[0]
    hypothesis = Segmentation(tuple(masses))
    metrics = ["arp_cos", "silhouette", "segrefree"]
    (found,) = explain_document(x, [hypothesis], parse_metrics(metrics))
    at = list(hypothesis.boundaries)
    for metric in metrics:
        own = loss_of(x, at, metric)
        for b, effect in enumerate(found[metric].boundaries):
            assert effect.at == at[b]
            without = loss_of(x, at[:b] + at[b + 1 :], metric) - own
            if math.isnan(without):
                assert effect.contribution is None
            else:
                assert effect.contribution == pytest.approx(without, abs=1e-6, rel=1e-6)
            low = at[b - 1] if b else 0
            high = at[b + 1] if b + 1 < len(at) else len(x)
            gains = {0: 0.0}
            for shift in range(-3, 4):
                if low < at[b] + shift < high and shift:
                    moved = [*at[:b], at[b] + shift, *at[b + 1 :]]
                    gains[shift] = own - loss_of(x, moved, metric)
            best = max((g for g in gains.values() if not math.isnan(g)), default=0.0)
            assert effect.shift_gain == pytest.approx(best, abs=1e-6, rel=1e-6)
            if effect.best_shift:
                assert gains[effect.best_shift] == pytest.approx(best, abs=1e-6, rel=1e-6)
        free = [p for p in range(1, len(x)) if p not in at]
        gains = {p: own - loss_of(x, sorted([*at, p]), metric) for p in free}
        gains = {p: g for p, g in gains.items() if not math.isnan(g)}
        if not gains:
            assert found[metric].addition is None
        else:
            addition = found[metric].addition
            assert addition.gain == pytest.approx(max(gains.values()), abs=1e-6, rel=1e-6)
            assert gains[addition.at] == pytest.approx(addition.gain, abs=1e-6, rel=1e-6)


def planted():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(5, 8)) + 3 * rng.normal(size=8) for _ in range(4)])


def test_planted_boundaries_are_found():
    metrics = parse_metrics(["arp_pair"])
    hyps = [Segmentation(m) for m in ((5, 5, 5, 5), (4, 6, 5, 5), (5, 10, 5), (20,), (1,) * 20)]
    right, near, missing, none, every = (
        e["arp_pair"] for e in explain_document(planted(), hyps, metrics)
    )
    assert all(b.contribution > 0 and b.best_shift == 0 for b in right.boundaries)
    assert near.boundaries[0].best_shift == 1
    assert missing.addition.at == 10
    assert none.boundaries == ()
    assert none.addition.at in (5, 10, 15)
    assert every.addition is None


def explained():
    units = [f"unit number {i}" for i in range(20)]
    corpus = Corpus(
        (Document.build("doc", units, gold=[5, 5, 5, 5], systems={"near": [4, 6, 10]}),)
    )
    return reffree.score(
        corpus, embeddings=[planted()], metrics=["arp_pair", "silhouette"], explain=True
    )


def test_explanations_in_json():
    parts = explained().to_dict()["documents"]
    assert [part["system"] for part in parts] == ["gold", "near"]
    first = parts[1]["explanations"]["arp_pair"]["boundaries"][0]
    assert (first["at"], first["best_shift"]) == (4, 1)
    assert first["shift_gain"] > 0
    assert set(parts[0]["explanations"]) == {"arp_pair", "silhouette"}


def test_explanations_as_text_and_tables():
    table = explained()
    text = render(table, "table", color=False, width=None)
    near = text.split("doc · near · arp_pair")[1]
    before, after = near.split("1 unit later would gain")
    assert before.count("unit number") == 4
    assert "unit number 4" in after
    assert "One more boundary after unit 15 would lower the loss by" in after
    colored = render(table, "table", color=True, width=80)
    assert "\x1b[32m  ─── helps by" in colored
    csv = render(table, "csv", color=False, width=None).splitlines()
    assert csv[0] == "document,system,metric,kind,at,contribution,best_shift,shift_gain,signature"
    assert len(csv) == 1 + 2 * (3 + 1) + 2 * (2 + 1)
    markdown = render(table, "md", color=False, width=None)
    assert "| doc | near | arp_pair | boundary | 4 |" in markdown


def test_neighbours_are_made_a_part_at_a_time(monkeypatch):
    made, real = [], attribution._Neighbours.__getitem__

    def watched(neighbours, rows):
        masses = real(neighbours, rows)
        made.append(len(masses))
        return masses

    monkeypatch.setattr(engine, "FEW_MASSES", 0)
    monkeypatch.setattr(attribution._Neighbours, "__getitem__", watched)
    x, metrics = planted(), parse_metrics(["arp_pair", "segrefree"])
    hyps = [Segmentation(m) for m in ((5, 5, 5, 5), (20,), (4, 1, 15), (1,) * 20)]
    plenty = explain_document(x, hyps, metrics)
    whole, made[:] = [*made], []
    # 21 segments at most: 32 bytes each, a quarter of the memory.
    assert explain_document(x, hyps, metrics, memory=4 * 32 * 21 * 3) == plenty
    assert sum(made) == 2 * sum(whole)  # band, then scores
    assert max(made) <= 3


def test_what_would_take_hours_is_refused_before_it_starts(monkeypatch):
    monkeypatch.setattr(compiled, "SMALL", 0)
    monkeypatch.setattr(compiled, "MOST_MEASURED", 1000)
    monkeypatch.setattr(compiled, "sweep_tables", lambda *_: pytest.fail("it has started"))
    with pytest.raises(
        InputError, match="document 'long': found 20 hypotheses of 20 units"
    ) as info:
        explain_document(
            planted(), [Segmentation((20,))], parse_metrics(["arp_pair"]), memory=1, name="long"
        )
    assert "more are free" in str(info.value)
