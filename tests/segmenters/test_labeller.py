"""Supervised labellers: they learn what there is to learn, the same way every time, and say no."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import from_arrays
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import boundary_scores
from reffree.segmenters.segment import segment
from reffree.segmenters.trained.labeller import (
    MOST_THRESHOLDS,
    Supervised,
    TrainedSegmenter,
    candidate_thresholds,
    find_best_threshold,
    train_labeller,
)
from reffree.segmenters.trained.labellers import NETWORKS, as_input, gap_logits, make_network
from reffree.segmenters.trained.settings import LabellerSettings
from tests.helpers import corpus_of
from tests.oracles.labellers import best_value, f1_of_boundaries, masses_above, sheikh_logits
from tests.oracles.reference_based import pk
from tests.properties import examples
from tests.segmenters.golds import f1_of, golds_of

DIMENSION = 6
CPU = torch.device("cpu")
QUICK = LabellerSettings(hidden=16, layers=1, epochs=6, learning_rate=0.02, dropout=0.1, heads=2)


def cued(golds, seed=0):
    """Vectors of noise, but for a cue in the last unit of every segment."""
    rng = np.random.default_rng(seed)
    made = []
    for gold in golds:
        x = 0.5 * rng.normal(size=(sum(gold), DIMENSION))
        x[np.cumsum(gold) - 1, 0] += 4
        made.append(x.astype(np.float32))
    return made


GOLDS = golds_of(40)
CORPUS, VECTORS = corpus_of(*GOLDS), cued(GOLDS)
FRESH_GOLDS = golds_of(25, seed=1)
FRESH = Inputs(corpus_of(*FRESH_GOLDS), embeddings=cued(FRESH_GOLDS, seed=1), device="cpu")


def train(settings=QUICK, corpus=CORPUS, vectors=VECTORS, **more):
    return train_labeller(corpus, from_arrays(corpus, vectors), settings, CPU, **more)


@pytest.fixture(scope="module")
def labeller():
    return train(replace(QUICK, architecture="sheikh-bilstm"))


@pytest.fixture(scope="module")
def folder(labeller, tmp_path_factory):
    path = tmp_path_factory.mktemp("segmenter") / "s"
    labeller.save(path)
    return path


@given(st.lists(st.integers(2, 7), min_size=1, max_size=4), st.integers(1, 2))
@examples(15)
@pytest.mark.parametrize("architecture", NETWORKS)
def test_padding_and_neighbours_change_nothing(architecture, lengths, layers):
    torch.manual_seed(1)
    network = make_network(5, replace(QUICK, architecture=architecture, layers=layers)).eval()
    documents = [torch.randn(n, 5) for n in lengths]
    with torch.no_grad():
        together = network(pad_sequence(documents, batch_first=True), lengths)
    alone = gap_logits(network, documents, CPU)
    for row, n, own in zip(together, lengths, alone, strict=True):
        assert row[: n - 1].numpy() == pytest.approx(own, abs=1e-4)


@given(st.integers(2, 6), st.integers(1, 2), st.integers(0, 100))
@examples(20)
def test_sheikh_compares_what_was_read_on_either_side(n, layers, seed):
    torch.manual_seed(seed)
    settings = replace(QUICK, architecture="sheikh-bilstm", layers=layers, hidden=3)
    network = make_network(4, settings).double().eval()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    x = np.random.default_rng(seed).normal(size=(n, 4))
    expected = sheikh_logits(x, weights, layers)
    (found,) = gap_logits(network, [torch.from_numpy(x)], CPU)
    assert found == pytest.approx(expected, abs=1e-9)


def test_vectors_are_read_by_their_direction():
    for size in (1.0, 1e200, 1e-200):
        x = size * np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
        expected = np.sqrt(2) * np.array([[0.6, 0.8], [0, 0], [1, 0]])
        assert as_input(x).numpy() == pytest.approx(expected, abs=1e-6)


documents = st.lists(
    st.lists(st.tuples(st.integers(2, 9), st.booleans()), max_size=8), min_size=1, max_size=4
)


@given(documents, st.sampled_from(["pk", "f1"]))
@example([[]], "pk")
@example([[(5, True)], []], "f1")
@examples(150)
def test_the_threshold_is_the_best_of_all_that_leave_a_boundary(drawn, criterion):
    scores = [np.array([score / 10 for score, _ in each]) for each in drawn]
    golds = [Segmentation.from_labels([int(is_one) for _, is_one in each], "gap") for each in drawn]
    threshold = find_best_threshold(criterion, scores, golds)
    best = best_value(criterion, scores, [gold.masses for gold in golds])
    if not np.isfinite(float(best)):
        assert threshold == 0.5
        return
    pairs = [(masses_above(s, threshold), g.masses) for s, g in zip(scores, golds, strict=True)]
    judge = pk if criterion == "pk" else f1_of_boundaries
    values = [judge(*pair) for pair, each in zip(pairs, scores, strict=True) if len(each)]
    values = [value for value in values if value is not None]
    assert float(sum(values) / len(values)) == pytest.approx(float(best))
    assert any(len(masses) > 1 for masses, _ in pairs)


def test_many_scores_give_thresholds_from_one_boundary_to_all():
    scores = np.random.default_rng(0).random(5_000)
    found = candidate_thresholds([scores[:3_000], scores[3_000:]])
    counts = [(scores >= threshold).sum() for threshold in found]
    assert len(found) <= MOST_THRESHOLDS
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 5_000)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_cues_are_learnt(architecture, tmp_path):
    made = train(replace(QUICK, architecture=architecture))
    made.save(tmp_path / "s")
    found = TrainedSegmenter(str(tmp_path / "s"))(FRESH)
    assert f1_of(found, FRESH_GOLDS) > 0.7  # random boundaries at gold's density: about 0.3
    assert made.description.figures["f1"] > 0.7
    assert (
        made.description.history[-1]["training_loss"] < made.description.history[0]["training_loss"]
    )


def test_shuffled_gold_teaches_nothing():
    rng = np.random.default_rng(0)
    golds = [tuple(rng.permutation(gold).tolist()) for gold in golds_of(40, seed=5)]
    vectors = [rng.normal(size=(sum(gold), DIMENSION)) for gold in golds]
    made = train(QUICK, corpus_of(*golds), vectors)
    assert f1_of(_segmented(made, FRESH), FRESH_GOLDS) < 0.7


def _segmented(labeller, inputs):
    scores = labeller.gap_scores(inputs)
    return [
        Segmentation(masses_above(each, labeller.description.figures["threshold"]))
        for each in scores
    ]


def test_the_best_epoch_is_kept_and_patience_ends_training():
    settings = replace(QUICK, epochs=40, patience=2, learning_rate=0.05)
    made = train(settings)
    told = made.description
    losses = [epoch["log_loss"] for epoch in told.history]
    assert told.figures["log_loss"] == min(losses)
    assert told.figures["epoch"] == 1 + losses.index(min(losses))
    assert len(losses) == min(40, told.figures["epoch"] + 2)
    until = train(replace(settings, epochs=told.figures["epoch"]))
    found, expected = (np.concatenate(each.gap_scores(FRESH)) for each in (made, until))
    assert found == pytest.approx(expected, abs=1e-6)


def test_training_takes_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = set()
    try:
        train(replace(QUICK, epochs=1), on_epoch=lambda row: seen.add(torch.get_num_threads()))
        assert (seen, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)


def test_every_annotator_is_learnt_from():
    units = [f"u{i}" for i in range(6)]
    documents = [
        Document.build(f"d{j}", units, golds={"a": (3, 3), "b": (2, 4), "c": (6,)})
        for j in range(4)
    ]
    vectors = cued([(3, 3)] * 4)
    told = train(replace(QUICK, epochs=1), Corpus(tuple(documents)), vectors).description
    assert told.counts["training_documents"] == 2
    assert told.counts["training_gaps"] == 2 * 3 * 5
    assert told.counts["training_boundaries"] == 2 * 2


def test_held_out_documents_that_judge_nothing():
    """Of one unit each, whatever is held out of them: no Pk, no F1, and one half as threshold."""
    golds = [(1,)] * 30 + [(2, 2)] * 2
    seeds = (replace(QUICK, epochs=1, held_out=0.05, seed=seed) for seed in range(3))
    for settings in seeds:
        told = train(settings, corpus_of(*golds), cued(golds)).description
        if told.counts["held_out_gaps"] == 0:
            figures = [told.figures[name] for name in ("pk", "f1", "threshold")]
            assert figures == [None, None, 0.5]
            return
    pytest.fail("no seed holds out documents of one unit only")


def test_selection_is_apart_from_scoring(labeller, folder):
    scores = labeller.gap_scores(FRESH)
    chosen = labeller.description.figures["threshold"]
    for method, threshold in (
        (TrainedSegmenter(str(folder)), chosen),
        (TrainedSegmenter(str(folder), 0.9), 0.9),
    ):
        expected = [masses_above(each, threshold) for each in scores]
        assert [each.masses for each in method(FRESH)] == expected
    by_number = TrainedSegmenter(str(folder), k="gold")(FRESH)
    assert list(map(len, by_number)) == list(map(len, FRESH_GOLDS))
    embeddings = from_arrays(FRESH.corpus, FRESH.embeddings)
    found = boundary_scores(FRESH.corpus, f"trained:path={folder}", embeddings=embeddings)
    assert np.concatenate(list(found.values())) == pytest.approx(np.concatenate(scores), abs=1e-9)


def test_every_document_is_segmented_by_a_labeller_that_did_not_see_it():
    method = Supervised(folds=4)
    parts = list(method.split(CORPUS, 3))
    assert sorted(d for _, test in parts for d in test.tolist()) == list(range(len(CORPUS)))
    for train_on, test in parts:
        assert sorted([*train_on.tolist(), *test.tolist()]) == list(range(len(CORPUS)))
    others = list(method.split(CORPUS, 4))
    assert [test.tolist() for _, test in parts] != [test.tolist() for _, test in others]
    assert len(list(method.split(corpus_of(*GOLDS[:3]), 0))) == 3


def test_supervised_learns_from_the_other_documents():
    method = "supervised:folds=2,epochs=6,hidden=16,layers=1,learning_rate=0.02"
    steps = []

    def progress(stage, total):
        steps.append([stage, total, 0])

        def advance(n):
            steps[-1][2] += n

        return nullcontext(advance)

    made = segment(CORPUS, method, embeddings=VECTORS, progress=progress, device="cpu")
    assert f1_of(made.hypotheses[method], GOLDS) > 0.6
    assert steps == [["Segmenting", 13, 13]]
    again = segment(CORPUS, method, embeddings=VECTORS, device="cpu")
    assert again.hypotheses[method] == made.hypotheses[method]


def test_what_only_the_document_itself_would_tell_is_not_known():
    """Documents share no component, and in each another one comes before a boundary."""
    golds = golds_of(16, seed=2)
    vectors = []
    for number, gold in enumerate(golds):
        x = np.zeros((sum(gold), 2 * len(golds)))
        x[:, 2 * number] = 1
        ends = np.cumsum(gold)[:-1] - 1
        x[ends, 2 * number : 2 * number + 2] = (0, 1)
        vectors.append(x)
    corpus = corpus_of(*golds)
    method = "supervised:folds=2,epochs=6,hidden=16,layers=1,learning_rate=0.02"
    made = segment(corpus, method, embeddings=vectors, device="cpu")
    inside = train(replace(QUICK, epochs=15, patience=15, held_out=0.1), corpus, vectors)
    found = _segmented(inside, Inputs(corpus, embeddings=vectors))
    assert f1_of(found, golds) > f1_of(made.hypotheses[method], golds) + 0.2


def test_an_interrupted_supervised_method_is_no_system(monkeypatch):
    method = Supervised(folds=2, hidden=16, epochs=4)
    calls = []

    def advance(steps):
        calls.append(steps)
        if len(calls) == 3:
            raise KeyboardInterrupt

    inputs = replace(FRESH, advance=advance)
    with pytest.raises(KeyboardInterrupt):
        method(inputs)
