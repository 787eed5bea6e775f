"""A model's pass over a batch that is on its device, without making the host wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from reffree.encoders.backends.probe import vector_deviation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.batching import Batch, batch_of
from reffree.encoders.tokenising import MASK, Features, Tokeniser

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Shown = Literal["as made", "added", "nothing"]
"""What a transformer sees of a mask: rows of ones and zeros, numbers to add to scores, or none."""

SHOWN = "shown mask"
"""The feature that says so; the transformer does not see it."""

ROUNDING = {"float32": 1e-4, "tf32": 2e-3, "float16": 2e-3, "bfloat16": 1e-2}
"""What another form of the mask may move a vector by; attention to padding moves it by far more."""

TRIED = ("A b.", "Why?", "Of bees, 3 " * 40)

NOT_TAKEN = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError)
"""What architectures raise that do not take a mask in another form."""


class DeviceForward:
    """From a batch on the device to float32 vectors there.

    Transformers reads a mask to see if it has padding, and for that the host waits until the device
    has done all that is queued. So the mask is not shown where it changes nothing (no padding, or
    padding to the right of tokens that look to the left only), which attention has faster kernels
    for; or else in its final form, numbers that are added to the scores, which is not read. Both
    are tried on two texts first, and not used for a model whose vectors they change. Flash
    attention takes any mask for ones and zeros, which it counts: to try numbers on it would end in
    memory that is not its own.
    """

    def __init__(self, model: SentenceTransformer, tokeniser: Tokeniser, spec: EncoderSpec) -> None:
        """Take a model that is on its device."""
        self._model = model
        self._is_tf32 = spec.dtype == "tf32"
        self._rounding = ROUNDING[spec.dtype]
        self._dtype = torch.float32 if self._is_tf32 else getattr(torch, spec.dtype)
        forms: tuple[Shown, ...] = ("nothing", "added")
        self._padded: Shown = self._least_shown(
            tokeniser, forms[:1] if "flash" in spec.attention else forms
        )

    def __call__(self, features: Features) -> torch.Tensor:
        """Return the vectors; of what is on the device, only shapes are read."""
        features = dict(features)
        shown: Shown = features.pop(SHOWN, "as made")
        mask = features.get(MASK)
        if shown == "nothing":
            del features[MASK]
        elif shown == "added" and mask is not None:
            hidden = (mask == 0)[:, None, None, :]  # (texts, 1, 1, tokens)
            zeros = torch.zeros(hidden.shape, dtype=self._dtype, device=mask.device)
            features[MASK] = zeros.masked_fill(hidden, torch.finfo(self._dtype).min)
        first, *others = self._model
        with torch.inference_mode(), tf32() if self._is_tf32 else nullcontext():
            features = first(features)
            if mask is not None:
                features[MASK] = mask
            for module in others:
                features = module(features)
            vectors: torch.Tensor = features["sentence_embedding"].float()
        return vectors

    def features_of(self, batch: Batch) -> Features:
        """Return what is sent of a batch."""
        if MASK not in batch.features:
            return batch.features
        return {**batch.features, SHOWN: self._padded if _is_padded(batch) else "nothing"}

    def _least_shown(self, tokeniser: Tokeniser, forms: tuple[Shown, ...]) -> Shown:
        """Try short texts beside a long one, in the forms of a mask that need not be read."""
        batch = batch_of(tokeniser.read(range(len(TRIED)), TRIED), tokeniser)
        if MASK not in batch.features or not _is_padded(batch):
            return "as made"
        there = {
            name: value.to(self._model.device) if isinstance(value, torch.Tensor) else value
            for name, value in batch.features.items()
        }
        expected = self(there).cpu().numpy()
        for form in forms:
            try:
                found = self({**there, SHOWN: form}).cpu().numpy()
            except NOT_TAKEN:
                continue
            if np.isfinite(found).all() and vector_deviation(found, expected) < self._rounding:
                return form
        return "as made"


def _is_padded(batch: Batch) -> bool:
    """Look at a mask while it is on the host."""
    return not bool(batch.features[MASK].all())


class _Tf32:
    """Counts the threads that compute in TF32, a setting of the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = ""  # as the newer of torch's two settings calls it

    def enter(self) -> None:
        with self._lock:
            if not self._users:
                self._before = _precision()
                if self._before != "tf32":
                    torch.backends.cuda.matmul.allow_tf32 = True
            self._users += 1

    def leave(self) -> None:
        matmul = torch.backends.cuda.matmul
        with self._lock:
            self._users -= 1
            if not self._users and self._before != "tf32":
                matmul.allow_tf32 = False
                if hasattr(matmul, "fp32_precision"):
                    matmul.fp32_precision = self._before


def _precision() -> str:
    """Of CUDA's products of float32; the older setting is unreadable if the newer was used."""
    matmul = torch.backends.cuda.matmul
    found = getattr(matmul, "fp32_precision", None)
    return ("tf32" if matmul.allow_tf32 else "none") if found is None else str(found)


_tf32 = _Tf32()


@contextmanager
def tf32() -> Iterator[None]:
    """Let CUDA multiply float32 matrices in TF32, in this block only.

    Of several threads the first in turns it on and the last out back, so that scores are never
    computed with it.
    """
    _tf32.enter()
    try:
        yield
    finally:
        _tf32.leave()
