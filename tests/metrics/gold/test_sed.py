"""Segment edit distance: against every chunking, the paper's pseudocode, figures and claims."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from reffree.data.segmentation import Segmentation
from reffree.encoders.word_vectors import open_word_vectors
from reffree.metrics.gold import sed as sed_module
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.gold.sed import (
    FUNCTION_WORDS,
    Sed,
    align_segments,
    cohesion,
    content_words,
    read_words,
)
from reffree.reference import sed
from reffree.util.errors import InputError
from tests.oracles import reference_based as oracle
from tests.properties import examples

# Vectors of length 5, so that every cosine is a fraction of 25 and none is .7.
VECTORS = {
    "ash": (5, 0, 0),
    "bay": (4, 3, 0),
    "cod": (3, 4, 0),
    "dew": (0, 5, 0),
    "elm": (0, 4, 3),
    "fog": (0, 3, 4),
    "gnu": (0, 0, 5),
}
WORDS = [*VECTORS, "zzz"]  # the last one has no vector


class Table:
    """Hand-made vectors, and how often they were asked for."""

    name = "hand-made"
    threshold = 0.7

    def __init__(self, vectors):
        self.vectors = {word: np.array(vector, dtype=float) for word, vector in vectors.items()}
        self.calls = 0

    def look_up(self, words):
        self.calls += 1
        zeros = np.zeros(len(next(iter(self.vectors.values()))))
        known = np.array([word in self.vectors for word in words], dtype=bool)
        return np.array([self.vectors.get(word, zeros) for word in words]), known


class Distinct:
    """Every word is at right angles to every other."""

    name = "distinct"
    threshold = 0.7

    def look_up(self, words):
        return np.eye(len(words)), np.ones(len(words), dtype=bool)


TABLE = Sed(table=Table(VECTORS))
DISTINCT = Sed(table=Distinct())


@pytest.fixture(scope="module")
def minilm():
    return Sed(table=open_word_vectors())


def similarity(a, b):
    return Fraction(int(np.dot(VECTORS[a], VECTORS[b])), 25)


def unit_cohesion(units):
    """CL of two tuples of unit numbers, by the definition, for the hand-made vectors."""
    known = [[word for word in unit.split() if word in VECTORS] for unit in units]

    def of(a, b):
        tokens = [[word for unit in part for word in known[unit]] for part in (a, b)]
        return oracle.lexical_cohesion(*tokens, similarity)

    return of


def value(metric, hypothesis, reference, units):
    pairs = Pairs(*(np.array([masses]) for masses in (hypothesis, reference)), [units])
    return metric.value(metric.counts(pairs))[0]


@st.composite
def masses(draw, n):
    gaps = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    return list(Segmentation.from_labels([*map(int, gaps), 1]).masses)


@st.composite
def documents(draw, most=9):
    n = draw(st.integers(1, most))
    few = draw(st.integers(1, len(WORDS)))
    words = st.lists(st.sampled_from(WORDS[-few:]), max_size=4)
    units = [" ".join(draw(words)) for _ in range(n)]
    return units, draw(masses(n)), draw(masses(n))


# Against the definition ------------------------------------------------------------------------


@examples(200)
@given(documents())
def test_equals_the_cheapest_of_all_chunkings(document):
    units, hypothesis, reference = document
    found = value(TABLE, hypothesis, reference, units)
    if not any(word in VECTORS for unit in units for word in unit.split()):
        assert np.isnan(found)
        return
    expected = oracle.sed(hypothesis, reference, unit_cohesion(units))
    assert found == pytest.approx(float(expected), abs=1e-12)
    assert 0 <= found <= 2


@pytest.mark.parametrize(
    ("units", "hypothesis", "reference", "expected"),
    [
        (["ash", "", "", "", "", "gnu"], [1, 2, 3], [2, 2, 2], 2 / 3),
        (["ash", "", "", "gnu gnu", "", "ash"], [1, 1, 2, 2], [1, 2, 2, 1], 2 / 4),
        (["", "", "ash", "", "gnu", "gnu ash"], [1, 3, 2], [2, 3, 1], 2 / 3),
    ],
)
def test_of_equal_costs_the_alignment_of_most_edits_counts(units, hypothesis, reference, expected):
    # Each also has an alignment of the same cost with one edit fewer.
    assert value(TABLE, hypothesis, reference, units) == pytest.approx(expected)
    by_definition = oracle.sed(hypothesis, reference, unit_cohesion(units))
    assert float(by_definition) == pytest.approx(expected)


def pseudocode(hypothesis, reference, of):
    """The paper's §3.1 recursion, a group having two segments or more; (cost, -edits)."""
    h, r = ([(), *oracle.segments(side)] for side in (hypothesis, reference))
    table = {(0, 0): (Fraction(0), 0)}

    def starts(one, others, last):
        """Where a group up to the last segment may start: at the first that overlaps, or next."""
        first = min(z for z in range(1, last + 1) if set(others[z]) & set(one))
        return [z for z in (first, first + 1) if z < last]

    for i in range(1, len(r)):
        for j in range(1, len(h)):
            if not set(r[i]) & set(h[j]):
                continue
            options = [(i - 1, j - 1, [r[i]], [h[j]])]
            if r[i][0] < h[j][0]:
                options += [(i - 1, z - 1, [r[i]], h[z : j + 1]) for z in starts(r[i], h, j)]
            if h[j][0] < r[i][0]:
                options += [(z - 1, j - 1, r[z : i + 1], [h[j]]) for z in starts(h[j], r, i)]
            totals = [
                (table[x, y][0] + oracle.chunk_cost(chunk, of), table[x, y][1] - 1)
                for x, y, *chunk in options
                if (x, y) in table
            ]
            if totals:
                table[i, j] = min(totals)
    return table[len(r) - 1, len(h) - 1]


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_pseudocode_on_longer_documents(seed):
    rng = np.random.default_rng(seed)
    n = 30
    units = [" ".join(rng.choice(WORDS, size=rng.integers(0, 4))) for _ in range(n)]
    sides = []
    for _ in range(2):
        gaps = rng.random(n - 1) < rng.choice([0.1, 0.3, 0.7])
        sides.append(list(Segmentation.from_labels([*gaps.astype(int), 1]).masses))
    cost, edits = pseudocode(*sides, unit_cohesion(units))
    counts = TABLE.counts(Pairs(*(np.array([side]) for side in sides), [units]))
    assert_allclose(counts, [[float(cost), -edits]], atol=1e-12)


@examples(60)
@given(documents())
def test_the_alignment_explains_the_value(document):
    units, hypothesis, reference = document
    alignment = align_segments(hypothesis, reference, units, TABLE)
    assert [s for edit in alignment.edits for s in edit.hypothesis] == [*range(len(hypothesis))]
    assert [s for edit in alignment.edits for s in edit.reference] == [*range(len(reference))]
    h, r = oracle.segments(hypothesis), oracle.segments(reference)
    for edit in alignment.edits:
        chunk = [r[s] for s in edit.reference], [h[s] for s in edit.hypothesis]
        expected = oracle.chunk_cost(chunk, unit_cohesion(units))
        assert edit.cost == pytest.approx(float(expected), abs=1e-12)
        assert (
            edit.kind
            == {
                (1, 1): "match" if chunk[0] == chunk[1] else "transposition",
                (1, 2): "split",
                (2, 1): "merge",
            }[min(2, len(chunk[0])), min(2, len(chunk[1]))]
        )
    words = [word for unit in units for word in unit.split()]
    assert alignment.n_unknown == words.count("zzz")
    assert alignment.n_known == len(words) - alignment.n_unknown
    if alignment.n_known:
        assert alignment.value == pytest.approx(value(TABLE, hypothesis, reference, units))
    else:
        assert alignment.value is None


def test_the_terms_of_each_edit():
    units = ["ash", "ash bay", "gnu", "gnu", "gnu", "ash", "ash", "gnu"]
    alignment = align_segments([2, 3, 1, 2], [2, 2, 2, 2], units, DISTINCT)
    assert [edit.kind for edit in alignment.edits] == ["match", *["transposition"] * 2, "match"]
    match, extra, missing, _ = alignment.edits
    assert (match.terms, match.cost) == ({}, 0)
    assert (extra.terms, extra.cost) == ({"extra": 1.0}, 0)
    # CL(gnu ash, gnu) = harmonic mean of 1/2 and 1.
    assert missing.terms == {"missing": pytest.approx(2 / 3)}
    units = ["ash bay", "ash bay", "ash gnu", "ash gnu", "cod"]
    (split, _) = align_segments([2, 2, 1], [4, 1], units, DISTINCT).edits
    assert split.terms == {"cohesion": 1.0, "unbroken": pytest.approx(2 / 3), "related": 0.5}
    assert split.cost == pytest.approx(1 - 2 / 3 * 0.5)


# Batches ---------------------------------------------------------------------------------------


def random_pairs(rng, rows, n, width):
    gaps = rng.random((2, rows, n - 1)) < 0.4
    sides = [[Segmentation.from_labels([*row.astype(int), 1]).masses for row in s] for s in gaps]
    return [np.array([[*m, *[0] * (width - len(m))] for m in side]) for side in sides]


def test_a_batch_is_its_pairs_and_reads_each_document_once():
    rng = np.random.default_rng(0)
    texts = [[" ".join(rng.choice(WORDS, 3)) for _ in range(n)] for n in (6, 9)]
    rows = [random_pairs(rng, 10, n, 10) for n in (6, 9)]
    order = rng.permutation(20)
    sides = [np.concatenate(side)[order] for side in zip(*rows, strict=True)]
    # Equal texts are one document, whether or not they are one object.
    units = [list(texts[k // 10]) for k in order]
    metric = Sed(table=Table(VECTORS))
    counts = count_pairs(metric, Pairs(*sides, units))
    assert metric.table.calls == 2
    singles = [
        TABLE.counts(Pairs(sides[0][k : k + 1], sides[1][k : k + 1], units[k : k + 1]))[0]
        for k in range(20)
    ]
    assert_allclose(counts, singles, rtol=0, atol=0)


def test_pooled_value_weighs_documents_by_their_edits():
    units = ["ash", "ash", "gnu", "gnu"]
    pairs = Pairs(np.array([[4, 0], [1, 3]]), np.array([[2, 2], [2, 2]]), [units] * 2)
    counts = DISTINCT.counts(pairs)
    assert_allclose(counts, [[1, 1], [2, 2]])
    assert DISTINCT.value(counts.sum(0)) == 1
    assert DISTINCT.direction == "lower"


def test_inputs_stay_as_they_are_and_may_be_read_only():
    hypothesis, reference = (np.broadcast_to(np.array([m]), (3, 2)) for m in ([1, 3], [2, 2]))
    units = (("ash", "bay", "gnu", "gnu"),) * 3
    counts = TABLE.counts(Pairs(hypothesis, reference, units))
    assert_allclose(counts, np.broadcast_to(counts[0], (3, 2)))


# The paper's figures and claims ----------------------------------------------------------------

US = (
    "A new report counts people without a home across the country.",
    "The yearly report was published by the housing department.",
    "Homelessness rose in large cities, and Los Angeles and New York counted most people.",
    "City shelters in Seattle were full, and the city opened a new shelter.",
    "Homelessness also rose in many states, and California counted most people.",
    "State shelters in Oregon were full, while other states opened no shelter.",
    "The deputy secretary resigned after a scandal over her private emails.",
    "Her lawyer declined to comment on the resignation or the emails.",
)


def test_figure_2_merging_related_segments_costs_less(minilm):
    reference = [2, 2, 2, 2]
    cities_states = align_segments([2, 4, 2], reference, US, minilm)
    states_deputy = align_segments([2, 2, 4], reference, US, minilm)
    assert [e.kind for e in cities_states.edits] == ["match", "merge", "match"]
    assert [e.kind for e in states_deputy.edits] == ["match", "match", "merge"]
    assert cities_states.value < states_deputy.value - 0.05
    assert cities_states.n_unknown == 0


def test_more_boundaries_in_a_segment_are_still_one_split():
    units = [f"word{i}" for i in range(12)]
    for hypothesis in ([3, 3, 6], [2, 2, 2, 6], [1, 1, 1, 1, 1, 1, 6]):
        split, _ = align_segments(hypothesis, [6, 6], units, DISTINCT).edits
        assert split.kind == "split"
        merge, _ = align_segments([6, 6], hypothesis, units, DISTINCT).edits
        assert merge.kind == "merge"


def test_split_and_merge_mirror_each_other():
    # Two halves that share half their words: insertion and deletion cost the same.
    units = ["ash bay", "ash bay", "ash gnu", "ash gnu"]
    assert value(DISTINCT, [2, 2], [4], units) == pytest.approx(2 / 3)
    assert value(DISTINCT, [4], [2, 2], units) == pytest.approx(2 / 3)
    # In general, what relatedness adds to one it takes from the other.
    for units in (["ash"] * 4, ["ash", "bay", "ash", "cod"], ["ash", "bay", "cod", "dew"]):
        both = value(TABLE, [2, 2], [4], units) + value(TABLE, [4], [2, 2], units)
        assert both == pytest.approx(2 - 2 / 3)


def test_figure_7_one_error_either_way_is_one_edit():
    units = [f"word{i}" for i in range(12)]
    deleted = align_segments([4, 8], [4, 4, 4], units, DISTINCT)
    inserted = align_segments([4, 2, 2, 4], [4, 4, 4], units, DISTINCT)
    assert sum(edit.cost > 0 for edit in deleted.edits) == 1
    assert sum(edit.cost > 0 for edit in inserted.edits) == 1
    # The mean still runs over two edits in one case and three in the other.
    assert (len(deleted.edits), len(inserted.edits)) == (2, 3)


def test_figure_8_no_cross_alignment_however_far_a_boundary_moves():
    units = [f"word{i}" for i in range(12)]
    values = []
    for k in range(6):
        alignment = align_segments([6 - k, 6 + k], [6, 6], units, DISTINCT)
        assert [(len(e.hypothesis), len(e.reference)) for e in alignment.edits] == [(1, 1)] * 2
        values.append(alignment.value)
    assert values == sorted(set(values))
    # CL(segment, k of its units) = 2k/(6 + k), and the k units have nothing of the other segment.
    assert_allclose(values, [0, *((2 * k / (6 + k) + 1) / 2 for k in range(1, 6))])


@pytest.mark.parametrize("metric", [DISTINCT, TABLE])
def test_figure_9_maximal_segmentation_costs_everything(metric):
    units = ["ash", "bay", "bay", "gnu", "fog", "fog", "cod"]
    assert value(metric, [1] * 7, [7], units) == 1
    assert value(metric, [7], [1] * 7, units) == 1


def test_figure_10_a_split_counts_relative_to_the_segment():
    units = [f"word{i}" for i in range(10)]
    large, small = ([4, 4, 2], [8, 1, 1])
    assert value(DISTINCT, large, [8, 2], units) == pytest.approx(1 / 7 / 2)
    assert value(DISTINCT, small, [8, 2], units) == pytest.approx(1 / 2)


@pytest.mark.parametrize("masses", [[2, 2, 4, 4], [2, 2, 5, 3], [2, 3, 4, 3], [3, 2, 4, 3]])
def test_figure_11_split_merge_match(masses):
    topics = ["ash", "ash", "cod", "cod", *["elm"] * 4, *["gnu"] * 4]
    alignment = align_segments(masses, [4, 2, 2, 4], topics, TABLE)
    segments = [(list(e.reference), list(e.hypothesis)) for e in alignment.edits]
    assert segments == [([0], [0, 1]), ([1, 2], [2]), ([3], [3])]
    assert [e.kind for e in alignment.edits[:2]] == ["split", "merge"]


def test_a_transposition_is_worse_from_a_cohesive_segment_to_another():
    hypothesis, reference = [1, 3], [2, 2]
    assert value(DISTINCT, hypothesis, reference, ["ash", "ash", "gnu", "gnu"]) == 1
    kinder = value(DISTINCT, hypothesis, reference, ["ash", "gnu", "gnu", "gnu"])
    assert kinder == pytest.approx((2 / 3 + 0) / 2)


def test_insertions_are_worse_between_related_deletions_between_unrelated():
    same, other = ["ash"] * 4, ["ash", "ash", "gnu", "gnu"]
    assert value(DISTINCT, [2, 2], [4], same) == 1
    assert value(DISTINCT, [2, 2], [4], other) == pytest.approx(1 / 3)
    assert value(DISTINCT, [4], [2, 2], same) == pytest.approx(1 / 3)
    assert value(DISTINCT, [4], [2, 2], other) == 1


def test_insertion_with_real_vectors_prefers_the_change_of_subject(minilm):
    reference = [2, 6]  # everything after the introduction in one segment
    at_subject = value(minilm, [2, 4, 2], reference, US)
    within_subject = value(minilm, [2, 2, 4], reference, US)
    assert at_subject < within_subject
    assert value(minilm, reference, reference, US) == 0


# Edge cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("masses", [[1], [5], [1] * 5, [2, 3]])
def test_equal_segmentations_cost_nothing(masses):
    units = ["ash", "", "zzz", "gnu bay", "the"][: sum(masses)]
    assert value(TABLE, masses, masses, units) == 0
    kinds = [edit.kind for edit in align_segments(masses, masses, units, TABLE).edits]
    assert kinds == ["match"] * len(masses)


def test_a_segment_without_a_known_word_has_no_cohesion():
    units = ["ash", "ash", "zzz", "zzz zzz"]
    # Merging loses: the unknown half is related to nothing; extra units add 1, missing ones 0.
    assert value(TABLE, [4], [2, 2], units) == 1
    extra, missing = align_segments([3, 1], [2, 2], units, TABLE).edits
    assert (extra.terms, extra.cost) == ({"extra": 0.0}, 1.0)
    assert (missing.terms, missing.cost) == ({"missing": 0.0}, 0.0)


def test_a_document_without_a_known_word_is_undefined():
    pairs = Pairs(np.array([[2], [2]]), np.array([[2], [2]]), [["zzz", "the"], ["ash", "zzz"]])
    counts = TABLE.counts(pairs)
    assert_allclose(counts, [[0, 0], [0, 1]])
    assert_allclose(TABLE.value(counts), [np.nan, 0])
    assert TABLE.value(counts.sum(0)) == 0


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan")])
def test_threshold_is_a_cosine(threshold):
    with pytest.raises(InputError, match=r"expected a (cosine above 0, at most 1|number)[;,]"):
        Sed(table=Distinct(), threshold=threshold)


def test_text_is_needed_and_must_fit():
    pairs = Pairs.of([[2, 2], [1, 3]], [2, 2])
    with pytest.raises(InputError, match="found 2 pairs with the text of 0; expected the units of"):
        DISTINCT.counts(pairs)
    short = Pairs(pairs.hypothesis, pairs.reference, [["ash"] * 4, ["ash"] * 3])
    with pytest.raises(InputError, match="found segmentations of 4 units and a text of 3; expect"):
        DISTINCT.counts(short)
    with pytest.raises(InputError, match="found segmentations of 4 units and a text of 1; expect"):
        align_segments([2, 2], [4], ["ash"], DISTINCT)
    with pytest.raises(InputError, match="a hypothesis of 3 units and a reference of 4"):
        align_segments([2, 1], [4], ["ash"] * 4, DISTINCT)


# Cohesion --------------------------------------------------------------------------------------


def test_cohesion_by_hand():
    vectors = Table(VECTORS)
    # ash → bay .8, bay → ash .8; gnu → fog .8; dew → elm .8, dew → fog .6 is below the threshold.
    assert cohesion("ash", "bay", vectors) == pytest.approx(0.8)
    assert cohesion("ash", "cod", vectors) == 0
    assert cohesion("ash gnu", "bay", vectors) == pytest.approx(2 * 0.4 * 0.8 / 1.2)
    assert cohesion("ash ash gnu", "bay", vectors) == pytest.approx(
        2 * (1.6 / 3) * 0.8 / (1.6 / 3 + 0.8)
    )
    assert cohesion("ash", "cod", vectors, threshold=0.6) == pytest.approx(0.6)
    assert cohesion("bay", "bay", vectors) == 1
    # Unknown words count nowhere.
    assert cohesion("ash zzz", "bay zzz zzz", vectors) == pytest.approx(0.8)
    assert cohesion("zzz", "zzz", vectors) == 0
    assert cohesion("", "ash", vectors) == 0


text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(text, text)
def test_cohesion_is_its_definition(first, second):
    expected = unit_cohesion([first, second])((0,), (1,))
    vectors = Table(VECTORS)
    assert cohesion(first, second, vectors) == pytest.approx(float(expected), abs=1e-12)
    assert cohesion(second, first, vectors) == pytest.approx(float(expected), abs=1e-12)


def test_cohesion_with_real_vectors(minilm):
    vectors = minilm.table
    assert cohesion("The city", "a city!", vectors) == 1
    assert 0.8 < cohesion("washing clothes", "Wash her clothes", vectors) < 1
    assert cohesion("laundry", "emails", vectors) == 0
    # BERT's vocabulary has these as single pieces; cosine .7983 of their rows.
    pieces = open_word_vectors(pieces=True)
    assert cohesion("city", "cities", pieces) == pytest.approx(0.7983, abs=1e-4)


@pytest.mark.parametrize(
    ("related", "unrelated"),
    [
        (("cities", "states"), ("states", "deputy")),  # Figure 2 and §3.2
        (("city", "state"), ("city", "deputy")),
        (("food", "treats"), ("discipline", "health")),  # §4.3, an article about dogs
        # §3.2, "The laundry is not done yet. I hate washing clothes.", and Figure 1.
        (("laundry", "washing clothes"), ("dogs cute", "cars fast")),
    ],
)
def test_the_words_that_the_paper_calls_related_are_so_by_default(related, unrelated, minilm):
    assert cohesion(*related, minilm.table) > 0.5
    assert cohesion(*unrelated, minilm.table) == 0


def test_a_merge_costs_less_for_related_words_alone(minilm):
    # Figure 2, without a word that two segments share.
    units = ("report", "homelessness", "cities", "mayors", "states", "governors", "deputy", "email")
    related, unrelated = (
        align_segments(masses, [2, 2, 2, 2], units, minilm) for masses in ([2, 4, 2], [2, 2, 4])
    )
    assert related.edits[1].terms["related"] > 0.5
    assert unrelated.edits[2].terms["related"] == 0
    assert related.value < unrelated.value
    pieces = Sed(table=open_word_vectors(pieces=True))
    assert align_segments([2, 4, 2], [2, 2, 2, 2], units, pieces).edits[1].terms["related"] == 0


def test_the_vectors_say_what_is_related_unless_told():
    distant = Table(VECTORS)
    distant.threshold = 0.6
    assert cohesion("ash", "cod", distant) == pytest.approx(0.6)
    assert cohesion("ash", "cod", distant, threshold=0.7) == 0
    units = ["ash", "ash", "cod", "cod"]
    assert value(Sed(table=distant), [4], [2, 2], units) < 1
    assert value(Sed(table=distant, threshold=0.7), [4], [2, 2], units) == 1


def test_a_cosine_that_only_rounding_keeps_below_the_threshold_reaches_it():
    vectors = Table({"one": (1, 0), "two": (0.7 * 3, np.sqrt(1 - 0.49) * 3)})
    found = cohesion("one", "two", vectors, threshold=0.7, left_out=frozenset())
    assert found == pytest.approx(0.7)


def test_vectors_of_zeros_are_unknown_and_broken_ones_refused():
    table = Table({"ash": (1, 0), "bay": (0, 0)})
    words = read_words(["ash bay", "bay zzz"], table)
    assert (len(words.numbers), words.n_unknown) == (1, 3)
    with pytest.raises(InputError, match="NaN or infinity in the vector of 'bay'; expected finite"):
        read_words(["ash bay"], Table({"ash": (1, 0), "bay": (np.nan, 0)}))


def test_similar_words_do_not_depend_on_the_block(monkeypatch):
    rng = np.random.default_rng(0)
    words = [f"w{chr(97 + i)}" for i in range(20)]
    table = Table(dict(zip(words, rng.normal(size=(20, 2)), strict=True)))
    whole = read_words([" ".join(words)], table)
    monkeypatch.setattr(sed_module, "BLOCK_ELEMENTS", 60)
    parts = read_words([" ".join(words)], table)
    for a, b in zip(whole, parts, strict=True):
        assert_allclose(a, b, rtol=1e-12)
    assert len(whole.similar) > 40


def test_content_words():
    found = content_words("Don't wash John's 2 shirts_again, at 30°C: Über-weiß!")
    assert found == ["wash", "john", "shirts", "again", "c", "über", "weiß"]
    assert content_words("The cat is on it", frozenset()) == ["the", "cat", "is", "on", "it"]
    assert content_words("  ") == []
    assert all(word == word.lower() and word.isalpha() for word in FUNCTION_WORDS)


def test_the_function_is_the_metric():
    units = ["ash bay", "bay", "elm", "dew elm", "gnu", "zzz fog", "gnu", "cod ash"]
    several, reference = [[2, 3, 3], [8], [4, 4], [1, 1, 6]], [3, 2, 3]
    vectors = Table(VECTORS)
    found = sed(several, reference, units, vectors)
    expected = [value(TABLE, hypothesis, reference, units) for hypothesis in several]
    assert_array_equal(found, expected)
    backwards = sed(reference, several, units, vectors)
    assert_array_equal(backwards, [value(TABLE, reference, h, units) for h in several])
    assert not np.array_equal(found, backwards)
    strict = Sed(table=vectors, threshold=0.9)
    assert sed(several[0], reference, units, vectors, threshold=0.9) == value(
        strict, several[0], reference, units
    )
