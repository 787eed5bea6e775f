"""Ray's actors on a local cluster: two of them, of which one is killed in the middle.

What takes the time is actors that import the model's libraries, for seconds each: as few of them
do as will show what is to be shown.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import reffree
from reffree.encoders import fill_cache
from reffree.encoders import ray_actors as actors_module
from reffree.encoders.cache import EmbeddingCache
from reffree.encoders.options import EncoderOptions
from reffree.encoders.ray_actors import Actors, ray_actors
from reffree.encoders.opening import open_encoder
from reffree.evaluate import corpus_counts
from reffree.evaluate.ray import BlockTextWork, ScoreWork
from reffree.formats.shards import Shards
from reffree.util.errors import EncoderError, InputError, OptionError, ReffreeError
from tests.checkpoints import save_checkpoint
from tests.evaluate.test_streamed import METRICS, Here, as_json, tables, write_jsonl

# Read when Ray is imported: the cluster's secret.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'ray[data]'")
pytest.importorskip("ray.data", reason="ray[data] is not installed: pip install 'ray[data]'")

# Ray warns of its own old settings while it reads them.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

CPUS = 3
"""Of the cluster; one more than reffree asks for by itself."""

CLUSTER = f"""
import sys
from reffree.encoders.ray_actors import ray_actors
with ray_actors(n={CPUS}):
    import ray
    print(ray.get_runtime_context().gcs_address, file=sys.__stdout__, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def address():
    """Where a cluster is that another process starts, and ends when it has nothing more to read."""
    command = [sys.executable, "-c", CLUSTER]
    # Actors that are sent this module's functions need not import it, and all that it imports.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            port = process.stdout.readline().decode().strip().rsplit(":", 1)[-1]
            assert port.isdecimal()
            yield f"127.0.0.1:{port}"
            process.stdin.close()
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint("roberta", folder / "tiny")
    return str(folder / "tiny")


class Mortal:
    """Work whose process is killed in its second item, if it is the first of all to get there.

    ``begin`` does a part of the item and says how much; the marker has it.
    """

    def __init__(self, marker, begin, make, arguments):
        self.marker, self.begin = Path(marker), begin
        self.work, self.count = make(*arguments), 0

    def __call__(self, item):
        self.count += 1
        if self.count == 2:
            try:
                marker = self.marker.open("x")
            except FileExistsError:
                pass
            else:
                with marker:
                    marker.write(str(self.begin(self.work, item)))
                os.kill(os.getpid(), signal.SIGKILL)
        return self.work(item)


def cached(folder):
    """Return the rows of the only cache file below a folder, by their texts' keys."""
    (file,) = folder.rglob("*.sqlite")
    with EmbeddingCache(file) as cache:
        return list(cache.rows())


def kill_one(monkeypatch, doing, begin, marker):
    """Have one of the actors that do this killed, and the marker made."""
    whole = Actors.map

    def mortal_map(self, make, arguments, items):
        if make == doing:
            make, arguments = Mortal, (str(marker), begin, make, arguments)
        return whole(self, make, arguments, items)

    monkeypatch.setattr(Actors, "map", mortal_map)


def test_scores_are_the_single_machines_byte_for_byte(tmp_path, model, address, monkeypatch):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 32)
    path = write_jsonl(tmp_path / "c.jsonl", tables(gold=lambda d: d > 8))
    how = {"encoder": model, "metrics": METRICS, "null": 20, "per_document": True}
    expected = reffree.score(reffree.load(path), cache_dir=tmp_path / "cache", **how)
    kill_one(
        monkeypatch,
        ScoreWork,
        lambda work, block: len(work(block)[0].has_gold),
        tmp_path / "killed",
    )
    with ray_actors(address, 2) as actors:
        found = reffree.score(Shards([path]), actors=actors, cache_dir=tmp_path / "cache", **how)
    assert as_json(found) == as_json(expected)
    assert int((tmp_path / "killed").read_text()) > 0


def test_what_the_cache_lacks_is_encoded_as_by_one_process(tmp_path, model, monkeypatch):
    monkeypatch.setattr(corpus_counts, "BLOCK_UNITS", 32)
    path = write_jsonl(tmp_path / "c.jsonl", tables())
    how = {"encoder": model, "metrics": ["arp_pair"]}
    reffree.score(reffree.load(path), cache_dir=tmp_path / "one", **how)
    reffree.score(Shards([path]), actors=Here(2, 0), cache_dir=tmp_path / "two", **how)
    assert cached(tmp_path / "one") == cached(tmp_path / "two") != []


def test_embed_outlives_an_actor_that_is_killed_while_it_encodes(
    tmp_path, model, address, run, monkeypatch
):
    monkeypatch.setattr(fill_cache, "TEXTS_PER_ITEM", 16)
    documents = tables()
    write_jsonl(tmp_path / "half.jsonl", documents[:4])
    write_jsonl(tmp_path / "c.jsonl", documents)
    options = ["--encoder", model, "-f", "json", "--batch-tokens", "40", "--cache-dir"]
    assert run("embed", "c.jsonl", *options, "plain").returncode == 0
    half = json.loads(run("embed", "half.jsonl", *options, "cache").stdout)
    kill_one(
        monkeypatch,
        actors_module.TextWork,
        lambda work, texts: len(next(work._encoder.stream(texts)).positions),
        tmp_path / "killed",
    )
    there = ["--engine", "ray", "--ray-address", address, "--ray-actors", "2"]
    done = run("embed", "c.jsonl", *options, "cache", *there)
    assert done.returncode == 0, done.stderr
    # It had encoded some texts of those it was given.
    assert 0 < int((tmp_path / "killed").read_text()) < 16
    report = json.loads(done.stdout)
    assert report["cached"] == half["texts"] > 0
    # Every other text once.
    assert report["encoded"] == report["texts"] - half["texts"] > 0
    assert report["processes"] == [{"device": "2 Ray actors", "encoded": report["encoded"]}]
    found, expected = cached(tmp_path / "cache"), cached(tmp_path / "plain")
    assert [row.key for row in found] == [row.key for row in expected]
    assert len(found) == report["texts"]
    for one, other in zip(found, expected, strict=True):
        assert one.tokens == other.tokens
        assert_allclose(one.vector, other.vector, atol=1e-6)
    again = json.loads(run("embed", "c.jsonl", *options, "cache").stdout)
    assert (again["cached"], again["encoded"]) == (report["texts"], 0)


def refuse(sentence):
    def work(item):
        raise InputError(sentence, expected=f"{item}", remedy="try another")

    return work


def test_an_actors_refusal_is_one_sentence(address):
    with (
        ray_actors(address) as actors,
        pytest.raises(ReffreeError, match=r"^found a bad item; expected 7; try another$"),
    ):
        list(actors.map(refuse, ("a bad item",), [7]))


def test_a_cluster_that_was_there_is_left_running(address):
    for _ in range(2):
        with ray_actors(address) as actors:
            assert actors.n == ray.cluster_resources()["CPU"] == CPUS
            assert list(actors.map(refuse, ("",), [])) == []
        assert not ray.is_initialized()


MEET = """
import sys
from reffree.encoders.ray_actors import EncoderError, ray_actors
try:
    with ray_actors(sys.argv[1]):
        pass
except EncoderError as error:
    print(error)
"""


def test_a_cluster_that_asks_for_a_token_gets_a_sentence(address):
    done = subprocess.run(
        [sys.executable, "-c", MEET, address],
        env=os.environ | {"RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith(f"engine 'ray' at {address}: found a cluster that asks for")
    assert done.stdout.count("\n") == 1


IMPATIENT = {"RAY_py_gcs_connect_timeout_s": "1", "RAY_gcs_rpc_server_connect_timeout_s": "1"}
"""How long to wait at a wrong address; on a busy machine a right one may take as long to answer."""

COMMAND = """
import os, sys
from reffree.cli import main
try:
    main(sys.argv[1:])
finally:
    print("RAY_gcs_server_port_wait_time_s" in os.environ)
"""


def test_an_address_without_a_cluster_gets_a_sentence(tmp_path, model):
    """Ray by itself tries a wrong address for a quarter of an hour."""
    write_jsonl(tmp_path / "c.jsonl", tables()[:2])
    wrong = "127.0.0.1:1"
    options = ["embed", "c.jsonl", "--encoder", model, "--cache-dir", "cache"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *options, "--engine", "ray", "--ray-address", wrong],
        env=os.environ | IMPATIENT,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "False\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"reffree: error: engine 'ray' at {wrong}: Failed to connect")
    assert line.endswith("check --ray-address, or leave it out to start one here")


def test_another_model_on_an_actors_host_is_refused(tmp_path, model):
    save_checkpoint("mpnet", tmp_path / "other")
    spec = open_encoder(EncoderOptions(encoder=str(tmp_path / "other"), cache=False)).spec
    with pytest.raises(EncoderError, match="install the same model on every host"):
        BlockTextWork(EncoderOptions(encoder=model), spec)


def test_a_device_that_actors_cannot_have():
    with pytest.raises(OptionError, match="'cuda:1' for Ray's actors"), ray_actors(device="cuda:1"):
        pass
