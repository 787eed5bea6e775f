"""Perturbation curves against literal ones, on vectors made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.perturbation import parse_perturbation
from reffree.data.perturbation import perturb as perturb_corpus
from reffree.statistics.losses import MeanOverDocuments
from reffree.studies.perturb import build_grid, describe_curve, fit_strengths, parse_kind, perturb
from reffree.util.errors import InputError, OptionError, UnknownNameError
from tests.helpers import rows, topical_corpus
from tests.oracles import reference_based, studies
from tests.properties import examples, intervals_held

FREE = ["arp_pair", "silhouette"]
METRICS = [*FREE, "pk"]


GOLDS = [[4, 3, 5], [6, 4], [3, 4, 3, 4], [7], [5, 5], [2, 6, 4], [4, 4, 4], [8, 3]]


def run_on(corpus, vectors, kinds, strengths, seeds, metrics, name="a", **options):
    options |= {"strengths": strengths, "seeds": seeds, "metrics": metrics}
    return perturb({name: corpus}, kinds=kinds, embeddings={name: vectors}, **options)


@pytest.fixture(scope="module")
def small():
    corpus, vectors = topical_corpus(GOLDS)
    kinds = ["removal", "transposition"]
    result = run_on(corpus, vectors, kinds, [1, 2, 3], 4, METRICS, name="small", seed=5)
    return corpus, vectors, result


def test_every_value_lies_in_its_interval(small):
    assert intervals_held(small[2]) >= 4


def literal(corpus, vectors, kind, metric):
    """Losses by seed, strength (0 first) and document."""

    def loss(segmentation, document, x):
        if metric == "pk":
            return float(reference_based.pk(segmentation.masses, document.gold.masses))
        return studies.loss(x, segmentation.masses, metric)

    losses = []
    for seed in range(5, 9):
        made = [perturb_corpus(corpus, parse_perturbation(f"{kind}:{k}"), seed) for k in (1, 2, 3)]
        steps = [[document.gold for document in corpus], *(each.segmentations for each in made)]
        losses.append([[*map(loss, step, corpus, vectors)] for step in steps])
    return losses


@pytest.mark.parametrize("kind", ["removal", "transposition"])
@pytest.mark.parametrize("metric", METRICS)
def test_curves_are_those_of_the_definition(small, kind, metric):
    corpus, vectors, result = small
    losses = literal(corpus, vectors, kind, metric)
    by_seed = [[np.mean(documents) for documents in curve] for curve in losses]
    mean = studies.mean_curve(by_seed)
    found = rows(result, "curves", kind=kind, metric=metric)
    assert [row["strength"] for row in found] == [0, 1, 2, 3]
    for j, row in enumerate(found):
        at = [curve[j] for curve in by_seed]
        low, high = studies.quantile(at, 0.025), studies.quantile(at, 0.975)
        assert row["value"] == pytest.approx(mean[j], abs=1e-8)
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=1e-8)
        for name, value in (("scaled", mean[j]), ("scaled_low", low), ("scaled_high", high)):
            assert row[name] == pytest.approx(studies.scaled(value, mean), abs=1e-6)


@pytest.mark.parametrize("kind", ["removal", "transposition"])
@pytest.mark.parametrize("metric", METRICS)
def test_monotonicity_is_that_of_the_definition(small, kind, metric):
    corpus, vectors, result = small
    losses = np.array(literal(corpus, vectors, kind, metric)).round(10)
    (row,) = rows(result, "monotonicity", kind=kind, metric=metric)
    x = [0, 1, 2, 3]
    by_seed = losses.mean(2)
    assert row["rho"] == pytest.approx(studies.spearman(x, by_seed.mean(0)))
    single = [studies.spearman(x, curve) for curve in by_seed]
    assert row["rho_seeds"] == pytest.approx(np.mean([r for r in single if r is not None]))
    curves = losses.mean(0).T.round(10).tolist()
    own = [(studies.spearman(x, curve), studies.never_falls(curve)) for curve in curves]
    defined = [each for each in own if each[0] is not None]
    assert row["documents"] == len(defined)
    assert row["rho_documents"] == pytest.approx(np.mean([rho for rho, _ in defined]))
    assert row["monotone"] == pytest.approx(np.mean([never for _, never in defined]))
    first = studies.first_worse(curves, 0.05)
    assert row["first"] == (None if first is None else f"{x[first]}")
    assert row["rho_ci"][0] <= row["rho"] <= row["rho_ci"][1]


@pytest.mark.parametrize("metric", ["silhouette", "pk"])
def test_interval_is_that_of_resampled_documents(small, metric):
    """The curve over seeds, of every resample of documents."""
    from reffree.statistics.resampling import resampled_documents
    from reffree.util.seeds import rng_for

    corpus, vectors, result = small
    losses = np.array(literal(corpus, vectors, "transposition", metric))
    drawn = []
    for times in resampled_documents(len(corpus), rng_for(5, "documents")).tolist():
        mean = (losses @ times / sum(times)).mean(0).round(10)
        drawn.append(studies.spearman([0, 1, 2, 3], mean))
    expected = [studies.quantile(drawn, share) for share in (0.025, 0.975)]
    (row,) = rows(result, "monotonicity", kind="transposition", metric=metric)
    assert row["rho_ci"] == pytest.approx(expected)


def curve_of(losses, at, counts):
    found = describe_curve(MeanOverDocuments(losses), at, (0, 1, 2), counts, 0)
    return SimpleNamespace(**found)


def test_a_loss_that_falls_is_described_as_it_is():
    """Two seeds, three strengths, six documents; better the more is perturbed."""
    losses = np.array([[4.0], [3.5], [2.5], [2.0], [2.0]]) + np.arange(6) / 10
    at = np.array([[0, 1, 3], [0, 2, 4]])
    counts = np.eye(6)[np.zeros((5, 6), int)].sum(1)  # nothing but the first document
    found = curve_of(losses, at, counts)
    assert found.mean == pytest.approx([4.25, 3.25, 2.25])
    mean, low, high = found.scaled
    assert mean == pytest.approx([1, 0.5, 0])
    assert low == pytest.approx([1, 0.5 - 0.475 / 2, 0])
    assert high == pytest.approx([1, 0.5 + 0.475 / 2, 0])
    assert (found.rho, found.rho_ci, found.rho_seeds, found.rho_documents) == (-1, (-1, -1), -1, -1)
    assert (found.monotone, found.documents, found.fewest, found.most) == (0, 6, 6, 6)
    assert (found.first, found.out_of_reach) == (None, True)


def test_the_mean_curve_counts_and_not_a_single_seed():
    """One seed falls a little, the other rises a lot."""
    losses = np.array([[1.0], [0.9], [0.8], [2.0], [3.0]]) + np.arange(6) / 10
    at = np.array([[0, 1, 2], [0, 3, 4]])
    counts = np.array([[2.0, 0, 1, 1, 1, 1], [0, 3.0, 0, 1, 1, 1]])
    found = curve_of(losses, at, counts)
    assert (found.rho, found.rho_ci, found.rho_seeds, found.rho_documents) == (1, (1, 1), 0, 1)
    assert (found.monotone, found.first, found.out_of_reach) == (1, None, True)


def test_sentinel_counts_segments(small):
    corpus, _, result = small
    n = len(corpus)
    (removed,) = rows(result, "monotonicity", kind="removal", metric="n_segments")
    assert (removed["rho"], removed["role"], removed["first"]) == (-1, "sentinel", None)
    found = rows(result, "curves", kind="removal", metric="n_segments")
    for j, row in enumerate(found):
        kept = [max(1, len(document.gold) - j) for document in corpus]
        assert row["value"] == pytest.approx(sum(kept) / n)
    (moved,) = rows(result, "monotonicity", kind="transposition", metric="n_segments")
    assert (moved["rho"], moved["documents"]) == (None, 0)
    still = rows(result, "curves", kind="transposition", metric="n_segments")
    assert {row["scaled"] for row in still} == {None}
    assert len({row["value"] for row in still}) == 1
    assert "only counts them would follow as well; transposition did not" in result.verdict[-1]


def test_what_was_not_possible_is_counted(small):
    corpus, _, result = small
    for row in rows(result, "edits", kind="removal"):
        there = [len(document.gold) - 1 for document in corpus]
        done = 4 * sum(min(k, row["strength"]) for k in there)
        assert row["done"] == done
        assert row["not_done"] == 4 * len(corpus) * row["strength"] - done
        assert row["unsegmented"] == sum(k <= row["strength"] for k in there)
    last = rows(result, "edits", kind="removal", strength=3)[0]
    total = sum(row["not_done"] for row in rows(result, "edits", kind="removal"))
    note = next(note for note in result.notes if note.startswith("small, removal"))
    assert f"{total} of " in note
    assert f"({last['not_done']} of them at strength 3)" in note
    assert "8 of 8 documents had no boundary left and got what the policy gives (neutral)" in note


def test_higher_is_better_keeps_its_values():
    metrics = ["boundary_similarity", "bor"]
    result = run_on(*topical_corpus(GOLDS), ["removal"], [0.5, 1.0], 2, metrics)
    found = rows(result, "curves", metric="boundary_similarity")
    assert found[0]["value"] == 1
    assert found[-1]["value"] == pytest.approx(1 / 8)  # only the document without a boundary
    assert [row["scaled"] for row in found][::2] == [0, 1]
    assert found[1]["low"] <= found[1]["value"] <= found[1]["high"]
    assert [row["value"] for row in rows(result, "curves", metric="bor")][::2] == [0, 1]
    assert rows(result, "monotonicity", metric="boundary_similarity")[0]["rho"] == 1
    assert result.verdict[0].startswith("Removal: the loss of boundary_similarity and bor goes up")


def test_undefined_points_are_null_and_counted():
    made = topical_corpus([[3, 3], [4, 4], [5, 4]])
    result = run_on(*made, ["removal"], [1, 2], 2, ["segrefree"])
    values = [row["value"] for row in rows(result, "curves", metric="segrefree")]
    assert values[0] is not None
    assert values[1:] == [None, None]
    (row,) = rows(result, "monotonicity", metric="segrefree")
    assert (row["rho"], row["rho_ci"], row["first"], row["documents"]) == (None, None, None, 0)
    assert any("segrefree are means over 0 to 3 documents" in note for note in result.notes)
    assert any("no strength can be told from none" in note for note in result.notes)


def test_a_system_as_source_without_gold():
    cut = {"mine": [2, 3, 3]}
    documents = tuple(Document.build(f"d{i}", ["x"] * 8, systems=cut) for i in range(5))
    vectors = list(np.random.default_rng(0).normal(size=(5, 8, 4)))
    kinds = ["replacement", "insertion"]
    result = run_on(Corpus(documents), vectors, kinds, [1, 2], 3, ["arp_pair"], source="mine")
    unperturbed = rows(result, "curves", strength=0, metric="arp_pair")
    expected = np.mean([studies.loss(x, [2, 3, 3], "arp_pair") for x in vectors])
    assert [row["value"] for row in unperturbed] == pytest.approx([expected, expected])
    inserted = rows(result, "curves", kind="insertion", metric="n_segments")
    assert [row["value"] for row in inserted] == [3, 4, 5]
    assert "|source:mine|perturbations:replacement(1,2)+insertion(1,2)|seeds:3|" in result.signature


def test_gold_that_strength_does_not_damage_is_said():
    """In dialogues of a few units far transpositions are impossible, and Pk does not rise."""
    made = topical_corpus([[2, 2]] * 8)
    result = run_on(*made, ["transposition"], [1, 2, 3], 3, ["arp_pair", "pk"])
    assert any("strength does not measure damage" in sentence for sentence in result.verdict)
    assert any("48 of 72 edits were not possible" in note for note in result.notes)


def test_answer_says_what_intervals_support():
    """Segments far apart: removal hurts every loss, and more of it more, until nothing is left."""
    made = topical_corpus([[4, 4, 4, 4]] * 8, spread=0.05)
    result = run_on(*made, ["removal"], [1, 2, 3], 4, METRICS)
    assert result.verdict[0] == (
        "Removal: the loss of arp_pair and silhouette goes up with strength (95 % interval of "
        "Spearman's correlation above 0); only that of arp_pair and silhouette never falls."
    )
    assert [row["first"] for row in rows(result, "monotonicity")] == ["1", "1", "1", None]
    assert not any("no strength can be told from none" in note for note in result.notes)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"kinds": ["removals"]}, UnknownNameError, "did you mean 'removal'"),
        ({"kinds": []}, InputError, "no perturbation"),
        ({"strengths": [1, 0.5]}, OptionError, "whole numbers and shares"),
        ({"strengths": [0]}, OptionError, "no strength above 0"),
        ({"strengths": [1.5]}, OptionError, "a number, 1.0 or less"),
        ({"strengths": [-1]}, OptionError, "0 or more"),
        ({"seeds": 0}, OptionError, "seeds = 0"),
        ({"seed": -1}, InputError, "seed = -1"),
        ({"embeddings": {"b": []}}, UnknownNameError, "unknown corpus 'b'"),
        ({"embeddings": []}, InputError, "by the corpus's name"),
        ({"metrics": ["arp"]}, UnknownNameError, "unknown metric"),
    ],
)
def test_bad_options_are_refused(keywords, error, message):
    corpus, vectors = topical_corpus([[2, 2]])
    with pytest.raises(error, match=message):
        perturb({"a": corpus}, **{"embeddings": {"a": vectors}, **keywords})
    with pytest.raises(InputError, match="no corpora"):
        perturb({})


def test_mixtures_have_shares_of_their_own():
    assert parse_kind("removal") == tuple(range(1, 10))
    assert parse_kind("mixture") == pytest.approx(np.arange(1, 11) / 10)


KINDS_OF = {
    "removal": "boundaries",
    "insertion": "boundaries",
    "transposition:k": "boundaries",
    "transposition:distance=2,k": "boundaries",
    "transposition": "units",
    "mixture": "shares",
}


@examples(25)
@given(st.lists(st.lists(st.integers(1, 2), min_size=1, max_size=14), min_size=1, max_size=5))
def test_default_strengths_fit_the_number_of_boundaries(golds):
    corpus, _ = topical_corpus(golds, fine=lambda n: [1] * n)
    wanted = {kind: parse_kind(kind) for kind in KINDS_OF}
    for source, of in (("gold", golds), ("fine", [[1] * sum(masses) for masses in golds])):
        mean = np.mean([len(masses) - 1 for masses in of])
        found = fit_strengths(wanted, corpus, source)
        for kind, counted in KINDS_OF.items():
            if counted != "boundaries":
                assert found[kind] == wanted[kind]
            else:
                assert found[kind] == tuple(k for k in range(1, 10) if k == 1 or k <= mean + 1e-9)


def test_each_corpus_has_the_default_strengths_that_fit_it():
    few, vectors = topical_corpus([[4, 4, 4], [4, 4, 4], [4, 4, 4, 4]])
    many, others = topical_corpus([[2] * 5] * 3)
    given = {"seeds": 1, "metrics": ["pk"], "embeddings": {"few": vectors, "many": others}}
    result = perturb({"few": few, "many": many}, **given)
    for name, most in (("few", 2), ("many", 4)):
        for kind, last in (("removal", most), ("transposition", 9)):
            found = rows(result, "curves", corpus=name, kind=kind, metric="pk")
            assert [row["strength"] for row in found] == list(range(last + 1))
            chosen = result.settings["strengths_by_corpus"][name][kind]
            assert chosen == tuple(range(1, last + 1))
    assert result.settings["strengths"]["removal"] == (1, 2, 3, 4)
    assert "removal(1,2,3,4)+transposition(1,2,3,4,5,6,7,8,9)" in result.signature
    assert "|strengths:fitted|" in result.signature
    asked = perturb({"few": few}, strengths=[1, 9], **given | {"embeddings": {"few": vectors}})
    assert asked.settings["strengths"]["removal"] == (1, 9)
    assert "strengths:fitted" not in asked.signature


@examples(25)
@given(
    golds=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4),
    kind=st.sampled_from(["removal", "insertion", "replacement", "transposition"]),
    n_seeds=st.integers(1, 3),
    source=st.sampled_from(["gold", "fine"]),
)
def test_grid_holds_what_perturb_makes(golds, kind, n_seeds, source):
    corpus, _ = topical_corpus(golds, fine=lambda n: [1] * n)
    made_of, at, _ = build_grid(corpus, {kind: (1, 3)}, range(n_seeds), source)
    systems = list(made_of.hypotheses.values())
    assert at[kind].shape == (n_seeds, 3)
    assert len(systems) == 1 + (source != "gold") + 2 * n_seeds
    for seed in range(n_seeds):
        for j, strength in enumerate((1, 3)):
            made = perturb_corpus(corpus, parse_perturbation(f"{kind}:{strength}"), seed, source)
            assert systems[at[kind][seed, j + 1]] == made.segmentations
        assert systems[at[kind][seed, 0]] == corpus.hypotheses[source]


def test_transposition_by_number_of_boundaries():
    """A boundary moved by one spoils two of the 48 - 6 windows wherever it goes; by two, four."""
    kinds = ["transposition:k", "transposition:distance=2,k"]
    result = run_on(*topical_corpus([[12, 12, 12, 12]] * 5), kinds, [1, 2, 3], 2, ["pk"])
    for kind, spoilt in zip(kinds, (2, 4), strict=True):
        values = [row["value"] for row in result.table("curves").records(kind=kind, metric="pk")]
        assert values == pytest.approx([k * spoilt / 42 for k in range(4)])
        done = [row["done"] for row in result.table("edits").records(kind=kind)]
        assert done == [k * 5 * 2 for k in (1, 2, 3)]
    assert "transposition:k(1,2,3)+transposition:distance=2,k(1,2,3)" in result.signature


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("transposition:", "found the kind 'transposition:'; expected .* write transposition:k"),
        ("transposition:kk", "found the option 'kk=0.1' of transposition"),
        ("transposition:k=2", "found the kind 'transposition:k=2'"),
        ("moves:k", "unknown perturbation 'moves'"),
    ],
)
def test_a_kind_with_a_wrong_option_is_refused(kind, message):
    with pytest.raises((InputError, OptionError, UnknownNameError), match=message):
        parse_kind(kind)
