"""Documents of several annotators in every study: means over them, and one for a system."""

from __future__ import annotations

import json
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.perturbation import parse_perturbation
from reffree.data.perturbation import perturb as perturb_corpus
from reffree.metrics.gold.agreement import agreement as coefficients
from reffree.metrics.gold.agreement import with_central_gold
from reffree.segmenters.segment import segment
from reffree.studies import agreement, compare, correlate, density, diagnose, granularity, perturb
from reffree.util.errors import InputError
from tests.helpers import invoke, rows
from tests.oracles import reference_based, studies
from tests.properties import examples

GOLDS = [
    {"ann": [4, 4, 4], "bob": [5, 3, 4], "cy": [4, 8]},
    {"ann": [6, 6], "bob": [3, 3, 6]},
    {"ann": [2, 4, 6], "bob": [12], "cy": [2, 5, 5], "di": [3, 4, 5]},
    {"ann": [5, 7]},
    {"bob": [6, 2, 4], "cy": [6, 6], "di": [8, 4]},
    {"ann": [3, 9], "bob": [4, 8]},
]


def annotated(golds=GOLDS, **systems):
    rng = np.random.default_rng(0)
    units = [f"word{j % 5} unit {j // 3}" for j in range(12)]
    documents = tuple(
        Document.build(f"d{i}", units, golds=given, systems=systems)
        for i, given in enumerate(golds)
    )
    return Corpus(documents), list(rng.normal(size=(len(golds), 12, 6)))


def central(golds):
    """The one most like the others, by the definition; of equal ones the first."""
    likeness = [
        sum(reference_based.boundary_similarity(a, b) for j, b in enumerate(golds) if j != i)
        for i, a in enumerate(golds)
    ]
    return golds[likeness.index(max(likeness))]


def mean_pk(hypotheses):
    """Over documents, each over its annotators."""
    return fmean(
        fmean(float(reference_based.pk(made, gold)) for gold in golds.values())
        for made, golds in zip(hypotheses, GOLDS, strict=True)
    )


@st.composite
def annotations(draw):
    n = draw(st.integers(1, 12))
    masses = st.lists(st.booleans(), min_size=n - 1, max_size=n - 1).map(
        lambda cuts: np.diff([0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]).tolist()
    )
    return draw(st.lists(masses, min_size=1, max_size=4))


@given(st.lists(annotations(), min_size=1, max_size=3))
@examples(60)
def test_gold_as_a_system_is_the_annotator_nearest_to_the_others(given):
    documents = [
        Document.build(f"d{i}", ["x"] * sum(golds[0]), golds=dict(zip("abcd", golds, strict=False)))
        for i, golds in enumerate(given)
    ]
    filled = with_central_gold(Corpus(tuple(documents)))
    assert [list(d.gold.masses) for d in filled] == [central(golds) for golds in given]
    assert [d.references for d in filled] == [d.references for d in documents]


def test_a_gold_that_is_there_stays_and_one_that_is_missing_is_not_made_up():
    one = Document.build("a", ["x"] * 4, gold=[1, 3], golds={"p": [2, 2], "q": [2, 2]})
    other = Document.build("b", ["x"] * 4, golds={"p": [2, 2]})
    none = Document.build("c", ["x"] * 4)
    filled = with_central_gold(Corpus((one, other)))
    assert [d.gold.masses for d in filled] == [(1, 3), (2, 2)]
    assert "1 document: gold as a system is the one of its annotators" in filled.notes[0]
    assert with_central_gold(Corpus((other, none)))[0].gold is None


def test_correlate_scores_every_system_against_every_annotator():
    corpus, vectors = annotated()
    metrics = ["arp_pair", "pk", "boundary_similarity"]
    result = correlate({"c": corpus}, metrics=metrics, resamples=100, embeddings={"c": vectors})
    expected = mean_pk([central(list(golds.values())) for golds in GOLDS])
    (row,) = rows(result, "scores", system="gold", metric="pk")
    assert row["value"] == pytest.approx(expected, abs=1e-9)
    systems = {row["system"] for row in rows(result, "scores")}
    assert {"removal_0.5", "random_mean", "depth:k=gold", "gold"} <= systems
    assert any("who agrees best with the others" in note for note in result.notes)


def test_perturb_damages_each_annotator_in_turn():
    corpus, vectors = annotated()
    given = {"kinds": ["removal"], "strengths": [1], "seeds": 5, "embeddings": {"c": vectors}}
    result = perturb({"c": corpus}, metrics=["silhouette", "pk"], **given)
    curves = {"silhouette": [], "pk": []}
    for draw in range(5):
        golds = [list(given.values())[draw % len(given)] for given in GOLDS]
        own = Corpus(
            tuple(Document.build(d.id, d.units, gold=g) for d, g in zip(corpus, golds, strict=True))
        )
        damaged = perturb_corpus(own, parse_perturbation("removal:1"), draw).segmentations
        for hypotheses in (golds, [list(s.masses) for s in damaged]):
            both = zip(vectors, hypotheses, strict=True)
            curves["silhouette"].append(fmean(studies.loss(x, h, "silhouette") for x, h in both))
            curves["pk"].append(mean_pk(hypotheses))
    for metric, values in curves.items():
        found = [row["value"] for row in rows(result, "curves", metric=metric)]
        assert found == pytest.approx([fmean(values[::2]), fmean(values[1::2])], abs=1e-8)
    assert any("draw by draw another annotator's gold" in note for note in result.notes)


def test_other_studies_take_several_annotators():
    corpus, vectors = annotated(a=[6, 6], b=[3, 3, 3, 3])
    given = {"embeddings": {"c": vectors}}
    diagnosed = diagnose({"c": corpus}, metrics=["arp_pair"], seeds=1, **given)
    assert diagnosed.settings["sources"]["c"]["name"] == "gold"
    swept = density({"c": corpus}, methods=["depth:k=gold"], metrics=["silhouette"], **given)
    mean = sum(fmean(len(gold) - 1 for gold in golds.values()) for golds in GOLDS)
    assert swept.corpora[0]["gold_boundaries"] == round(mean)
    followed = granularity({"c": corpus}, **given)
    assert rows(followed, "curves")
    compared = compare(corpus, metrics=["pk"], embeddings=vectors)
    values = {each["system"]: each["value"] for each in compared.table("systems").records()}
    assert values["a"] == pytest.approx(mean_pk([[6, 6]] * len(GOLDS)), abs=1e-9)


def test_as_many_boundaries_as_gold_is_the_mean_of_annotators():
    corpus, vectors = annotated()
    made = segment(corpus, ["depth:k=gold,min_gap=1", "random_known"], embeddings=vectors)
    wanted = [round(fmean(map(len, golds.values()))) for golds in GOLDS]
    for found in made.hypotheses.values():
        assert list(map(len, found)) == wanted
    nine = segment(corpus, "arp_baselines")
    assert "random_mean" in nine.hypotheses


def test_perturb_writes_what_became_of_the_central_annotator(tmp_path):
    source = tmp_path / "c.jsonl"
    golds = {"ann": [4, 4, 4], "bob": [4, 4, 4], "cy": [1, 11]}
    text = json.dumps({"id": "a", "units": ["x"] * 12, "golds": golds})
    source.write_text(text + "\n", encoding="utf-8")
    target = tmp_path / "out.jsonl"
    found = invoke("perturb", source, "--perturbation", "removal:1", "-o", target)
    assert found.exit_code == 0, found.output
    written = json.loads(target.read_text(encoding="utf-8"))
    assert written["systems"]["removal_1"] in ([8, 4], [4, 8])
    assert "gold" not in written
    assert written["golds"] == golds


def of_two_and_three():
    units = [f"unit {i}" for i in range(10)]
    golds = [{"ann": [2, 3, 5], "bob": [5, 5]}, {"ann": [10], "bob": [4, 6], "cy": [5, 5]}]
    documents = [Document.build(f"d{i}", units, golds=given) for i, given in enumerate(golds)]
    return Corpus((*documents, Document.build("d2", units, golds={"ann": [1, 9]})))


def test_agreement_is_that_of_the_coefficients():
    corpus = of_two_and_three()
    result = agreement({"a": corpus})
    pi, kappa = result.table("agreement").records(corpus="a")
    expected = coefficients({document.id: document.golds for document in corpus})
    assert pi["value"] == pytest.approx(expected.pi)
    assert (kappa["value"], kappa["expected"]) == pytest.approx(
        (expected.kappa, expected.expected_kappa)
    )
    assert pi["observed"] == kappa["observed"] == pytest.approx(expected.observed)
    assert (pi["documents"], pi["annotators"], pi["pairs"]) == (2, 3, expected.n_pairs)
    assert result.notes == ("a: 1 document with fewer than two annotators left out.",)
    assert result.verdict[0].startswith(f"a: π {expected.pi:.3f}, κ {expected.kappa:.3f} (2 doc")


def test_agreement_needs_annotators():
    systems = {"x": [4], "y": [2, 2]}
    corpus = Corpus((Document.build("a", list("abcd"), systems=systems),))
    with pytest.raises(InputError, match="take the systems as annotators"):
        agreement({"a": corpus})
    result = agreement({"a": corpus}, systems=True)
    assert result.table("agreement").column("pairs") == [1, 1]


@pytest.mark.parametrize("study", ["agreement", "moves"])
def test_studies_of_gold_alone_need_no_text(study, tmp_path):
    path = tmp_path / "a.json"
    items = {"x": {"ann": [3, 4], "bob": [2, 5]}, "y": {"ann": [4, 4], "bob": [4, 4]}}
    path.write_text(json.dumps({"items": items, "segmentation_type": "linear"}))
    done = invoke("study", study, path, "--format", "segeval:coders=golds", "-f", "json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["corpora"][0]["documents"] == 2
    assert not {"encoder", "device", "cache"} & found["settings"].keys()
