"""One loop for every network that is trained: device, precision and processes are accelerate's.

Nothing is read back from the device inside an epoch: batches are made on the host, ahead of the
device, copied without waiting for them, and losses add up where they are. Weights are float32
whatever the precision, and so is everything that is judged after an epoch.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from reffree.segmenters.trained.settings import TrainingSettings
from reffree.util.errors import InputError, OptionError
from reffree.util.progress import Progress

LARGEST_GRADIENT = 1.0

Loss = tuple[Tensor, Tensor | int]
"""The mean loss of a batch, and how many it is the mean of."""

Row = dict[str, Any]
"""What is told and kept of an epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """A stage of a training: what every epoch goes through, how, and when the stage ends.

    ``judge`` takes an epoch's number, from 1, and its training loss, and returns what it is judged
    by, lower being better, with its row; None where there is no number.
    """

    name: str  # for progress, which is told of examples or, with ``draws``, of epochs
    examples: Sequence[tuple[int, Callable[[list[int]], Any]]]  # how many, and what batches them
    settings: TrainingSettings
    size: int  # of a batch
    rate: float  # AdamW's learning rate
    share: Callable[[int], float]  # the part of it at every step
    judge: Callable[[int, float], tuple[float, Row] | None]
    workers: int = 0  # processes that make batches for a GPU
    draws: torch.Generator | None = None  # of the order of examples, which all epochs share
    patience: int | None = None  # epochs without a better one after which the stage ends


class Trainer:
    """A network in training, with the best state it has had and a row for every epoch."""

    def __init__(
        self,
        network: nn.Module,
        loss_of: Callable[[Any], Loss],
        accelerator: Any,  # noqa: ANN401  (accelerate has no types)
    ) -> None:
        """Bring the network to the device; ``loss_of`` makes the loss of a batch that is there."""
        self.network = network
        self.accelerator = accelerator
        self.best: dict[str, Tensor] | None = None
        self.history: list[Row] = []
        self.is_interrupted = False
        self._step = accelerator.prepare(_Loss(network, loss_of))

    def train(
        self, *stages: Epochs, judged_by: str, on_epoch: Callable[[Row], None], progress: Progress
    ) -> None:
        """Train, and leave the best state in the network; interrupted, the best there is by then.

        Every stage starts from the best state of the one before. Refuses a training that kept none,
        ``judged_by`` naming what was never a number.
        """
        try:
            for stage in stages:
                if stage.examples:
                    self._train_stage(stage, on_epoch, progress)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.is_interrupted = True
        if self.best is None:
            raise InputError(
                "a training that ended in no numbers",
                expected=judged_by,
                remedy=f"lower the learning rate from {stages[0].rate:g}",
            )
        self.network.load_state_dict(self.best)

    def _train_stage(
        self, stage: Epochs, on_epoch: Callable[[Row], None], progress: Progress
    ) -> None:
        self.begin(stage.rate, stage.settings.weight_decay, stage.share)
        lowest, best_at, n_epochs = math.inf, 0, len(stage.examples)
        total = sum(n for n, _ in stage.examples) if stage.draws is None else n_epochs
        with progress(stage.name, total) as advance:
            batches = None
            for number, (n, read) in enumerate(stage.examples, start=1):
                if batches is None or stage.draws is None:
                    batches = self.batches(n, stage.size, read, stage.workers, stage.draws)
                judged = stage.judge(number, self.epoch(batches, advance).item())
                if judged is not None:
                    value, row = judged
                    self.history.append(row)
                    if value < lowest:
                        lowest, best_at = value, number
                        self.keep()
                    on_epoch(row)
                if stage.draws is not None:
                    advance(1)
                if stage.patience and best_at and number - best_at >= stage.patience:
                    advance(n_epochs - number)
                    break

    def begin(self, rate: float, weight_decay: float, share: Callable[[int], float]) -> None:
        """Begin a stage: AdamW with a learning rate of its own, from the best state so far."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        optimiser = torch.optim.AdamW(
            self.network.parameters(),
            lr=rate,
            weight_decay=weight_decay,
            fused=self.accelerator.device.type == "cuda" or None,
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
        self._optimiser, self._schedule = self.accelerator.prepare(optimiser, schedule)

    def batches(
        self,
        n: int,
        size: int,
        read: Callable[[list[int]], Any],
        workers: int = 0,
        draws: torch.Generator | None = None,
    ) -> Any:  # noqa: ANN401  (accelerate's loader)
        """Read batches of ``size`` of ``n`` examples, in an order drawn now.

        With ``draws``, the order is drawn from these each time the batches are gone through.
        ``read`` makes a batch on the host from the examples' numbers; for a GPU in ``workers``
        processes, into pinned memory.
        """
        is_gpu = self.accelerator.device.type == "cuda"
        order: Iterable[int] = RandomSampler(range(n), generator=draws)
        if draws is None:
            order = torch.randperm(n).tolist()
        return self.accelerator.prepare_data_loader(
            DataLoader(
                range(n),  # type: ignore[arg-type]
                batch_sampler=BatchSampler(order, size, drop_last=False),
                collate_fn=read,
                num_workers=workers if is_gpu else 0,
                pin_memory=is_gpu,
                # Without one it draws from the one that dropout draws from.
                generator=draws or torch.Generator(),
            )
        )

    def epoch(self, batches: Any, advance: Callable[[int], None] = lambda examples: None) -> Tensor:  # noqa: ANN401
        """Take a step down for every batch; return the mean loss, which is still on the device.

        ``advance`` is told of the examples in every step, where the host knows how many.
        """
        self.network.train()
        total = count = torch.zeros((), device=next(self.network.parameters()).device)
        with _quiet_tokenizers() if batches.num_workers else nullcontext():
            for batch in batches:
                loss, weight = self._step(batch)
                self.accelerator.backward(loss)
                self.accelerator.clip_grad_norm_(self.network.parameters(), LARGEST_GRADIENT)
                self._optimiser.step()
                self._schedule.step()
                self._optimiser.zero_grad()
                total, count = total + loss.detach() * weight, count + weight
                if isinstance(weight, int):
                    advance(weight)
        sums: Tensor = self.accelerator.reduce(torch.stack([total, count]))
        return sums[0] / sums[1]

    def keep(self) -> None:
        """Remember the state as the best so far."""
        state = self.network.state_dict()
        self.best = {name: tensor.detach().clone() for name, tensor in state.items()}


class _Loss(nn.Module):
    """What accelerate wraps, for its precision and processes; the network itself stays as it is."""

    def __init__(self, network: nn.Module, loss_of: Callable[[Any], Loss]) -> None:
        super().__init__()
        self.network = network
        self.loss_of = loss_of

    def forward(self, batch: Any) -> Loss:  # noqa: ANN401
        return self.loss_of(batch)


def falling(examples: Sequence[int], size: int, warm_up: float) -> Callable[[int], float]:
    """Share of a rate that rises over a share of the steps of epochs, then falls to zero."""
    n_steps = sum(math.ceil(n / size) for n in examples)
    n_rising = max(1, int(warm_up * n_steps))

    def share(step: int) -> float:
        if step < n_rising:
            return (step + 1) / n_rising
        return max(0.0, (n_steps - step) / max(1, n_steps - n_rising))

    return share


def rise(n_rising: int) -> Callable[[int], float]:
    """Share of a rate that rises over the first steps, from the first's part of it, and stays."""
    return lambda step: 1 / n_rising + (1 - 1 / n_rising) * min(1.0, step / n_rising)


@contextmanager
def training_on(device: torch.device, settings: TrainingSettings) -> Iterator[Any]:
    """Make what runs a training on a device, or on those of a launcher's processes.

    Random numbers inside are those of the seed; outside they go on as if nothing had been trained.
    """
    from accelerate import Accelerator, DataLoaderConfiguration, DistributedDataParallelKwargs
    from accelerate.state import AcceleratorState

    is_gpu, precision = device.type == "cuda", settings.mixed_precision
    cards = range(torch.cuda.device_count()) or None  # torch warns if several are not named
    # Accelerate knows a GPU by being the current one.
    current = torch.cuda.device(device) if is_gpu and device.index is not None else nullcontext()
    with torch.random.fork_rng(cards), current:
        if precision not in ("auto", "no") and not computes_in(device, precision):
            raise OptionError(
                f"a device ({device}) that cannot train in {precision}",
                expected="one that can",
                remedy="leave it out: mixed_precision=auto takes what a device has",
            )
        if precision == "auto":
            precision = "bf16" if is_gpu and torch.cuda.is_bf16_supported() else "no"
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # else processes have met once and for all
            AcceleratorState._reset_state(reset_partial_state=True)  # another training had its own
        # No loss depends on some weights of an encoder that is fine-tuned.
        has_idle = DistributedDataParallelKwargs(find_unused_parameters=settings.finetune)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # accelerate tells of the threads it sets
            accelerator = Accelerator(
                cpu=device.type == "cpu",
                mixed_precision=precision,
                dataloader_config=DataLoaderConfiguration(non_blocking=is_gpu),
                kwargs_handlers=[has_idle],
            )
        torch.manual_seed(settings.seed)
        yield accelerator


def computes_in(device: torch.device, precision: str) -> bool:
    """Whether a device can run the recurrent networks in fewer bits, tried on a tiny one."""
    network = nn.LSTM(2, 2, bidirectional=True).to(device)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    try:
        with torch.autocast(device.type, dtype=dtype):
            network(torch.zeros(1, 1, 2, device=device))[0].sum().backward()
    except (RuntimeError, ValueError):
        return False
    return True


@contextmanager
def _quiet_tokenizers() -> Iterator[None]:
    """Keep tokenizers from warning, in processes that read texts, that they use one thread."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ.setdefault(name, "false")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
