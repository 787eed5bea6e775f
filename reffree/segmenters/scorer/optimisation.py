"""How weights are moved: AdamW, a rate that rises and falls in lines, gradients clipped."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

LARGEST_GRADIENT = 1.0


class Optimisation:
    """So many steps on a network."""

    def __init__(
        self, network: nn.Module, n_steps: int, *, rate: float, weight_decay: float, warm_up: float
    ) -> None:
        """Begin with the first step; ``warm_up`` is the share in which the rate rises."""
        self._network = network
        self._optimiser = torch.optim.AdamW(
            network.parameters(), lr=rate, weight_decay=weight_decay
        )
        share = rate_shares(n_steps, warm_up)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimiser, share)

    def step(self, loss: Tensor) -> float:
        """Go one step down; return the loss."""
        self._optimiser.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self._network.parameters(), LARGEST_GRADIENT)
        self._optimiser.step()
        self._schedule.step()
        return loss.item()


def rate_shares(n_steps: int, warm_up: float) -> Callable[[int], float]:
    """Rise to the full rate over the first steps, then fall to zero, in lines."""
    n_rising = max(1, int(warm_up * n_steps))

    def share(step: int) -> float:
        if step < n_rising:
            return (step + 1) / n_rising
        return max(0.0, (n_steps - step) / max(1, n_steps - n_rising))

    return share
