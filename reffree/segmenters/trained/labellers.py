r"""The three architectures of Ghinassi et al. (2024), §3.4.1, over the vectors of a document.

Each takes padded documents (b, n, d) and their lengths and returns logits (b, n - 1), one for the
gap after every unit but the last. What stands beyond a document's length means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reffree.segmenters.base import directions, to_scale
from reffree.segmenters.trained.gap_networks import send, to_host
from reffree.segmenters.trained.settings import Architecture, LabellerSettings
from reffree.util.arrays import Floats

FARTHEST = 16
"""Units beyond which all distances are alike to a transformer."""

BEHIND = -4.0
NEVER = -1e9  # in bfloat16 too


class BiLstm(nn.Module):
    """A bidirectional LSTM, and a linear layer on what it says of the unit before the gap."""

    def __init__(self, dimension: int, settings: LabellerSettings) -> None:
        """Make a network with random weights."""
        super().__init__()
        self.drop = nn.Dropout(settings.dropped)
        self.lstm = nn.LSTM(
            dimension,
            settings.hidden,
            settings.layers,
            batch_first=True,
            bidirectional=True,
            dropout=settings.dropped if settings.layers > 1 else 0.0,
        )
        self.classifier = nn.Linear(2 * settings.hidden, 1)

    def forward(self, units: Tensor, lengths: Sequence[int]) -> Tensor:
        """Logits of all gaps."""
        packed = pack_padded_sequence(
            self.drop(units), torch.tensor(lengths), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=units.shape[1]
        )
        logits: Tensor = self.classifier(self.drop(states[:, :-1])).squeeze(2)  # (b, n - 1)
        return logits


class SheikhBiLstm(nn.Module):
    r"""What comes before a gap held against what comes after it (Sheikh et al. 2017).

    With :math:`f_t` the state of an LSTM that has read the units up to ``t``, and :math:`b_{t+1}`
    that of one that has read them backwards down to ``t + 1``, the logit of the gap between is
    :math:`(W_f f_t + c_f) \cdot (W_b b_{t+1} + c_b)`, as in the code that the authors of the ARP
    paper released. The two directions share nothing, in any layer: neither sees past the gap.
    """

    def __init__(self, dimension: int, settings: LabellerSettings) -> None:
        """Make a network with random weights."""
        super().__init__()
        self.drop = nn.Dropout(settings.dropped)
        self.before, self.after = (
            nn.LSTM(
                dimension,
                settings.hidden,
                settings.layers,
                batch_first=True,
                dropout=settings.dropped if settings.layers > 1 else 0.0,
            )
            for _ in range(2)
        )
        self.project_before = nn.Linear(settings.hidden, settings.hidden)
        self.project_after = nn.Linear(settings.hidden, settings.hidden)

    def forward(self, units: Tensor, lengths: Sequence[int]) -> Tensor:
        """Logits of all gaps."""
        x = self.drop(units)
        places, ends = torch.arange(units.shape[1]), torch.tensor(lengths)[:, None]
        # From last to first, padding where it is: its own inverse.
        order = send(torch.where(places < ends, ends - 1 - places, places), units.device)  # (b, n)
        before = self.before(x)[0]  # padding comes last, so no unit has read any
        after = _reordered(self.after(_reordered(x, order))[0], order)
        a = self.project_before(self.drop(before[:, :-1]))
        b = self.project_after(self.drop(after[:, 1:]))
        logits: Tensor = (a * b).sum(-1)
        return logits


class TransformerLabeller(nn.Module):
    """A transformer encoder, and a linear layer on its state at the unit before the gap.

    Where units stand is told by a bias that every head learns for each distance (Raffel et al.
    2020), up to `FARTHEST`, and that at first makes half of the heads look ahead and half look
    back, ever less the farther (Press et al. 2022): with sinusoidal positions it learns nothing
    from some hundred documents.
    """

    def __init__(self, dimension: int, settings: LabellerSettings) -> None:
        """Make a network with random weights."""
        super().__init__()
        self.project = nn.Linear(dimension, settings.hidden)
        self.drop = nn.Dropout(settings.dropped)
        self.bias = nn.Parameter(first_bias(settings.heads))  # (heads, 2 · FARTHEST + 1)
        self.layers = nn.ModuleList(_Layer(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.hidden)
        self.classifier = nn.Linear(settings.hidden, 1)

    def forward(self, units: Tensor, lengths: Sequence[int]) -> Tensor:
        """Logits of all gaps."""
        places = torch.arange(units.shape[1], device=units.device)
        distances = (places - places[:, None]).clamp(-FARTHEST, FARTHEST) + FARTHEST  # (n, n)
        is_padding = places >= send(torch.tensor(lengths), units.device)[:, None]  # (b, n)
        bias = self.bias[:, distances]  # (heads, n, n)
        bias = bias.masked_fill(is_padding[:, None, None], NEVER)  # (b, heads, n, n)
        x = self.drop(self.project(units))
        for layer in self.layers:
            x = layer(x, bias)
        logits: Tensor = self.classifier(self.drop(self.norm(x[:, :-1]))).squeeze(2)
        return logits


class _Layer(nn.Module):
    """Attention with a bias on distances, then two linear layers, each after a layer norm."""

    def __init__(self, settings: LabellerSettings) -> None:
        super().__init__()
        hidden, self.heads = settings.hidden, settings.heads
        self.drop = nn.Dropout(settings.dropped)
        self.attention_norm, self.feed_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.feed = nn.Sequential(
            nn.Linear(hidden, 4 * hidden),
            nn.GELU(),
            nn.Dropout(settings.dropped),
            nn.Linear(4 * hidden, hidden),
        )

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, bias.to(q.dtype))
        x = x + self.drop(self.output(seen.transpose(1, 2).flatten(2)))
        added: Tensor = x + self.drop(self.feed(self.feed_norm(x)))
        return added


NETWORKS: dict[Architecture, type[BiLstm | SheikhBiLstm | TransformerLabeller]] = {
    "bilstm": BiLstm,
    "sheikh-bilstm": SheikhBiLstm,
    "transformer": TransformerLabeller,
}


def make_network(dimension: int, settings: LabellerSettings) -> nn.Module:
    """Make the network of an architecture, with random weights."""
    return NETWORKS[settings.architecture](dimension, settings)


def first_bias(heads: int) -> Tensor:
    """Return a bias for every head and distance: even heads look ahead, odd ones back.

    It falls by 1 a unit for the first pair of heads and by a quarter of that for every further one;
    the other way, it begins at `BEHIND`.
    """
    ahead = torch.arange(-FARTHEST, FARTHEST + 1.0)
    rows = []
    for head in range(heads):
        distance, slope = ahead * (-1) ** head, 0.25 ** (head // 2)
        rows.append(torch.where(distance >= 0, -slope * distance, BEHIND + distance))
    return torch.stack(rows)


def as_input(vectors: NDArray[np.generic]) -> Tensor:
    """Bring every vector to one length, so that a component is about 1; zero stays."""
    x = directions(to_scale(vectors)[0]) * math.sqrt(vectors.shape[1])
    return torch.from_numpy(x.astype(np.float32))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread on the CPU: for products so small that threads wait for each other.

    With two, where other work shares the cores, an epoch took 9 to 40 times the processor time.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def gap_logits(
    network: nn.Module, documents: Iterable[Tensor], device: torch.device
) -> list[Floats]:
    """Score the gaps of documents one by one, so that none depends on its neighbours."""
    network.eval()
    found = []
    with one_thread(), torch.inference_mode():
        for x in documents:
            there = send(x, device).unsqueeze(0)
            found.append(network(there, [len(x)])[0] if len(x) > 1 else there.new_empty(0))
    return to_host(found)


def _reordered(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order.unsqueeze(2).expand_as(x))
