"""Density–quality curves against literal ones, on vectors made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.report.render import render
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import gap_scores, parse_scored_method
from reffree.segmenters.selection import select_above
from reffree.segmenters.texttiling import Depth, depths_of
from reffree.statistics.resampling import resampled_documents
from reffree.studies.density import THRESHOLDS, count_gold, density, lay_out_points, regime
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.seeds import rng_for
from tests.helpers import halves, rows, topical_corpus
from tests.oracles import reference_based, studies
from tests.properties import examples, intervals_held

GOLDS = [[6, 5, 7], [8, 6], [4, 9, 5, 6], [12], [7, 7], [5, 8, 6], [10, 4]]
SWEEP = [0.2, 0.4, 0.6, 0.8]


def thirds(n):
    return [n // 3, n // 3, n - 2 * (n // 3)]


@pytest.fixture(scope="module")
def small():
    corpus, vectors = topical_corpus(GOLDS, halves=halves, thirds=thirds)
    given = {"methods": ["depth", "random"], "thresholds": SWEEP, "metrics": ["arp_pair"]}
    result = density({"small": corpus}, embeddings={"small": vectors}, seed=3, **given)
    golds = [document.gold.masses for document in corpus]
    return corpus, vectors, result, golds, {tau: literal(corpus, vectors, tau) for tau in SWEEP}


def test_every_value_lies_in_its_interval(small):
    assert intervals_held(small[2]) > 10


def literal(corpus, vectors, tau):
    """Masses of every document that depth's scores give at a threshold."""
    scores = [depths_of(x, 4).tolist() for x in vectors]
    lengths = [len(document.units) for document in corpus]
    return studies.selected(studies.ranks(scores, 3), lengths, tau)


@pytest.mark.parametrize("tau", SWEEP)
def test_curves_are_those_of_the_definition(small, tau):
    corpus, vectors, result, golds, by_tau = small
    made = by_tau[tau]
    n_gaps = sum(len(document.units) - 1 for document in corpus)
    found = rows(result, "curves", method="depth", threshold=tau)
    for (measure, matching), oracle in studies.MEASURES.items():
        (row,) = [r for r in found if (r["measure"], r["matching"]) == (measure, matching)]
        assert row["value"] == pytest.approx(studies.mean_against(oracle, made, golds))
        assert row["low"] <= row["value"] <= row["high"]
        assert row["bor"] == pytest.approx(studies.bor(made, golds))
        assert row["density"] == pytest.approx(sum(len(m) - 1 for m in made) / n_gaps)
    losses = [studies.loss(x, m, "arp_pair") for x, m in zip(vectors, made, strict=True)]
    for row in (r for r in found if r["measure"] == "arp_pair"):
        assert row["value"] == pytest.approx(np.mean(losses))
    for row in (r for r in found if r["measure"] == "bor"):
        assert row["value"] == row["bor"]


def test_systems_and_gold_are_points(small):
    corpus, _, result, golds, _ = small
    for name in ("halves", "thirds", "gold"):
        made = [s.masses for s in corpus.hypotheses[name]]
        (row,) = rows(result, "curves", method=name, matching="many_to_one", measure="w_f1")
        expected = studies.mean_against(reference_based.w_f1, made, golds)
        assert (row["threshold"], row["value"]) == (None, pytest.approx(expected))
        assert row["bor"] == pytest.approx(studies.bor(made, golds))


def test_regimes_name_the_best_threshold(small):
    corpus, vectors, result, golds, by_tau = small
    for matching, oracle in (
        ("many_to_one", reference_based.w_f1),
        ("one_to_one", reference_based.w_f1_one_to_one),
    ):
        (row,) = rows(result, "regimes", method="depth", matching=matching)
        values = {t: studies.mean_against(oracle, made, golds) for t, made in by_tau.items()}
        assert row["best"] == pytest.approx(max(values.values()))
        assert values[row["threshold"]] == pytest.approx(row["best"])
        assert row["span"] == pytest.approx(max(values.values()) - min(values.values()))
        assert row["bor"] == pytest.approx(studies.bor(by_tau[row["threshold"]], golds))
        bors = {tau: studies.bor(made, golds) for tau, made in by_tau.items()}
        named = {"conservative": [], "balanced": [], "aggressive": []}
        for tau, value in bors.items():
            kind = "conservative" if value < 0.9 else "aggressive" if value > 1.5 else "balanced"
            named[kind].append(tau)
        for kind, thresholds in named.items():
            low, high = (min(thresholds), max(thresholds)) if thresholds else (None, None)
            spelt = f"{low:g}–{high:g}" if low != high else f"{low:g}" if thresholds else None
            assert row[kind] == spelt
        own = [s.masses for s in Depth()(Inputs(corpus, 3, vectors))]
        assert row["own"] == pytest.approx(studies.mean_against(oracle, own, golds))
        assert row["own_bor"] == pytest.approx(studies.bor(own, golds))
    (point,) = rows(result, "regimes", method="halves", matching="many_to_one")
    assert (point["best"], point["conservative"], point["span"]) == (None, None, None)
    assert point["own_regime"] == regime(point["own_bor"])


def test_audit_compares_own_points_and_equal_densities(small):
    corpus, vectors, result, golds, _ = small
    found = result.table("audit").records()
    pairs = [" ".join((row["first"], row["second"], row["at"])) for row in found]
    assert pairs == [
        *("depth random own", "depth random gold's"),
        *("depth halves own", "depth halves halves's"),
        *("depth thirds own", "depth thirds thirds's"),
        *("random halves own", "random halves halves's"),
        *("random thirds own", "random thirds thirds's"),
        "halves thirds own",
    ]
    last = found[-1]
    own = {name: [s.masses for s in corpus.hypotheses[name]] for name in ("halves", "thirds")}
    for measure in ("f1", "w_f1", "w_f1_one_to_one"):
        oracle = getattr(reference_based, measure)
        values = [studies.mean_against(oracle, each, golds) for each in own.values()]
        assert last[measure] == pytest.approx(values[0] - values[1])
    assert last["bor"] == pytest.approx(
        studies.bor(own["halves"], golds) - studies.bor(own["thirds"], golds)
    )
    assert last["w_f1_ci"][0] <= last["w_f1"] <= last["w_f1_ci"][1]
    densities = [regime(studies.bor(own[name], golds)) for name in ("thirds", "halves")]
    assert last["shift"] == " → ".join(densities)
    assert len(set(densities)) == 2
    # Matched points: as many of the highest ranks as the other side has boundaries.
    n = sum(len(each) - 1 for each in own["thirds"])
    scores = [depths_of(x, 4).tolist() for x in vectors]
    shares = sorted((s for d in studies.ranks(scores, 3) for s in d.values()), reverse=True)
    made = literal(corpus, vectors, shares[n - 1])
    assert sum(len(each) - 1 for each in made) == n
    matched = found[5]
    values = [studies.mean_against(reference_based.w_f1, x, golds) for x in (made, own["thirds"])]
    assert matched["w_f1"] == pytest.approx(values[0] - values[1])
    assert matched["bor"] == 0


def test_losses_name_where_they_are_lowest(small):
    _, vectors, result, golds, by_tau = small
    losses, w_f1 = {}, {}
    for tau, made in by_tau.items():
        of_documents = zip(vectors, made, strict=True)
        losses[tau] = np.mean([studies.loss(x, m, "arp_pair") for x, m in of_documents])
        w_f1[tau] = studies.mean_against(reference_based.w_f1, made, golds)
    (row,) = rows(result, "losses", method="depth", metric="arp_pair")
    lowest = min(losses, key=losses.__getitem__)
    assert row["threshold"] == lowest
    assert row["lowest"] == pytest.approx(losses[lowest])
    assert row["w_f1"] == pytest.approx(w_f1[lowest])
    assert row["best"] == pytest.approx(max(w_f1.values()))
    badness = [1 - value for value in w_f1.values()]
    assert row["rho"] == pytest.approx(studies.spearman(list(losses.values()), badness))


def test_interval_of_a_difference_is_that_of_resampled_documents(small):
    """Percentiles of differences, both sides on the same resamples."""
    corpus, _, result, _, _ = small
    counts = resampled_documents(len(corpus), rng_for(3, "documents"))
    differences = []
    for d, document in enumerate(corpus):
        first, second = (
            float(reference_based.w_f1(corpus.hypotheses[name][d].masses, document.gold.masses))
            for name in ("halves", "thirds")
        )
        differences.append(first - second)
    drawn = [
        sum(t * each for t, each in zip(times, differences, strict=True)) / sum(times)
        for times in counts.tolist()
    ]
    expected = [studies.quantile(drawn, share) for share in (0.025, 0.975)]
    assert result.table("audit").records()[-1]["w_f1_ci"] == pytest.approx(expected, abs=1e-9)


def test_defaults_are_the_papers():
    assert pytest.approx(np.arange(0.05, 0.96, 0.05)) == THRESHOLDS
    assert [regime(x) for x in (0.64, 0.97, 1.13, 1.88)] == [
        *("conservative", "balanced", "balanced", "aggressive")
    ]


@examples(25)
@given(
    golds=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=4),
    seed=st.integers(0, 3),
    target=st.integers(0, 12),
    gap=st.integers(1, 3),
)
def test_matching_comes_as_near_as_thresholds_can(golds, seed, target, gap):
    corpus, vectors = topical_corpus(golds, seed=seed)
    for text in ("depth:window=2", "texttiling", "random"):
        made = gap_scores(parse_scored_method(text), Inputs(corpus, seed, vectors), gap)
        found = sum(len(each) - 1 for each in made.above(made.nearest(target)))
        scores = {s for document in made.boundaries for _, s in document}
        sizes = [sum(len(each) - 1 for each in made.above(t)) for t in (*scores, np.inf)]
        assert abs(found - target) == min(abs(size - target) for size in sizes)
        assert all(0 <= score < 1 for score in scores)
        steps = [sum(len(each) - 1 for each in made.above(t)) for t in THRESHOLDS]
        assert steps == sorted(steps, reverse=True)
        for each in made.above(0.0):
            assert min(np.diff(each.boundaries), default=gap) >= gap


def test_random_scores_are_at_gold_density_of_their_own_accord():
    corpus, vectors = topical_corpus(GOLDS)
    scores = gap_scores(None, Inputs(corpus, 0, vectors), 3)
    points = lay_out_points(corpus, [scores], (0.5,))
    (own,) = (point for point in points if point["point"] == "own")
    assert own["boundaries"] == count_gold(corpus) == sum(len(gold) - 1 for gold in GOLDS)


def test_a_system_called_as_a_method_keeps_its_own_row():
    corpus, vectors = topical_corpus(GOLDS, depth=halves)
    result = density(
        {"a": corpus}, methods=["depth"], metrics=[], thresholds=[0.5], embeddings={"a": vectors}
    )
    assert {row["method"] for row in result.table("curves").records()} == {
        *("gold", "depth", "depth (given)")
    }
    assert result.table("losses").rows == ()


def test_few_documents_have_no_intervals():
    corpus, vectors = topical_corpus(GOLDS[:3])
    result = density({"a": corpus}, embeddings={"a": vectors}, metrics=["silhouette"])
    assert all(row["low"] is None for row in result.table("curves").records())
    assert all(row["w_f1_ci"] is None for row in result.table("audit").records())
    assert "NaN" not in render(result, "json")
    assert "cannot tell depth and texttiling from random scores" in result.verdict[-1]


def test_a_trained_scorer_is_swept_by_its_probabilities(tmp_path):
    from reffree.segmenters.trained.scorer import train_scorer

    corpus, vectors = topical_corpus(GOLDS)
    quick = {"splice_epochs": 0, "epochs": 4, "learning_rate": 0.01, "hidden": 16}
    checkpoint = train_scorer({"a": corpus}, embeddings={"a": vectors}, **quick)
    checkpoint.save(tmp_path / "s")
    method = f"scorer:path={tmp_path / 's'}"
    given = {"methods": [method], "thresholds": [0.1, 0.5], "metrics": []}
    result = density({"a": corpus}, embeddings={"a": vectors}, **given)
    scores = checkpoint.gap_scores(Inputs(corpus, 0, vectors))
    golds = [document.gold.masses for document in corpus]
    for tau in (0.1, 0.5):
        made = [select_above(each, tau, 3).masses for each in scores]
        (row,) = rows(result, "curves", method=method, threshold=tau, measure="w_f1")[:1]
        assert row["bor"] == pytest.approx(studies.bor(made, golds))
        assert row["value"] == pytest.approx(
            studies.mean_against(reference_based.w_f1, made, golds)
        )


def test_annotators_are_averaged():
    documents = tuple(
        Document.build(f"d{i}", ["x"] * 8, golds={"a": [4, 4], "b": [2, 3, 3]}) for i in range(5)
    )
    vectors = list(np.random.default_rng(0).normal(size=(5, 8, 4)))
    result = density(
        {"a": Corpus(documents)}, methods=["random"], metrics=[], embeddings={"a": vectors}
    )
    assert result.corpora[0]["gold_boundaries"] == round(5 * 1.5)
    assert all(row["method"] != "gold" for row in result.table("curves").records())


def test_two_corpora_share_a_signature():
    both = {"a": topical_corpus(GOLDS, seed=1), "b": topical_corpus(GOLDS[:5], seed=2)}
    corpora, vectors = ({name: pair[i] for name, pair in both.items()} for i in (0, 1))
    given = {"methods": ["depth"], "metrics": ["arp_pair"], "thresholds": [0.5]}
    result = density(corpora, embeddings=vectors, **given)
    revisions = result.signature.split("|encoder:")[1].split("|")[0]
    assert revisions.count("precomputed@") == 2
    assert result.signature.count("|seed:0|") == 1
    assert {row["corpus"] for row in result.table("regimes").records()} == {"a", "b"}
    assert result.verdict[0].startswith("a: ")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"methods": ["c99"]}, OptionError, "gives no score per gap"),
        ({"methods": ["dept"]}, UnknownNameError, "did you mean 'depth'"),
        ({"methods": []}, OptionError, "no method"),
        ({"thresholds": []}, OptionError, "at least one"),
        ({"thresholds": [np.nan]}, OptionError, "thresholds = "),
        ({"matchings": ["both"]}, OptionError, "many_to_one or one_to_one"),
        ({"min_gap": 0}, InputError, "min_gap = 0"),
        ({"metrics": ["arp"]}, UnknownNameError, "unknown metric"),
        ({"devise": "cpu"}, TypeError, "devise"),
    ],
)
def test_bad_options_are_refused(keywords, error, message):
    corpus, vectors = topical_corpus([[3, 3]])
    with pytest.raises(error, match=message):
        density({"a": corpus}, embeddings={"a": vectors}, **keywords)


def test_gold_is_needed():
    units, vectors = ["x"] * 4, {"a": [np.ones((4, 2))]}
    with pytest.raises(InputError, match="document 'd': found a document without gold"):
        density({"a": Corpus((Document.build("d", units),))}, embeddings=vectors)
    bare = Corpus((Document.build("d", units, gold=Segmentation((4,))),))
    with pytest.raises(InputError, match="gold without any boundary"):
        density({"a": bare}, embeddings=vectors)
