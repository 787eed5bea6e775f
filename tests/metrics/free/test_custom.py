"""Metrics of the user's own: a function of a segment and its neighbours, by its name everywhere."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import reffree
from reffree.evaluate.score import score
from reffree.metrics.free import custom
from reffree.metrics.free.engine import score_document
from reffree.metrics.registry import FREE_METRICS
from reffree.segmenters.segment import segment
from reffree.studies import compare, correlate, density, diagnose, perturb
from reffree.studies.config import load_config
from reffree.studies.run import _fingerprint
from reffree.util.errors import InputError, OptionError
from tests.helpers import halves, invoke, rows, topical_corpus
from tests.metrics.free.test_scoring import TOY
from tests.oracles.reference_free import pooled
from tests.properties import examples

GOLDS = [[4, 3, 5], [6, 4], [3, 4, 3, 4], [7, 9], [5, 5], [2, 6, 4], [4, 4, 4], [8, 3]]


def proximity(segment, before, after):
    """ARP_std of one segment, without its rule for one unit (eq. 13-15)."""
    if after is None:
        return None
    cut = min(2 * len(after), len(segment))
    inside = segment[len(segment) - cut :].var(axis=0).sum()
    left, right = math.ceil(cut / 2), cut // 2
    crossing = np.concatenate([segment[len(segment) - left :], after[:right]])
    across = crossing.var(axis=0).sum()
    return (across - inside) / (across + inside) if across + inside else 0.0


def span(segment, before, after):
    """How many units it and its neighbours have: tells which neighbours are given."""
    return 100 * len(before if before is not None else ()) + len(after if after is not None else ())


@pytest.fixture(autouse=True)
def own():
    reffree.register_metric("own_proximity", proximity, neutral=0.0, worst=-1.0)
    reffree.register_metric("span", span, higher_is_better=False)
    yield
    for name in custom.registered():
        FREE_METRICS.discard(name)
        del custom._CODES[name]


@given(st.lists(st.integers(2, 5), min_size=2, max_size=4), st.integers(0, 99))
@examples(40)
def test_a_published_metric_written_as_a_function_is_that_metric(masses, seed):
    x = np.random.default_rng(seed).normal(size=(sum(masses), 3))
    found = score_document(x, [masses, [sum(masses)], masses], ["own_proximity", "arp_std"])
    assert found["own_proximity"].tolist() == pytest.approx(found["arp_std"].tolist(), abs=1e-9)


def test_neighbours_are_those_of_the_document():
    cuts = [[3, 1, 3], [1, 6], [7], [2, 2, 2, 1]]
    found = score_document(TOY, cuts, ["span", "span:pool_n=median", "span:pool_n=length"])
    expected = [
        [[1, 303, 100], [3, 1, 3]],
        [[6, 100], [1, 6]],
        [[], []],
        [[2, 202, 201, 200], [2, 2, 2, 1]],
    ]
    for pool in ("mean", "median", "length"):
        values = found["span" if pool == "mean" else f"span:pool_n={pool}"].tolist()
        wanted = [pooled(scores, lengths, pool) for scores, lengths in expected]
        filled = [math.nan if w is None else w for w in wanted]
        assert values == pytest.approx(filled, nan_ok=True)


def test_what_a_document_without_a_boundary_scores():
    for policy, value in (("neutral", 0.0), ("skip", math.nan), ("worst", -1.0)):
        found = score_document(TOY, [[7]], ["own_proximity", "span"], unsegmented=policy)
        assert found["own_proximity"].tolist() == pytest.approx([value], nan_ok=True)
        assert math.isnan(found["span"].item())


def test_tables_show_its_own_values_in_its_own_direction():
    corpus, vectors = topical_corpus(GOLDS, a=halves)
    metrics = ["own_proximity", "arp_std", "span:pool_d=length"]
    table = score(
        corpus, metrics=metrics, embeddings=vectors, per_segment=True, null=20, explain=True
    )
    for row in table.systems:
        own, known = row.metrics["own_proximity"], row.metrics["arp_std"]
        assert own.raw == own.value == pytest.approx(known.raw, abs=1e-9)
        assert (own.direction, known.direction) == ("higher", "lower")
        assert own.null.z == pytest.approx(known.null.z, abs=1e-6)
    code = custom.registered()["own_proximity"]
    assert f"own_proximity(code={code})" in table.signature


def test_another_function_of_the_same_name_takes_its_place_and_another_code():
    before = custom.registered()["span"]
    assert score_document(TOY, [[3, 4]], ["span"])["span"].item() == (4 + 300) / 2
    reffree.register_metric("span", lambda segment, before, after: len(segment))
    assert score_document(TOY, [[3, 4]], ["span"])["span"].item() == 3.5
    assert custom.registered()["span"] != before


def test_studies_and_segmenters_take_it():
    corpus, vectors = topical_corpus(GOLDS, a=halves)
    given = {"embeddings": {"c": vectors}}
    names = ["own_proximity", "arp_std", "pk"]
    result = correlate({"c": corpus}, metrics=names, resamples=100, **given)
    own, known = (
        rows(result, "correlations", free=name, pool="independent", coefficient="pearson")[0]
        for name in names[:2]
    )
    assert own["value"] == pytest.approx(known["value"], abs=0.2)  # but for one-unit segments
    curves = perturb(
        {"c": corpus}, metrics=names, kinds=["removal"], seeds=2, strengths=[1], **given
    )
    assert len(rows(curves, "curves", metric="own_proximity")) == 2
    assert rows(diagnose({"c": corpus}, metrics=names[:1], seeds=1, **given), "metrics")
    assert rows(density({"c": corpus}, metrics=["own_proximity"], **given), "curves")
    ranked = compare(corpus, metrics=["own_proximity"], embeddings=vectors)
    assert set(ranked.table("systems").column("direction")) == {"higher"}
    made = segment(corpus, "greedy:metric=own_proximity,k=1,climb=false", embeddings=vectors)
    for document, x in zip(made, vectors, strict=True):
        n = len(x)
        every = [[i, n - i] for i in range(1, n)]
        best = np.nanargmax(score_document(x, every, ["own_proximity"])["own_proximity"])
        (found,) = [m for s, m in document.systems.items() if s.startswith("greedy")]
        assert list(found.masses) == every[int(best)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("arp_pair", "'arp_pair', which is taken"),
        ("pk", "'pk', which is taken"),
        ("all", "'all', which is taken"),
        ("Own", "the metric name 'Own'"),
        ("a:b", "the metric name 'a:b'"),
        (3, "the metric name 3"),
    ],
)
def test_names_that_cannot_be(name, said):
    with pytest.raises(OptionError, match=said):
        reffree.register_metric(name, proximity)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda *parts: 1 / 0, r"ZeroDivisionError \(division by zero\) from the metric 'bad'"),
        (lambda *parts: math.inf, "an infinite score from the metric 'bad' for segment 1"),
        (lambda *parts: "much", "ValueError"),
        (lambda segment: 1.0, "TypeError"),
    ],
)
def test_a_function_that_fails_gets_a_sentence(function, said):
    reffree.register_metric("bad", function)
    with pytest.raises(InputError, match=said):
        score_document(TOY, [[3, 4]], ["bad"])
    with pytest.raises(OptionError, match="str as the metric 'bad'"):
        reffree.register_metric("bad", "no function")


PLUGIN = """
import numpy as np
import reffree

def gap(segment, before, after):
    return None if after is None else float(np.linalg.norm(segment.mean(0) - after.mean(0)))

reffree.register_metric("gap", gap)
"""


def test_commands_learn_of_it_from_a_file(tmp_path):
    plugin, corpus = tmp_path / "mine.py", tmp_path / "c.jsonl"
    plugin.write_text(PLUGIN, encoding="utf-8")
    line = {"id": "a", "units": ["bees fly"] * 3 + ["cables run"] * 3, "gold": [3, 3]}
    line["systems"] = {"s": [2, 4]}
    corpus.write_text(json.dumps(line) + "\n", encoding="utf-8")
    chosen = ("-m", "gap", "-m", "gap:pool_d=median")
    vectors = tmp_path / "v.npy"
    np.save(vectors, np.repeat(np.eye(2), 3, axis=0))
    found = invoke(
        "--plugin", plugin, "score", corpus, *chosen, "--embeddings", vectors, "-f", "json"
    )
    assert found.exception is None, found.exception
    systems = {row["system"]: row["metrics"] for row in json.loads(found.stdout)["systems"]}
    assert systems["gold"]["gap"]["value"] == pytest.approx(math.sqrt(2))
    assert systems["gold"]["gap"]["direction"] == "higher"
    config = tmp_path / "c.yaml"
    step = {"study": "perturb", "metrics": ["gap"], "seeds": 1, "strengths": [1]}
    config.write_text(
        yaml.safe_dump({"name": "own", "corpora": [str(corpus)], "studies": [step]}),
        encoding="utf-8",
    )
    (read,) = load_config(config).steps
    assert read.settings["metrics"] == ["gap"]
    before = _fingerprint(read, {})
    reffree.register_metric("gap", span)
    assert _fingerprint(read, {}) != before  # another function: what was found must be found again


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "FileNotFoundError"),
        ("def", "SyntaxError"),
        ("import reffree; reffree.register_metric('pk', print)", "'pk', which is taken"),
    ],
)
def test_a_file_that_cannot_be_run_gets_a_sentence(tmp_path, text, said):
    plugin = tmp_path / "mine.py"
    if text is not None:
        plugin.write_text(text, encoding="utf-8")
    found = invoke("--plugin", plugin, "score", tmp_path / "c.jsonl")
    assert said in str(found.exception)
