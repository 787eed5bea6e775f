"""The reference-free oracles against published toy values, released figures and hand results."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracles.reference_free import (
    arp_segments,
    cos_dispersion,
    document_score,
    pair_dispersion,
    segrefree_segments,
    silhouette_segments,
    silhouette_units,
    std_dispersion,
)

METRICS = ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree")
KINDS = ("std", "cos", "pair")
SQRT2 = math.sqrt(2.0)
CORRECTION_2 = 1.0 / (1.0 - 1.0 / SQRT2)  # eq. 5 for a segment of two units


def line(*positions: float) -> np.ndarray:
    """Units on a line: one dimension, so that every distance can be read off."""
    return np.array(positions, dtype=np.float64)[:, None]


# Toy table ------------------------------------------------------------------------------------

TOY: list[list[float]] = [[1, 0], [1, 0.2], [0.9, 0.1], [0, 1], [0.1, 1], [0.2, 0.9], [0.5, 0.5]]
TOY_COLUMNS: dict[str, tuple[str, float | None]] = {
    "std_p1": ("arp_std", 1),
    "std_p2": ("arp_std", 2),
    "cos": ("arp_cos", None),
    "pair": ("arp_pair", None),
    "silhouette": ("silhouette", None),
    "segrefree": ("segrefree", None),
}
TOY_ROWS: list[tuple[list[int], list[float]]] = [
    ([3, 4], [0.729844, 0.952381, 0.969551, 0.966064, 0.706387, 0.642859]),
    ([3, 3, 1], [0.644441, 0.902116, 0.942922, 0.939754, 0.536025, 0.565987]),
    ([3, 1, 3], [0.314214, 0.321138, 0.564482, 0.564776, 0.197957, 2.176952]),
    ([2, 5], [-0.171573, -0.333333, -0.675220, -0.675615, 0.483627, 1.258361]),
    ([1] * 7, [-0.201817, -0.493368, -0.519602, -0.507191, 0.0, 10.0]),
]
TOY_CELLS = [
    pytest.param(masses, column, value, id=f"{masses}-{column}")
    for masses, row in TOY_ROWS
    for column, value in zip(TOY_COLUMNS, row, strict=True)
]


@pytest.mark.parametrize(("masses", "column", "expected"), TOY_CELLS)
def test_toy_value(masses: list[int], column: str, expected: float) -> None:
    metric, p = TOY_COLUMNS[column]
    assert document_score(TOY, masses, metric, p=p) == pytest.approx(expected, rel=0, abs=1e-6)


@pytest.mark.parametrize(("metric", "p"), [("arp_std", 2), ("arp_cos", 1), ("arp_pair", 1)])
def test_default_exponent(metric: str, p: float) -> None:
    default = document_score(TOY, [3, 1, 3], metric)
    assert default == document_score(TOY, [3, 1, 3], metric, p=p)
    assert default != document_score(TOY, [3, 1, 3], metric, p=3 - p)


# Released figures -----------------------------------------------------------------------------

RELEASED = json.loads((Path(__file__).parent / "golden" / "released.json").read_text("utf-8"))
RELEASED_FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "arp_std_p1": ("arp_std", {"p": 1}),
    "arp_std_p2": ("arp_std", {"p": 2}),
    "arp_cos": ("arp_cos", {}),
    "arp_pair": ("arp_pair", {}),
    "segrefree": ("segrefree", {}),
    "silhouette_units": ("silhouette", {"average": "units"}),
}
RELEASED_FIGURES = [
    pytest.param(index, case["masses"], field, case[field], id=f"{index}-{case['masses']}-{field}")
    for index, document in enumerate(RELEASED["documents"])
    for case in document["cases"]
    for field in RELEASED_FIELDS
    if field in case
]


def test_every_released_figure_is_held() -> None:
    fields = [f for d in RELEASED["documents"] for case in d["cases"] for f in case]
    assert set(fields) == {"masses", *RELEASED_FIELDS}
    assert len(RELEASED_FIGURES) == sum(field != "masses" for field in fields) > 0


@pytest.mark.parametrize(("document", "masses", "field", "expected"), RELEASED_FIGURES)
def test_released_figure(document: int, masses: list[int], field: str, expected: float) -> None:
    metric, options = RELEASED_FIELDS[field]
    embeddings = RELEASED["documents"][document]["embeddings"]
    score = document_score(embeddings, masses, metric, **options)
    assert score == pytest.approx(expected, rel=0, abs=1e-6)


# Dispersions ----------------------------------------------------------------------------------


def test_dispersions_of_orthogonal_units() -> None:
    x = np.eye(2)
    assert std_dispersion(x) == pytest.approx(math.sqrt(0.5))
    assert cos_dispersion(x) == pytest.approx(1 - 1 / SQRT2)
    assert pair_dispersion(x) == pytest.approx(1.0)


def test_pair_dispersion_keeps_true_zero_cosines() -> None:
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # cosines 1, 0, 0
    assert pair_dispersion(x) == pytest.approx(2 / 3)


def test_dispersions_of_a_zero_unit() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert std_dispersion(x) == pytest.approx(0.5)
    assert cos_dispersion(x) == pytest.approx(0.5)  # cosines to the centroid: 0 and 1
    assert pair_dispersion(x) == pytest.approx(1.0)


def test_opposite_units() -> None:
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert cos_dispersion(x) == 1.0
    assert pair_dispersion(x) == pytest.approx(2.0)


@pytest.mark.parametrize(("residue", "expected"), [(0.0, 1.0), (1e-6, 1.0), (1e-5, 4 / 3)])
def test_tiny_centroid_counts_as_zero(residue: float, expected: float) -> None:
    # Mean norm 4/3, centroid (residue / 3, 0). Where it counts its cosines are 1, -1, -1.
    x = np.array([[2.0 + residue, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    assert cos_dispersion(x) == pytest.approx(expected)


def test_short_but_real_centroid_does_not_count_as_zero() -> None:
    x = np.array([[1.0, 1e-4], [-1.0, 1e-4]])  # centroid (0, 1e-4): cosine 1e-4 to both
    assert cos_dispersion(x) == pytest.approx(1 - 1e-4, rel=0, abs=1e-9)


@pytest.mark.parametrize("dispersion", [cos_dispersion, pair_dispersion, std_dispersion])
def test_dispersion_of_equal_units_is_never_negative(dispersion: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = np.repeat(rng.normal(size=(1, 7)), int(rng.integers(2, 8)), axis=0)
        assert 0.0 <= dispersion(x) < 1e-12


# ARP by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positions", "masses", "by_p"),
    [
        # An odd cut, 3, takes the larger half on the left: intra std(0, 0, 3) = sqrt(2), inter
        # std(0, 3, 6) = sqrt(6).
        ((0, 0, 3, 6, 100), [3, 2], ([2 - math.sqrt(3)], [0.5])),
        # A short successor limits the cut to min(2 * 1, 4): intra std(0, 2) = 1, inter 2.
        ((50, 50, 0, 2, 6), [4, 1], ([1 / 3], [3 / 5])),
        # All of one unit: inter 0.5 and 1.5; intra**p is their mean, 1 for p = 1, 1.25 for p = 2.
        ((0, 1, 4), [1, 1, 1], ([-1 / 3, 1 / 5], [-2 / 3, 2 / 7])),
        # One unit between: intra std(0, 2) = inter std(2, 4) = 1; inter std(4, 10) = 3, intra 1.
        ((0, 2, 4, 10, 10), [2, 1, 2], ([0.0, 0.5], [0.0, 0.8])),
    ],
)
def test_arp_on_a_line(positions: Any, masses: list[int], by_p: Any) -> None:
    for p, expected in enumerate(by_p, 1):
        assert arp_segments(line(*positions), masses, "std", p) == pytest.approx(expected)
    last = document_score(line(*positions), masses, "arp_std")
    assert last == pytest.approx(np.mean(by_p[1]))


def test_arp_one_unit_segment_takes_the_mean_of_the_powers() -> None:
    # intra 1 and 3: the one-unit segment takes 2 for p = 1, 5 (not 4) for p = 2; its inter is 5.
    # The last segment is not scored, so its dispersion must not count.
    units = line(0, 2, 6, 12, 20, 30, 90)
    assert arp_segments(units, [2, 2, 1, 2], "std", 1)[2] == pytest.approx(3 / 7)
    assert arp_segments(units, [2, 2, 1, 2], "std", 2)[2] == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", KINDS)
def test_arp_unscored_last_segment_lends_no_dispersion(kind: str) -> None:
    # The only multi-unit segment is the last: inter is held against itself.
    units = [[1.0, 0.0], [0.0, 1.0], [5.0, 1.0], [-2.0, 7.0]]
    assert arp_segments(units, [1, 3], kind, 1) == [0.0]


def test_arp_cos_and_pair_by_hand() -> None:
    # intra of (x, x) is 0, inter of (x, y) is positive; then the reverse.
    x, y = [2.0, 0.0], [0.0, 3.0]
    for kind in ("cos", "pair"):
        assert arp_segments([x, x, y, y], [2, 2], kind, 1) == pytest.approx([1.0])
        assert arp_segments([x, y, y, x], [2, 2], kind, 1) == pytest.approx([-1.0])


def test_last_segment_gives_no_rp() -> None:
    for kind in KINDS:
        assert len(arp_segments(TOY, [2, 1, 3, 1], kind, 1)) == 3
        assert arp_segments(TOY, [7], kind, 1) == []


# Silhouette and SegReFree by hand -------------------------------------------------------------

BETWEEN = line(0, 2, 4, 10, 10)
BETWEEN_MASSES = [2, 1, 2]


def test_one_unit_between_silhouette() -> None:
    assert silhouette_units(BETWEEN, BETWEEN_MASSES) == pytest.approx([0.5, 0.0, 0.0, 1.0, 1.0])
    assert silhouette_segments(BETWEEN, BETWEEN_MASSES) == pytest.approx([0.25, 0.0, 1.0])
    assert document_score(BETWEEN, BETWEEN_MASSES, "silhouette") == pytest.approx(1.25 / 3)
    by_units = document_score(BETWEEN, BETWEEN_MASSES, "silhouette", average="units")
    assert by_units == pytest.approx(0.5)


def test_one_unit_between_segrefree() -> None:
    # S = (c, c/2, 0), centroids 1, 4, 10: R_12 = 1.5c/3, R_23 = 0.5c/6.
    c = CORRECTION_2
    expected = [c / 2, c / 2, c / 12]
    assert segrefree_segments(BETWEEN, BETWEEN_MASSES) == pytest.approx(expected)
    assert document_score(BETWEEN, BETWEEN_MASSES, "segrefree") == pytest.approx(13 * c / 36)


def test_silhouette_looks_at_adjacent_segments_only() -> None:
    # The third segment lies on the first; only the second is the first's neighbour.
    units = line(0, 1, 10, 10, 0, 1)
    a_b = [(1, 10), (1, 9), (0, 9.5), (0, 9.5), (1, 10), (1, 9)]
    expected = [(b - a) / max(a, b) for a, b in a_b]
    assert silhouette_units(units, [2, 2, 2]) == pytest.approx(expected)


def test_silhouette_takes_the_nearer_neighbour() -> None:
    units = line(-9, -9, 0, 1, 3, 3)
    # First unit of the middle: a = 1, previous 9, next 3. Second: a = 1, previous 10, next 2.
    assert silhouette_units(units, [2, 2, 2])[2:4] == pytest.approx([2 / 3, 1 / 2])


def test_silhouette_of_a_misplaced_unit_is_negative() -> None:
    # Unit 8 in the first segment: a = 8, b = 2.
    assert silhouette_units(line(0, 8, 10, 10), [2, 2])[1] == pytest.approx(-0.75)


def test_segrefree_leaves_out_equal_centroids() -> None:
    # Centroids 0, 0, 10; S = (c, 2c, c).
    units = line(-1, 1, -2, 2, 9, 11)
    scores = segrefree_segments(units, [2, 2, 2])
    assert scores[0] is None
    assert scores[1:] == pytest.approx([0.3 * CORRECTION_2, 0.3 * CORRECTION_2])
    assert document_score(units, [2, 2, 2], "segrefree") == pytest.approx(0.3 * CORRECTION_2)


def test_segrefree_correction_depends_on_the_mass() -> None:
    # Masses 4 and 2: S = 1 / (1 - 1/2) and 1 / (1 - 1/sqrt(2)), centroids 0 and 5.
    units = line(-1, 1, -1, 1, 4, 6)
    expected = (2 + CORRECTION_2) / 5
    assert segrefree_segments(units, [4, 2]) == pytest.approx([expected, expected])


def test_segrefree_without_finite_ratio_is_undefined() -> None:
    units = line(-1, 1, -2, 2)
    assert segrefree_segments(units, [2, 2]) == [None, None]
    assert document_score(units, [2, 2], "segrefree") is None


# Degenerate documents -------------------------------------------------------------------------


@pytest.mark.parametrize("masses", [[3, 4], [2, 1, 4], [1, 6], [6, 1], [3, 1, 2, 1], [3, 2, 1, 3]])
@pytest.mark.parametrize(
    "unit", [[1.0, 0.0], [0.1, 0.7, -0.3], [1e6 + 0.1, 1 / 3], [1e-9 / 3, 2e-9 / 7]]
)
def test_identical_units(unit: list[float], masses: list[int]) -> None:
    units = [unit] * sum(masses)
    for kind, p in product(KINDS, (1, 2)):
        assert arp_segments(units, masses, kind, p) == [0.0] * (len(masses) - 1)
    assert silhouette_units(units, masses) == [0.0] * len(units)
    assert segrefree_segments(units, masses) == [None] * len(masses)
    assert document_score(units, masses, "segrefree") is None


def test_repeated_utterances_inside_a_document() -> None:
    # a a a | a a | b b: no contrast at the first boundary, full contrast at the second.
    a, b = [0.1, 0.7, -0.3], [0.9, 0.1, 0.3]
    units = [a, a, a, a, a, b, b]
    masses = [3, 2, 2]
    for kind, p in product(KINDS, (1, 2)):
        first, second = arp_segments(units, masses, kind, p)
        assert first == 0.0
        assert second == pytest.approx(1.0)
    assert silhouette_segments(units, masses) == pytest.approx([0.0, 0.0, 1.0])
    scores_r = segrefree_segments(units, masses)
    assert scores_r[0] is None
    assert scores_r[1:] == pytest.approx([0.0, 0.0], rel=0, abs=1e-12)


def test_zero_units_throughout() -> None:
    units = np.zeros((5, 3))
    assert cos_dispersion(units) == 1.0
    assert pair_dispersion(units) == 1.0
    for kind in KINDS:
        assert arp_segments(units, [2, 1, 2], kind, 1) == [0.0, 0.0]
    assert silhouette_segments(units, [2, 1, 2]) == [0.0, 0.0, 0.0]
    assert document_score(units, [2, 1, 2], "segrefree") is None


def test_zero_units_beside_others() -> None:
    # 0 0 | x x. cos: intra 1 (all zero), inter of (0, x) 0.5. pair: both 1. std: 0 and 0.5.
    units = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    assert arp_segments(units, [2, 2], "cos", 1) == pytest.approx([-1 / 3])
    assert arp_segments(units, [2, 2], "pair", 1) == pytest.approx([0.0])
    assert arp_segments(units, [2, 2], "std", 1) == pytest.approx([1.0])


def test_two_units_two_segments() -> None:
    units = [[1.0, 0.0], [0.2, 1.0]]
    for kind, p in product(KINDS, (1, 2)):
        assert arp_segments(units, [1, 1], kind, p) == pytest.approx([0.0])
    assert silhouette_units(units, [1, 1]) == [0.0, 0.0]
    assert segrefree_segments(units, [1, 1]) == [10.0, 10.0]


def test_all_one_unit_segrefree_and_silhouette() -> None:
    units = line(0, 1, 4)
    assert segrefree_segments(units, [1, 1, 1]) == [10.0, 10.0, 10.0]
    assert document_score(units, [1, 1, 1], "segrefree") == 10.0
    assert silhouette_segments(units, [1, 1, 1]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_unsegmented_document_is_undefined(metric: str, n: int) -> None:
    assert document_score(TOY[:n], [n], metric) is None


# Properties -----------------------------------------------------------------------------------


@pytest.mark.parametrize("masses", [[5, 4, 6, 5], [1, 9, 1, 1, 8], [1] * 20, [19, 1]])
def test_rotation_scale_and_translation(masses: list[int]) -> None:
    rng = np.random.default_rng(7)
    units = rng.normal(size=(20, 4))
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = 37.0 * units @ rotation
    moved = turned + 5.0
    for metric in METRICS:
        expected = document_score(units, masses, metric)
        assert document_score(turned, masses, metric) == pytest.approx(expected, abs=1e-9)
        if metric in ("arp_std", "silhouette", "segrefree"):
            assert document_score(moved, masses, metric) == pytest.approx(expected, abs=1e-9)


def test_bounds_on_random_documents() -> None:
    rng = np.random.default_rng(11)
    for _ in range(50):
        n = int(rng.integers(2, 15))
        ends = rng.permutation(np.arange(1, n))[: int(rng.integers(1, n))]
        masses = np.diff([0, *sorted(ends), n]).tolist()
        units = rng.normal(size=(n, 3))
        units[rng.random(n) < 0.3] = units[0]
        scores = [s for kind in KINDS for s in arp_segments(units, masses, kind, 1)]
        scores += silhouette_units(units, masses)
        assert all(-1.0 <= s <= 1.0 for s in scores)
        assert all(r is None or 0.0 <= r < math.inf for r in segrefree_segments(units, masses))


def test_float32_embeddings_are_computed_in_float64() -> None:
    units = np.asarray(TOY, dtype=np.float32)
    for metric in METRICS:
        widened = document_score(units.astype(np.float64), [3, 1, 3], metric)
        assert document_score(units, [3, 1, 3], metric) == widened


# Thresholds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e-5, 1e5])
def test_small_distances_count_and_rounding_does_not(size: float) -> None:
    # 0 0 | d d | 2 2: two near groups are two groups, however near, until they are the same.
    for step, first in ((1e-9, 1.0), (0.0, 0.0)):
        units = size * line(0, 0, step, step, 2, 2, 2, 2)
        assert arp_segments(units, [2, 2, 4], "std", 2) == pytest.approx([first, 1.0])
        assert silhouette_segments(units, [2, 2, 4])[0] == pytest.approx(first)
    same = np.tile([0.1, 0.7, -0.3], (6, 1)) * (1 + 1e-16 * np.arange(6)[:, None])
    assert arp_segments(same, [2, 1, 3], "std", 2) == [0.0, 0.0]
    assert segrefree_segments(same, [2, 1, 3]) == [None, None, None]


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("masses", [[3, 3], [3, 5], [0, 7], [8, -1], []])
def test_masses_that_do_not_fit_are_refused(masses: list[int]) -> None:
    for metric in METRICS:
        with pytest.raises(ValueError, match="masses"):
            document_score(TOY, masses, metric)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown metric"):
        document_score(TOY, [3, 4], "arp")
    with pytest.raises(ValueError, match="unknown average"):
        document_score(TOY, [3, 4], "silhouette", average="corpus")
    with pytest.raises(ValueError, match="silhouette only"):
        document_score(TOY, [3, 4], "arp_cos", average="units")
    with pytest.raises(ValueError, match="ARP metrics only"):
        document_score(TOY, [3, 4], "segrefree", p=2)
