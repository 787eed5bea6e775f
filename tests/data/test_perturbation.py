"""Perturbations against every outcome the definitions allow, their likelihood and their account."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from reffree.data.corpus import Corpus, Document
from reffree.data.perturbation import (
    PERTURBATIONS,
    EditCounts,
    Insertion,
    Mixture,
    Removal,
    Replacement,
    Transposition,
    edit_boundaries,
    label,
    parse_perturbation,
    perturb,
)
from reffree.data.segmentation import Segmentation
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.naming import parse_named, spelling_of
from tests.helpers import corpus_of
from tests.oracles import perturbation as oracles
from tests.properties import examples

EXAMPLES = [
    Removal(k=2),
    Removal(share=0.4),
    Insertion(k=2),
    Insertion(share=1.5),
    Replacement(k=2),
    Replacement(share=0.4),
    Transposition(),
    Transposition(distance=3),
    Transposition(k=1, distance=2),
    Transposition(share=0.5),
    Mixture(share=0.7),
    Mixture(removal=0.3, insertion=0.8, transposition=0.5, distance=2),
]
ALIKE = 1e-3  # draws are seeded: a p-value below this is a fault, not bad luck


def seeded(seed=0):
    return np.random.default_rng(seed)


def segmentations(max_units=9):
    return st.lists(st.booleans(), max_size=max_units - 1).map(
        lambda labels: Segmentation.from_labels(labels, "gap")
    )


def cut(boundaries, n_units):
    return Segmentation.from_boundaries(boundaries, n_units)


def places(segmentation):
    return frozenset(segmentation.boundaries)


def equally_likely(outcomes, possible):
    """Every possible outcome, nothing else, with equal frequency."""
    seen = Counter(outcomes)
    assert set(seen) <= set(possible)
    assert len(set(possible)) == len(possible)
    return chisquare([seen[outcome] for outcome in possible]).pvalue > ALIKE


# What may come out ----------------------------------------------------------------------------


@given(segmentations(), st.integers(0, 10), st.integers(0, 99))
@examples(150)
def test_removal_and_insertion_are_one_of_all(source, k, seed):
    n, free = len(source.boundaries), source.n_units - len(source)
    removed, inserted = Removal(k=k)(source, seeded(seed)), Insertion(k=k)(source, seeded(seed))
    assert places(removed.segmentation) in oracles.removals(source.boundaries, k)
    assert places(inserted.segmentation) in oracles.insertions(source.boundaries, source.n_units, k)
    assert removed.done == EditCounts(removed=min(k, n))
    assert removed.not_done == EditCounts(removed=max(0, k - n))
    assert inserted.done == EditCounts(inserted=min(k, free))
    assert inserted.not_done == EditCounts(inserted=max(0, k - free))


@given(segmentations(8), st.integers(0, 8), st.integers(0, 99))
@examples(150)
def test_replacement_is_one_of_all_replacements(source, k, seed):
    result = Replacement(k=k)(source, seeded(seed))
    assert places(result.segmentation) in oracles.replacements(source.boundaries, source.n_units, k)
    possible = min(k, len(source) - 1, source.n_units - len(source))
    assert result.done == EditCounts(removed=possible, inserted=possible)
    assert result.not_done == EditCounts(removed=k - possible, inserted=k - possible)


@given(segmentations(10), st.integers(1, 10), st.integers(0, 99))
@example(Segmentation((1,)), 1, 0)
@example(Segmentation((1,) * 9), 1, 0)
@example(Segmentation((1, 2, 2, 2, 2, 1)), 1, 0)
@example(Segmentation((2, 2, 2, 2)), 1, 0)
@example(Segmentation((1, 2, 2)), 1, 0)
@examples(200)
def test_transposition_is_one_of_the_largest_transpositions(source, distance, seed):
    result = Transposition(distance=distance)(source, seeded(seed))
    largest = oracles.transpositions(source.boundaries, source.n_units, distance)
    assert places(result.segmentation) in [moved(source, moves) for moves in largest]
    n_moved = len(largest[0])
    assert result.done == EditCounts(moved=n_moved)
    assert result.not_done == EditCounts(moved=len(source) - 1 - n_moved)
    assert len(places(result.segmentation) & places(source)) == result.not_done.moved


def moved(source, moves):
    return (places(source) - set(moves)) | set(moves.values())


@pytest.mark.parametrize("perturbation", EXAMPLES, ids=label)
@given(segmentations(40), st.integers(0, 99))
@example(Segmentation((1,)), 0)
@example(Segmentation((2,)), 0)
@example(Segmentation((1, 1)), 0)
@example(Segmentation((1,) * 20), 0)
@examples(60)
def test_the_account_is_complete(perturbation, source, seed):
    before = source.masses
    result = perturbation(source, seeded(seed))
    old, new, done = places(source), places(result.segmentation), result.done
    assert source.masses == before
    assert result.segmentation.n_units == source.n_units
    assert len(new) == len(old) - done.removed + done.inserted
    # Nothing new stands where the source had a boundary.
    assert len(new & old) == len(old) - done.removed - done.moved
    assert len(new - old) == done.inserted + done.moved
    assert min(result.not_done.removed, result.not_done.inserted, result.not_done.moved) >= 0


@given(segmentations(25), st.tuples(*[st.integers(0, 12)] * 3), st.integers(1, 3))
@examples(100)
def test_no_boundary_is_both_removed_and_moved(source, asked, distance):
    """However much is asked for."""
    remove, insert, move = asked
    result = edit_boundaries(
        source, seeded(), remove=remove, insert=insert, move=move, distance=distance
    )
    old, new, done = places(source), places(result.segmentation), result.done
    assert done + result.not_done == EditCounts(remove, insert, move)
    assert done.removed == min(remove, len(old))
    assert done.removed + done.moved <= len(old)
    assert len(new & old) == len(old) - done.removed - done.moved
    assert len(new - old) == done.inserted + done.moved


@pytest.mark.parametrize(
    "perturbation", [Replacement(k=3), Replacement(share=0.6), Mixture(share=1.0)], ids=label
)
@given(segmentations(30), st.integers(0, 99))
@example(Segmentation((1,) * 12), 0)
@example(Segmentation((1,) * 11 + (2,)), 0)
@examples(60)
def test_density_is_preserved(perturbation, source, seed):
    result = perturbation(source, seeded(seed))
    assert len(result.segmentation) == len(source)
    assert result.done.removed == result.done.inserted


@pytest.mark.parametrize(
    "text",
    [
        *("removal:0", "removal:0.0", "insertion:0", "insertion:0.0", "replacement:0"),
        *("transposition:0", "transposition:0.0", "transposition:k=0,distance=3"),
        *("mixture:0", "mixture:removal=0", "mixture:transposition=1,distance=0"),
    ],
)
@given(segmentations(20))
@examples(20)
def test_strength_0_changes_nothing(text, source):
    result = parse_perturbation(text)(source, seeded())
    assert result.segmentation == source
    assert result.done == result.not_done == EditCounts()


def test_a_boundary_does_not_take_the_place_another_leaves():
    """3 → 5 and 5 → 3 would call gold perturbed."""
    for seed in range(20):
        result = Transposition(distance=2)(cut([3, 5], 8), seeded(seed))
        assert result.segmentation == cut([1, 7], 8)


# How likely -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "boundaries", "n_units", "possible"),
    [
        (Removal, [1, 4, 6, 7, 10], 12, lambda b, n: oracles.removals(b, 2)),
        (Insertion, [1, 4], 8, lambda b, n: oracles.insertions(b, n, 2)),
        (Replacement, [1, 4, 5], 7, lambda b, n: oracles.replacements(b, n, 2)),
    ],
)
def test_every_outcome_is_equally_likely(kind, boundaries, n_units, possible):
    source, rng = cut(boundaries, n_units), seeded(1)
    outcomes = [places(kind(k=2)(source, rng).segmentation) for _ in range(4000)]
    assert equally_likely(outcomes, possible(boundaries, n_units))


@pytest.mark.parametrize(
    ("boundaries", "n_units", "distance"),
    [
        ([5], 10, 2),  # on its own
        ([3, 7], 12, 1),  # two on their own
        ([4, 6, 8], 12, 1),  # a chain with both ends free
        ([2, 6, 10], 12, 2),  # a chain between the edges: one stays
        ([1, 3, 5], 12, 1),  # a chain at an edge: one way only
        ([2, 4, 5, 7, 9], 14, 1),  # chains cut by a neighbour
    ],
)
def test_every_largest_transposition_is_equally_likely(boundaries, n_units, distance):
    source, rng = cut(boundaries, n_units), seeded(4)
    possible = [
        moved(source, moves) for moves in oracles.transpositions(boundaries, n_units, distance)
    ]
    outcomes = [
        places(Transposition(distance=distance)(source, rng).segmentation) for _ in range(400 * 5)
    ]
    assert set(outcomes) == set(possible)
    assert len(possible) == 1 or equally_likely(outcomes, possible)


def test_directions_are_fair():
    """Boundaries on their own: 99 × 60 coins."""
    source, rng, lefts = cut(range(10, 1000, 10), 1000), seeded(5), 0
    for _ in range(60):
        new = places(Transposition(distance=3)(source, rng).segmentation)
        lefts += sum(boundary - 3 in new for boundary in source.boundaries)
    assert binomtest(lefts, 99 * 60).pvalue > ALIKE


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_shares_are_exact_in_the_mean(share):
    """Three boundaries: rounding to the nearest would never remove one in ten."""
    source, rng, draws = cut([2, 5, 9], 12), seeded(7), 4000
    removed = [Removal(share=share)(source, rng).done.removed for _ in range(draws)]
    low = int(3 * share)
    assert set(removed) == {low, low + 1}
    assert binomtest(sum(removed) - low * draws, draws, 3 * share - low).pvalue > ALIKE


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        (Mixture(removal=0.15, insertion=0.42, transposition=0.33), (1.5, 4.2, 3.3)),
        (Mixture(share=0.5), (10 * 0.5 / 3,) * 3),
    ],
)
def test_a_mixture_does_each_thing_to_its_share(mixture, expected):
    source, rng, draws = cut(range(5, 55, 5), 60), seeded(8), 3000
    results = [mixture(source, rng).done for _ in range(draws)]
    for kind, wanted in zip(("removed", "inserted", "moved"), expected, strict=True):
        mean = np.mean([getattr(done, kind) for done in results])
        # The number is one of two neighbours: its sd is ½ at most.
        assert abs(mean - wanted) < 4 * 0.5 / draws**0.5


@given(segmentations(30), st.floats(0, 1), st.integers(0, 99))
@examples(80)
def test_a_mixture_never_asks_for_more_boundaries_than_there_are(source, share, seed):
    result = Mixture(removal=share, transposition=1 - share)(source, seeded(seed))
    asked = result.done + result.not_done
    assert asked.removed + asked.moved == len(source) - 1
    assert result.not_done.removed == 0


# Progress, seeds, documents ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Removal, Insertion, Replacement])
@given(segmentations(25), st.integers(0, 99))
@examples(40)
def test_strengths_are_progressive(kind, source, seed):
    old = places(source)
    steps = [places(kind(k=k)(source, seeded(seed)).segmentation) for k in range(8)]
    for smaller, larger in pairwise(steps):
        assert old - smaller <= old - larger
        assert smaller - old <= larger - old


@given(segmentations(25), st.integers(0, 99))
@examples(40)
def test_shares_are_progressive(source, seed):
    steps = [
        places(Removal(share=share)(source, seeded(seed)).segmentation)
        for share in np.linspace(0, 1, 11)
    ]
    assert all(larger <= smaller for smaller, larger in pairwise(steps))
    assert steps[-1] == frozenset()


GOLDS = [(3, 4, 5), (1,), (1, 1, 1, 1), (6, 2, 9, 4, 4), (20,), (2, 3)]


@pytest.mark.parametrize("perturbation", EXAMPLES, ids=label)
def test_a_corpus_is_reproducible_and_documents_are_independent(perturbation):
    corpus = corpus_of(*GOLDS)
    whole = perturb(corpus, perturbation, seed=3)
    assert perturb(corpus, perturbation, seed=3) == whole
    assert perturb(corpus, perturbation) == perturb(corpus, perturbation, seed=0, source="gold")
    for i, document in enumerate(corpus):
        alone = perturb(Corpus((document,)), perturbation, seed=3)
        assert alone.documents == whole.documents[i : i + 1]
    backwards = perturb(Corpus(corpus.documents[::-1]), perturbation, seed=3)
    assert backwards.documents == whole.documents[::-1]


def test_seeds_kinds_sources_and_documents_have_random_numbers_of_their_own():
    gold = (5,) * 40
    systems = [{"even": gold}] * 2
    corpus = corpus_of(gold, gold, systems=systems)
    drawn = [
        document.segmentation
        for seed in (0, 1)
        for source in ("gold", "even")
        for document in perturb(corpus, parse_perturbation("removal:10"), seed, source).documents
    ]
    assert len(set(drawn)) == len(drawn) == 8
    assert list(perturb(corpus, parse_perturbation("removal:10")).segmentations) == drawn[:2]


def test_totals_are_over_the_corpus():
    corpus = corpus_of(*GOLDS)
    system = perturb(corpus, parse_perturbation("removal:3"))
    assert system.name == "removal_3"
    assert [len(segmentation) for segmentation in system.segmentations] == [1, 1, 1, 2, 1, 1]
    assert system.done == EditCounts(removed=2 + 3 + 3 + 1)
    assert system.not_done == EditCounts(removed=1 + 3 + 3 + 2)
    shift = perturb(corpus, parse_perturbation("transposition:1"))
    assert shift.name == "transposition_1"
    assert shift.done.moved + shift.not_done.moved == 2 + 3 + 4 + 1
    assert shift.not_done.moved == sum(d.not_done.moved for d in shift.documents) == 3
    # The corpus takes the result back as a system.
    ids = [document.id for document in corpus]
    again = corpus.with_system(shift.name, dict(zip(ids, shift.segmentations, strict=True)))
    assert again.hypotheses["transposition_1"] == shift.segmentations


def test_another_system_can_be_the_source():
    corpus = corpus_of((3, 4), systems=[{"tt": (1, 1, 1, 4)}])
    system = perturb(corpus, parse_perturbation("removal:3"), source="tt")
    assert (system.name, system.segmentations) == ("tt_removal_3", (Segmentation((7,)),))
    with pytest.raises(UnknownNameError, match=r"unknown system 'ttt'; did you mean 'tt'\?"):
        perturb(corpus, parse_perturbation("removal:3"), source="ttt")


def test_without_gold_there_is_nothing_to_perturb():
    corpus = Corpus((Document.build("a", ["x"], gold=(1,)), Document.build("b", ["x"])))
    with pytest.raises(InputError, match="document 'b': found no gold to perturb; expected gold"):
        perturb(corpus, parse_perturbation("removal:1"))


# Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "name"),
    [
        ("removal:2", Removal(k=2), "removal_2"),
        ("removal:0.3", Removal(share=0.3), "removal_0.3"),
        ("removal:1.0", Removal(share=1), "removal_1.0"),
        ("insertion:2.5", Insertion(share=2.5), "insertion_2.5"),
        ("replacement:k=4", Replacement(k=4), "replacement_4"),
        ("transposition", Transposition(), "transposition_1"),
        ("transposition:1", Transposition(), "transposition_1"),
        ("transposition:3", Transposition(distance=3), "transposition_3"),
        ("transposition:0.5", Transposition(share=0.5), "transposition_0.5"),
        (
            "transposition:distance=2,share=0.5",
            Transposition(share=0.5, distance=2),
            "transposition_0.5_distance_2",
        ),
        ("mixture:0.3", Mixture(share=0.3), "mixture_0.3"),
        ("mixture:1", Mixture(share=1.0), "mixture_1.0"),
    ],
)
def test_spellings(text, expected, name):
    assert parse_perturbation(text) == expected
    assert label(expected) == name
    assert parse_named(spelling_of(expected), PERTURBATIONS, "perturbation", "-p") == expected


def test_labels_differ_where_perturbations_do():
    assert len({label(perturbation) for perturbation in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("removal", "neither k nor share in 'removal'; .*write removal:k=2 or removal:share=0.3"),
        ("insertion:k=2,share=0.3", "found k and share in"),
        ("removal:-1", "found k = -1 in 'removal:k=-1'; expected a whole number, 0 or more"),
        ("removal:1.5", "found share = 1.5 .*expected a number, 1.0 or less"),
        ("insertion:-0.5", "found share = -0.5 .*expected a number, 0 or more"),
        ("transposition:k=1,share=0.5", "k and share .*write transposition:k=2"),
        ("transposition:-2", "found distance = -2"),
        ("mixture", "no strength in 'mixture'; expected share, or any of removal"),
        ("mixture:share=0.1,removal=0.1", "a share and the strength of a part"),
        ("mixture:removal=0.7,transposition=0.6", "add up to 1 at most"),
        ("mixture:2", "found share = 2.0"),
        ("mixture:0.3,distance=-1", r"the option '0.3' of mixture"),
        ("mixture:share=0.3,distance=-1", "distance = -1"),
        ("removal:nan", "the option 'nan' of removal; expected k=INTEGER, share=NUMBER"),
        ("removal:2x", "the option 'share=2x' of removal; expected share=NUMBER"),
    ],
)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(OptionError, match=message):
        parse_perturbation(text)


@pytest.mark.parametrize("bad", [-1, 1.5, True, "2"])
def test_what_is_no_number_of_boundaries_or_units_is_refused(bad):
    for kind in (Removal, Insertion, Replacement, Transposition):
        with pytest.raises(InputError, match=r"k = .*expected a whole number, 0 or more"):
            kind(k=bad)
    for kind in (Transposition, partial(Mixture, share=0.3)):
        with pytest.raises(InputError, match=r"distance = .*expected a whole number, 0 or more"):
            kind(distance=bad)
    with pytest.raises(InputError, match="share = nan"):
        Removal(share=float("nan"))


def test_numbers_of_numpy_are_numbers():
    assert Removal(k=np.int64(3))(Segmentation((3, 4)), seeded()).not_done == EditCounts(removed=2)
    assert type(Removal(k=np.int64(3))(Segmentation((3, 4)), seeded()).not_done.removed) is int
    assert label(Removal(share=np.float64(0.5))) == "removal_0.5"
    assert (
        perturb(corpus_of((2, 2)), parse_perturbation(f"removal:{np.int64(1)}")).name == "removal_1"
    )


def test_long_documents():
    source = cut(range(2, 5000, 3), 5000)
    for perturbation in EXAMPLES:
        assert perturbation(source, seeded()).segmentation.n_units == 5000
