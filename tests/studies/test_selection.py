"""Fine and coarse candidates, one rate: Coen's Figure 3 on scores made by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.formats import write_scores
from reffree.studies import density, selection
from reffree.util.errors import OptionError, UnknownNameError
from tests.helpers import invoke, invoke_study, refusal, rows, topical_corpus
from tests.oracles import selection as oracle


def dialogues(n=60, seed=0):
    """Documents of 20 to 60 units, and a probability for every gap."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 60, size=n).tolist()
    documents = [Document.build(f"d{i}", ["x"] * m) for i, m in enumerate(lengths)]
    return Corpus(tuple(documents)), {f"d{i}": rng.random(m - 1) for i, m in enumerate(lengths)}


@pytest.fixture(scope="module")
def figure():
    corpus, scores = dialogues()
    return corpus, scores, selection({"c": corpus}, methods=[], scores={"c": {"mine": scores}})


def test_rates_are_those_of_the_definition(figure):
    corpus, scores, result = figure
    documents = [scores[d.id].tolist() for d in corpus]
    n_gaps = sum(map(len, documents))
    found = rows(result, "rates")
    assert [row["share"] for row in found] == [0.735, 0.577]
    for row in found:
        assert row["candidates"] == pytest.approx(row["share"], abs=1 / n_gaps)
        pooled = sorted(s for each in documents for s in each)
        least = min(s for s in pooled if s >= row["least"] - 1e-9)
        static = [oracle.static(each, least, 3) for each in documents]
        adaptive, thresholds = oracle.adaptive(documents, 0.167, 3, 50, 0.2, 0.5, 3, least)
        assert row["static"] == pytest.approx(sum(map(len, static)) / n_gaps)
        assert row["adaptive"] == pytest.approx(sum(map(len, adaptive)) / n_gaps)
        assert row["boundaries"] == sum(map(len, adaptive))
        assert row["threshold"] == pytest.approx(thresholds[-1], abs=1e-6)


def test_the_figure_of_the_paper(figure):
    """16.7 % selected, as many from 73.5 % candidates as from 57.7 %, in the same places."""
    _, _, result = figure
    fine, coarse = rows(result, "rates")
    for row in (fine, coarse):
        assert row["adaptive"] == pytest.approx(0.167, abs=0.003)
    assert fine["boundaries"] == pytest.approx(coarse["boundaries"], rel=0.01)
    adaptive, static = (rows(result, "differences", rule=r)[0] for r in ("adaptive", "static"))
    assert adaptive["rates"] < static["rates"]
    assert adaptive["places"] < 0.05


def test_a_document_of_one_unit_and_equal_scores():
    corpus = Corpus((Document.build("a", ["x"]), Document.build("b", ["x"] * 4)))
    scores = {"a": [], "b": [0.5] * 3}
    result = selection({"c": corpus}, methods=["random"], scores={"c": {"mine": scores}})
    assert rows(result, "rates", method="mine")[0]["candidates"] == 1
    alone = Corpus((Document.build("a", ["x"]),))
    assert rows(selection({"c": alone}, methods=["texttiling"]), "rates")[0]["boundaries"] == 0


def test_rates_are_of_the_speaker_s_gaps():
    units, speakers = ["x"] * 200, ["user", "bot"] * 100
    corpus = Corpus((Document.build("a", units, speakers=speakers),))
    given = {"rate": 0.3, "min_gap": 1, "candidates_speaker": ["user"]}
    result = selection({"c": corpus}, methods=["random"], **given)
    for row in rows(result, "rates"):
        assert row["adaptive"] == pytest.approx(row["boundaries"] / 99)
        assert row["adaptive"] == pytest.approx(0.3, abs=0.05)
    assert "|candidates:user|" in result.signature


def test_what_is_refused():
    corpus, scores = dialogues(2)
    with pytest.raises(OptionError, match="at least two numbers"):
        selection({"c": corpus}, shares=[0.5])
    assert "at most 1/3" in refusal(selection, {"c": corpus}, rate=0.5)
    with pytest.raises(UnknownNameError, match="unknown corpus 'd'"):
        selection({"c": corpus}, scores={"d": {"mine": scores}})
    with pytest.raises(OptionError, match="scores called 'random', as a method"):
        selection({"c": corpus}, methods=["random"], scores={"c": {"random": scores}})
    assert "found scores = [" in refusal(selection, {"c": corpus}, scores={"c": scores["d0"]})
    said = refusal(selection, {"c": corpus}, methods=["depth"], scores={"c": {"m": [[1.0]]}})
    assert "found scores of 1 document; expected 2" in said


THREE, _ = topical_corpus([[6, 5], [4, 8], [7, 6]])
DENSE = {"methods": ["random"], "thresholds": [0.3, 0.6], "metrics": ["pk"]}


def test_density_takes_scores_as_they_are(tmp_path):
    corpus = THREE
    values = {d.id: np.random.default_rng(i).random(len(d.units) - 1) for i, d in enumerate(corpus)}
    write_scores(tmp_path / "s.jsonl", values)
    for given in (values, str(tmp_path / "s.jsonl")):
        result = density({"c": corpus}, scores={"c": {"mine": given}}, **DENSE)
        n_gold = sum(len(d.gold) - 1 for d in corpus)
        wanted = {"method": "mine", "matching": "one_to_one", "measure": "bor"}
        for tau in (0.3, 0.6):
            (row,) = rows(result, "curves", threshold=tau, **wanted)
            made = sum(len(oracle.static(values[d.id].tolist(), tau, 3)) for d in corpus)
            assert row["value"] == pytest.approx(made / n_gold)
        assert "random+mine@" in result.signature


def test_density_ranks_scores_on_another_scale():
    rng = np.random.default_rng(0)
    values = {d.id: rng.normal(size=len(d.units) - 1) * 9 for d in THREE}
    raised = {id: np.exp(each) for id, each in values.items()}
    first, second = (
        density({"c": THREE}, scores={"c": {"mine": each}}, **DENSE) for each in (values, raised)
    )
    assert any("do not lie between 0 and 1" in note for note in first.notes)
    assert first.table("curves") == second.table("curves")


def test_density_and_speakers():
    given = {"gold": [10, 10], "speakers": ["user", "bot"] * 10}
    corpus = Corpus(tuple(Document.build(f"d{i}", ["x"] * 20, **given) for i in range(3)))
    settings = DENSE | {"thresholds": [0.0], "min_gap": 1}
    free = density({"c": corpus}, **settings)
    bound = density({"c": corpus}, candidates_speaker=["user"], **settings)
    wanted = {"method": "random", "matching": "one_to_one", "measure": "bor"}
    assert [rows(each, "curves", **wanted)[0]["value"] for each in (free, bound)] == [19, 9]


def test_commands(tmp_path):
    corpus, scores = dialogues(4)
    reffree.save(corpus, tmp_path / "c.jsonl")
    reffree.save(corpus, tmp_path / "d.jsonl")
    write_scores(tmp_path / "s.jsonl", scores)
    files = [tmp_path / "c.jsonl", "--scores", f"mine={tmp_path / 's.jsonl'}", "--method", "random"]
    done = invoke_study("selection", *files, "--rate", "0.2", "--shares", "0.9,0.5", "-f", "json")
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert made["command"] == "selection"
    assert made["settings"]["shares"] == [0.9, 0.5]
    assert made["settings"]["scores"] == ["mine"]
    twice = invoke_study("selection", *files, tmp_path / "d.jsonl")
    assert "--scores with 2 corpora: name one CORPUS" in str(twice.output)
    wrong = invoke_study("selection", *files, "--shares", "a")
    assert "expected numbers with commas" in wrong.output


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ("{d: {mine: s.jsonl}}", "the unknown field 'studies.0.scores.d'; expected one of c"),
        ("{c: {mine: none.jsonl}}", "studies.0.scores.c.mine: 'none.jsonl', which is no file"),
        ("{c: {mine: [1]}}", "studies.0.scores.c.mine: [1], which is no file"),
        ("[s.jsonl]", "studies.0.scores"),
    ],
)
def test_scores_of_a_file_are_looked_for_before_any_work(tmp_path, monkeypatch, scores, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(
        "name: n\ncorpora: [c.jsonl]\nstudies:\n"
        f"- {{study: selection, methods: [random], scores: {scores}}}\n"
    )
    assert said in str(invoke("run", "x.yaml").exception)


def test_a_step_of_a_file_is_run_again_when_its_scores_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus, scores = dialogues(3)
    reffree.save(corpus, "c.jsonl")
    write_scores("s.jsonl", scores)
    config = (
        "name: n\ncorpora: [c.jsonl]\nstudies:\n"
        "- {study: selection, methods: [random], scores: {c: {mine: s.jsonl}}}\n"
    )
    (tmp_path / "x.yaml").write_text(config)
    results = []
    for i in range(3):
        if i == 2:
            write_scores("s.jsonl", {id: 1 - each for id, each in scores.items()})
        done = invoke("run", "x.yaml", "-o", "out")
        assert done.exit_code == 0, done.output
        results.append(json.loads((tmp_path / "out" / "selection.json").read_text()))
    assert results[0] == results[1] != results[2]
