"""Four ways from a model's files to one that encodes, all ending in a `SentenceTransformer`.

sentence-transformers folders are loaded as they were saved; plain transformers get a pooling over
the layer that was chosen, encoders and decoder-only language models alike (their base model: no
head is loaded); static vectors are read from their two files. Safetensors and GGUF are read,
pickles and code only where the spec says that the user asked for it.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from reffree.encoders.aliases import PACKAGED, packaged_folder
from reffree.encoders.base import EncoderSpec
from reffree.encoders.models import ModelFolder
from reffree.util.errors import EncoderError
from reffree.util.optional import missing_packages

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    *(IndexError, SafetensorError, UnpicklingError),
)
"""What the libraries raise for folders that are no working model."""

_loading = threading.Lock()
"""One model at a time: the libraries change settings of the whole process meanwhile."""

TEXT = ("text", "message")
"""What units may be. Other modalities would take one that looks like a path for a file to open."""


def load(
    folder: ModelFolder, device: torch.device, device_map: str | None, offload: Path
) -> SentenceTransformer:
    """Load a model onto a device, or spread it over several, memory and the folder ``offload``."""
    note = "reffree: note: encoder %r %s."
    if folder.spec.code == "trusted":
        logger.warning(
            note, folder.spec.name, "may run code that comes with it (trust_remote_code)"
        )
    if folder.spec.weights == "bin":
        logger.warning(note, folder.spec.name, "is read from pickled weights (allow_pickle)")
    if folder.packaged:
        packaged_folder(folder.packaged)  # the weights are those whose hash is known
    with _loading, silence_libraries():
        if folder.loader == "static":
            model = _load_static(folder, device)
        else:
            weights = _weight_settings(folder.spec, device, device_map, offload)
            is_whole = folder.loader == "sentence-transformers"
            model = (_load_saved if is_whole else _load_pooled)(folder, device, weights)
            _read_as_text(model, folder.spec.name)
            tokenizer = model.tokenizer
            if tokenizer is not None and tokenizer.pad_token is None:
                # Padding is masked, so any token serves.
                tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
            model.max_seq_length = folder.spec.max_length
    return model


def _load_saved(
    folder: ModelFolder, device: torch.device, weights: dict[str, Any]
) -> SentenceTransformer:
    """Load a sentence-transformers folder as it was saved."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(folder.path),
        model_kwargs=weights,
        device=None if "device_map" in weights else str(device),
        local_files_only=True,
        trust_remote_code=folder.spec.code == "trusted",
    )


def _load_pooled(
    folder: ModelFolder, device: torch.device, weights: dict[str, Any]
) -> SentenceTransformer:
    """Put a pooling on one layer of a plain transformer, encoder or decoder.

    The explicit text modality keeps chat templates away from plain text.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    spec = folder.spec
    files: dict[str, Any] = {
        "local_files_only": True,
        "trust_remote_code": spec.code == "trusted",
    }
    if spec.weights == "gguf":
        files["gguf_file"] = PACKAGED["smollm2"].weights
    output = "last_hidden_state" if spec.layer is None else ("hidden_states", spec.layer)
    with _parsed_once() if spec.weights == "gguf" else nullcontext():
        transformer = Transformer(
            str(folder.path),
            model_kwargs={**weights, **files},
            processor_kwargs=dict(files),
            config_kwargs=dict(files),
            modality_config={"text": {"method": "forward", "method_output_name": output}},
            module_output_name="token_embeddings",
        )
    # Positions count from the left, so only padding on the right leaves every text its own;
    # decoders do not look to the right at all.
    transformer.tokenizer.padding_side = "right"
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode=spec.pooling)
    is_spread = "device_map" in weights
    return SentenceTransformer(
        modules=[transformer, pooling],
        model_kwargs={"device_map": weights["device_map"]} if is_spread else None,
        device=None if is_spread else str(device),
    )


def _load_static(folder: ModelFolder, device: torch.device) -> SentenceTransformer:
    """Read a table of token vectors and its tokenizer; a text's vector is their mean."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    weights, tokenizer = (folder.path / name for name in PACKAGED["wordllama"].files)
    (table,) = load_file(weights).values()
    static = StaticEmbedding(Tokenizer.from_file(str(tokenizer)), embedding_weights=table.float())
    return SentenceTransformer(modules=[static], device=str(device))


def _weight_settings(
    spec: EncoderSpec, device: torch.device, device_map: str | None, offload: Path
) -> dict[str, Any]:
    """How the weights are read, and where they go."""
    kept_as = "float32" if spec.dtype == "tf32" else spec.dtype  # of which TF32 is a use
    weights: dict[str, Any] = {"dtype": getattr(torch, kept_as)}
    if spec.weights != "gguf":
        weights["use_safetensors"] = spec.weights == "safetensors"
    if spec.attention != "auto":
        weights["attn_implementation"] = spec.attention
    if device_map is not None:
        is_json = device_map.lstrip().startswith("{")
        weights["device_map"] = json.loads(device_map) if is_json else device_map
        weights["offload_folder"] = str(offload)
    if spec.quantisation != "none":
        if missing_packages(["bitsandbytes"]):
            raise EncoderError(
                f"quantisation {spec.quantisation}: found no installed package bitsandbytes; "
                "expected it beside a CUDA build of torch; run python -m pip install bitsandbytes, "
                "or leave out quantisation"
            )
        from transformers import BitsAndBytesConfig

        how: dict[str, Any] = {"load_in_8bit": True}
        if spec.quantisation == "4bit":
            how = {"load_in_4bit": True, "bnb_4bit_compute_dtype": weights["dtype"]}
        weights["quantization_config"] = BitsAndBytesConfig(**how)
        weights.setdefault("device_map", {"": str(device)})
    return weights


def _read_as_text(model: SentenceTransformer, name: str) -> None:
    """Close every other modality: a unit "notes.png" is not a picture to be opened."""
    first = model[0]
    if not hasattr(first, "modality_config"):
        return
    kept = {kind: how for kind, how in first.modality_config.items() if kind in TEXT}
    if not kept:
        raise EncoderError(
            f"encoder {name!r}: found a model of {' and '.join(first.modality_config)}; expected "
            "one that reads text; use another"
        )
    first.modality_config = kept
    first.input_formatter.supported_modalities = list(kept)


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Keep what transformers asks of a GGUF file again and again: a third of the time to load."""
    gguf = importlib.import_module("gguf")
    asked = ("GGUFReader", "get_tensor_name_map")
    plain = {name: getattr(gguf, name) for name in asked}
    for name, function in plain.items():
        setattr(gguf, name, cache(function))
    try:
        yield
    finally:
        for name, function in plain.items():
            setattr(gguf, name, function)


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Keep back the libraries' bars, warnings and log, which are not the user's to act on."""
    from transformers.utils import logging as chatter

    level, disabled = chatter.get_verbosity(), logging.root.manager.disable
    chatter.disable_progress_bar()
    chatter.set_verbosity_error()
    logging.disable(logging.WARNING)
    try:
        # The bar over a GGUF's tensors heeds no setting.
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        chatter.set_verbosity(level)
        logging.disable(disabled)
