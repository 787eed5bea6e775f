"""The trained scorer: it learns what there is to learn, the same way every time, and says no."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit

from reffree.cli.train import command
from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.aliases import ALIASES
from reffree.encoders.embed import from_arrays
from reffree.encoders.models import find_model
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import Inputs
from reffree.segmenters.posterior import LeastExpectedPk
from reffree.segmenters.segment import segment
from reffree.segmenters.trained.examples import (
    ABSENT,
    Passage,
    TrainingCorpora,
    examples_of,
    gaps_of,
    hold_out,
    passages_of,
    splice,
    windows_of,
)
from reffree.segmenters.trained.gap_networks import (
    Head,
    HeadOnVectors,
    PairClassifier,
    PairOnTexts,
    load_transformer,
    logits_of,
    probabilities,
)
from reffree.segmenters.trained.scorer import (
    TEMPERATURES,
    WARM_UP,
    Scorer,
    TrainedScorer,
    find_temperature,
    find_threshold,
    log_loss,
    pooled_f1,
    select,
    train_scorer,
)
from reffree.segmenters.trained.settings import ScorerSettings
from reffree.segmenters.trained.training import falling
from reffree.studies.boundaries import boundaries
from reffree.util.errors import EncoderError, InputError, OptionError
from reffree.util.seeds import rng_for
from tests.checkpoints import WORDS, save_checkpoint
from tests.helpers import corpus_of, keywords
from tests.oracles.training import training_figures
from tests.properties import examples
from tests.segmenters.golds import f1_of, golds_of

DIMENSION = 12
QUICK = ScorerSettings(
    splice_epochs=1, epochs=4, learning_rate=0.01, batch_size=32, hidden=16, splices_per_document=2
)


def topics(golds, seed=0, noise=0.15):
    """Vectors whose segments point in directions of their own."""
    rng = np.random.default_rng(seed)
    made = []
    for gold in golds:
        order = rng.permutation(DIMENSION)
        ids = np.repeat(np.arange(len(gold)), gold)
        x = np.eye(DIMENSION)[order[ids]] + noise * rng.normal(size=(len(ids), DIMENSION))
        made.append(x.astype(np.float32))
    return made


GOLDS = golds_of(40)
CORPUS, VECTORS = corpus_of(*GOLDS), topics(GOLDS)
ONE = TrainingCorpora({"d": CORPUS})
FRESH_GOLDS = golds_of(30, seed=1)
FRESH = Inputs(corpus_of(*FRESH_GOLDS), embeddings=topics(FRESH_GOLDS, seed=1))


def trained(quick=QUICK, corpus=CORPUS, vectors=VECTORS, **more):
    return train_scorer({"d": corpus}, embeddings={"d": vectors}, **keywords(quick), **more)


@pytest.fixture(scope="module")
def checkpoint():
    return trained()


@pytest.fixture(scope="module")
def folder(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("scorer") / "s"
    checkpoint.save(path)
    return path


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=2, max_size=6))
@examples(60)
def test_splices_join_segments_of_different_documents(golds):
    passages = passages_of(corpus_of(*golds))
    owner = np.repeat(np.arange(len(golds)), [sum(gold) for gold in golds])
    whole = set()
    for p in passages:
        edges = [0, *p.segmentation.boundaries, len(p.rows)]
        for a, b in pairwise(edges):
            # Greetings and farewells are gone.
            part = p.rows[max(a, 1) : min(b, len(p.rows) - 1)]
            whole.add(tuple(part.tolist()))
    usable = {owner[part[0]] for part in whole if part}
    rng = np.random.default_rng(0)
    if len(usable) < 2:
        with pytest.raises(InputError, match="fewer than two training documents"):
            splice(passages, 3, rng)
        return
    for made in splice(passages, 8, rng):
        pieces = np.split(made.rows, made.segmentation.boundaries)
        assert 2 <= len(pieces) <= max(2, *map(len, golds))
        assert {tuple(piece.tolist()) for piece in pieces} <= whole
        owners = [owner[piece[0]] for piece in pieces]
        assert all(a != b for a, b in pairwise(owners))


def test_splices_draw_every_segment_equally():
    passages = passages_of(corpus_of((3, 2, 2, 3), (3, 3), (3, 3)))
    made = splice(passages, 3000, np.random.default_rng(0))
    first = np.array([p.rows[0] for p in made])
    _, counts = np.unique(first, return_counts=True)
    assert len(counts) == 8
    assert (abs(counts / 3000 - 1 / 8) < 0.03).all()


def test_what_judges_is_not_learnt_from():
    made = examples_of(ONE, QUICK)
    learnt = {*made.gold.windows.flat, *made.splices[0].windows.flat}
    for stage in ("gold", "splices"):
        held_out = made.held_out[stage]
        judging = {*held_out.together.windows.flat, *held_out.control.windows.flat}
        assert judging & learnt == {ABSENT}
    # Held-out splices have boundaries where documents meet.
    splices = made.held_out["splices"].together
    owner = np.repeat(np.arange(len(GOLDS)), list(map(sum, GOLDS)))
    middle = splices.windows[:, QUICK.window - 1 : QUICK.window + 1]
    assert (owner[middle[:, 0]] != owner[middle[:, 1]]).tolist() == (splices.labels == 1).tolist()
    assert len(splices.sizes) == QUICK.splices_per_document * made.counts["held_out_documents"]


def test_stages_learn_from_corpora_of_their_own():
    gold = {"a": corpus_of(*golds_of(10, 1)), "b": corpus_of(*golds_of(12, 2))}
    bare = Corpus(tuple(replace(d, gold=None) for d in corpus_of(*golds_of(9, 3))))
    calibration = {"v": corpus_of(*golds_of(5, 4))}
    corpora = TrainingCorpora(gold, {"s": bare}, calibration)
    made = examples_of(corpora, QUICK)
    sizes = {name: corpus.n_units for name, corpus in corpora.everything.items()}
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))

    def rows(gaps):
        return set(gaps.windows.flat) - {ABSENT}

    assert list(sizes) == ["a", "b", "s", "v"]
    assert max(rows(made.gold)) < ends["b"]
    assert {
        name: max(rows(g)) < ends[name] for name, g in made.held_out["gold"].corpora.items()
    } == {"a": True, "b": True}
    assert min(rows(made.held_out["gold"].corpora["b"])) >= ends["a"]
    for gaps in (*made.splices, made.held_out["splices"].together):
        assert ends["b"] <= min(rows(gaps)) <= max(rows(gaps)) < ends["s"]
    assert rows(made.calibration) == set(range(ends["s"], ends["v"]))
    counts = made.counts
    assert (counts["training_documents"], counts["held_out_documents"]) == (8 + 10, 2 + 2)
    assert counts["calibration_documents"] == 5
    assert corpora.roles == {"splices": ("s",), "gold": ("a", "b"), "calibration": ("v",)}
    # Splices of gold's own corpora leave out the same documents.
    shared = examples_of(TrainingCorpora(gold, {"a": gold["a"]}), QUICK)
    assert not rows(shared.splices[0]) & rows(shared.held_out["gold"].corpora["a"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gold": {}}, "no corpus to train on"),
        ({"gold": {"a": CORPUS}, "calibration": {"a": CORPUS}}, "'a' to calibrate on, which is tr"),
        ({"gold": {"a": CORPUS}, "splices": {"a": corpus_of((2, 2))}}, "two corpora called 'a'"),
    ],
)
def test_corpora_that_do_not_go_together_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        TrainingCorpora(**given)


def test_held_out_splices_need_more_than_a_greeting():
    golds = [(2, 3)] * 8
    rng = rng_for(QUICK.seed, "scorer", "held out")
    aside = {p.document for p in hold_out(passages_of(corpus_of(*golds)), 0.2, rng)[1]}
    short = corpus_of(*[(1, 1) if i in aside else gold for i, gold in enumerate(golds)])
    with pytest.raises(InputError, match="fewer than two held-out documents with more than a gree"):
        examples_of(TrainingCorpora({"d": short}), QUICK)
    assert (
        "splices"
        not in examples_of(TrainingCorpora({"d": short}), replace(QUICK, splice_epochs=0)).held_out
    )


def features_obvious(x, gap, window):
    """What the docstring of `Head` says, one gap at a time."""
    unit = [v / np.linalg.norm(v) if np.linalg.norm(v) else v for v in x]
    before, after = unit[max(0, gap - window) : gap], unit[gap : gap + window]
    features = [len(before) / window, len(after) / window]
    for width in [w for w in (1, 2, 4, 8, 16) if w < window] + [window]:
        a, b = np.mean(before[-width:], axis=0), np.mean(after[:width], axis=0)
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        features += [*a, *b, *abs(a - b), *(a * b), a @ b / lengths if lengths > 1e-12 else 0.0]
    return features


@given(st.integers(2, 9), st.integers(1, 5), st.integers(0, 99), st.booleans())
@examples(40)
def test_features_are_as_defined(n, window, seed, has_zero):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    if has_zero:
        x[seed % n] = 0
    head = Head(3, window, 4, 0.0)
    windows = torch.from_numpy(windows_of(np.arange(n), window))
    units, is_present = HeadOnVectors(head, [x]).gather(windows)
    expected = [features_obvious(x, gap, window) for gap in range(1, n)]
    np.testing.assert_allclose(head.features(units, is_present), expected, atol=2e-6)


def test_the_rate_rises_and_falls():
    share = falling([100], 1, WARM_UP)
    assert [share(i) for i in (0, 4, 9, 10, 55)] == [0.1, 0.5, 1.0, 1.0, 0.5]
    assert 0 < share(99) < 0.02
    assert [falling([1], 1, WARM_UP)(i) for i in (0, 1)] == [1.0, 0.0]


labelled = st.lists(st.tuples(st.floats(-30, 30), st.booleans()), min_size=1, max_size=30)


@given(labelled)
@examples(200)
def test_the_temperature_is_the_best_there_is(pairs):
    z, y = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=float)
    found = find_temperature(z, y)
    assert TEMPERATURES[0] * (1 - 1e-9) <= found <= TEMPERATURES[1] * (1 + 1e-9)
    assert log_loss(z, y, found) <= log_loss(z, y) + 1e-12
    if 0 < y.sum() < len(y) and z.any():
        best = minimize_scalar(
            lambda beta: log_loss(z, y, 1 / beta),
            bounds=(1 / TEMPERATURES[1], 1 / TEMPERATURES[0]),
            method="bounded",
        )
        assert log_loss(z, y, found) <= best.fun + 1e-9
    else:
        assert found == 1.0


@given(st.lists(st.floats(-1e6, 1e6), max_size=20), st.floats(0.1, 10))
@examples(60)
def test_scores_are_probabilities_in_the_order_of_logits(z, temperature):
    found = probabilities(z, temperature)
    np.testing.assert_allclose(found, expit(np.array(z) / temperature), atol=1e-12)
    assert (np.diff(found[np.argsort(z, kind="stable")]) >= 0).all()


def test_the_threshold_is_that_of_the_best_held_out_f1():
    gaps = gaps_of([Passage(0, np.arange(9), Segmentation((3, 3, 3)))], 1)
    scores = np.array([0.1, 0.2, 0.34, 0.1, 0.3, 0.32, 0.1, 0.1])
    threshold = find_threshold(scores, gaps, min_gap=1)
    assert threshold == 0.32  # nearest to 0.5 of those that find exactly gold
    assert pooled_f1(select(scores, gaps, threshold, 1), gaps) == (1.0, 2)
    assert pooled_f1(select(scores, gaps, 0.33, 1), gaps) == (pytest.approx(2 / 3), 1)
    # Boundaries too near a better one cost nothing.
    assert find_threshold(np.array([0, 0, 0.9, 0.8, 0, 0.6, 0.55, 0]), gaps, min_gap=3) == 0.5
    nothing = gaps_of([Passage(0, np.arange(2), Segmentation((2,)))], 1)
    assert pooled_f1(select(np.zeros(1), nothing, 0.5, 1), nothing) == (1.0, 0)


def test_topics_are_learnt(checkpoint, folder):
    found = Scorer(str(folder), min_gap=1)(FRESH)
    assert f1_of(found, FRESH_GOLDS) > 0.97
    history = checkpoint.description.history
    assert [(e["stage"], e["epoch"]) for e in history] == [
        ("splices", 1),
        *(("gold", i) for i in range(1, 5)),
    ]
    assert history[-1]["f1"] > 0.9
    assert history[-1]["negative_control"] < 0.1
    assert history[-1]["bor"] == pytest.approx(1, abs=0.2)


def test_history_is_that_of_tables_7_and_8():
    golds = {name: golds_of(12, i) for i, name in enumerate("ab")}
    corpora = TrainingCorpora({name: corpus_of(*g) for name, g in golds.items()})
    vectors = {name: topics(g, noise=0.6) for name, g in golds.items()}
    quick = replace(QUICK, epochs=1, learning_rate=0.003)
    made = train_scorer(corpora.gold, embeddings=vectors, **keywords(quick))
    model = HeadOnVectors(made.network, [x for name in "ab" for x in vectors[name]])

    def passages(gaps):
        logits = logits_of(model, gaps.windows)
        return list(zip(gaps.by_passage(logits), gaps.by_passage(gaps.labels), strict=True))

    # One epoch a stage, so the network that is left is that of the last.
    splices, gold = made.description.history
    held_out = examples_of(corpora, quick).held_out["gold"]
    every = {name: passages(gaps) for name, gaps in held_out.corpora.items()}
    for name, told in {**gold["corpora"], "ab": gold}.items():
        *expected, _ = training_figures([pair for part in name for pair in every[part]])
        assert [told[name] for name in ("f1", "w_f1", "bor")] == pytest.approx(expected, abs=1e-9)
    logits = [z for part in every.values() for logits, _ in part for z in logits]
    assert gold["mean_score"] == pytest.approx(sum(map(abs, logits)) / len(logits), abs=1e-5)
    *_, n_false = training_figures(passages(held_out.control))
    assert gold["negative_control"] == pytest.approx(n_false / len(held_out.control), abs=1e-9)
    assert list(splices["corpora"]) == ["splices"]
    assert splices["log_loss"] != gold["log_loss"]
    assert made.description.corpora["gold"] == ("a", "b")


def test_shuffled_gold_teaches_nothing():
    """A held-out log loss that beats the base rate would come from a leak."""
    rng = np.random.default_rng(0)
    shuffled = [x[rng.permutation(len(x))] for x in VECTORS]
    taught = trained(replace(QUICK, splice_epochs=0, dropout=0.2), vectors=shuffled).description
    n, boundaries = taught.counts["held_out_gaps"], taught.counts["held_out_boundaries"]
    rate = boundaries / n
    entropy = -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
    assert taught.figures["log_loss"] > 0.9 * entropy


def test_every_stage_has_a_best_epoch_of_its_own(monkeypatch):
    """Splices may be easier than gold: their log loss is none to be beaten."""
    monkeypatch.setattr("reffree.segmenters.trained.scorer.find_temperature", lambda z, y: 1.0)
    rng = np.random.default_rng(0)
    shuffled = [x[rng.permutation(len(x))] for x in VECTORS]
    told = train_scorer(
        {"d": CORPUS},
        splices={"s": corpus_of(*FRESH_GOLDS)},
        **keywords(replace(QUICK, splice_epochs=3, epochs=2)),
        embeddings={"d": shuffled, "s": FRESH.embeddings},
    ).description
    splices = [e["log_loss"] for e in told.history if e["stage"] == "splices"]
    assert min(splices) < min(gold_losses(told))
    assert told.figures["log_loss"] == min(gold_losses(told))


def gold_losses(told):
    return [e["log_loss"] for e in told.history if e["stage"] == "gold"]


def test_scores_are_evidence_of_a_posterior(checkpoint, folder):
    evidence = f"scorer:{folder}"
    inputs = Inputs(CORPUS, embeddings=VECTORS)
    scores = checkpoint.gap_scores(inputs)
    found = boundaries(CORPUS, embeddings=VECTORS, evidence=evidence)
    method = LeastExpectedPk(evidence=evidence)
    assert method.needs_embeddings
    made = method(inputs)
    gaps = found.table("gaps")
    for document, p, masses in zip(found.texts, scores, made, strict=True):
        probabilities = [row["probability"] for row in gaps.records(document=document.id)]
        # What one source says of gaps apart keeps its order, whatever the prior adds.
        likely, unlikely = int(np.argmax(p)), int(np.argmin(p))
        assert probabilities[likely] > probabilities[unlikely]
        reading = Reading(document.units, {str(folder): p})
        posterior = Posterior(np.empty((len(document.units), 0)), reading, evidence=evidence)
        assert masses.masses == tuple(posterior.best().tolist())
        assert probabilities == pytest.approx(posterior.boundaries.tolist())


def test_selection_is_apart_from_scoring(checkpoint, folder):
    scores = checkpoint.gap_scores(FRESH)
    path = str(folder)
    for threshold in (0.1, 0.9):
        found = Scorer(path, threshold, min_gap=1)(FRESH)
        for s, segmentation in zip(scores, found, strict=True):
            assert segmentation.boundaries == tuple((np.flatnonzero(s >= threshold) + 1).tolist())
    by_gold = Scorer(path, k="gold", min_gap=1)(FRESH)
    assert [len(s) for s in by_gold] == [len(gold) for gold in FRESH_GOLDS]
    half = Scorer(path, density=0.5, min_gap=1)(FRESH)
    assert [len(s) - 1 for s in half] == [math.floor(0.5 * len(s) + 0.5) for s in scores]
    steered = Scorer(path, rate=0.2, min_gap=1)(FRESH)
    share = sum(len(s) - 1 for s in steered) / sum(map(len, scores))
    assert share == pytest.approx(0.2, abs=0.06)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """RoBERTa's architecture, two layers, random weights."""
    return save_checkpoint("roberta", tmp_path_factory.mktemp("encoder") / "tiny")


def worded(n, seed=0):
    """Segments begin with one word and end with another."""
    rng = np.random.default_rng(seed)
    documents = []
    for j in range(n):
        gold = rng.integers(3, 6, rng.integers(2, 5)).tolist()
        units = []
        for mass in gold:
            inner = [" ".join(rng.choice(WORDS[2:8], 2)) for _ in range(mass - 2)]
            units += ["login login", *inner, "bill bill"]
        documents.append(Document.build(f"w{j}", units, gold=gold))
    return Corpus(tuple(documents))


TUNING = ScorerSettings(
    finetune=True, window=1, splice_epochs=0, epochs=16, learning_rate=0.01, held_out=0.1
)


def tuned(encoder, corpus, quick=TUNING):
    return train_scorer(corpus, encoder=str(encoder), device="cpu", **keywords(quick))


def test_fine_tuning_heeds_the_length_and_refuses_what_it_would_ignore(encoder):
    quick = replace(TUNING, epochs=1)
    given = {**keywords(quick), "device": "cpu"}
    short = train_scorer(worded(8), encoder=f"{encoder}:max_length=9", **given)
    assert short.description.encoder.max_length == 9
    for name, value in (("dtype", "bfloat16"), ("attention", "sdpa"), ("context", 1)):
        with pytest.raises(OptionError, match=f"{name} = {value} for an encoder that is fine-tun"):
            train_scorer(worded(8), encoder=f"{encoder}:{name}={value}", **given)


def test_fine_tuning_learns_round_trips_and_repeats(encoder, tmp_path):
    corpus = worded(30)
    made = tuned(encoder, corpus)
    made.save(tmp_path / "s")
    method = Scorer(str(tmp_path / "s"), min_gap=1)
    assert not method.needs_embeddings
    one = Document.build("one", ["login"], gold=(1,))
    fresh = Inputs(Corpus((*worded(8, seed=1).documents, one)))
    assert f1_of(method(fresh), [d.gold.masses for d in fresh.corpus]) > 0.9
    loaded = TrainedScorer.load(tmp_path / "s")
    pairs = zip(made.gap_scores(fresh), loaded.gap_scores(fresh), strict=True)
    assert all((a == b).all() for a, b in pairs)
    with pytest.raises(EncoderError, match=r"device 'cuda:99'.*expected at least 100"):
        segment(fresh.corpus, f"scorer:path={tmp_path / 's'}", device="cuda:99")
    tuned(encoder, corpus).save(tmp_path / "again")
    assert digest_tree(tmp_path / "again") == digest_tree(tmp_path / "s")


def test_the_published_encoder_has_a_first_token_to_read(tmp_path):
    assert ALIASES["distilbert"].model == "distilbert/distilbert-base-uncased"
    folder = save_checkpoint("distilbert", tmp_path / "tiny")
    assert tuned(folder, worded(8), replace(TUNING, epochs=1)).network.reads_first


def digest_tree(folder):
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_far_units_are_left_out_first(encoder):
    transformer, tokenizer = load_transformer(find_model(str(encoder)))
    network = PairClassifier(transformer, reads_first=False)
    texts = ["bees honey", "winter", "budget server", "login bill", "dance run knee"]
    seen = []

    def spy(*args, **options):
        seen.append(args)
        return tokenizer(*args, **options)

    spy.num_special_tokens_to_add = tokenizer.num_special_tokens_to_add
    special = tokenizer.num_special_tokens_to_add(pair=True)
    model = PairOnTexts(network, texts, spy, special + 6, torch.device("cpu"))
    few = [ABSENT, ABSENT, 1, 1, ABSENT, ABSENT]
    windows = np.array([[0, 1, 2, 3, 4, ABSENT], [ABSENT, 0, 1, 2, 3, 4], few])
    logits = model.logits(model.read(windows))
    assert seen[-1] == (
        ["winter budget server", "bees honey winter", "winter"],
        ["login bill", "budget server", "winter"],
    )
    # Padding and company change nothing.
    alone = [model.logits(model.read(windows[i : i + 1])).item() for i in range(3)]
    np.testing.assert_allclose(logits.tolist(), alone, atol=1e-5)
    # A unit too long on its own is cut, not dropped.
    tight = PairOnTexts(network, texts, spy, special + 2, torch.device("cpu"))
    assert torch.isfinite(tight.logits(tight.read(np.array([[4, 4]])))).all()
    assert seen[-1] == (["dance run knee"], ["dance run knee"])


def test_first_token_is_read_where_there_is_one(encoder):
    transformer, tokenizer = load_transformer(find_model(str(encoder)))
    tokens = dict(tokenizer(["bees"], ["honey winter"], return_tensors="pt"))
    hidden = transformer(**tokens).last_hidden_state
    for reads_first, state in ((True, hidden[:, 0]), (False, hidden.mean(1))):
        network = PairClassifier(transformer, reads_first=reads_first)
        torch.testing.assert_close(network(tokens), network.projection(state).squeeze(1))


@pytest.fixture
def train(write_corpus, monkeypatch, tmp_path):
    """Run the command with vectors that need no encoder."""
    documents = [
        {"id": d.id, "units": list(d.units), "gold": list(d.gold.masses)} for d in CORPUS.documents
    ]
    path = write_corpus(documents)
    made = []

    def vectors(corpus, *args, **options):
        made.append(options)
        return from_arrays(corpus, VECTORS[: len(corpus)])

    monkeypatch.setattr("reffree.segmenters.trained.base.corpus_vectors", vectors)

    def run(*args, corpus=path):
        return CliRunner().invoke(
            command, ["scorer", str(corpus), "-o", str(tmp_path / "s"), *args]
        )

    run.encoded = made
    return run


def test_command_has_a_corpus_for_every_stage(train, tmp_path, write_corpus):
    def written(name, seed, *, has_gold=True):
        golds = golds_of(8, seed)
        units = [d.units for d in corpus_of(*golds)]
        rows = [
            {"id": f"{i}", "units": list(u)} | ({"gold": list(g)} if has_gold else {})
            for i, (u, g) in enumerate(zip(units, golds, strict=True))
        ]
        return str(write_corpus(rows, f"{name}.jsonl"))

    # Vectors are those of the fixture's corpus, so documents are as long as its first.
    a, b, s, v = (written(name, 0, has_gold=name != "s") for name in "absv")
    quick = ("--epochs=1", "--splice-epochs=1", "--window=1")
    done = train(b, "--splices", s, "--calibrate", v, *quick, corpus=a)
    assert done.exit_code == 0, done.output
    assert re.search(r"\ngold 1: .*; a F1 [01]\.\d+, W-F1 .*; b F1 [01]\.\d+, W-F1 ", done.stderr)
    assert "; a F1" not in done.stderr.splitlines()[0]
    told = TrainedScorer.load(tmp_path / "s").description
    assert told.corpora == {"splices": ("s",), "gold": ("a", "b"), "calibration": ("v",)}
    assert told.counts["calibration_documents"] == 8
    assert [list(epoch["corpora"]) for epoch in told.history] == [["splices"], ["a", "b"]]


def test_small_files_are_one_corpus(train, tmp_path, write_corpus):
    golds = golds_of(8, 0)
    paths = []
    for i, (document, gold) in enumerate(zip(corpus_of(*golds), golds, strict=True)):
        row = {"id": document.id, "units": list(document.units), "gold": list(gold)}
        paths.append(str(write_corpus([row], f"f{i}.jsonl")))
    done = train(*paths[1:], "--epochs=1", "--splice-epochs=1", "--window=1", corpus=paths[0])
    assert done.exit_code == 0, done.output
    told = TrainedScorer.load(tmp_path / "s").description
    assert told.corpora["gold"] == ("8 small files",)
    assert (told.counts["training_documents"], told.counts["held_out_documents"]) == (6, 2)
