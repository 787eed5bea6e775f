"""Paired comparison: statistics against plain loops, simulations, and the command itself."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from itertools import combinations, product

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from reffree.corpus import Corpus, Document
from reffree.errors import InputError
from reffree.evaluate.score import score
from reffree.evaluate.table import CorpusScore, DocumentScores, PartScore, ScoreTable, SystemScores
from reffree.report.compare import render
from reffree.statistics.significance import holm, letters, paired_tests
from reffree.studies.comparison import compare, compare_table

NAN = float("nan")


def run_pair(a, b, a_weights=None, b_weights=None, seed=0):
    values = np.array([a, b], dtype=float)
    ones = np.ones(len(a))
    weights = np.array([ones if w is None else w for w in (a_weights, b_weights)], dtype=float)
    (test,) = paired_tests(values, weights, [(0, 1)], np.random.default_rng(seed))
    return test


def mean(pairs):
    return sum(w * v for v, w in pairs) / sum(w for _, w in pairs)


def enumerated_p(a, b):
    """Share of all swaps with a difference at least as large; a, b: lists of (value, weight)."""
    observed = abs(mean(a) - mean(b))
    differences = []
    for swaps in product([False, True], repeat=len(a)):
        left = [y if swap else x for x, y, swap in zip(a, b, swaps, strict=True)]
        right = [x if swap else y for x, y, swap in zip(a, b, swaps, strict=True)]
        differences.append(abs(mean(left) - mean(right)))
    return np.mean([d > observed or d == pytest.approx(observed, rel=1e-9) for d in differences])


@pytest.mark.parametrize("n_documents", [1, 2, 5, 8])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_exact_p_equals_enumeration(n_documents, is_weighted):
    rng = np.random.default_rng(n_documents)
    for _ in range(5):
        values = rng.normal(loc=[[0.5], [0]], size=(2, n_documents))
        weights = rng.integers(1, 9, size=values.shape) if is_weighted else np.ones(values.shape)
        a, b = (list(zip(v, w, strict=True)) for v, w in zip(values, weights, strict=True))
        test = run_pair(*values, *weights)
        assert test.difference == pytest.approx(mean(a) - mean(b), rel=1e-12)
        assert test.p == pytest.approx(enumerated_p(a, b), abs=1e-12)
        assert test.documents == n_documents


def test_random_swaps_estimate_the_exact_p():
    values = np.random.default_rng(3).normal(loc=[[0.4], [0]], size=(2, 13))
    weights = np.random.default_rng(4).integers(1, 5, size=values.shape)
    a, b = (list(zip(v, w, strict=True)) for v, w in zip(values, weights, strict=True))
    exact = enumerated_p(a, b)
    p = run_pair(*values, *weights).p
    assert p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000))
    assert (p * 10_001) == pytest.approx(round(p * 10_001))


def test_smallest_p_counts_the_observed_assignment():
    assert run_pair(np.arange(40) + 1.0, np.zeros(40)).p == 1 / 10_001
    twelve = run_pair(np.arange(12) + 1.0, np.zeros(12))
    assert twelve.p == twelve.smallest_p == 2 / 2**12


def test_interval_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 9))
    values[0, 2] = values[1, 7] = NAN
    weights = rng.integers(1, 9, size=(2, 9)).astype(float)
    counts = np.random.default_rng(5).multinomial(9, [1 / 9] * 9, size=1000)
    differences = []
    for row in counts:
        drawn = [d for d, n in enumerate(row) for _ in range(n) if d not in (2, 7)]
        if drawn:
            a, b = ([(values[i, d], weights[i, d]) for d in drawn] for i in (0, 1))
            differences.append(mean(a) - mean(b))
    test = run_pair(*values, *weights, seed=5)
    assert_allclose(test.ci, np.quantile(differences, [0.025, 0.975]), rtol=1e-12)
    assert test.documents == 7


def test_undefined_documents_leave_the_pair():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 20))
    a[[0, 3, 4, 5, 6]], b[[3, 7, 8, 9, 10]] = NAN, NAN
    kept = ~np.isnan(a + b)
    test, bare = run_pair(a, b), run_pair(a[kept], b[kept])
    assert kept.sum() == test.documents == 11
    assert test.difference == pytest.approx(bare.difference)
    assert test.p == bare.p  # few enough to enumerate, whatever the size of the corpus
    weights = np.where(kept, 1.0, 0.0)
    assert run_pair(np.nan_to_num(a), np.nan_to_num(b), weights, weights).p == bare.p


@pytest.mark.parametrize("n_common", [0, 1, 4, 5])
def test_few_documents(n_common):
    a = np.where(np.arange(20) < n_common, np.arange(20.0), NAN)
    test = run_pair(a, np.zeros(20))
    assert test.documents == n_common
    assert (test.ci is None) == (n_common < 5)
    assert (test.difference is None) == (test.p is None) == (n_common == 0)
    if n_common == 1:
        assert test.p == 1


@pytest.mark.parametrize("n_documents", [3, 12, 30])
def test_equal_systems_are_never_told_apart(n_documents):
    values = np.random.default_rng(2).normal(size=n_documents) / 3
    test = run_pair(values, values)
    assert (test.difference, test.p) == (0, 1)
    assert run_pair(values, values[::-1]).p == 1  # equal means, up to the order of summation


def test_ties_count_although_sums_round():
    """Differences ±0.1: all 2^12 swaps with the same number of signs tie exactly."""
    a = np.array([0.1] * 9 + [0.2] * 3)
    b = np.array([0.2] * 9 + [0.1] * 3)
    # 3 or fewer of 12 signs against the others, both ways: 2 (1 + 12 + 66 + 220) / 4096.
    assert run_pair(a, b).p == 598 / 4096


def test_pairs_do_not_depend_on_each_other():
    values = np.random.default_rng(6).normal(size=(4, 25))
    values[1, :15] = NAN
    weights = np.random.default_rng(7).integers(1, 4, size=values.shape).astype(float)
    pairs = list(combinations(range(4), 2))
    before = values.copy()
    together = paired_tests(values, weights, pairs, np.random.default_rng(0))
    for (i, j), test in zip(pairs, together, strict=True):
        alone = run_pair(values[i], values[j], weights[i], weights[j])
        assert (test.p, test.documents) == (alone.p, alone.documents)
        assert_allclose([test.difference, *test.ci], [alone.difference, *alone.ci], rtol=1e-9)
        turned = run_pair(values[j], values[i], weights[j], weights[i])
        assert turned.difference == pytest.approx(-test.difference)
        if test.documents <= 12:
            assert turned.p == test.p
    np.testing.assert_array_equal(values, before)
    assert paired_tests(values, weights, [], np.random.default_rng(0)) == []


def simulate(firsts, seconds, seed=0):
    """Test many pairs of systems, given as (simulations, documents), on the same draws."""
    n = len(firsts)
    values = np.concatenate([firsts, seconds])
    pairs = [(i, n + i) for i in range(n)]
    return paired_tests(values, np.ones_like(values), pairs, np.random.default_rng(seed))


def test_false_positives_under_the_null():
    """Exchangeable systems, 30 documents, heavy right tail: 5 % of p-values are at most 0.05."""
    a, b = np.random.default_rng(10).lognormal(size=(2, 4, 200, 30))
    tests = [test for i in range(4) for test in simulate(a[i], b[i], seed=i)]
    assert 0.035 <= np.mean([test.p <= 0.05 for test in tests]) <= 0.065


def test_false_positives_with_different_weights():
    rng = np.random.default_rng(11)
    values, weights = rng.lognormal(size=(800, 30)), rng.integers(1, 20, size=(800, 30))
    pairs = [(i, 400 + i) for i in range(400)]
    tests = paired_tests(values, weights.astype(float), pairs, rng)
    assert 0.035 <= np.mean([test.p <= 0.05 for test in tests]) <= 0.065


def test_intervals_cover_the_true_difference():
    """Skewed differences of mean 2 around a value both systems share."""
    rng = np.random.default_rng(12)
    is_covered = []
    for seed in range(5):
        shared = rng.normal(size=(160, 30))
        tests = simulate(shared + rng.gamma(2.0, size=shared.shape), shared, seed)
        is_covered += [test.ci[0] <= 2 <= test.ci[1] for test in tests]
    assert 0.91 <= np.mean(is_covered) <= 0.98


def test_power_grows_with_the_difference():
    rng = np.random.default_rng(13)
    a, b = rng.lognormal(sigma=0.5, size=(2, 80, 30))
    found = [
        np.mean([t.p <= 0.05 and t.difference > 0 for t in simulate(a + shift, b)])
        for shift in (0, 0.2, 0.4, 0.6)
    ]
    assert found == sorted(found)
    assert found[0] < 0.06
    assert found[-1] > 0.9


def test_holm_by_hand():
    # Sorted: 0.005·4 = 0.02, 0.01·3 = 0.03, 0.03·2 = 0.06, 0.04·1 = 0.04 → 0.06 (monotone).
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert_allclose(holm([0.6, 0.5]), [1, 1])
    assert_allclose(holm([0.02]), [0.02])
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("distinguishable", "expected"),
    [
        ("", "a a a a"),
        ("wz", "a ab ab b"),
        ("wy wz xz", "a ab bc c"),
        ("wx wy wz xy xz yz", "a b c d"),
        ("wx yz", "ab cd ac bd"),
        ("wy wz xy xz", "a a b b"),
        ("xw zw yw", "a b b b"),
        ("xy", "ab a b ab"),
    ],
)
def test_letters_by_hand(distinguishable, expected):
    result = letters("wxyz", [(pair[0], pair[1]) for pair in distinguishable.split()])
    assert list(result) == list("wxyz")
    assert " ".join(result.values()) == expected


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2 ** (n * n)))))
def test_a_letter_is_shared_iff_not_distinguishable(case):
    n, bits = case
    names = [f"s{i}" for i in range(n)]
    apart = {pair for i, pair in enumerate(combinations(names, 2)) if bits >> i & 1}
    result = letters(names, apart)
    for a, b in combinations(names, 2):
        assert bool(set(result[a]) & set(result[b])) == ((a, b) not in apart)
    assert "a" in result["s0"]
    used = sorted(set("".join(result.values())))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    holders = [{name for name in names if letter in result[name]} for letter in used]
    assert not any(x <= y for x in holders for y in holders if x is not y)


def test_more_groups_than_letters():
    names = [f"s{i}" for i in range(60)]
    result = letters(names, combinations(names, 2))
    assert len(set(result.values())) == 60
    assert all(len(letter) == 1 and letter.isalpha() for letter in result.values())


def make(n_documents=14, seed=0, **systems):
    """Documents with two topics of 5 units, split by gold; a system is a list of masses."""
    rng = np.random.default_rng(seed)
    documents = tuple(
        Document.build(f"d{i}", [f"unit {j}" for j in range(10)], gold=[5, 5], systems=systems)
        for i in range(n_documents)
    )
    topics = np.repeat(np.eye(2), 5, axis=0)
    return Corpus(documents), [topics + rng.normal(size=(10, 2)) / 5 for _ in documents]


def schema():
    return json.loads((files("reffree") / "report" / "compare.schema.json").read_text())


def test_gold_is_told_from_what_is_worse_but_not_from_its_copy():
    corpus, arrays = make(copy=[5, 5], late=[8, 2], none=[10])
    result = compare(corpus, embeddings=arrays, metrics=["arp_pair", "segrefree"])
    table = score(corpus, embeddings=arrays, metrics=["arp_pair", "segrefree"])
    plain = result.to_dict()
    jsonschema.validate(plain, schema())
    arp = plain["metrics"]["arp_pair"]
    assert [row["system"] for row in arp["ranking"]] == ["gold", "copy", "none", "late"]
    assert [row["letters"] for row in arp["ranking"]] == ["a", "a", "b", "c"]
    by_system = {row.system: row.metrics["arp_pair"].to_dict() for row in table.systems}
    for row in arp["ranking"]:
        assert (row["value"], row["documents"]) == (by_system[row["system"]]["value"], 14)
    pairs = {(pair["a"], pair["b"]): pair for pair in arp["pairs"]}
    assert list(pairs) == list(combinations(["gold", "copy", "late", "none"], 2))
    same = pairs["gold", "copy"]
    assert same == {
        **{"a": "gold", "b": "copy", "difference": 0, "ci": [0, 0], "p": 1, "p_holm": 1},
        **{"documents": 14, "better": None},
    }
    late = pairs["gold", "late"]
    assert late["better"] == "gold"
    assert late["difference"] == pytest.approx(
        by_system["gold"]["value"] - by_system["late"]["value"]
    )
    assert late["ci"][0] <= late["difference"] <= late["ci"][1] < 0
    assert late["p"] <= late["p_holm"] <= 0.05
    assert result.signature == f"{table.signature}|test:paired-permutation(10000)+holm|alpha:0.05"


def test_pairs_without_common_documents_are_said_not_tested():
    corpus, arrays = make(late=[8, 2], none=[10])
    result = compare(corpus, embeddings=arrays, metrics=["segrefree"])
    plain = result.to_dict()
    jsonschema.validate(plain, schema())
    assert plain["metrics"]["segrefree"]["ranking"][-1] == {
        **{"system": "none", "value": None, "letters": "", "documents": 0}
    }
    first, second, third = plain["metrics"]["segrefree"]["pairs"]
    assert first["p"] == first["p_holm"]  # one test was made, nothing to correct
    for pair in (second, third):
        assert pair["documents"] == 0
        assert {pair[key] for key in ("difference", "ci", "p", "p_holm", "better")} == {None}
    assert any(
        note.startswith("segrefree: the ranking's values come from different documents")
        for note in result.notes
    )


def table_of(systems, direction="lower", weights=None, incomparable=frozenset()):
    """A score table from per-document values, without scoring; None is undefined."""
    rows, documents = [], []
    for name, values in systems.items():
        counts = [None] * len(values) if weights is None else weights[name]
        parts = [PartScore(v, v, weight=w) for v, w in zip(values, counts, strict=True)]
        scored = [(v, w or 1) for v, w in zip(values, counts, strict=True) if v is not None]
        value = mean(scored) if scored else None
        undefined = len(values) - len(scored)
        cell = CorpusScore(value, value, None, None, len(scored), undefined, 0, direction=direction)
        rows.append(SystemScores(name, 1, 0, {"m": cell}))
        documents += [DocumentScores(f"d{i}", name, {"m": part}) for i, part in enumerate(parts)]
    sizes = {"documents": len(documents) // len(rows), "units": 1}
    return ScoreTable("s", sizes, tuple(rows), tuple(documents), incomparable=incomparable)


def test_weights_pool_a_ratio():
    rng = np.random.default_rng(8)
    weights = {name: rng.integers(1, 30, size=9).tolist() for name in "ab"}
    systems = {name: rng.uniform(size=9).tolist() for name in "ab"}
    (pair,) = compare_table(table_of(systems, weights=weights)).metrics["m"].pairs
    a, b = (list(zip(systems[n], weights[n], strict=True)) for n in "ab")
    assert pair.difference == pytest.approx(mean(a) - mean(b), abs=1e-9)
    assert pair.p == enumerated_p(a, b)
    (unweighted,) = compare_table(table_of(systems)).metrics["m"].pairs
    assert unweighted.difference != pytest.approx(pair.difference)


def test_a_score_without_a_weight_counts_as_the_average_document():
    weights = {"a": [2, 0, 4, 3], "b": [1, 1, 1, 1]}
    systems = {"a": [0.1, 0.5, 0.2, 0.3], "b": [0.2, 0.2, 0.4, 0.2]}
    (pair,) = compare_table(table_of(systems, weights=weights)).metrics["m"].pairs
    expected = mean([(0.1, 2), (0.5, 3), (0.2, 4), (0.3, 3)]) - 0.25
    assert (pair.difference, pair.documents) == (pytest.approx(expected), 4)


@pytest.mark.parametrize("policy", ["neutral", "worst"])
def test_differences_are_those_of_the_corpus_scores(policy):
    """Also where documents weigh differently, or have a score but no weight of their own."""
    rng = np.random.default_rng(14)
    cuts = rng.integers(0, 10, size=9).tolist()
    documents = tuple(
        Document.build(
            f"d{i}",
            [f"unit {j}" for j in range(10)],
            gold=[5, 5],
            systems={"varied": [cut, 10 - cut] if cut > 2 else [10], "fine": [2, 1] * 3 + [1]},
        )
        for i, cut in enumerate(cuts)
    )
    arrays = [rng.normal(size=(10, 3)) for _ in documents]
    metrics = ["arp_std", "silhouette", "silhouette:average=units"]
    metrics += ["segrefree"] if policy == "worst" else []
    options = {"embeddings": arrays, "metrics": metrics, "unsegmented": policy}
    result = compare(Corpus(documents), **options)
    table = score(Corpus(documents), **options)
    assert {row.unsegmented for row in table.systems} != {0}
    values = {row.system: row.metrics for row in table.systems}
    for name in metrics:
        for pair in result.metrics[name].pairs:
            expected = values[pair.a][name].value - values[pair.b][name].value
            assert pair.difference == pytest.approx(expected, abs=1e-9)
            assert pair.documents == 9


def test_higher_is_better_where_the_metric_says_so():
    systems = {"low": [0.1] * 20, "high": [0.9] * 20}
    for direction, best in (("lower", "low"), ("higher", "high")):
        metric = compare_table(table_of(systems, direction)).metrics["m"]
        assert (metric.ranking[0].system, metric.ranking[0].letters) == (best, "a")
        (pair,) = metric.pairs
        assert pair.difference == pytest.approx(-0.8)
        assert pair.better == best
    comparison = compare_table(table_of(systems, "higher"))
    text = render(comparison, "table", color=False, width=None)
    assert "Lower is better (higher for m)" in text


def test_undefined_documents_are_left_out_and_counted():
    systems = {"a": [None, *range(15)], "b": [9, *range(1, 15), None]}
    result = compare_table(table_of(systems, incomparable=frozenset({"m"})))
    metric = result.metrics["m"]
    (pair,) = metric.pairs
    assert (pair.difference, pair.documents) == (-1, 14)
    assert [row.documents for row in metric.ranking] == [15, 15]
    (note,) = result.notes
    assert note.startswith("m: the ranking's values come from different documents")


def test_a_corpus_too_small_for_any_difference_is_said():
    systems = {"a": [0.0] * 4, "b": [1.0] * 4}
    result = compare_table(table_of(systems))
    assert result.metrics["m"].pairs[0].p == 2 / 2**4
    (note,) = result.notes
    assert note == (
        "No pair can be told apart at alpha 0.05, however large the difference: with 4 documents "
        "and 1 pairs the smallest corrected p is 0.125."
    )
    assert compare_table(table_of(systems), alpha=0.2).notes == ()


def test_rounding_noise_breaks_no_tie():
    rng = np.random.default_rng(9)
    values = rng.uniform(size=30)
    systems = {"a": values.tolist(), "b": (values * (1 + 1e-14)).tolist()}
    metric = compare_table(table_of(systems)).metrics["m"]
    assert metric.pairs[0].p == 1
    assert [row.letters for row in metric.ranking] == ["a", "a"]


def test_bad_calls_get_a_sentence():
    corpus, arrays = make()
    with pytest.raises(InputError, match=r"too few systems to compare \('gold'\); expected at lea"):
        compare(corpus, embeddings=arrays)
    for alpha in (0, 1, NAN):
        with pytest.raises(InputError, match="expected a number between 0 and 1"):
            compare(corpus, embeddings=arrays, alpha=alpha)
    with pytest.raises(InputError, match="make it with per_document=True"):
        compare_table(score(corpus, embeddings=arrays))


def test_pandas():
    corpus, arrays = make(late=[8, 2], none=[10])
    result = compare(corpus, embeddings=arrays, metrics=["arp_cos", "segrefree"])
    frame = result.to_pandas()
    assert list(frame["metric"]) == ["arp_cos"] * 3 + ["segrefree"] * 3
    assert frame["p_holm"][0] == result.to_dict()["metrics"]["arp_cos"]["pairs"][0]["p_holm"]
    assert frame["ci_low"][0] <= frame["difference"][0] <= frame["ci_high"][0]
    assert np.isnan(frame["ci_low"][5])


@pytest.fixture
def own_vectors(write_corpus, tmp_path):
    """A small corpus file and its vectors, so that no encoder is loaded."""
    corpus, arrays = make(copy=[5, 5], **{"late_100%": [8, 2]})
    np.savez(tmp_path / "v.npz", **{f"d{i}": array for i, array in enumerate(arrays)})
    write_corpus(
        [
            {
                "id": document.id,
                "units": list(document.units),
                "gold": list(document.gold.masses),
                "systems": {name: list(s.masses) for name, s in document.systems.items()},
            }
            for document in corpus.documents
        ],
        "c.jsonl",
    )
    return corpus, arrays


def test_command_json_equals_the_python_api(run, own_vectors):
    arguments = ["compare", "c.jsonl", "--embeddings", "v.npz", "--seed", "3", "--alpha", "1e-9"]
    arguments += ["-m", "arp_pair", "-m", "segrefree"]
    done = run(*arguments, "-f", "json", "--short")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout, parse_constant=pytest.fail)
    jsonschema.validate(result, schema())
    corpus, arrays = own_vectors
    expected = compare(
        corpus,
        metrics=["arp_pair", "segrefree"],
        embeddings=arrays,
        seed=3,
        alpha=1e-9,
        short_signature=True,
    )
    assert result == expected.to_dict()
    assert result["signature"].endswith("|test:paired-permutation(10000)+holm|alpha:1e-09")
    assert any("No pair can be told apart at alpha 1e-09" in note for note in result["notes"])
    assert run(*arguments, "-f", "json", "--short").stdout == done.stdout
    assert all(f"reffree: note: {note}\n" in done.stderr for note in expected.notes)


def test_command_prints_tables(run, own_vectors, tmp_path):
    (tmp_path / "none.jsonl").write_text(
        "".join(json.dumps({"id": f"d{i}", "segmentation": [10]}) + "\n" for i in range(14))
    )
    arguments = ["c.jsonl", "--embeddings", "v.npz", "-m", "silhouette", "--unsegmented", "worst"]
    done = run("compare", *arguments, "--system", "none=none.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["silhouette", "value", "letters", "documents"]
    assert [line.split()[0] for line in lines[2:6]] == ["gold", "copy", "late_100%", "none"]
    assert [line.split()[2] for line in lines[2:6]] == ["a", "a", "b", "c"]
    assert "Lower is better; systems that share a letter cannot be told apart" in done.stdout
    assert lines[-1].endswith("|alpha:0.05")


def test_csv_markdown_and_latex(own_vectors):
    corpus, arrays = own_vectors
    result = compare(corpus, embeddings=arrays, metrics=["arp_std", "segrefree"])
    texts = {f: render(result, f, color=False, width=None) for f in ("csv", "md", "latex")}
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert len(rows) == 2 * 3
    pair = result.to_dict()["metrics"]["arp_std"]["pairs"][1]
    assert (rows[1]["a"], rows[1]["b"], rows[1]["better"]) == ("gold", "late_100%", "gold")
    for column, value in {
        **{"difference": pair["difference"], "p": pair["p"], "p_holm": pair["p_holm"]},
        **{"ci_low": pair["ci"][0], "ci_high": pair["ci"][1], "documents": 14, "alpha": 0.05},
    }.items():
        assert float(rows[1][column]) == value
    assert (rows[1]["letters_a"], rows[1]["letters_b"]) == ("a", "b")
    assert rows[0]["better"] == ""
    assert rows[0]["signature"] == result.signature
    assert texts["md"].count("| arp_std") == texts["md"].count("| segrefree") == 2
    assert f"`{result.signature}`" in texts["md"]
    assert texts["latex"].count(r"\begin{tabular}") == 4
    assert r"gold & late\_100\% &" in texts["latex"]
    assert all(line.startswith("%") for line in texts["latex"].split(r"\begin")[0].splitlines())


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "Missing argument"),
        (["c.jsonl", "--alpha", "1.5"], "--alpha 1.5: expected a number between 0 and 1"),
        (["c.jsonl", "--alpha", "nan"], "--alpha nan"),
        (["c.jsonl", "--embeddings", "v.npz", "--encoder", "minilm"], "exclude"),
        (["c.jsonl", "--system", "broken"], "expected NAME=FILE"),
        (["c.jsonl", "-f", "xml"], "'xml' is not one of"),
        (["c.jsonl", "--seed", "-1"], "--seed"),
    ],
)
def test_usage_errors_exit_2(run, arguments, part):
    done = run("compare", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert part in done.stderr
    assert "Traceback" not in done.stderr
