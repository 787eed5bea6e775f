"""What scores a gap: a small network on the units' vectors, which stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reffree.segmenters.embedded import to_scale
from reffree.segmenters.scorer.data import ABSENT, Gaps, Rows

LEAST_SPREAD = 1e-6


class GapModel(Protocol):
    """A network with the units it looks at."""

    gaps_at_once: int

    @property
    def network(self) -> nn.Module:
        """What is trained."""
        ...

    def logits(self, windows: Rows) -> Tensor:
        """One logit for every gap."""
        ...


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
        stacked = [np.zeros((0, network.dimension)), *(directions(x) for x in vectors)]
        # The last row, zero, is that of absent units.
        table = np.concatenate([*stacked, np.zeros((1, network.dimension))])
        self._table = torch.from_numpy(table.astype(np.float32))

    def logits(self, windows: Rows) -> Tensor:
        """One logit for every gap."""
        logits: Tensor = self.network(*self.gather(windows))
        return logits

    def gather(self, windows: Rows) -> tuple[Tensor, Tensor]:
        """Vectors of the units in the windows, and which of them are there."""
        is_present = torch.from_numpy((windows != ABSENT).astype(np.float32))
        return self._table[torch.from_numpy(windows)], is_present


def widths(window: int) -> tuple[int, ...]:
    """Return powers of two below a window, and the window.

    >>> widths(4), widths(6), widths(1)
    ((1, 2, 4), (1, 2, 4, 6), (1,))
    """
    return (*(2**i for i in range(window.bit_length()) if 2**i < window), window)


def directions(vectors: NDArray[np.generic]) -> NDArray[np.float64]:
    """Bring rows to length 1, but for zeros."""
    x, _ = to_scale(vectors)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def logits_of(model: GapModel, windows: Rows) -> NDArray[np.float64]:
    """Score gaps without training."""
    model.network.eval()
    with torch.inference_mode():
        batches = _batches(windows, model.gaps_at_once)
        parts = [model.logits(batch).double().cpu().numpy() for batch in batches]
    return np.concatenate([np.empty(0), *parts])


def _batches(windows: Rows, size: int) -> list[Rows]:
    return [windows[i : i + size] for i in range(0, len(windows), size)]
