"""Gold-based metrics in the table: beside the others, averaged both ways, with annotators."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.metrics.registry import GOLD_METRICS
from reffree.report.render import render
from reffree.util.errors import InputError, OptionError
from tests.oracles import reference_based as oracle

SCHEMA = json.loads((files("reffree") / "report" / "score.schema.json").read_text())


def corpus_of(*documents):
    """Documents as (gold, hypothesis) masses; the text is a number a unit."""
    return Corpus(
        tuple(
            Document.build(
                f"d{i}",
                [f"unit {j} of topic {j // 4}" for j in range(sum(hypothesis))],
                gold=gold,
                systems={"mine": hypothesis},
            )
            for i, (gold, hypothesis) in enumerate(documents)
        )
    )


SIX = (
    ([2, 3, 5], [5, 5]),
    ([2, 3, 5], [3, 2, 5]),
    ([4, 6], [4, 6]),
    ([7, 7], [14]),
    ([1, 9], [1] * 10),
    ([3, 3, 3], [2, 4, 3]),
)


def value(table, metric, system="mine"):
    row = next(row for row in table.systems if row.system == system)
    return row.metrics[metric].value


def test_every_metric_equals_its_oracle_on_average():
    table = reffree.score(corpus_of(*SIX), metrics=["gold"], per_document=True)
    names = [name for name in GOLD_METRICS if name not in ("sed", "bor")]
    p_seg = oracle.share_of_windows([r for r, _ in SIX])
    for name in names:
        corpus_own = {"p_seg": p_seg} if name == "pk_prime" else {}
        expected = [getattr(oracle, name)(h, r, **corpus_own) for r, h in SIX]
        defined = [float(x) for x in expected if x is not None]
        score = next(row for row in table.systems if row.system == "mine").metrics[name]
        assert score.value == pytest.approx(np.mean(defined)), name
        assert (score.documents, score.undefined) == (len(defined), 6 - len(defined)), name
        parts = [row.metrics[name].value for row in table.documents if row.system == "mine"]
        assert parts == [None if x is None else pytest.approx(float(x)) for x in expected], name
    boundaries = [(len(r) - 1, len(h) - 1) for r, h in SIX]
    assert value(table, "bor") == sum(h for _, h in boundaries) / sum(r for r, _ in boundaries)
    assert value(table, "sed", "gold") == 0 < value(table, "sed")


def test_sed_takes_vectors_by_name():
    names = ["sed", "sed:pieces=true", "sed:vectors=wordllama", "sed:vectors=minilm,threshold=0.7"]
    table = reffree.score(corpus_of(*SIX), metrics=names)
    spelt = [*names[:3], "sed:threshold=0.7"]  # minilm is the default
    assert list(table.systems[0].metrics) == spelt
    for name in spelt:
        assert value(table, name, "gold") == 0 < value(table, name)
    for part in ("threshold=0.51,", ":pieces,threshold=0.7,", "wordllama/", "threshold=0.32,"):
        assert part in table.signature


def test_gold_against_itself_is_perfect():
    table = reffree.score(corpus_of(*SIX), metrics=["gold"])
    gold = table.systems[0]
    best = {"lower": 0, "higher": 1, "toward_1": 1}
    for name, score in gold.metrics.items():
        assert score.value == best[score.direction], name
        assert name in table.incomparable or "gold" in table.best(name), name


def test_micro_pools_counts():
    macro, micro = (
        reffree.score(corpus_of(*SIX), metrics=["pk:k=2", "f1"], average=average)
        for average in ("macro", "micro")
    )
    # Every document has n - 2 windows of two units.
    wrong = [float(oracle.pk(h, r, k=2)) * (sum(h) - 2) for r, h in SIX]
    assert value(micro, "pk:k=2") == pytest.approx(sum(wrong) / sum(sum(h) - 2 for _, h in SIX))
    assert value(macro, "pk:k=2") != pytest.approx(value(micro, "pk:k=2"))
    assert "|gold:macro(documents)|" in macro.signature
    assert "|gold:micro(documents)|" in micro.signature
    low, high = micro.systems[1].metrics["f1"].ci
    assert low <= value(micro, "f1") <= high


def test_no_encoder_is_opened_for_gold_alone(tmp_path):
    table = reffree.score(corpus_of(*SIX), metrics=["pk"], encoder=str(tmp_path / "missing"))
    assert "encoder" not in table.signature
    assert table.signature.startswith("metrics:pk(k=auto)|gold:")
    assert value(table, "pk") == pytest.approx(np.mean([float(oracle.pk(h, r)) for r, h in SIX]))


def test_both_kinds_stand_in_one_table():
    corpus = corpus_of(*SIX)
    arrays = [np.random.default_rng(i).normal(size=(len(d.units), 3)) for i, d in enumerate(corpus)]
    table = reffree.score(corpus, embeddings=arrays)
    assert table.metrics[-3:] == ("pk", "windowdiff", "boundary_similarity")
    assert table.metrics[:3] == ("placement", "granularity", "expected_pk")
    assert "sag" not in table.metrics
    chosen = reffree.score(corpus, embeddings=arrays, metrics=["w_f1", "arp_cos", "pk"])
    assert chosen.metrics == ("w_f1", "arp_cos", "pk")
    jsonschema.validate(json.loads(render(chosen, "json", color=False, width=None)), SCHEMA)
    drawn = render(chosen, "table", color=False, width=None)
    assert "Lower is better; for w_f1 higher" in drawn
    narrow = render(table, "table", color=False, width=80).splitlines()
    drawn = narrow[: next(i for i, line in enumerate(narrow) if line.startswith("6 documents"))]
    assert max(map(len, drawn)) <= 80
    assert sum("similarity" in line for line in drawn) == 1
    assert sum(line.startswith(" mine") for line in drawn) == 3


def test_gold_alone_has_nothing_to_be_held_against():
    corpus = Corpus((Document.build("a", ["x", "y", "z"], gold=[1, 2]),))
    assert not GOLD_METRICS.keys() & set(reffree.score(corpus, embeddings=[np.eye(3)]).metrics)
    rival = corpus.with_system("rival", {"a": [3]})
    assert "pk" in reffree.score(rival, embeddings=[np.eye(3)]).metrics


def test_documents_without_gold_are_counted():
    corpus = Corpus(
        (
            Document.build("a", list("wxyz"), gold=[1, 3], systems={"s": [2, 2]}),
            Document.build("b", list("wxyz"), systems={"s": [4]}),
        )
    )
    table = reffree.score(corpus, metrics=["f1", "bor"], per_document=True)
    score = table.systems[0].metrics["f1"]
    assert (score.value, score.documents, score.undefined) == (0, 1, 1)
    assert table.documents[1].metrics["f1"].reason == "the document has no gold"
    assert table.systems[0].metrics["bor"].documents == 1


def test_no_gold_at_all_gets_a_sentence():
    corpus = Corpus((Document.build("a", ["x", "y"], systems={"s": [1, 1]}),))
    with pytest.raises(InputError, match=r"found no gold to compare with, as pk, f1 must"):
        reffree.score(corpus, metrics=["pk", "f1"])
    with pytest.raises(OptionError, match=r"only gold-based metrics \(pk\)"):
        reffree.score(corpus_of(*SIX), metrics=["pk"], null=10)


def test_annotators_are_averaged():
    golds = {"ann": [2, 3, 5], "bob": [5, 5], "cy": [10]}
    units = [str(i) for i in range(10)]
    corpus = Corpus((Document.build("a", units, golds=golds, systems={"s": [3, 2, 5]}),))
    table = reffree.score(corpus, metrics=["pk:k=2", "f1", "bor"])
    expected = [float(oracle.pk([3, 2, 5], gold, k=2)) for gold in golds.values()]
    assert value(table, "pk:k=2", "s") == pytest.approx(np.mean(expected))
    assert value(table, "bor", "s") == (2 + 2 + 2) / (2 + 1 + 0)
    assert "gold:mean(annotators)>macro(documents)" in table.signature
    assert "mean over 3 annotators" in table.notes[-1]


def test_the_failure_mode_needs_its_four_figures():
    corpus = corpus_of(*[([5, 5], [1] * 10)] * 6)
    metrics = ["w_f1", "bor", "purity", "coverage"]
    mode = reffree.score(corpus, metrics=metrics).systems[1].failure_mode
    assert mode.label == "granularity mismatch"
    table = reffree.score(corpus, metrics=metrics)
    jsonschema.validate(table.to_dict(), SCHEMA)
    drawn = render(table, "table", color=False, width=None)
    assert "mine granularity mismatch; high is w_f1 from 0.6" in drawn
    assert reffree.score(corpus, metrics=metrics[1:]).systems[1].failure_mode is None


def test_compare_ranks_by_direction():
    documents = [([5, 5], [5, 5])] * 8
    corpus = corpus_of(*documents).with_system("bad", {f"d{i}": [1, 9] for i in range(8)})
    comparison = reffree.compare(corpus, metrics=["pk", "f1", "bor"])
    for metric in ("pk", "f1"):
        rows = comparison.table("systems").records(metric=metric)
        assert max(rows, key=lambda row: row["rank"])["system"] == "bad"
    (pair,) = comparison.table("pairs").records(metric="f1", a="mine", b="bad")
    assert (pair["difference"], pair["better"]) == (1, "mine")
