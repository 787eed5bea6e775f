"""Transformers and their tokenizers, from files; no code of theirs is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from reffree.encoders.models import ModelFolder
from reffree.util.errors import EncoderError

LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    SafetensorError,
)
SAFE = {"local_files_only": True, "trust_remote_code": False}


def load_transformer(folder: ModelFolder) -> tuple[Any, Any]:
    """Read a model's transformer and tokenizer from its files; runs no code of theirs."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _told(folder.spec.name):
        transformer = AutoModel.from_pretrained(
            str(folder.path), use_safetensors=True, dtype=torch.float32, **SAFE
        )
        return transformer, _tokenizer(folder.path)


def load_next_sentence(folder: ModelFolder) -> tuple[Any, Any]:
    """Read a model with its next-sentence head; refuses one whose files have none."""
    from transformers import AutoModelForNextSentencePrediction
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _told(folder.spec.name, "a model that was trained to tell next sentences, such as bert"):
        model, found = AutoModelForNextSentencePrediction.from_pretrained(
            str(folder.path),
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **SAFE,
        )
        if found["missing_keys"]:
            raise ValueError(f"found no weights for {sorted(found['missing_keys'])[0]}")
        return model, _tokenizer(folder.path)


def read_layout(folder: Path) -> tuple[Any, Any]:
    """Make a transformer without weights, and its tokenizer, from what `write_layout` wrote."""
    from transformers import AutoConfig, AutoModel

    with _told(str(folder)):
        config = AutoConfig.from_pretrained(str(folder), **SAFE)
        transformer = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        return transformer, _tokenizer(folder)


def write_layout(transformer: Any, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401
    """Write everything but the weights."""
    transformer.config.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _tokenizer(folder: Path) -> Any:  # noqa: ANN401
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), **SAFE)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # padding is masked, so any token serves
    return tokenizer


@contextmanager
def _told(
    name: str,
    expected: str = "a transformer to fine-tune; try another --encoder, or leave out --finetune",
) -> Iterator[None]:
    """Say in a sentence why a transformer cannot be loaded."""
    try:
        yield
    except LOADING_ERRORS as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EncoderError(f"encoder {name!r}: {reason}; expected {expected}") from error
