"""Pairs for people to judge: the farthest by the definition, and agreement by hand."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.evaluate.result import Result
from reffree.report.charts import charts_of
from reffree.report.charts.drawing import vega_for_page
from reffree.report.render import render
from reffree.statistics.coefficients import fleiss_kappa
from reffree.studies import pairs
from reffree.studies.config import load_config
from reffree.studies.run import run_config
from reffree.util.errors import InputError, OptionError, ReffreeError
from tests.helpers import invoke_study, topical_corpus
from tests.metrics.gold.test_sed import US
from tests.oracles import reference_based
from tests.properties import examples

GOLDS = [[3, 4, 2, 5], [2, 3, 3], [4, 2, 6, 2, 3], [2, 2, 2, 4]]


def masses(boundaries, n):
    return np.diff([0, *sorted(boundaries), n]).tolist()


def literal_pairs(gold, kind, first_segment):
    """Section 4.2 of the paper, one pair after the other."""
    n, own = sum(gold), sorted(reference_based.boundaries(gold))
    edges = [0, *own, n]
    if kind == "deletion":
        usable = own if first_segment else own[1:]
        for a, b in combinations(usable, 2):
            yield masses({*own} - {a}, n), masses({*own} - {b}, n)
    elif kind == "insertion":
        for i in range(0 if first_segment else 1, len(gold)):
            for a, b in combinations(range(edges[i] + 1, edges[i + 1]), 2):
                yield masses({*own, a}, n), masses({*own, b}, n)
    else:
        for i in range(0 if first_segment else 1, len(own)):
            left, right = own[i] - 1, own[i] + 1
            if left > 0 and right < n and left not in own and right not in own:
                yield masses({*own} - {own[i]} | {left}, n), masses({*own} - {own[i]} | {right}, n)


@given(
    gold=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    of=st.sampled_from(
        [("deletion", "purity"), ("insertion", "coverage"), ("transposition", "alignment")]
    ),
    first_segment=st.booleans(),
)
@examples(60)
def test_the_pair_is_the_farthest_there_is(gold, of, first_segment):
    """Each kind by a metric that tells errors of the kind apart."""
    kind, by = of
    similarity = getattr(reference_based, by)
    found = {
        (tuple(a), tuple(b)): abs(similarity(a, gold) - similarity(b, gold))
        for a, b in literal_pairs(gold, kind, first_segment)
    }
    # A second document, with a pair of every kind, so that there is always one.
    corpus, _ = topical_corpus([gold, [2, 3, 4, 6, 5]])
    more = {"metrics": ["segmentation_similarity"], "first_segment": first_segment}
    result = pairs({"a": corpus}, kinds=[kind], by=by, **more)
    rows = result.table("ballot").records(document="d0")
    assert bool(rows) == (max(found.values(), default=0) > 0)
    for row in rows:
        one, other = (tuple(map(int, row[side].split())) for side in ("first", "second"))
        apart = found[one, other] if (one, other) in found else found[other, one]
        assert apart == max(found.values())
        better = "first" if similarity(one, gold) > similarity(other, gold) else "second"
        (verdict,) = result.table("verdicts").records(pair=row["pair"], metric=by)
        assert verdict["verdict"] == better


def test_which_comes_first_says_nothing():
    corpus, _ = topical_corpus([[2, 4, 2, 3, 5]] * 40)
    result = pairs({"a": corpus}, kinds=["insertion"], by="coverage", metrics=())
    verdicts = result.table("verdicts").column("verdict")
    assert 8 < verdicts.count("first") < 32
    again = pairs({"a": corpus}, kinds=["insertion"], by="coverage", metrics=(), seed=1)
    assert again.table("ballot").rows != result.table("ballot").rows


def test_sed_prefers_to_merge_what_is_related():
    """2024, Figure 2: cities and states rather than states and the deputy; B and A cannot tell."""
    corpus = Corpus((Document("us", US, gold=Segmentation((2, 2, 2, 2))),))
    result = pairs({"a": corpus}, kinds=["deletion"])
    (row,) = result.table("ballot").records()
    better = result.table("verdicts").records(metric="sed")[0]["verdict"]
    assert row[better] == "2 4 2"
    told = {row["metric"]: row["apart"] for row in result.table("metrics").records()}
    assert (told["sed"], told["boundary_similarity"], told["alignment"]) == (1, 0, 0)


@given(
    st.integers(2, 5).flatmap(
        lambda judges: st.lists(
            st.lists(st.sampled_from("abc"), min_size=judges, max_size=judges),
            min_size=1,
            max_size=8,
        )
    )
)
@examples(60)
def test_kappa_is_that_of_nltk(votes):
    counts = np.array([[row.count(each) for each in "abc"] for row in votes])
    data = [(j, i, vote) for i, row in enumerate(votes) for j, vote in enumerate(row)]
    kappa = fleiss_kappa(counts)
    if len({vote for *_, vote in data}) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx(AnnotationTask(data=data).pi())


def test_kappa_of_fleiss_1971():
    """His example in the textbooks: 10 items, 14 raters, 5 categories, κ = .210."""
    counts = [
        *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
        *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
    ]
    assert fleiss_kappa(np.array(counts)) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa(np.array([[1, 0], [0, 0]])) is None


@pytest.fixture
def ballot(write_corpus, tmp_path):
    """A corpus file, and its ballot as rows of cells."""
    units = [[f"word{j}" for j in range(sum(gold))] for gold in GOLDS]
    cases = enumerate(zip(units, GOLDS, strict=True))
    path = write_corpus([{"id": f"d{i}", "units": u, "gold": g} for i, (u, g) in cases])
    options = (path, "--by", "alignment", "-m", "windowdiff")
    done = invoke_study("pairs", *options, "-f", "csv")
    assert done.exit_code == 0, done.output
    return options, list(csv.DictReader(io.StringIO(done.stdout)))


def written(path, rows, votes):
    """Write a ballot with columns of votes: judge → pair → vote."""
    rows = [
        row | {judge: given.get(row["pair"], "") for judge, given in votes.items()} for row in rows
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_votes_are_held_against_metrics(ballot, tmp_path):
    """Three judges follow A on two transpositions of three; on the third there is no majority."""
    options, rows = ballot
    done = invoke_study("pairs", *options, "-f", "json")
    result = Result.from_dict(json.loads(done.stdout))
    records = result.table("verdicts").records(metric="alignment")
    verdicts = {record["pair"]: record["verdict"] for record in records}
    chosen = [p for p in verdicts if p.endswith(":transposition")]
    assert len(chosen) == 3
    other = {"first": "second", "second": "first"}
    ann = {p: verdicts[p] for p in chosen}
    bob = {chosen[0]: verdicts[chosen[0]], chosen[1]: "=", chosen[2]: other[verdicts[chosen[2]]]}
    cyd = {chosen[0]: "equal", chosen[1]: "=", chosen[2]: "equal"}
    path = written(tmp_path / "votes.csv", rows, {"ann": ann, "bob": bob, "cyd": cyd})
    done = invoke_study("pairs", *options, "-f", "json", "--votes", path)
    assert done.exit_code == 0, done.output
    result = Result.from_dict(json.loads(done.stdout))
    (row,) = result.table("agreement").records(kind="transposition")
    (chart,) = charts_of(result)
    assert vega_for_page(chart)["data"]
    assert {(r["metric"], r["share"]) for r in chart.rows} >= {("alignment", 0.5)}
    assert (row["pairs"], row["judges"], row["majority"]) == (3, 3, 2)
    assert row["alignment"] == 0.5  # of the two with a majority, the first
    assert row["all equal"] == 0.5
    ours = {"first": 0, "second": 1, "equal": 2, "=": 2}
    counts = np.zeros((3, 3), dtype=int)
    for i, p in enumerate(chosen):
        for judge in (ann, bob, cyd):
            counts[i, ours[judge[p]]] += 1
    assert row["kappa"] == pytest.approx(fleiss_kappa(counts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("pair,", "couple,"), "found the columns 'couple'"),
        (lambda text: text.replace(",ann\n", ",pair\n"), "found the columns"),
        (lambda text: text.replace("d0:", "d9:"), "line 2: found the pair 'd9:transposition'"),
        (
            lambda text: text.replace("d2:", "d0:"),
            "found the pair 'd0:transposition' a second time",
        ),
        (lambda text: text.replace(",first\n", ",frist\n"), "found the vote 'frist' of 'ann'"),
        (lambda text: text.replace(",first\n", "\n", 1), "cells; expected"),
        (lambda text: text.replace(",3 ", ",4 ", 1), "expected '.*', as with these settings"),
        (lambda text: "", "found no table"),
    ],
)
def test_bad_votes_get_a_sentence(ballot, tmp_path, change, message):
    options, rows = ballot
    path = written(tmp_path / "v.csv", rows, {"ann": {row["pair"]: "first" for row in rows}})
    path.write_text(change(path.read_text()))
    done = invoke_study("pairs", *options, "--votes", path)
    assert isinstance(done.exception, ReffreeError)
    assert str(path) in str(done.exception)
    with pytest.raises(InputError, match=message):
        raise done.exception


def test_tables_formats_and_texts():
    corpus, _ = topical_corpus(GOLDS)
    result = pairs({"a": corpus, "b": corpus}, by="alignment", metrics=["windowdiff"], texts=1)
    assert result.table("ballot").column("pair")[0].startswith("a:")
    assert [text.corpus for text in result.texts] == ["a", "b"]
    assert Result.from_dict(json.loads(render(result, "json"))) == result
    assert "told apart" in render(result, "md")
    ballot = render(result, "csv")
    assert ballot.startswith("pair,corpus,document,kind,first,second,signature")


def test_annotators_are_references_of_their_own():
    golds = {"ann": Segmentation((3, 4, 5)), "bob": Segmentation((4, 4, 4))}
    document = Document("d", ("x",) * 12, golds=golds)
    result = pairs({"a": Corpus((document,))}, kinds=["insertion"], by="coverage", metrics=())
    assert result.table("ballot").column("pair") == ["d@ann:insertion", "d@bob:insertion"]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"by": "arp_pair"}, OptionError, "found the metric 'arp_pair'; expected gold-based"),
        (
            {"kinds": ["swap"], "by": "alignment"},
            OptionError,
            "found kinds = swap; expected deletion or",
        ),
        ({"by": "alignment", "votes": "no/such.csv"}, InputError, "no/such.csv"),
    ],
)
def test_what_is_refused(keywords, error, message):
    corpus, _ = topical_corpus(GOLDS)
    with pytest.raises(error, match=message):
        pairs({"a": corpus}, **keywords)


def test_run_goes_by_what_is_in_the_votes(ballot, tmp_path):
    (corpus, *_), rows = ballot
    votes = written(tmp_path / "v.csv", rows, {"ann": {row["pair"]: "first" for row in rows}})
    config = tmp_path / "c.yaml"
    step = {"study": "pairs", "by": "alignment", "metrics": ["windowdiff"], "votes": str(votes)}
    top = {"name": "a", "corpora": [str(corpus)], "studies": [step]}
    config.write_text(json.dumps(top))

    def run():
        def write(result):
            return render(result, "json")

        return run_config(load_config(config), tmp_path / "out", write=write)[0].is_new

    assert (run(), run()) == (True, False)
    votes.write_text(votes.read_text().replace(",first\n", ",equal\n"))
    assert run()
