"""Ray's actors on a local cluster: two of them, of which one is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import reffree
from reffree.encoders import ray_embed
from reffree.encoders.ray_actors import ray_actors
from reffree.errors import EncoderError, InputError, OptionError, ReffreeError
from reffree.formats.shards import Shards
from reffree.study import blocks, distributed
from reffree.study.distributed import score_streamed
from tests.checkpoints import save_checkpoint
from tests.test_streamed import METRICS, as_json, tables, write_jsonl

pytest.importorskip("ray.data", reason="ray is not installed: pip install 'ray[data]'")

# Ray warns of its own old settings while it reads them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def actors():
    with ray_actors() as started:
        yield started


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint("roberta", folder / "tiny")
    return str(folder / "tiny")


class Mortal:
    """Work whose process is killed at its third item, if it is the first of all to get there."""

    def __init__(self, marker, make, arguments):
        self.marker, self.work, self.count = Path(marker), make(*arguments), 0

    def __call__(self, item):
        self.count += 1
        if self.count == 3:
            try:
                self.marker.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.work(item)


def kill_one(monkeypatch, actors, doing, marker):
    """Have one of the actors that do this killed, and the marker made."""
    whole = actors.map

    def mortal_map(make, arguments, items):
        if make == doing:
            make, arguments = Mortal, (str(marker), make, arguments)
        return whole(make, arguments, items)

    monkeypatch.setattr(actors, "map", mortal_map)


def test_scores_are_the_single_machines_byte_for_byte(tmp_path, model, actors, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_UNITS", 32)
    path = write_jsonl(tmp_path / "c.jsonl", tables(gold=lambda d: d > 8))
    how = {"encoder": model, "metrics": METRICS, "null": 20, "per_document": True}
    expected = reffree.score(reffree.load(path), cache_dir=tmp_path / "one", **how)
    kill_one(monkeypatch, actors, distributed.ScoreWork.of_actor, tmp_path / "killed")
    # The cache is empty: actors encode, and the driver writes.
    found = score_streamed(Shards([path]), actors=actors, cache_dir=tmp_path / "two", **how)
    assert as_json(found) == as_json(expected)
    assert (tmp_path / "killed").exists()
    assert list((tmp_path / "two").rglob("*.sqlite"))


def test_embed_fills_the_cache_and_goes_on_where_it_stopped(
    tmp_path, model, actors, run, monkeypatch
):
    monkeypatch.setattr(ray_embed, "TEXTS_PER_ITEM", 16)
    documents = tables()
    write_jsonl(tmp_path / "half.jsonl", documents[:4])
    write_jsonl(tmp_path / "c.jsonl", documents)
    options = ["--encoder", model, "--cache-dir", "cache", "-f", "json"]
    half = json.loads(run("embed", "half.jsonl", *options).stdout)
    done = run("embed", "c.jsonl", *options, "--engine", "ray")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["cached"] == half["texts"] > 0
    assert report["encoded"] == report["texts"] - half["texts"] > 0
    assert report["processes"] == [{"device": "2 Ray actors", "encoded": report["encoded"]}]
    again = json.loads(run("embed", "c.jsonl", *options).stdout)
    assert (again["cached"], again["encoded"]) == (report["texts"], 0)


def refuse(sentence):
    def work(item):
        raise InputError(sentence, expected=f"{item}", remedy="try another")

    return work


def test_an_actors_refusal_is_one_sentence(actors):
    with pytest.raises(ReffreeError, match=r"^found a bad item; expected 7; try another$"):
        list(actors.map(refuse, ("a bad item",), [7]))
    assert list(actors.map(refuse, ("",), [])) == []


def test_another_model_on_an_actors_host_is_refused(tmp_path, model):
    from reffree.encoders.open import open_encoder
    from reffree.encoders.options import EncoderOptions

    save_checkpoint("mpnet", tmp_path / "other")
    spec = open_encoder(EncoderOptions(encoder=str(tmp_path / "other"), cache=False)).spec
    with pytest.raises(EncoderError, match="install the same model on every host"):
        distributed.BlockTextWork(EncoderOptions(encoder=model), spec)


def test_a_device_that_actors_cannot_have():
    with pytest.raises(OptionError, match="'cuda:1' for Ray's actors"), ray_actors(device="cuda:1"):
        pass
