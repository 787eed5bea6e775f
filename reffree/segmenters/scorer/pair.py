"""What scores a gap, fine-tuned: both windows as a pair of texts through the transformer itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from reffree.encoders.models import ModelFolder
from reffree.errors import EncoderError, first_line
from reffree.segmenters.scorer.data import ABSENT, Rows

LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    SafetensorError,
)
FALLBACK_MAX_LENGTH = 256


class PairClassifier(nn.Module):
    """A transformer over ``[CLS] before [SEP] after [SEP]`` and a projection (Coen §5.2).

    The projection reads the first token's last hidden state; the mean of all where the tokenizer
    has no [CLS], as in decoders, whose first token sees no other.
    """

    def __init__(self, transformer: Any, *, reads_first: bool) -> None:  # noqa: ANN401
        """Put a projection with random weights on a transformer."""
        super().__init__()
        self.transformer = transformer
        self.projection = nn.Linear(transformer.config.hidden_size, 1)
        self.reads_first = reads_first

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        """Logits of pairs of texts."""
        hidden: Tensor = self.transformer(**tokens).last_hidden_state  # (g, t, d)
        if self.reads_first:
            state = hidden[:, 0]  # (g, d)
        else:
            mask = tokens["attention_mask"].unsqueeze(2).to(hidden.dtype)
            state = (hidden * mask).sum(1) / mask.sum(1)  # (g, d)
        logits: Tensor = self.projection(state).squeeze(1)  # (g,)
        return logits


class PairOnTexts:
    """A classifier with the texts of all units."""

    gaps_at_once = 32

    def __init__(
        self,
        network: PairClassifier,
        tokenizer: Any,  # noqa: ANN401  (transformers has no types)
        texts: Sequence[str],
        max_length: int | None,
        device: torch.device,
    ) -> None:
        """Move the network to where it runs."""
        self.network = network.to(device)
        self.tokenizer = tokenizer
        self.texts = texts
        self.device = device
        self.max_length = max_length or FALLBACK_MAX_LENGTH

    def logits(self, windows: Rows) -> Tensor:
        """One logit for every gap."""
        window = windows.shape[1] // 2
        tokens = self.tokenizer(
            [" ".join(self._fitting(row[:window][::-1])[::-1]) for row in windows],
            [" ".join(self._fitting(row[window:])) for row in windows],
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        )
        logits: Tensor = self.network({k: v.to(self.device) for k, v in tokens.items()})
        return logits

    def _fitting(self, nearest_first: Rows) -> list[str]:
        """Units that fit half of what the transformer reads, the far ones left out first."""
        rows = nearest_first[nearest_first != ABSENT]
        room = (self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)) // 2
        n_kept = max(1, int(np.searchsorted(np.cumsum(self._lengths[rows]), room, side="right")))
        return [self.texts[row] for row in rows[:n_kept]]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        ids = self.tokenizer(list(self.texts), add_special_tokens=False, verbose=False)["input_ids"]
        return np.array([len(tokens) for tokens in ids], dtype=np.int64)


def load_transformer(folder: ModelFolder) -> tuple[Any, Any]:
    """Read a model's transformer and tokenizer from its files; runs no code of theirs."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        transformer = AutoModel.from_pretrained(
            str(folder.path), use_safetensors=True, dtype=torch.float32, **safe
        )
        tokenizer = AutoTokenizer.from_pretrained(str(folder.path), **safe)
    except LOADING_ERRORS as error:
        raise _failure(folder.spec.name, error) from error
    return transformer, _padded(tokenizer)


def read_layout(folder: Path) -> tuple[Any, Any]:
    """Make a transformer without weights, and its tokenizer, from what `write_layout` wrote."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(str(folder), **safe)
        transformer = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **safe)
    except LOADING_ERRORS as error:
        raise _failure(str(folder), error) from error
    return transformer, _padded(tokenizer)


def write_layout(network: PairClassifier, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401
    """Write everything but the weights."""
    network.transformer.config.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def reads_first(tokenizer: Any) -> bool:  # noqa: ANN401
    """Whether texts begin with a token that stands for all of them."""
    return tokenizer.cls_token is not None


def _padded(tokenizer: Any) -> Any:  # noqa: ANN401
    if tokenizer.pad_token is None:
        # Padding is masked, so any token serves.
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _failure(name: str, error: Exception) -> EncoderError:
    return EncoderError(
        f"encoder {name!r}: {first_line(error)}; expected a transformer to fine-tune; try another "
        "--encoder, or leave out --finetune"
    )
