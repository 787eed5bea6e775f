"""Ray's actors on a local cluster: two of them, of which one is killed in the middle.

What takes the time is actors that import the model's libraries, for seconds each.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path

import pytest

import reffree
from reffree.evaluate import corpus_counts
from reffree.evaluate import ray as scoring
from reffree.formats.shards import Shards
from reffree.util.errors import EncoderError, OptionError, ReffreeError
from tests.checkpoints import save_checkpoint
from tests.evaluate.test_streamed import METRICS, as_json, tables, write_jsonl

# Read when Ray is first imported: the cluster's secret.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")

# Ray warns of its own old settings while it reads them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint("roberta", folder / "tiny")
    return str(folder / "tiny")


@pytest.fixture
def by_value():
    """Actors that are sent this module's functions need not import it, and all it imports."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def mortal(marker, make):
    """Make work whose process is killed in its second item, if it is the first to get there."""

    def made(plan):
        work, count = make(plan), 0

        def score(item):
            nonlocal count
            count += 1
            if count == 2 and not Path(marker).exists():
                Path(marker).write_text("killed")
                os.kill(os.getpid(), signal.SIGKILL)
            return work(item)

        return score

    return made


def test_scores_are_the_single_machines_byte_for_byte(tmp_path, model, monkeypatch, by_value):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 32)
    path = write_jsonl(tmp_path / "c.jsonl", tables(gold=lambda d: d > 8))
    how = {"encoder": model, "metrics": METRICS, "null": 20, "per_document": True}
    how["cache"] = tmp_path / "cache"
    expected = reffree.score(reffree.load(path), **how)
    monkeypatch.setattr(scoring, "_scorer", mortal(tmp_path / "killed", scoring._scorer))
    found = reffree.score(Shards([path]), device="ray:actors=2", **how)
    assert as_json(found) == as_json(expected)
    assert (tmp_path / "killed").exists()
    assert not ray.is_initialized()


def test_what_actors_cannot_do_gets_a_sentence(tmp_path, model):
    corpus = reffree.load(write_jsonl(tmp_path / "c.jsonl", tables(3)))

    def own(vectors, masses):
        return [0.0] * len(masses)

    reffree.register_metric("ours", own)
    with pytest.raises(OptionError, match="registered metric 'ours' on Ray's actors"):
        reffree.score(corpus, metrics=["ours"], encoder=model, device="ray:actors=1")
    with pytest.raises(EncoderError, match="found an endpoint for Ray's actors"):
        reffree.score(
            corpus, metrics=["pk"], encoder="http://localhost:1/v1#m", device="ray:actors=1"
        )
    with pytest.raises(OptionError, match="embeddings beside shards or Ray's actors"):
        reffree.score(corpus, embeddings=[[[0.0]]] * 3, device="ray:actors=1")


def test_an_actors_refusal_is_one_sentence(tmp_path, monkeypatch, by_value):
    def refusing(plan):
        def score(item):
            raise OptionError("a bad block", expected="a good one", remedy="try another")

        return score

    corpus = reffree.load(write_jsonl(tmp_path / "c.jsonl", tables(3)))
    monkeypatch.setattr(scoring, "_scorer", refusing)
    with pytest.raises(ReffreeError, match=r"^found a bad block; expected a good one; try anot"):
        reffree.score(corpus, metrics=["pk"], device="ray:actors=1")
