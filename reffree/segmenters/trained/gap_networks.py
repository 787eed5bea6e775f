"""What scores a gap: a small network on the units' vectors, or the encoder itself, fine-tuned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from reffree.encoders.models import ModelFolder
from reffree.segmenters.base import directions, to_scale
from reffree.segmenters.trained.examples import ABSENT, windows_of
from reffree.util.arrays import Floats, Integers
from reffree.util.errors import EncoderError, first_line

CPU = torch.device("cpu")
LEAST_SPREAD = 1e-6
FALLBACK_MAX_LENGTH = 256
WORKERS = 2
"""Processes that read texts for a GPU; where a CPU trains, they would take its cores."""

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
    is. Nested windows stand for the order of units: average precision on held-out TIAGE .59, and
    .41 with the widest window alone.
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

    def standardise(self, model: HeadOnVectors, windows: Integers) -> None:
        """Take centre and spread of every feature from the training gaps, on the CPU."""
        total, squares = torch.zeros_like(self.centre).double(), torch.zeros(()).double()
        for batch in _batches(windows, model.gaps_at_once):
            x = self.features(*model.gather(torch.from_numpy(batch))).double()
            total, squares = total + x.sum(0), squares + x.square().sum(0)
        mean = total / len(windows)
        spread = (squares / len(windows) - mean.square()).clamp(min=0).sqrt()
        self.centre.copy_(mean)
        self.spread.copy_(torch.where(spread > LEAST_SPREAD, spread, torch.ones_like(spread)))


class HeadOnVectors:
    """A head with the vectors of all units, on the head's device."""

    gaps_at_once = 1024
    workers = 0  # there is nothing to read
    read = staticmethod(torch.from_numpy)  # windows, as they are copied to the device

    def __init__(
        self, network: Head, vectors: Sequence[NDArray[np.generic]], device: torch.device = CPU
    ) -> None:
        """Bring every vector to length 1; zero stays."""
        stacked = [np.zeros((0, network.dimension)), *(directions(to_scale(x)[0]) for x in vectors)]
        # The last row, zero, is that of absent units.
        table = np.concatenate([*stacked, np.zeros((1, network.dimension))])
        self._table = torch.from_numpy(table.astype(np.float32))
        self.network, self.n_units = network, len(table) - 1
        self.to(device)

    def to(self, device: torch.device) -> None:
        """Move the network and what it looks at."""
        self.device = device
        self.network.to(device)
        self._table = self._table.to(device)

    def logits(self, windows: Tensor) -> Tensor:
        """One logit for every gap, from windows on the device."""
        logits: Tensor = self.network(*self.gather(windows))
        return logits

    def gather(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the units in the windows, and which of them are there."""
        return self._table[windows], (windows != ABSENT).float()


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


@dataclass(frozen=True)
class PairReader:
    """The texts of all units, read as pairs of windows; it can be sent to other processes."""

    tokenizer: Any  # transformers has no types
    texts: Sequence[str]
    max_length: int

    def __call__(self, windows: Integers) -> dict[str, Tensor]:
        """Tokens of every gap's two windows."""
        window = windows.shape[1] // 2
        tokens = self.tokenizer(
            [" ".join(self._fitting(row[:window][::-1])[::-1]) for row in windows],
            [" ".join(self._fitting(row[window:])) for row in windows],
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        )
        return dict(tokens)

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


class PairOnTexts:
    """A classifier with the texts of all units."""

    gaps_at_once = 32
    workers = WORKERS

    def __init__(
        self,
        network: PairClassifier,
        texts: Sequence[str],
        tokenizer: Any,  # noqa: ANN401  (transformers has no types)
        max_length: int | None,
        device: torch.device,
    ) -> None:
        """Move the network to where it runs."""
        self.network, self.device, self.n_units = network.to(device), device, len(texts)
        self.read = PairReader(tokenizer, texts, max_length or FALLBACK_MAX_LENGTH)

    def logits(self, tokens: dict[str, Tensor]) -> Tensor:
        """One logit for every gap, from tokens on the device."""
        logits: Tensor = self.network(tokens)
        return logits


GapModel = HeadOnVectors | PairOnTexts
"""A network with the units it looks at."""


def logits_of(model: GapModel, windows: Integers) -> Floats:
    """Score gaps without training."""
    return to_host([_logits(model, windows)])[0]


def document_logits(models: Iterable[GapModel], window: int) -> list[Floats]:
    """Score every gap of documents, each with a model that looks at it alone."""
    return to_host([_logits(m, windows_of(np.arange(m.n_units), window)) for m in models])


def _logits(model: GapModel, windows: Integers) -> Tensor:
    """Score gaps; the logits stay on the device, which may still be at work on them."""
    model.network.eval()
    with torch.inference_mode():
        batches = _batches(windows, model.gaps_at_once)
        parts = [model.logits(send(model.read(batch), model.device)) for batch in batches]
        return torch.cat(parts) if parts else torch.empty(0, device=model.device)


def probabilities(logits: ArrayLike, temperature: float = 1.0) -> Floats:
    """Logistic function of ``logits / temperature``; never NaN, whatever the logits.

    >>> probabilities([0.0, 1000.0, -1000.0]).tolist()
    [0.5, 1.0, 0.0]
    """
    z = np.asarray(logits, dtype=np.float64) / temperature
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + small), small / (1 + small))


def log_loss(logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0) -> float:
    """Mean negative log likelihood of the labels; 0 without any."""
    z = np.asarray(logits, dtype=np.float64) / temperature
    y = np.asarray(labels, dtype=np.float64)
    losses = np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))
    return float(losses.mean()) if len(losses) else 0.0


def send(batch: Any, device: torch.device) -> Any:  # noqa: ANN401  (tensors, as they come)
    """Copy a batch to a device, to a GPU without waiting for what it has to do."""
    if isinstance(batch, Mapping):
        return {name: send(tensor, device) for name, tensor in batch.items()}
    if device.type == "cuda":
        return batch.pin_memory().to(device, non_blocking=True)
    return batch.to(device)


def to_host(tensors: Sequence[Tensor]) -> list[Floats]:
    """Wait for the device once, and take all tensors from it, as float64."""
    if not tensors:
        return []
    ends = np.cumsum([len(tensor) for tensor in tensors])[:-1]
    return np.split(torch.cat([*tensors]).cpu().double().numpy(), ends)


def widths(window: int) -> tuple[int, ...]:
    """Return powers of two below a window, and the window.

    >>> widths(4), widths(6), widths(1)
    ((1, 2, 4), (1, 2, 4, 6), (1,))
    """
    return (*(2**i for i in range(window.bit_length()) if 2**i < window), window)


def _batches(windows: Integers, size: int) -> list[Integers]:
    return [windows[i : i + size] for i in range(0, len(windows), size)]


def load_transformer(folder: ModelFolder, *, tells_next: bool = False) -> tuple[Any, Any]:
    """Read a model's transformer and tokenizer; ``tells_next`` with its next-sentence head.

    Refuses a model whose files have no such head.
    """
    from transformers import AutoModel, AutoModelForNextSentencePrediction
    from transformers.utils import logging

    logging.disable_progress_bar()
    kind = AutoModelForNextSentencePrediction if tells_next else AutoModel
    expected = (
        "a model that was trained to tell next sentences, such as bert"
        if tells_next
        else "a transformer to fine-tune; try another --encoder, or leave out --finetune"
    )
    with _loading(folder.spec.name, expected):
        transformer, found = kind.from_pretrained(
            str(folder.path),
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **SAFE,
        )
        if tells_next and found["missing_keys"]:
            raise ValueError(f"found no weights for {sorted(found['missing_keys'])[0]}")
        return transformer, _load_tokenizer(folder.path)


def read_layout(folder: Path) -> tuple[Any, Any]:
    """Make a transformer without weights, and its tokenizer, from what was saved."""
    from transformers import AutoConfig, AutoModel

    with _loading(str(folder), "a transformer that reffree train wrote; train it again"):
        config = AutoConfig.from_pretrained(str(folder), **SAFE)
        transformer = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
        return transformer, _load_tokenizer(folder)


def _load_tokenizer(folder: Path) -> Any:  # noqa: ANN401
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), **SAFE)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # padding is masked, so any token serves
    return tokenizer


@contextmanager
def _loading(name: str, expected: str) -> Iterator[None]:
    """Say in a sentence why a transformer cannot be loaded."""
    try:
        yield
    except LOADING_ERRORS as error:
        raise EncoderError(f"encoder {name!r}: {first_line(error)}; expected {expected}") from error
