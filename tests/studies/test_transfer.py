"""A scorer on corpora it was not trained on: every figure by the definitions, at one threshold."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from reffree.data.corpus import Corpus
from reffree.segmenters.base import Inputs
from reffree.segmenters.selection import select_above
from reffree.segmenters.trained.scorer import train_scorer
from reffree.studies import transfer
from reffree.studies.config import load_config
from reffree.util.errors import InputError, OptionError, UnknownNameError
from tests.checkpoints import WORDS, save_checkpoint
from tests.helpers import check_formats, invoke_study, rows, topical_corpus
from tests.oracles import reference_based, studies


def corpora(*lengths, n=14):
    """Corpora whose segments are about so long."""
    made = {}
    for i, length in enumerate(lengths):
        rng = np.random.default_rng(i)
        golds = rng.integers(length - 1, length + 2, size=(n, 3)).tolist()
        made["abcd"[i]] = topical_corpus(golds, seed=i, spread=0.2)
    return {k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()}


QUICK = {"splice_epochs": 1, "epochs": 2, "learning_rate": 0.01, "window": 2}
CORPORA, VECTORS = corpora(4, 4, 9, 5)
VECTORS_AB = {name: VECTORS[name] for name in "ab"}
VECTORS_BC = {name: VECTORS[name] for name in "bc"}


@pytest.fixture(scope="module")
def result():
    return transfer(CORPORA, train=["a"], calibrate=["d"], embeddings=VECTORS, **QUICK)


@pytest.fixture(scope="module")
def checkpoint():
    given = {"calibration": {"d": CORPORA["d"]}, "embeddings": VECTORS}
    return train_scorer({"a": CORPORA["a"]}, **given, **QUICK)


def test_figures_are_those_of_the_scorer_on_corpora_it_has_not_seen(result, checkpoint):
    assert [(r["trained_on"], r["corpus"], r["system"]) for r in rows(result, "transfer")] == [
        ("a", corpus, system) for corpus in "bc" for system in ("scorer", "oracle_random")
    ]
    for corpus in "bc":
        (row,) = rows(result, "transfer", corpus=corpus, system="scorer")
        scores = checkpoint.gap_scores(Inputs(CORPORA[corpus], embeddings=VECTORS[corpus]))
        made = [select_above(each, 0.5, 3).masses for each in scores]
        golds = [document.gold.masses for document in CORPORA[corpus]]
        assert row["bor"] == pytest.approx(studies.bor(made, golds))
        for name in ("w_f1", "purity", "coverage"):
            expected = studies.mean_against(getattr(reference_based, name), made, golds)
            assert row[name] == pytest.approx(expected), name
        # F1 is pooled: hits over all documents.
        sides = [[reference_based.boundaries(m) for m in side] for side in (made, golds)]
        hits = sum(len(set(h) & set(g)) for h, g in zip(*sides, strict=True))
        n_made, n_gold = (sum(map(len, side)) for side in sides)
        assert row["f1"] == pytest.approx(2 * hits / (n_made + n_gold))
        assert (row["predicted"], row["gold_boundaries"]) == (n_made, n_gold)
        assert row["w_f1_ci"][0] <= row["w_f1"] <= row["w_f1_ci"][1]
        (chance,) = rows(result, "transfer", corpus=corpus, system="oracle_random")
        assert chance["bor"] == 1.0
        assert row["w_f1"] > chance["w_f1"]


def test_chart_and_every_format(result):
    check_formats(result, "tested on", "trained_on,corpus,system,w_f1,w_f1_ci_low,")


def test_history_is_that_of_the_training(result):
    history = rows(result, "history")
    assert [(r["stage"], r["epoch"], r["corpus"]) for r in history] == [
        ("splices", 1, "splices"),
        ("gold", 1, "a"),
        ("gold", 2, "a"),
    ]
    assert all(r["mean_score"] > 0 and 0 <= r["negative_control"] <= 1 for r in history)


def test_several_corpora_have_figures_of_their_own():
    both = transfer(CORPORA, train=["a", "c"], splices=["a"], embeddings=VECTORS, **QUICK)
    assert {r["corpus"] for r in rows(both, "transfer")} == {"b", "d"}
    assert both.table("transfer").column("trained_on")[0] == "a+c"
    judged = [(r["stage"], r["epoch"], r["corpus"]) for r in rows(both, "history")]
    assert judged[0] == ("splices", 1, "splices")
    assert judged[1:4] == [("gold", 1, name) for name in ("all", "a", "c")]
    overall, a, c = (r for r in rows(both, "history", stage="gold", epoch=1))
    low, high = sorted((a["w_f1"], c["w_f1"]))
    assert low <= overall["w_f1"] <= high
    assert overall["w_f1"] == pytest.approx(fmean([a["w_f1"], c["w_f1"]]))  # 3 held out of each
    assert a["mean_score"] is None


def test_each_corpus_in_turn():
    three = {name: CORPORA[name] for name in "abc"}
    vectors = {name: VECTORS[name] for name in "abc"}
    result = transfer(three, methods=[], metrics=["arp_pair"], embeddings=vectors, **QUICK)
    pairs = [(r["trained_on"], r["corpus"]) for r in rows(result, "transfer")]
    assert pairs == [(a, b) for a in "abc" for b in "abc" if a != b]
    assert len(result.corpora) == 3
    row = rows(result, "transfer")[0]
    assert row["arp_pair_ci"][0] <= row["arp_pair"] <= row["arp_pair_ci"][1]
    assert "|encoder:precomputed" in result.signature
    assert sum(sentence.startswith("Trained on") for sentence in result.verdict) == 3
    assert "trained-on:a/b/c|" in result.signature


def test_a_trained_scorer_is_tested_as_it_is(tmp_path, result, checkpoint):
    checkpoint.save(tmp_path / "s")
    part = {name: CORPORA[name] for name in "bc"}
    given = transfer(part, scorer=str(tmp_path / "s"), embeddings=VECTORS_BC, methods=[])
    assert rows(given, "history") == []
    for corpus in "bc":
        (row,) = rows(given, "transfer", corpus=corpus)
        (same,) = rows(result, "transfer", corpus=corpus, system="scorer")
        assert row["trained_on"] == "a given scorer"
        assert (row["w_f1"], row["bor"]) == (same["w_f1"], same["bor"])
    assert given.verdict[0].startswith("A given scorer has W-F1 ")


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"train": ["z"]}, UnknownNameError, "unknown corpus 'z'"),
        ({"train": ["a", "b", "c", "d"]}, OptionError, "no corpus to test on beside a, b, c and d"),
        ({"splices": ["a"]}, OptionError, "corpora to splice or to calibrate on, and none to tr"),
        ({"scorer": "s", "train": ["a"]}, OptionError, "a given scorer beside corpora to train on"),
        ({"scorer": "nowhere"}, InputError, "found no scorer"),
        ({"train": ["a"], "calibrate": ["a"]}, InputError, "to calibrate on, which is trained on"),
        ({"train": ["a"], "threshold": 2}, OptionError, "threshold = 2"),
        ({"train": ["a"], "methods": ["nothing"]}, UnknownNameError, "unknown method 'nothing'"),
    ],
)
def test_what_is_refused_before_anything_runs(keywords, kind, message, monkeypatch):
    monkeypatch.setattr(sys.modules["reffree.studies.study"], "corpus_vectors", None)
    with pytest.raises(kind, match=message):
        transfer(CORPORA, **keywords)


def test_corpora_without_gold_are_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(sys.modules["reffree.studies.study"], "corpus_vectors", None)
    bare = Corpus(tuple(replace(document, gold=None) for document in CORPORA["b"]))
    with pytest.raises(InputError, match="no gold to compare with"):
        transfer(CORPORA | {"b": bare}, train=["a"])
    with pytest.raises(InputError, match="no gold, which a scorer is trained on"):
        transfer(CORPORA | {"b": bare}, train=["b"])


def test_command_and_file(write_corpus, tmp_path):
    encoder = save_checkpoint("roberta", tmp_path / "tiny")
    rng = np.random.default_rng(0)
    paths = []
    for name in "xy":
        documents = [
            {"id": f"{i}", "units": rng.choice(WORDS, 6).tolist(), "gold": [3, 3]} for i in range(5)
        ]
        paths.append(str(write_corpus(documents, f"{name}.jsonl")))
    done = invoke_study("transfer", *paths, "--train", "x", "--encoder", encoder, "-f", "csv")
    assert done.exit_code == 0, done.output
    header, *lines = done.stdout.splitlines()
    assert header.startswith("trained_on,corpus,system,w_f1")
    assert [line.split(",")[:3] for line in lines] == [
        ["x", "y", "scorer"],
        ["x", "y", "oracle_random"],
    ]
    config = tmp_path / "c.yaml"
    step = "{study: transfer, train: [x], epochs: 1, methods: [even]}"
    config.write_text(f"name: a\ncorpora: {json.dumps(paths)}\nstudies: [{step}]\n")
    with pytest.raises(InputError, match=r"methods\.0: 'even'.*neither k nor every"):
        load_config(config)
    config.write_text(config.read_text().replace("even", "even:k=2"))
    assert load_config(config).steps[0].settings["train"] == ["x"]
