"""Agreement of several annotators: segeval's published figures, the formulas, odd designs."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.agreement import agreement
from reffree.util.errors import InputError
from tests.oracles.reference_based import bed, segmentation_similarity
from tests.properties import examples

with warnings.catch_warnings():
    # segeval's docstrings have invalid escapes.
    warnings.simplefilter("ignore")
    from segeval.agreement import actual_agreement_linear
    from segeval.agreement.kappa import fleiss_kappa_linear
    from segeval.agreement.pi import fleiss_pi_linear

# Hearst (1997): "Stargazers look for life", 21 paragraphs, seven annotators; the masses as in
# segeval 2.0.11, data/hearst1997.json.
STARGAZERS = {
    "1": (2, 3, 3, 1, 3, 6, 3),
    "2": (2, 8, 2, 4, 2, 3),
    "3": (2, 1, 2, 3, 1, 3, 1, 3, 2, 2, 1),
    "4": (2, 1, 4, 1, 1, 3, 1, 4, 3, 1),
    "5": (3, 2, 4, 3, 5, 4),
    "6": (2, 3, 4, 2, 2, 5, 3),
    "7": (2, 3, 2, 2, 3, 1, 3, 2, 3),
}
# Kazantseva and Szpakowicz (2012): chapters of "The Moonstone", their groups 5 and 2; the masses as
# in segeval 2.0.11, data/samples.py.
GROUP_5 = {
    "ch1": {"an4": (2, 8, 2, 1), "an1": (11, 2), "an2": (2, 1, 7, 2, 1), "an3": (9, 4)},
    "ch11": {
        "an4": (10, 4, 3, 2, 1, 8, 3, 2, 6, 1, 2, 8, 10, 9, 4, 10, 4, 8, 4, 3, 5, 4),
        "an1": (20, 22, 8, 11, 11, 11, 13, 11, 4),
        "an2": (
            *(1, 7, 2, 4, 3, 3, 10, 1, 1, 5, 3, 2, 8, 3, 3, 3, 14),
            *(4, 1, 1, 4, 4, 2, 7, 3, 2, 3, 3, 2, 1, 1),
        ),
        "an3": (10, 10, 15, 11, 4, 10, 13, 5, 4, 23, 6),
    },
    "ch4": {
        "an4": (2, 9, 2, 5, 2, 19, 1, 6),
        "an1": (17, 25, 4),
        "an2": (1, 10, 2, 4, 1, 2, 3, 10, 6, 6, 1),
        "an3": (12, 5, 29),
    },
    "ch3": {
        "an4": (2, 3, 4, 2, 5, 17, 4, 1),
        "an1": (6, 5, 27),
        "an2": (3, 8, 2, 3, 17, 2, 2, 1),
        "an3": (3, 15, 15, 5),
    },
}
GROUP_2_CHAPTER_2 = {
    "an5": (4, 7, 3, 1),
    "an6": (4, 7, 3, 1),
    "an7": (5, 6, 3, 1),
    "an10": (5, 5, 4, 1),
    "an8": (14, 1),
    "an9": (14, 1),
}


def measure(documents, **options):
    return agreement(
        {
            document: {who: Segmentation(tuple(masses)) for who, masses in annotated.items()}
            for document, annotated in documents.items()
        },
        **options,
    )


def formulas(documents, n_t=2):
    """A_a, A_e of π and of κ where every annotator segmented every document, as fractions."""
    everyone = sorted(next(iter(documents.values())))
    pairs = list(combinations(everyone, 2))
    credit = pieces = Fraction(0)
    for annotated in documents.values():
        for m, n in pairs:
            a, b = annotated[m], annotated[n]
            gained = (bed(a, b, n_t) or 0) * (len(a) + len(b) - 2) / 2
            credit += gained
            # B = 1 - cost / pieces = gained / pieces
            pieces += gained + (1 - segmentation_similarity(a, b, n_t)) * (sum(a) - 1)
    places = sum(sum(annotated[everyone[0]]) - 1 for annotated in documents.values())
    p = {
        who: Fraction(sum(len(annotated[who]) - 1 for annotated in documents.values()), places)
        for who in everyone
    }
    pi = (sum(p.values()) / len(p)) ** 2
    kappa = sum(p[m] * p[n] for m, n in pairs) / len(pairs)
    return credit / pieces, pi, kappa


# Published and by other code ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "observed", "pi", "kappa"),
    [
        # segeval 2.0.11, agreement/{test,pi_test,kappa_test}.py
        ({"ch1": GROUP_5["ch1"]}, 0.25, 0.2226720647773279, 0.2258064516129032),
        ({"ch2": GROUP_2_CHAPTER_2}, 0.5465116279069767, 0.5335548172757475, 0.5339895791843802),
        (
            {"i1": {"c1": (2, 8, 2, 1), "c2": (2, 1, 7, 2, 1)}},
            *(0.75, 0.7267552182163188, 0.7272727272727273),
        ),
        (
            {"i1": {"c1": (2, 8, 2, 1), "c2": (11, 2)}},
            *(0.1666666666666667, 0.1428571428571429, 0.1489361702127660),
        ),
        (
            {str(n): {"an5": (n,), "an6": (1,) * n} for n in (12, 20, 5, 42)},
            *(0, -0.3333333333333333, 0),
        ),
        # Its functions run on the Stargazers.
        ({"stargazer": STARGAZERS}, 0.5300546448087432, 0.4644497376737814, 0.4653201972630967),
    ],
)
def test_published_figures(documents, observed, pi, kappa):
    got = measure(documents)
    assert got.observed == pytest.approx(observed, abs=1e-15)
    assert got.pi == pytest.approx(pi, abs=1e-15)
    assert got.kappa == pytest.approx(kappa, abs=1e-15)
    assert got.undefined is None


def test_several_documents():
    """segeval 2.0.11, agreement/{test,kappa_test}.py; its π averages over documents, see below."""
    got = measure(GROUP_5)
    assert got.observed == pytest.approx(0.2564575645756458, abs=1e-15)
    assert got.kappa == pytest.approx(0.2421099324579046, abs=1e-15)
    assert (got.n_documents, got.n_annotators, got.n_pairs, got.n_left_out) == (4, 4, 24, 0)
    _, expected, _ = formulas({"ch1": GROUP_5["ch1"], "ch3": GROUP_5["ch3"]})
    assert measure({"ch1": GROUP_5["ch1"], "ch3": GROUP_5["ch3"]}).expected_pi == pytest.approx(
        float(expected), rel=1e-12
    )


def test_chance_of_pi_divides_sums():
    """By hand: 1 + 1 of 2 · 3 places and 1 + 4 of 2 · 9; segeval's mean of rates gives .0934."""
    documents = {"a": {"x": (2, 2), "y": (1, 3)}, "b": {"x": (5, 5), "y": (2, 2, 2, 2, 2)}}
    got = measure(documents)
    assert got.expected_pi == pytest.approx((7 / 24) ** 2)
    assert got.expected_kappa == pytest.approx(2 / 12 * 5 / 12)
    theirs = float(fleiss_pi_linear(documents, return_parts=True)[1])
    assert theirs == pytest.approx(((1 / 3 + 1 / 3 + 1 / 9 + 4 / 9) / 4) ** 2)


def test_those_who_agree_leave_no_bias():
    """Artstein and Poesio's bias, the difference of both chances, is 0 (but not in segeval)."""
    chapters = ((2, 8, 2, 1), (20, 22, 8, 11, 11, 11, 13, 11, 4), (2, 9, 2, 5, 2, 19, 1, 6))
    got = measure({str(i): dict.fromkeys("abcd", masses) for i, masses in enumerate(chapters)})
    assert got.pi == got.kappa == got.observed == got.mean_similarity == 1
    assert got.expected_pi == pytest.approx(got.expected_kappa, rel=1e-12)


def random_documents(seed, n_documents, n_annotators):
    rng = np.random.default_rng(seed)
    documents = {}
    for i in range(n_documents):
        n = int(rng.integers(2, 13))
        marks = rng.random((n_annotators, n - 1)) < rng.uniform(0.1, 0.6)
        marks[:, rng.integers(n - 1)] |= ~marks.any(1)  # segeval divides by 0 without a boundary
        documents[f"d{i}"] = {
            f"a{j}": tuple(np.diff([0, *np.flatnonzero(row) + 1, n]).tolist())
            for j, row in enumerate(marks)
        }
    return documents


@pytest.mark.parametrize("seed", range(25))
def test_formulas_and_segeval(seed):
    documents = random_documents(seed, n_documents=1 + seed % 4, n_annotators=2 + seed % 5)
    got = measure(documents)
    observed, expected_pi, expected_kappa = map(float, formulas(documents))
    assert got.observed == pytest.approx(observed, rel=1e-12)
    assert got.expected_pi == pytest.approx(expected_pi, rel=1e-12)
    assert got.expected_kappa == pytest.approx(expected_kappa, rel=1e-12)
    assert got.observed == pytest.approx(float(actual_agreement_linear(documents)), rel=1e-12)
    if got.undefined is None:
        assert got.kappa == pytest.approx(float(fleiss_kappa_linear(documents)), abs=1e-12)
        assert got.pi == pytest.approx((observed - expected_pi) / (1 - expected_pi), abs=1e-12)
        if len(documents) == 1:
            assert got.pi == pytest.approx(float(fleiss_pi_linear(documents)), abs=1e-12)


def test_near_misses_reach_as_far_as_told():
    wide = measure({"stargazer": STARGAZERS}, n_t=4)
    assert wide.observed == pytest.approx(float(formulas({"s": STARGAZERS}, n_t=4)[0]))
    assert wide.observed > measure({"stargazer": STARGAZERS}).observed
    with pytest.raises(InputError, match="found n_t = 0"):
        measure({"stargazer": STARGAZERS}, n_t=0)


# Designs --------------------------------------------------------------------------------------


def test_annotators_may_differ_between_documents():
    """Every two who share a document are compared there.

    By hand: x 2 of 9 + 4 places, y 1 of 9, z 1 of 4. The pair x, y has a near miss and a deletion
    (B = ½ / 2), the pair x, z a near miss (B = ½).
    """
    got = measure({"a": {"x": (4, 4, 2), "y": (5, 5)}, "b": {"z": (2, 3), "x": (3, 2)}})
    assert got.observed == pytest.approx((1 / 2 + 1 / 2) / (2 + 1))
    assert got.mean_similarity == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert got.expected_pi == pytest.approx((5 / 26) ** 2)
    x, y, z = 3 / 13, 1 / 9, 1 / 4
    assert got.expected_kappa == pytest.approx((9 * x * y + 4 * x * z) / 13)
    assert (got.n_documents, got.n_annotators, got.n_pairs, got.n_left_out) == (2, 3, 2, 0)


def test_a_document_of_two_units_has_one_place():
    """By hand: x and y placed 1 of 1, z 0 of 1; of three pairs one is sure to meet."""
    got = measure({"d": {"x": (1, 1), "y": (1, 1), "z": (2,)}})
    assert got.expected_pi == pytest.approx((2 / 3) ** 2)
    assert got.expected_kappa == pytest.approx(1 / 3)
    assert got.kappa == pytest.approx(0)


def test_documents_of_one_annotator_are_left_out_and_counted():
    alone = measure({"ch1": GROUP_5["ch1"]})
    more = measure({"lonely": {"an1": (1,) * 30}, "empty": {}, "ch1": GROUP_5["ch1"]})
    assert more.n_left_out == 2
    assert more.n_documents == 1
    assert more.pi == alone.pi
    assert more.kappa == alone.kappa
    for nothing in ({}, {"lonely": {"an1": (3, 4)}}):
        with pytest.raises(InputError, match="found no document of two or more annotators"):
            measure(nothing)


def test_annotators_of_a_document_have_the_same_units():
    message = r"document 'd': found 7 units segmented by 'x' and 8 by 'z'; expected"
    with pytest.raises(InputError, match=message):
        measure({"d": {"x": (3, 4), "y": (7,), "z": (4, 4)}})


def test_undefined_without_a_boundary_or_with_all():
    for documents, reason in (
        ({"d": {"x": (5,), "y": (5,)}, "e": {"x": (1,), "y": (1,)}}, "no annotator placed"),
        ({"d": {"x": (1,), "y": (1,), "z": (1,)}}, "no annotator placed"),
        ({"d": {"x": (1, 1, 1), "y": (1, 1, 1)}, "e": {"x": (1,), "y": (1,)}}, "every boundary"),
    ):
        got = measure(documents)
        assert got.pi is None
        assert got.kappa is None
        assert reason in got.undefined
        assert got.observed == got.mean_similarity == 1


def test_documents_without_boundaries_add_to_chance_only():
    """Pooled B gains nothing from two who both left a document whole; its places count."""
    got = measure({"d": {"x": (2, 3), "y": (2, 1, 2)}, "e": {"x": (9,), "y": (9,)}})
    assert got.observed == pytest.approx(1 / 2)
    assert got.mean_similarity == pytest.approx(3 / 4)
    assert got.expected_pi == pytest.approx((3 / 24) ** 2)
    assert got.expected_kappa == pytest.approx(1 / 12 * 2 / 12)


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
@examples(25)
def test_order_and_names_do_not_matter(seed, random):
    documents = random_documents(seed, n_documents=3, n_annotators=4)
    names = random.sample(["p", "q", "r", "s"], 4)
    order = random.sample(sorted(documents), len(documents))
    shuffled = {
        document: {names[int(who[1:])]: documents[document][who] for who in who_first}
        for document in order
        for who_first in [random.sample(sorted(documents[document]), 4)]
    }
    one, other = measure(documents), measure(shuffled)
    for field in ("pi", "kappa", "observed", "mean_similarity", "expected_pi", "expected_kappa"):
        mine, theirs = getattr(one, field), getattr(other, field)
        assert (mine is None) == (theirs is None)  # where all annotators place all or no boundary
        assert mine is None or mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)
