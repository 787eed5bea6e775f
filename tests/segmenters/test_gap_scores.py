"""Selection apart from scoring: any scorer's gap scores become systems."""

from __future__ import annotations

import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.formats import load, read_scores
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import boundary_scores
from reffree.segmenters.posterior import LeastExpectedPk
from reffree.segmenters.selection import select_above, select_share
from reffree.segmenters.texttiling import depths_of
from reffree.studies import boundaries
from reffree.util.errors import OptionError, ReffreeError
from tests.helpers import invoke, refusal, topical_corpus

TALK = Corpus(
    tuple(
        Document.build(f"d{i}", [f"turn {j}" for j in range(12)], speakers=["user", "bot"] * 6)
        for i in range(2)
    )
)
SCORES = {f"d{i}": np.random.default_rng(i).random(11).tolist() for i in range(2)}
VECTORS = [np.random.default_rng(9 + i).normal(size=(12, 5)) for i in range(2)]


def test_scores_become_a_system():
    made = reffree.segment(TALK, scores={"mine": SCORES})
    assert made.hypotheses["mine"] == tuple(select_above(SCORES[d.id]) for d in TALK)
    arrays = [np.array(SCORES[d.id]) for d in TALK]
    assert reffree.segment(TALK, scores={"mine": arrays}) == made


def test_several_rules_are_several_systems():
    rules = ["static:tau=0.3", "density:rate=0.2"]
    made = reffree.segment(TALK, "depth", scores={"mine": SCORES}, select=rules, embeddings=VECTORS)
    assert list(made.hypotheses) == [f"{name} {r}" for name in ("depth", "mine") for r in rules]
    expected = tuple(select_share(depths_of(x, 4), 0.2, 3) for x in VECTORS)
    assert made.hypotheses["depth density:rate=0.2"] == expected


@pytest.mark.parametrize(
    "method", ["depth", "depth:density=0.3", "depth:k=3", "texttiling", "texttiling:k=3"]
)
def test_only_some_speakers_start_segments(method):
    made = reffree.segment(TALK, method, candidates_speaker="bot", embeddings=VECTORS)
    for segmentation in made.hypotheses[method]:
        assert all(b % 2 == 1 for b in segmentation.boundaries)
    # Somewhere the restriction bites, else this test says nothing.
    free = reffree.segment(TALK, "depth:k=3", embeddings=VECTORS).hypotheses["depth:k=3"]
    assert any(b % 2 == 0 for each in free for b in each.boundaries)


@pytest.mark.parametrize("rule", ["static:tau=0.2", "density:rate=0.3", "adaptive:rho=0.3"])
def test_rules_keep_to_speakers(rule):
    made = reffree.segment(TALK, scores={"m": SCORES}, select=rule, candidates_speaker=["user"])
    found = [b for each in made.hypotheses["m"] for b in each.boundaries]
    assert found
    assert all(b % 2 == 0 for b in found)


def test_units_left_out_take_their_gaps_along():
    units = ["The budget is late.", "Okay.", "We plan a dinner.", "Fish is fine."]
    corpus = Corpus((Document.build("d", units),))
    made = reffree.segment(
        corpus, scores={"m": [[0.1, 0.9, 0.2]]}, select="static:gap=1", drop=["backchannels"]
    )
    assert made.hypotheses["m"][0].masses == (2, 2)


def test_what_a_rule_cannot_do():
    with pytest.raises(OptionError, match="--select for 'c99', which does not select from scores"):
        reffree.segment(TALK, "c99", select="static")
    with pytest.raises(OptionError, match="--candidates-speaker for 'posterior'"):
        reffree.segment(TALK, "posterior", candidates_speaker="user", embeddings=VECTORS)
    high = {"d0": [3.0] * 11, "d1": [-2.0] * 11}
    said = refusal(reffree.segment, TALK, scores={"m": high})
    assert "system 'm': found scores from -2 to 3 and no rule to select by" in said
    assert reffree.segment(TALK, scores={"m": high}, select="static:tau=2,gap=4")
    said = refusal(reffree.segment, TALK, scores={"m": [[0.5] * 11]})
    assert "system 'm': found scores of 1 document; expected 2" in said
    said = refusal(reffree.segment, TALK, scores={"m": {"d0": [0.5] * 11}})
    assert "document 'd1': found no list of scores (1 of 2 documents lack it)" in said
    said = refusal(boundary_scores, TALK, "texttiling", drop=["repeats"])
    assert "scores to be kept, with repeats left out" in said


def test_posterior_scores_gaps_by_their_probability():
    corpus, vectors = topical_corpus([[6, 5], [4, 4, 6], [1]])
    found = LeastExpectedPk(length=5)
    scores = found.boundary_scores(Inputs(corpus, embeddings=vectors))
    shown = boundaries(corpus, length=5, embeddings=vectors)
    for given, document in zip(scores[:2], corpus, strict=False):
        rows = shown.table("gaps").records(document=document.id)
        assert given.tolist() == pytest.approx([row["probability"] for row in rows])
    assert scores[2].shape == (0,)
    assert len(found(Inputs(corpus, embeddings=vectors))) == 3


def test_command_saves_scores_and_takes_them_back(tmp_path):
    reffree.save(TALK, tmp_path / "c.jsonl")
    np.savez(tmp_path / "v.npz", d0=VECTORS[0], d1=VECTORS[1])
    vectors = ["--embeddings", tmp_path / "v.npz"]
    scores = tmp_path / "s.jsonl"
    first = invoke(
        *("segment", tmp_path / "c.jsonl", "--method", "depth", *vectors),
        *("--save-scores", scores, "-o", tmp_path / "o.jsonl"),
    )
    assert first.exit_code == 0, first.output
    read = read_scores(scores, TALK)
    assert read["d0"] == pytest.approx(depths_of(VECTORS[0], 4).tolist())
    rules = ["--select", "static:tau=.2,gap=2", "--candidates-speaker", "bot"]
    second = invoke(
        *("segment", tmp_path / "c.jsonl", "--scores", f"mine={scores}", *rules),
        *("-o", tmp_path / "p.jsonl"),
    )
    assert second.exit_code == 0, second.output
    made = load(tmp_path / "p.jsonl").hypotheses["mine"]
    mask = [i % 2 == 0 for i in range(11)]
    assert made == tuple(select_above(read[d.id], 0.2, 2, mask) for d in TALK)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing option '--method': or give --scores NAME=FILE."),
        (["--scores", "x"], "--scores 'x': expected NAME=FILE"),
        (["--scores", "a=x", "--scores", "a=y"], "--scores a=… twice"),
        (["--method", "depth", "--method", "none", "--save-scores", "s"], "with 2 methods"),
        (["--method", "random", "--save-scores", "s"], "random gives no score per gap"),
        (["--method", "c99", "--save-scores", "s"], "'c99', which gives no score per gap"),
        (["--method", "depth", "--save-scores", "o.jsonl"], "this is also -o"),
        (["--method", "depth", "--save-scores", "s", "--drop", "repeats"], "scores to be kept"),
        (["--method", "depth", "--save-scores", "c.jsonl"], "this is an input"),
        (["--method", "depth", "--save-scores", "no/s.jsonl"], "no/s.jsonl"),
        (["--method", "depth", "--select", "x"], "unknown selection 'x'"),
        (["--method", "depth", "--candidates-speaker", "x"], "no unit of the speaker 'x'"),
    ],
)
def test_command_refuses_before_anything_is_encoded(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    reffree.save(TALK, tmp_path / "c.jsonl")
    done = invoke("segment", "c.jsonl", *arguments, "-o", "o.jsonl", "--encoder", "no/such/model")
    found = done.output if isinstance(done.exception, SystemExit) else str(done.exception)
    assert isinstance(done.exception, SystemExit | ReffreeError)
    assert said in found
