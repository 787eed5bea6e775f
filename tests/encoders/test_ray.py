"""Encoding in actors of a Ray cluster on this host; the actors' start takes seconds each."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from reffree.encoders import opening as module
from reffree.encoders.device import RayCluster
from reffree.encoders.opening import encode_items, open_encoder, ray_actors, remote_options
from reffree.encoders.options import EncoderOptions
from reffree.util.errors import EncoderError, ReffreeError
from tests.checkpoints import WORDS
from tests.encoders.streams import encode, opened

# Read when Ray is first imported: the cluster's secret.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
# Ray warns of its own old settings while it reads them.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)

TEXTS = [f"{a} {b}" for a in WORDS for b in WORDS]


@pytest.fixture(scope="module", autouse=True)
def paths():
    """Workers find this package where this process did."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), before]))  # noqa: PTH109
    yield
    if before is not None:
        os.environ["PYTHONPATH"] = before


def doubled():
    def work(item):
        if item == "bad":
            raise ReffreeError("found something bad")
        return item * 2

    return work


def test_actors_give_the_vectors_of_this_process(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TEXTS_PER_ITEM", 100)
    folder = str(checkpoint("roberta"))
    options = EncoderOptions(encoder=folder, device="ray:actors=2", cache=tmp_path)
    encoder = open_encoder(options)
    found = encode(encoder, TEXTS)
    assert_allclose(found, encode(opened(folder), TEXTS), atol=1e-5)
    assert encoder.cache.n_rows == len(TEXTS)
    again = open_encoder(replace(options, device="cpu"))
    assert_array_equal(encode(again, TEXTS), found)
    assert again.n_encoded == 0


def test_results_are_in_order_and_failures_are_sentences():
    with ray_actors(RayCluster(actors=2)) as actors:
        assert list(actors.map(doubled, (), list(range(9)))) == [2 * i for i in range(9)]
        assert list(actors.map(doubled, (), [])) == []
        with pytest.raises(ReffreeError, match=r"^found something bad$"):
            list(actors.map(doubled, (), [1, "bad"]))
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_gets_a_sentence():
    with (
        pytest.raises(EncoderError, match=r"device 'ray' at 127.0.0.1:1: .* check the address"),
        ray_actors(RayCluster("127.0.0.1:1")),
    ):
        pass


def test_another_model_on_a_worker_is_refused(checkpoint):
    options = EncoderOptions(encoder=str(checkpoint("roberta")), device="ray")
    spec = replace(opened(options.model).spec, revision="another")
    with pytest.raises(EncoderError, match="found the encoder 'roberta' at sha256:"):
        encode_items(remote_options(options), spec)
    assert remote_options(options).device == "auto"
