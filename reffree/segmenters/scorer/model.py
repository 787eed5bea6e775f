"""What scores a gap: a small network on the units' vectors, or the encoder itself, fine-tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from reffree.arrays import Floats, Integers
from reffree.encoders.models import ModelFolder
from reffree.errors import EncoderError
from reffree.segmenters.base import directions, to_scale
from reffree.segmenters.scorer.data import ABSENT, Gaps

LEAST_SPREAD = 1e-6
FALLBACK_MAX_LENGTH = 256
LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    SafetensorError,
)
SAFE = {"local_files_only": True, "trust_remote_code": False}


class Head(nn.Module):
    r"""Two layers on what two windows have in common and what not.

    With :math:`a_w`, :math:`b_w` the means of the ``w`` unit vectors before and after the gap, each
    of length 1, the features are :math:`a_w, b_w, |a_w - b_w|, a_w b_w` (by component) and the
    cosine of the two, for ``w`` = 1, 2, 4… up to ``window``, and how much of either window there
    is. Nested windows stand for the order of units, which the transformer of Coen §5.2 sees and one
    mean of four units does not: average precision on held-out TIAGE .59, and .41 with the widest
    window alone.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, dimension: int, window: int, hidden: int, dropout: float) -> None:
        """Make a network with random weights."""
        super().__init__()
        self.window = window
        self.dimension = dimension
        n_features = len(widths(window)) * (4 * dimension + 1) + 2
        self.register_buffer("centre", torch.zeros(n_features))
        self.register_buffer("spread", torch.ones(n_features))
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, units: Tensor, is_present: Tensor) -> Tensor:
        """Logits of gaps from (g, 2 · window, d) vectors, zero where there is no unit."""
        x = (self.features(units, is_present) - self.centre) / self.spread  # (g, f)
        logits: Tensor = self.layers(x).squeeze(1)  # (g,)
        return logits

    def features(self, units: Tensor, is_present: Tensor) -> Tensor:
        """Compare the two sides at every width."""
        before, after = units[:, : self.window].flip(1), units[:, self.window :]  # nearest first
        n_before, n_after = is_present[:, : self.window].flip(1), is_present[:, self.window :]
        parts = [n_before.mean(1, keepdim=True), n_after.mean(1, keepdim=True)]
        for width in widths(self.window):
            # A gap has a unit on either side, so no count is zero.
            a = before[:, :width].sum(1) / n_before[:, :width].sum(1, keepdim=True)  # (g, d)
            b = after[:, :width].sum(1) / n_after[:, :width].sum(1, keepdim=True)  # (g, d)
            cosine = nn.functional.cosine_similarity(a, b).unsqueeze(1)
            parts += [a, b, (a - b).abs(), a * b, cosine]
        return torch.cat(parts, dim=1)  # (g, f)

    def standardise(self, model: HeadOnVectors, gaps: Gaps) -> None:
        """Take centre and spread of every feature from the training gaps."""
        total, squares = torch.zeros_like(self.centre).double(), torch.zeros(()).double()
        for batch in _batches(gaps.windows, model.gaps_at_once):
            x = self.features(*model.gather(batch)).double()
            total, squares = total + x.sum(0), squares + x.square().sum(0)
        mean = total / len(gaps)
        spread = (squares / len(gaps) - mean.square()).clamp(min=0).sqrt()
        self.centre.copy_(mean)
        self.spread.copy_(torch.where(spread > LEAST_SPREAD, spread, torch.ones_like(spread)))


class HeadOnVectors:
    """A head with the vectors of all units."""

    gaps_at_once = 1024

    def __init__(self, network: Head, vectors: Sequence[NDArray[np.generic]]) -> None:
        """Bring every vector to length 1; zero stays."""
        self.network = network
        stacked = [np.zeros((0, network.dimension)), *(directions(to_scale(x)[0]) for x in vectors)]
        # The last row, zero, is that of absent units.
        table = np.concatenate([*stacked, np.zeros((1, network.dimension))])
        self._table = torch.from_numpy(table.astype(np.float32))

    @property
    def n_units(self) -> int:
        """Units to look at."""
        return len(self._table) - 1

    def logits(self, windows: Integers) -> Tensor:
        """One logit for every gap."""
        logits: Tensor = self.network(*self.gather(windows))
        return logits

    def gather(self, windows: Integers) -> tuple[Tensor, Tensor]:
        """Vectors of the units in the windows, and which of them are there."""
        is_present = torch.from_numpy((windows != ABSENT).astype(np.float32))
        return self._table[torch.from_numpy(windows)], is_present


class PairClassifier(nn.Module):
    """A transformer over ``[CLS] before [SEP] after [SEP]`` and a projection (Coen §5.2).

    The projection reads the first token's last hidden state; the mean of all where the tokenizer
    has no [CLS], as in decoders, whose first token sees no other (``reads_first``).
    """

    projection: nn.Module

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

    @property
    def n_units(self) -> int:
        """Units to look at."""
        return len(self.texts)

    def logits(self, windows: Integers) -> Tensor:
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

    def _fitting(self, nearest_first: Integers) -> list[str]:
        """Units that fit half of what the transformer reads, the far ones left out first."""
        rows = nearest_first[nearest_first != ABSENT]
        room = (self.max_length - self.tokenizer.num_special_tokens_to_add(pair=True)) // 2
        n_kept = max(1, int(np.searchsorted(np.cumsum(self._lengths[rows]), room, side="right")))
        return [self.texts[row] for row in rows[:n_kept]]

    @cached_property
    def _lengths(self) -> Integers:
        ids = self.tokenizer(list(self.texts), add_special_tokens=False, verbose=False)["input_ids"]
        return np.array([len(tokens) for tokens in ids], dtype=np.int64)


GapModel = HeadOnVectors | PairOnTexts
"""A network with the units it looks at."""


def logits_of(model: GapModel, windows: Integers) -> Floats:
    """Score gaps without training."""
    model.network.eval()
    with torch.inference_mode():
        batches = _batches(windows, model.gaps_at_once)
        parts = [model.logits(batch).double().cpu().numpy() for batch in batches]
    return np.concatenate([np.empty(0), *parts])


def probabilities(logits: ArrayLike, temperature: float = 1.0) -> Floats:
    """Logistic function of ``logits / temperature``; never NaN, whatever the logits.

    >>> probabilities([0.0, 1000.0, -1000.0]).tolist()
    [0.5, 1.0, 0.0]
    """
    z = np.asarray(logits, dtype=np.float64) / temperature
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + small), small / (1 + small))


def widths(window: int) -> tuple[int, ...]:
    """Return powers of two below a window, and the window.

    >>> widths(4), widths(6), widths(1)
    ((1, 2, 4), (1, 2, 4, 6), (1,))
    """
    return (*(2**i for i in range(window.bit_length()) if 2**i < window), window)


def _batches(windows: Integers, size: int) -> list[Integers]:
    return [windows[i : i + size] for i in range(0, len(windows), size)]


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


def write_layout(network: PairClassifier, tokenizer: Any, folder: Path) -> None:  # noqa: ANN401
    """Write everything but the weights."""
    network.transformer.config.save_pretrained(str(folder))
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
