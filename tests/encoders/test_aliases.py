"""Every alias by one proof: here on a tiny model of its architecture, elsewhere on its weights.

``pytest -m network -k ALIAS`` downloads it and runs it on the CPU, ``pytest -m gpu -k ALIAS`` on a
card, from the hub's cache or the hub.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from reffree.encoders.aliases import ALIASES, PACKAGED
from reffree.encoders.models import catalogue
from tests.checkpoints import WORDS
from tests.encoders.streams import CPU, encode, opened

HUB = [alias for alias in ALIASES if alias not in PACKAGED]
TEXTS = [" ".join(WORDS[:k]) for k in (1, 3, 7, 15, 2)]


def prove(alias, device=CPU):
    """Hold batches to each text alone, through transformers itself; return the model."""
    from transformers import AutoModel, AutoTokenizer

    encoder = opened(alias, device=device)
    encoder.batch_tokens = 40
    spec = encoder.spec
    assert (spec.name, spec.pooling) == (ALIASES[alias].model, "mean")
    dtype = getattr(torch, spec.dtype)
    model = AutoModel.from_pretrained(encoder.folder.path, dtype=dtype).to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder.folder.path)
    expected = []
    for text in TEXTS:
        tokens = tokenizer(spec.prompt + text, return_tensors="pt")["input_ids"].to(device)
        with torch.no_grad():
            expected.append(model(tokens).last_hidden_state[0].float().mean(0).cpu().numpy())
    expected = np.stack(expected)
    if spec.normalisation == "l2":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    tolerance = 1e-4 if dtype == torch.float32 else 0.05
    assert_allclose(encode(encoder, TEXTS), expected, atol=tolerance * np.abs(expected).max())
    return model


@pytest.mark.parametrize("alias", HUB)
def test_a_tiny_model_of_its_architecture(checkpoint, tmp_path, monkeypatch, alias):
    folder = checkpoint(ALIASES[alias].tried)
    if ALIASES[alias].loader == "sentence-transformers":
        transformer = Transformer(str(folder))
        modules = [transformer, Pooling(transformer.get_embedding_dimension())]
        if alias == "mpnet":
            modules.append(Normalize())
        folder = tmp_path / "saved"
        SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    monkeypatch.setattr("reffree.encoders.models.hub_folder", lambda name, **how: folder)
    assert prove(alias).config.model_type == ALIASES[alias].tried


def check_own_weights(alias, device):
    model, known = prove(alias, device), ALIASES[alias]
    assert model.config.model_type == ALIASES[alias].tried
    assert model.config.hidden_size == known.dimension
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(known.parameters, rel=0.02)


@pytest.mark.network
@pytest.mark.parametrize("alias", HUB)
def test_its_own_weights(alias):
    check_own_weights(alias, CPU)


@pytest.mark.gpu
@pytest.mark.parametrize("alias", HUB)
def test_its_own_weights_on_a_card(alias):
    check_own_weights(alias, torch.device("cuda"))


def test_what_is_listed_says_how_to_prove_it():
    listed = {row["alias"]: row for row in catalogue()}
    assert {alias for alias, row in listed.items() if row["tried"] == "own weights"} == {*PACKAGED}
    assert listed["falcon-7b"]["tried"] == "a tiny falcon"
    for alias in HUB:
        assert listed[alias]["prove"].endswith(f"::{test_its_own_weights.__name__}[{alias}]'")
