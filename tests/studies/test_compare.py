"""Paired comparison of systems: differences, groups of letters, and the command itself."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import combinations, pairwise

import jsonschema
import numpy as np
import pytest

from reffree.data.corpus import Corpus, Document
from reffree.evaluate.result import Result
from reffree.evaluate.score import score
from reffree.evaluate.table import CorpusScore, DocumentScores, PartScore, ScoreTable, SystemScores
from reffree.formats import save
from reffree.report.render import render
from reffree.studies.compare import compare, compare_table
from reffree.util.errors import InputError
from tests.oracles.statistics import mean_of_pairs

NAN = float("nan")


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
    return json.loads((files("reffree") / "report" / "result.schema.json").read_text())


def pairs_of(result, metric="m"):
    return result.table("pairs").records(metric=metric)


def ranking_of(result, metric="m"):
    rows = result.table("systems").records(metric=metric)
    return sorted(rows, key=lambda row: (row["rank"] is None, row["rank"]))


def test_gold_is_told_from_what_is_worse_but_not_from_its_copy():
    corpus, arrays = make(copy=[5, 5], late=[8, 2], none=[10])
    result = compare(corpus, embeddings=arrays, metrics=["arp_pair", "segrefree"])
    table = score(corpus, embeddings=arrays, metrics=["arp_pair", "segrefree"])
    jsonschema.validate(result.to_dict(), schema())
    ranking = ranking_of(result, "arp_pair")
    assert [row["system"] for row in ranking] == ["gold", "copy", "none", "late"]
    assert [row["letters"] for row in ranking] == ["a", "a", "b", "c"]
    assert [row["rank"] for row in ranking] == [1, 1, 3, 4]
    by_system = {row.system: row.metrics["arp_pair"].to_dict() for row in table.systems}
    for row in ranking:
        assert (row["value"], row["documents"]) == (by_system[row["system"]]["value"], 14)
    pairs = {(pair["a"], pair["b"]): pair for pair in pairs_of(result, "arp_pair")}
    assert list(pairs) == list(combinations(["gold", "copy", "late", "none"], 2))
    same = pairs["gold", "copy"]
    assert {name: same[name] for name in list(same)[1:9]} == {
        **{"a": "gold", "b": "copy", "difference": 0, "ci": [0, 0], "p": 1, "p_corrected": 1},
        **{"documents": 14, "better": None},
    }
    late = pairs["gold", "late"]
    assert late["better"] == "gold"
    assert late["difference"] == pytest.approx(
        by_system["gold"]["value"] - by_system["late"]["value"]
    )
    assert late["ci"][0] <= late["difference"] <= late["ci"][1] < 0
    assert late["p"] <= late["p_corrected"] <= 0.05
    test = "paired-permutation(10000)+westfall-young"
    assert result.signature == f"{table.signature}|test:{test}|alpha:0.05"


def test_pairs_without_common_documents_are_said_not_tested():
    corpus, arrays = make(late=[8, 2], none=[10])
    result = compare(corpus, embeddings=arrays, metrics=["segrefree"])
    jsonschema.validate(result.to_dict(), schema())
    last = ranking_of(result, "segrefree")[-1]
    assert (last["system"], last["value"], last["letters"], last["documents"]) == (
        *("none", None, "", 0),
    )
    first, second, third = pairs_of(result, "segrefree")
    assert first["p"] == first["p_corrected"]  # one test was made, nothing to correct
    for pair in (second, third):
        assert pair["documents"] == 0
        assert {pair[key] for key in ("difference", "ci", "p", "p_corrected", "better")} == {None}
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
        value = mean_of_pairs(scored) if scored else None
        undefined = len(values) - len(scored)
        cell = CorpusScore(value, value, None, None, len(scored), undefined, 0, direction=direction)
        rows.append(SystemScores(name, 1, 0, {"m": cell}))
        documents += [DocumentScores(f"d{i}", name, {"m": part}) for i, part in enumerate(parts)]
    sizes = {"documents": len(documents) // len(rows), "units": 1}
    return ScoreTable("s", sizes, tuple(rows), tuple(documents), incomparable=incomparable)


@pytest.mark.parametrize("policy", ["neutral", "worst"])
def test_differences_are_those_of_the_corpus_scores(policy):
    """Also where documents weigh differently, or have a score but no weight of their own."""
    rng = np.random.default_rng(14)
    cuts = rng.integers(0, 10, size=9).tolist()
    units = [f"unit {j}" for j in range(10)]
    varied = [[cut, 10 - cut] if cut > 2 else [10] for cut in cuts]
    systems = [{"varied": masses, "fine": [2, 1] * 3 + [1]} for masses in varied]
    documents = tuple(
        Document.build(f"d{i}", units, gold=[5, 5], systems=made) for i, made in enumerate(systems)
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
        for pair in pairs_of(result, name):
            expected = values[pair["a"]][name].value - values[pair["b"]][name].value
            assert pair["difference"] == pytest.approx(expected, abs=1e-9)
            assert pair["documents"] == 9


def test_higher_is_better_where_the_metric_says_so():
    systems = {"low": [0.1] * 20, "high": [0.9] * 20}
    for direction, best in (("lower", "low"), ("higher", "high")):
        result = compare_table(table_of(systems, direction))
        first = ranking_of(result)[0]
        assert (first["system"], first["letters"]) == (best, "a")
        (pair,) = pairs_of(result)
        assert pair["difference"] == pytest.approx(-0.8)
        assert pair["better"] == best
    text = render(result, "table")
    assert "Lower is better (higher for m)" in text


def test_undefined_documents_are_left_out_and_counted():
    systems = {"a": [None, *range(15)], "b": [9, *range(1, 15), None]}
    result = compare_table(table_of(systems, incomparable=frozenset({"m"})))
    (pair,) = pairs_of(result)
    assert (pair["difference"], pair["documents"]) == (-1, 14)
    assert [row["documents"] for row in ranking_of(result)] == [15, 15]
    (note,) = result.notes
    assert note.startswith("m: the ranking's values come from different documents")


def test_a_corpus_too_small_for_any_difference_is_said():
    systems = {"a": [0.0] * 4, "b": [1.0] * 4}
    result = compare_table(table_of(systems))
    assert pairs_of(result)[0]["p"] == 2 / 2**4
    (note,) = result.notes
    assert note == (
        "No difference can be told at alpha 0.05, however large: with 4 documents the smallest p "
        "is 0.125; 6 would be enough to tell a large one."
    )
    assert compare_table(table_of(systems), alpha=0.2).notes == ()


@pytest.fixture(scope="module")
def many():
    """47 systems on 19 documents: the later, the worse, by a tenth of what documents differ by."""
    rng = np.random.default_rng(30)
    values = (
        rng.uniform(size=19) / 2 + np.arange(47)[:, None] / 100 + rng.normal(size=(47, 19)) / 20
    )
    systems = {f"s{i:02}": row.tolist() for i, row in enumerate(values)}
    return compare_table(table_of(dict(sorted(systems.items(), reverse=True))))


def test_many_systems_are_told_apart(many):
    pairs = pairs_of(many)
    assert len(pairs) == 47 * 46 // 2
    of = {frozenset((pair["a"], pair["b"])): pair for pair in pairs}
    assert of[frozenset(("s00", "s46"))]["better"] == "s00"
    assert sum(pair["better"] is not None for pair in pairs) > 500
    assert all(pair["better"] == min(pair["a"], pair["b"]) for pair in pairs if pair["better"])
    assert "It cannot be told from s" in many.verdict[1]
    assert len(set("".join(row["letters"] for row in ranking_of(many)))) > 5


def test_of_many_systems_neighbours_are_shown(many):
    """In the direction of the verdict; all pairs are there for those who ask."""
    ranking = [row["system"] for row in ranking_of(many)]
    rows = many.table("neighbours").records()
    assert [(row["next_better"], row["system"]) for row in rows] == list(pairwise(ranking))
    values = {row["system"]: row["value"] for row in ranking_of(many)}
    for row in rows:
        expected = values[row["system"]] - values[row["next_better"]]
        assert row["difference"] == pytest.approx(expected, abs=1e-9)
        assert row["ci"][0] <= row["difference"] <= row["ci"][1]
    low, high = rows[0]["ci"]
    assert f"next − best: 95 % interval {low:.3f} to {high:.3f}" in many.verdict[0]
    text = render(many, "table")
    assert len(text.splitlines()) < 2 * 47 + len(many.table("groups").rows) + 20
    assert "All 1,081 pairs: --table pairs" in " ".join(text.split())
    assert len(render(many, "table", table="pairs").splitlines()) > 1081
    assert len(render(many, "csv").splitlines()) == 1082
    few = compare_table(table_of({"a": [0.0] * 9, "b": [1.0] * 9}))
    assert [table.name for table in few.tables if table.shown] == ["systems", "pairs"]


def test_many_systems_stand_in_groups(many):
    """Each is cut from the ranking by what its first can be told from; the first are apart."""
    ranking = [row["system"] for row in ranking_of(many)]
    apart = {frozenset((pair["a"], pair["b"])) for pair in pairs_of(many) if pair["better"]}
    group = {row["system"]: int(row["group"]) for row in ranking_of(many)}
    firsts = [
        min((s for s in ranking if group[s] == n), key=ranking.index)
        for n in range(1, 1 + max(group.values()))
    ]
    assert firsts[0] == ranking[0]
    assert len(firsts) > 1
    for system in ranking:
        first = firsts[group[system] - 1]
        assert {system, first} not in apart
        assert all({system, better} in apart for better in firsts[: group[system] - 1])
    rows = many.table("groups").records()
    assert [row["number"] for row in rows] == [
        list(group.values()).count(row["group"]) for row in rows
    ]
    assert rows[0]["systems"].startswith(ranking[0])


def test_rounding_noise_breaks_no_tie():
    rng = np.random.default_rng(9)
    values = rng.uniform(size=30)
    systems = {"a": values.tolist(), "b": (values * (1 + 1e-14)).tolist()}
    result = compare_table(table_of(systems))
    assert pairs_of(result)[0]["p"] == 1
    assert [row["letters"] for row in ranking_of(result)] == ["a", "a"]


def test_bad_calls_get_a_sentence():
    corpus, arrays = make()
    with pytest.raises(InputError, match=r"too few systems to compare \('gold'\); expected at lea"):
        compare(corpus, embeddings=arrays)
    for alpha in (0, 1, NAN):
        with pytest.raises(InputError, match=r"expected a (finite )?number"):
            compare(corpus, embeddings=arrays, alpha=alpha)
    with pytest.raises(InputError, match="make it with per_document=True"):
        compare_table(score(corpus, embeddings=arrays))


@pytest.fixture
def own_vectors(tmp_path):
    """A small corpus file and its vectors, so that no encoder is loaded."""
    corpus, arrays = make(copy=[5, 5], **{"late_100%": [8, 2]})
    np.savez(tmp_path / "v.npz", **{f"d{i}": array for i, array in enumerate(arrays)})
    assert save(corpus, tmp_path / "c.jsonl") == []
    return corpus, arrays


def test_command_json_equals_the_python_api(run, own_vectors):
    arguments = ["compare", "c.jsonl", "--embeddings", "v.npz", "--seed", "3", "--alpha", "1e-9"]
    arguments += ["-m", "arp_pair", "-m", "segrefree"]
    done = run(*arguments, "-f", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout, parse_constant=pytest.fail)
    jsonschema.validate(result, schema())
    corpus, arrays = own_vectors
    metrics = ["arp_pair", "segrefree"]
    expected = compare(corpus, metrics=metrics, embeddings=arrays, seed=3, alpha=1e-9)
    assert result == expected.to_dict()
    assert Result.from_dict(result) == expected
    assert result["settings"]["alpha"] == 1e-9
    assert any("No difference can be told at alpha 1e-09" in note for note in result["notes"])
    assert run(*arguments, "-f", "json").stdout == done.stdout
    assert all(f"reffree: note: {note}\n" in done.stderr for note in expected.notes)


def test_command_prints_tables(run, own_vectors, tmp_path):
    (tmp_path / "none.jsonl").write_text(
        "".join(json.dumps({"id": f"d{i}", "segmentation": [10]}) + "\n" for i in range(14))
    )
    arguments = ["c.jsonl", "--embeddings", "v.npz", "-m", "silhouette", "--unsegmented", "worst"]
    done = run("compare", *arguments, "--system", "none=none.jsonl")
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stderr
    verdict, _, *lines = done.stdout.splitlines()
    assert verdict.startswith("copy is best of 3 systems by silhouette: 0.")
    assert lines[0].split() == ["system", "silhouette"]
    assert [line.split()[0] for line in lines[2:6]] == ["gold", "copy", "late_100%", "none"]
    assert [line.split()[2] for line in lines[2:6]] == ["a", "a", "b", "c"]
    assert [line.split()[1][0] == "*" for line in lines[2:6]] == [True, True, False, False]
    assert "Lower is better; systems that share a letter cannot be told apart" in done.stdout
    assert lines[-1].endswith("|alpha:0.05")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["c.jsonl", "--alpha", "1.5"], "found alpha = 1.5; expected a number between 0 and 1"),
        (["c.jsonl", "--embeddings", "v.npz", "--encoder", "minilm"], "exclude"),
    ],
)
def test_usage_errors_exit_2(run, own_vectors, arguments, part):
    done = run("compare", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert part in done.stderr
    assert "Traceback" not in done.stderr
