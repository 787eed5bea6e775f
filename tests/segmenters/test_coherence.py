"""The coherence model: its examples, its rule, and that it learns what there is to learn."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.segmenters.base import Inputs
from reffree.segmenters.segment import segment
from reffree.segmenters.trained.csm import (
    ALPHAS,
    CoherenceScoring,
    best_alpha,
    coherence_depths,
    ranking_loss,
    select_deep,
    share_in_order,
    train_csm,
    triples_of,
)
from reffree.segmenters.trained.settings import CsmSettings
from reffree.util.errors import EncoderError
from tests.checkpoints import WORDS, save_checkpoint
from tests.helpers import keywords, topical_corpus
from tests.oracles import reference_based
from tests.oracles.training import coherence_boundaries, ranking
from tests.properties import examples


@given(st.lists(st.integers(1, 7), min_size=2, max_size=6), st.integers(0, 99))
@examples(80)
def test_triples_are_next_same_and_other(lengths, seed):
    ends = np.cumsum(lengths)
    documents = [np.arange(end - n, end) for n, end in zip(lengths, ends, strict=True)]
    owner = np.repeat(np.arange(len(lengths)), lengths)
    found = triples_of(documents, np.random.default_rng(seed))
    for unit, following, same, other in found.tolist():
        assert following == unit + 1
        assert owner[following] == owner[same] == owner[unit] != owner[other]
        assert abs(same - unit) > 1
    # Every pair of neighbours once, unless no unit of the document is farther away.
    expected = [
        (int(rows[i]), int(rows[i + 1]))
        for rows in documents
        for i in range(len(rows) - 1)
        if any(abs(j - i) > 1 for j in range(len(rows)))
    ]
    assert [tuple(row[:2]) for row in found.tolist()] == expected


def test_negatives_are_drawn_alike():
    documents = [np.arange(5), np.arange(5, 7), np.arange(7, 11)]
    drawn = np.concatenate([triples_of(documents, np.random.default_rng(i)) for i in range(800)])
    first = drawn[drawn[:, 0] == 0]
    for column, share in ((2, {2: 1 / 3, 3: 1 / 3, 4: 1 / 3}), (3, {5: 1 / 4, 7: 1 / 8})):
        values, counts = np.unique(first[:, column], return_counts=True)
        found = dict(zip(values.tolist(), (counts / len(first)).tolist(), strict=True))
        for row, expected in share.items():
            assert found[row] == pytest.approx(expected, abs=0.06)


finite = st.floats(-5, 5, allow_nan=False)


@given(st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=8), st.floats(0.1, 2))
@examples(80)
def test_loss_and_share_are_as_defined(scores, margin):
    loss, share = ranking(scores, margin)
    table = np.array(scores)
    assert float(ranking_loss(torch.from_numpy(table), margin)) == pytest.approx(loss, abs=1e-9)
    assert share_in_order(table) == pytest.approx(share)


@given(
    st.lists(st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)), max_size=12),
    st.sampled_from([-2.0, -0.5, 0.0, 0.3, 1.0]),
)
@examples(200)
def test_boundaries_are_those_of_the_paper(coherence, alpha):
    depths = coherence_depths(np.array(coherence))
    found = select_deep(depths, alpha)
    assert found.n_units == len(coherence) + 1
    expected = coherence_boundaries(coherence, alpha)
    differing = set(found.boundaries) ^ set(expected)
    # A depth may only be on either side of the cutoff where it is that cutoff.
    cutoff = depths.mean() + alpha * depths.std() if len(depths) else 0.0
    assert all(abs(depths[b - 1] - cutoff) < 1e-9 for b in differing)


def test_the_threshold_is_that_of_the_lowest_held_out_pk():
    rng = np.random.default_rng(0)
    documents = [Document.build(f"{i}", ["x"] * 12, gold=(4, 5, 3)) for i in range(4)]
    depths = [rng.random(11) for _ in documents]
    means = {}
    for alpha in ALPHAS.tolist():
        made = [select_deep(each, alpha).masses for each in depths]
        means[alpha] = float(np.mean([reference_based.pk(m, (4, 5, 3)) for m in made]))
    lowest = min(means.values())
    assert means[best_alpha(depths, documents)] == pytest.approx(lowest)


def chains(n, seed=0):
    """Documents of segments; within one, units go with their neighbours."""
    rng = np.random.default_rng(seed)
    golds = [rng.integers(4, 7, 3).tolist() for _ in range(n)]
    return topical_corpus(golds, seed=seed, spread=0.15)


CORPUS, VECTORS = chains(30)
FRESH, FRESH_VECTORS = chains(12, seed=1)
QUICK = CsmSettings(epochs=4, learning_rate=0.01, hidden=16, dropout=0.2)


def trained(settings=QUICK, corpus=CORPUS, vectors=VECTORS, **more):
    return train_csm({"d": corpus}, embeddings={"d": vectors}, **keywords(settings), **more)


@pytest.fixture(scope="module")
def model():
    return trained()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("csm") / "m"
    model.save(path)
    return path


def test_what_goes_together_is_learnt(model, folder):
    inputs = Inputs(FRESH, embeddings=FRESH_VECTORS)
    coherence = model.coherence(inputs)
    gold = [np.array(document.gold.to_labels("gap")) for document in FRESH]
    inside = np.concatenate([c[g == 0] for c, g in zip(coherence, gold, strict=True)])
    across = np.concatenate([c[g == 1] for c, g in zip(coherence, gold, strict=True)])
    assert np.median(inside) > np.median(across) + 0.2
    told = model.description
    assert told.figures["accuracy"] > 0.6
    assert told.figures["accuracy"] == max(epoch["accuracy"] for epoch in told.history)
    assert [epoch["epoch"] for epoch in told.history] == [1, 2, 3, 4]
    assert told.figures["threshold"] in ALPHAS.tolist()
    # The deepest valleys are gold's.
    found = CoherenceScoring(str(folder), k="gold")(inputs)
    pairs = zip(found, FRESH, strict=True)
    hits = sum(len(set(f.boundaries) & set(d.gold.boundaries)) for f, d in pairs)
    assert hits > 0.7 * sum(len(d.gold) - 1 for d in FRESH)


def test_gold_is_not_looked_at(model):
    bare = Corpus(tuple(replace(document, gold=None) for document in CORPUS))
    blind = trained(corpus=bare)
    assert blind.description.history == model.description.history
    assert blind.description.figures["threshold"] is None
    state, other = model.network.state_dict(), blind.network.state_dict()
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_depths_are_scores_of_gaps(folder):
    method = CoherenceScoring(str(folder), min_gap=3)
    inputs = Inputs(FRESH, embeddings=FRESH_VECTORS)
    coherence, depths = method.coherence(inputs), method.boundary_scores(inputs)
    found = CoherenceScoring(str(folder))(inputs)
    for c, d, f in zip(coherence, depths, found, strict=True):
        assert ((c >= 0) & (c <= 1)).all()
        assert d == pytest.approx(coherence_depths(c))
        assert f.boundaries == tuple(coherence_boundaries(c.tolist(), -0.5))
    half = CoherenceScoring(str(folder), density=0.5)(inputs)
    assert [len(s) - 1 for s in half] == [math.floor(0.5 * len(d) + 0.5) for d in depths]


def worded(n, seed=0):
    """Every document begins with a word that therefore follows nothing."""
    rng = np.random.default_rng(seed)
    documents = []
    for i in range(n):
        units = [" ".join(rng.choice(WORDS[2:8], 2)) for _ in range(4)]
        documents.append(Document.build(f"w{i}", ["login login", *units]))
    return Corpus(tuple(documents))


def test_fine_tuning_learns_and_round_trips(tmp_path):
    encoder = save_checkpoint("bert", tmp_path / "tiny", is_random=False)
    tuning = CsmSettings(finetune=True, epochs=3, learning_rate=0.01, batch_size=8)
    made = train_csm(worded(24), encoder=str(encoder), device="cpu", **keywords(tuning))
    assert made.network.reads_first
    made.save(tmp_path / "m")
    method = CoherenceScoring(str(tmp_path / "m"))
    assert not method.needs_embeddings
    fresh = worded(6, seed=1).documents
    joined = Corpus(
        tuple(
            Document.build(f"j{i}", [*a.units[1:4], *b.units[:3]])
            for i, (a, b) in enumerate(pairwise(fresh))
        )
    )
    coherence = np.array(method.coherence(Inputs(joined)))
    assert coherence[:, [0, 1, 3, 4]].mean() > coherence[:, 2].mean() + 0.05
    pairs = zip(made.coherence(Inputs(joined)), coherence, strict=True)
    assert all((a == b).all() for a, b in pairs)
    defaults = CsmSettings(finetune=True).resolved()
    assert (defaults.learning_rate, defaults.batch_size, defaults.epochs) == (2e-5, 12, 10)


def test_a_next_sentence_head_is_used_as_it_is(tmp_path):
    from transformers import AutoModelForNextSentencePrediction, AutoTokenizer

    folder = save_checkpoint("bert", tmp_path / "nsp", head=True)
    corpus = worded(3)
    method = CoherenceScoring(encoder=str(folder))
    found = method.coherence(Inputs(corpus, device="cpu"))
    model = AutoModelForNextSentencePrediction.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for document, c in zip(corpus, found, strict=True):
        for i, value in enumerate(c):
            tokens = tokenizer(document.units[i], document.units[i + 1], return_tensors="pt")
            with torch.inference_mode():
                expected = model(**tokens).logits.softmax(1)[0, 0].item()
            assert value == pytest.approx(expected, abs=1e-5)
    made = segment(corpus, f"csm:encoder={folder}", device="cpu").hypotheses
    assert made[f"csm:encoder={folder}"] == method(Inputs(corpus))
    without = save_checkpoint("bert", tmp_path / "bare")
    with pytest.raises(
        EncoderError, match=r"found no weights for cls\..*trained to tell next sent"
    ):
        segment(corpus, f"csm:encoder={without}")
    other = save_checkpoint("roberta", tmp_path / "roberta")
    with pytest.raises(EncoderError, match="expected a model that was trained to tell next sent"):
        segment(corpus, f"csm:encoder={other}")
