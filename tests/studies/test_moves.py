"""Small and large errors told apart: the authors' counts, and every reference by the definition."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.studies import moves
from reffree.studies.papers.moves import KINDS, METRICS
from reffree.util.errors import InputError, OptionError
from tests.helpers import check_formats, invoke_study, topical_corpus
from tests.oracles import reference_based, studies
from tests.properties import examples

# Erring references of 5 … 12 units, from the authors' results (github.com/sierra98x/resources).
PUBLISHED = {
    ("boundary_similarity", "cross-boundary"): (0, 0, 0, 0, 0, 4, 20, 68),
    ("windowdiff:padding=exact", "cross-boundary"): (0, 0, 0, 0, 0, 4, 20, 68),
    ("boundary_similarity", "constant cost"): (0, 0, 0, 0, 2, 6, 16, 46),
    ("windowdiff:padding=exact", "constant cost"): (0, 0, 0, 0, 2, 6, 16, 46),
    ("boundary_similarity", "vanishing"): (0, 0, 0, 2, 8, 23, 59, 143),
    ("windowdiff:padding=exact", "vanishing"): (2, 4, 15, 43, 89, 225, 515, 1061),
    ("alignment", "cross-boundary"): (0,) * 8,
    ("alignment", "constant cost"): (0,) * 8,
    ("alignment", "vanishing"): (0,) * 8,
}


@pytest.fixture(scope="module")
def exhaustive():
    return moves({}, units=[*range(5, 13)])


def test_chart_and_every_format(exhaustive):
    check_formats(exhaustive, "boundary_similarity", "corpus,segments,kind,metric,references,")


def test_counts_are_the_authors(exhaustive):
    rows = exhaustive.table("errors").records()
    for (metric, kind), counts in PUBLISHED.items():
        found = [round(row[kind] * row["references"]) for row in rows if row["metric"] == metric]
        assert tuple(found) == counts, (metric, kind)
    references = [row["references"] for row in rows if row["metric"] == "alignment"]
    assert references == [2 ** (n - 1) - 2 for n in range(5, 13)]


def paper_windowdiff(hypothesis, reference):
    k = max(1, round(Fraction(sum(reference), 2 * len(reference))))
    return 1 - reference_based.windowdiff(hypothesis, reference, k=k, padding="exact")


SIMILARITIES = {
    "boundary_similarity": reference_based.boundary_similarity,
    "windowdiff:padding=exact": paper_windowdiff,
    "windowdiff": lambda h, r: 1 - reference_based.windowdiff(h, r),
    "alignment": reference_based.alignment,
}


@given(st.lists(st.lists(st.integers(1, 7), min_size=2, max_size=4), min_size=1, max_size=2))
@examples(12)
def test_gold_is_judged_by_the_definition(golds):
    corpus, _ = topical_corpus(golds)
    result = moves({"a": corpus})
    for metric, similarity in SIMILARITIES.items():
        judged = [studies.misjudged(gold, similarity) for gold in golds]
        (row,) = result.table("errors").records(metric=metric)
        for kind in KINDS:
            tied = sum(kind in tied for tied, _ in judged)
            ahead = sum(kind in ahead for _, ahead in judged)
            assert row[kind] == pytest.approx(tied / len(golds)), (metric, kind)
            assert row[f"{kind} reversed"] == pytest.approx(ahead / len(golds)), (metric, kind)


def test_annotators_count_apart_and_documents_without_a_boundary_do_not():
    corpus, _ = topical_corpus([[5, 5, 1, 3], [4]])
    result = moves({"a": corpus}, metrics=["alignment"])
    (row,) = result.table("errors").records()
    assert row["references"] == 1
    rows = result.table("by_segments").records()
    assert {row["segments"] for row in rows} == {4}
    # Figure 10: the first boundary moves by two softly, the last one by two across the middle one.
    assert {row["kind"]: row["possible"] for row in rows}["cross-boundary"] == 1


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, "found neither corpora nor units"),
        ({"units": [21]}, "found units = 21; expected a whole number, 20 or less"),
        ({"units": [5], "metrics": ["sed"]}, "found the metric 'sed'; expected a gold-based one"),
        ({"units": [5], "metrics": ["pk:unit=words"]}, "found the metric 'pk:unit=words'"),
        ({"units": [5], "metrics": ["arp_pair"]}, "found the metric 'arp_pair'"),
        ({"units": [5], "metrics": []}, "found no metric"),
    ],
)
def test_what_is_refused(keywords, message):
    with pytest.raises(OptionError, match=message):
        moves({}, **keywords)


def test_gold_without_a_boundary_is_refused():
    corpus, _ = topical_corpus([[4], [5]])
    with pytest.raises(InputError, match="found no gold with a boundary"):
        moves({"a": corpus})


def test_command(write_corpus):
    path = write_corpus([{"id": "a", "units": list("abcdefgh"), "gold": [5, 3]}])
    done = invoke_study("moves", path, "--units", "5-6", "-f", "csv")
    assert done.exit_code == 0, done.output
    header, *lines = done.stdout.splitlines()
    assert header.startswith("corpus,segments,kind,metric,references,possible,share,reversed")
    assert len(lines) == len(METRICS) * len(KINDS) * (1 + 3 + 4)
    done = invoke_study("moves", "--units", "5;6")
    assert done.exit_code == 2
    assert "expected numbers with commas" in done.stderr


def test_a_window_of_the_corpus_is_that_of_all_its_golds():
    """Half the mean of [6, 2] and [20, 20] is 6, of the first alone 2: then it judges otherwise."""
    corpus, _ = topical_corpus([[6, 2], [20, 20]])
    found = {
        k: [row["share"] for row in result.table("by_segments").records()]
        for k in ("corpus", 6)
        for result in [moves({"a": corpus}, metrics=[f"windowdiff:k={k}"])]
    }
    assert found["corpus"] == found[6]
