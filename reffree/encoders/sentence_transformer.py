"""Encode with whatever the loaders made: batches by tokens, smaller ones when memory runs out."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from reffree.encoders.accelerators import Accelerator, accelerator_of
from reffree.encoders.address import is_endpoint
from reffree.encoders.backends.backend import ModelBackend, check_backend, chosen_backend
from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.encoders.batching import (
    Batch,
    ThreadShare,
    ahead,
    batch_of,
    planned,
    share_threads,
    side_by_side,
    split,
)
from reffree.encoders.budget import (
    budget_path,
    is_out_of_memory,
    recalled_budget,
    tried_budget,
)
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path
from reffree.encoders.cache.encoder import ROWS_PER_COMMIT
from reffree.encoders.device import choose_devices, remember
from reffree.encoders.endpoint import open_endpoint
from reffree.encoders.forward import DeviceForward
from reffree.encoders.loaders import LOADING_ERRORS, DeviceMap, load
from reffree.encoders.models import DEFAULT_ENCODER, ModelFolder, find_model
from reffree.encoders.options import EncoderOptions
from reffree.encoders.pipeline import Matrix, Pipeline
from reffree.encoders.precision import (
    abilities_of,
    check_type,
    deviation_from_float32,
    deviation_path,
    in_float32,
    is_reduced,
    measured_deviation,
    suited,
)
from reffree.encoders.replicas import ReplicatedEncoder, check_replicable
from reffree.encoders.tokenising import Tokeniser, tokeniser_of
from reffree.util.atomic import cache_folder
from reffree.util.errors import EncoderError, first_line, shorten

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOKENS_PER_BATCH = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Default budget; on a CPU for every thread that works on a batch."""

ENOUGH_TOKENS = {"cpu": 256}
"""From here on a batch takes no text that would need padding; see benchmarks/encoding.py."""

STATIC_TOKENS_PER_BATCH = 100_000
"""Of static vectors, which take no more memory than their tokens."""


class SentenceTransformerEncoder:
    """Loads the model at the first text, so that a fully cached run never does."""

    def __init__(
        self,
        folder: ModelFolder,
        device: torch.device,
        batch_tokens: int | None = None,
        device_map: DeviceMap = None,
        backend: str = "torch",
        kept: Path | None = None,
        accelerator: Accelerator | None = None,
    ) -> None:
        """Remember what to load; ``kept`` is where budgets and graphs are kept between runs.

        Batches go through a pipeline on devices other than the CPU, and on ``accelerator``.
        """
        self.folder = folder
        self.device = device
        self.device_map = device_map
        self.backend = backend
        self.kept = kept
        check_backend(backend, folder.spec, device, is_spread=device_map is not None)
        if accelerator is None and device.type != "cpu" and device_map is None:
            accelerator = accelerator_of(device) if backend == "torch" else None
        self.accelerator = accelerator
        is_static = folder.loader == "static"
        # Weights that are moved about, and code that is compiled, serve one batch at a time.
        is_shared = device.type == "cpu" and device_map is None and backend != "compile"
        is_shared = is_shared and accelerator is None
        self.share = share_threads() if is_shared and not is_static else ThreadShare(1, 1)
        default = TOKENS_PER_BATCH[device.type] * self.share.threads
        self._budget_path = kept and budget_path(kept, folder.spec, device)
        recalled = recalled_budget(self._budget_path) if self._budget_path else None
        self.batch_tokens = (
            batch_tokens or recalled or (STATIC_TOKENS_PER_BATCH if is_static else default)
        )
        self._is_budget_settled = batch_tokens is not None or is_static or accelerator is None
        self._free: int | None = None
        enough = None if is_static else ENOUGH_TOKENS.get(device.type)
        self.enough = enough and enough * self.share.threads

    @cached_property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors; what is approximate is measured for it at first use."""
        spec = replace(self.folder.spec, backend=self._computing.label)
        if self.accelerator is None or not is_reduced(self.folder):
            return spec
        path = self.kept and deviation_path(self.kept, self.folder, self.device)
        found = deviation_from_float32(spec, path, self._measured_deviation)
        return replace(spec, deviation=found)

    def _measured_deviation(self) -> float | None:
        """Hold vectors against float32's; None where that does not fit into the device's memory."""
        assert self.accelerator is not None
        exact = in_float32(self.folder)
        computed, tokeniser = self._forward, self._tokeniser
        try:
            model = self._model if self.folder.spec.dtype == "tf32" else self._load(exact)
            plain = DeviceForward(model, tokeniser, exact.spec)
            return measured_deviation(computed, plain, tokeniser, self.accelerator)
        except LOADING_ERRORS as error:
            if not is_out_of_memory(error):
                raise self._failure(error) from error
            return None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        return [read.tokens for read in self._tokeniser.read(range(len(texts)), texts)]

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Encode longest first; when memory runs out, go on with half the tokens per batch."""
        if texts and not self._is_budget_settled:
            self._settle_budget()
        pin = None if self.accelerator is None else self.accelerator.pinned
        batches = planned(texts, self._tokeniser, lambda: (self.batch_tokens, self.enough), pin)
        with (
            closing(ahead(batches)) as prepared,
            closing(self._computed(prepared)) as computed,
        ):
            for batch, result in computed:
                yield from self._within_memory(batch, result, texts)

    def _computed(
        self, prepared: Iterator[Batch]
    ) -> Generator[tuple[Batch, Callable[[], Matrix]], None, None]:
        """Compute batches side by side on a CPU, one behind the other on other devices."""
        if self.accelerator is None:
            return side_by_side(prepared, self._compute, self.share)
        return self._pipeline.stream(self._fitting(prepared), self._forward.features_of)

    def _fitting(self, prepared: Iterator[Batch]) -> Iterator[Batch]:
        """Split batches that were planned before memory ran out."""
        for batch in prepared:
            if len(batch.reads) == 1 or batch.size <= self.batch_tokens:
                yield batch
            else:
                yield from self._parts(batch)

    def _settle_budget(self) -> None:
        """Take as many tokens per batch as fit into the device's memory: remembered, or tried."""
        assert self.accelerator is not None
        forward, accelerator = self._forward, self.accelerator  # the weights are there
        self._is_budget_settled = True
        self._free = accelerator.free_bytes()
        if self._free is None:
            return
        recalled = recalled_budget(self._budget_path, self._free) if self._budget_path else None
        if recalled is not None:
            self.batch_tokens = recalled
            return
        try:
            self.batch_tokens = tried_budget(self._free, accelerator, forward, self._tokeniser)
        except RuntimeError as error:
            raise self._failure(error) from error
        self._remember_budget()

    def _remember_budget(self) -> None:
        if self._budget_path:
            free = {} if self._free is None else {"free_bytes": self._free}
            remember(self._budget_path, {"batch_tokens": self.batch_tokens, **free})

    def pieces(self, words: Sequence[str]) -> list[list[int | None]]:
        """Return the tokens of each word, special ones left out; None is the unknown one."""
        return self._tokeniser.pieces(words)

    def _within_memory(
        self, batch: Batch, result: Callable[[], Matrix], texts: Sequence[str]
    ) -> Iterator[EncodedTexts]:
        """Take what was computed of a batch; in parts where it is too large for the memory."""
        from accelerate.utils.memory import clear_device_cache

        todo, has_halved = [(batch, result)], False
        is_begun = self.accelerator is not None  # what is in flight is not computed again
        while todo:
            batch, result = todo.pop()
            if is_begun or len(batch.reads) == 1 or batch.size <= self.batch_tokens:
                is_begun = False
                try:
                    vectors = result()
                except (RuntimeError, IndexError) as error:
                    if len(batch.reads) == 1 or not is_out_of_memory(error):
                        raise self._failure(error) from error
                else:
                    if has_halved:
                        self._remember_budget()
                    has_halved = False
                    yield self._encoded(batch, vectors, texts)
                    continue
                self.batch_tokens = max(1, min(self.batch_tokens, batch.size // 2))
                has_halved = True
                clear_device_cache(garbage_collection=self.device.type != "cpu")
            # Also batches that were planned before memory ran out.
            todo += [(one, partial(self._compute, one)) for one in reversed(self._parts(batch))]

    def _parts(self, batch: Batch) -> list[Batch]:
        """Split a batch into such as fit into memory now."""
        parts = split(batch.reads, self.batch_tokens, is_packed=batch.is_packed)
        return [batch_of(reads, self._tokeniser) for reads in parts]

    def _compute(self, batch: Batch) -> Matrix:
        if self.accelerator is None:
            return self._computing.compute(batch.features)
        return self._pipeline.compute(self._forward.features_of(batch))

    def _encoded(self, batch: Batch, vectors: Matrix, texts: Sequence[str]) -> EncodedTexts:
        positions = [read.position for read in batch.reads]
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[positions[int(np.argmin(finite))]]
            raise EncoderError(
                f"encoder {self.spec.name!r}: found NaN or infinity in the vector of "
                f"{shorten(text)!r}; expected finite numbers; use another encoder, --dtype or "
                "device"
            )
        return EncodedTexts(positions, vectors, [read.tokens for read in batch.reads])

    @cached_property
    def _computing(self) -> ModelBackend:
        def loaded() -> tuple[SentenceTransformer, Tokeniser]:
            return self._model, self._tokeniser

        plain, name = self.folder.spec, self.backend
        if name == "auto":
            name = chosen_backend(plain, self.kept, loaded)
        return ModelBackend(name, plain, self.kept, loaded)

    @cached_property
    def _forward(self) -> DeviceForward:
        return DeviceForward(self._model, self._tokeniser, self.folder.spec)

    @cached_property
    def _pipeline(self) -> Pipeline:
        assert self.accelerator is not None
        return Pipeline(self.accelerator, self._forward)

    @cached_property
    def _tokeniser(self) -> Tokeniser:
        return tokeniser_of(self._model, self.folder.spec)

    @cached_property
    def _model(self) -> SentenceTransformer:
        try:
            return self._load(self.folder)
        except LOADING_ERRORS as error:
            raise self._failure(error) from error

    def _load(self, folder: ModelFolder) -> SentenceTransformer:
        check_type(folder.spec.dtype, self.device)
        offload = Path(tempfile.mkdtemp(prefix="reffree-offload-"))
        weakref.finalize(self, shutil.rmtree, offload, ignore_errors=True)
        return load(folder, self.device, self.device_map, offload).eval()

    def _failure(self, error: Exception) -> EncoderError:
        spec = self.folder.spec
        has_attention = spec.attention != "auto"
        remedy = "leave out --attention" if has_attention else "try another --encoder, --device"
        return EncoderError(
            f"encoder {spec.name!r} on {self.device}: {first_line(error)}; expected a model that "
            f"sentence-transformers loads and runs here; {remedy} or a smaller --batch-tokens"
        )


def open_encoder(options: EncoderOptions, *, is_elsewhere: bool = False) -> Encoder:
    """Find the model (alias, folder, hub id or endpoint) and put the cache around it.

    With ``is_elsewhere`` others encode, on devices of their own, such as Ray's actors: nothing is
    chosen that suits the devices here.
    """
    where = cache_folder() if options.cache_dir is None else Path(options.cache_dir)
    kept = where if options.cache else None
    rows_per_commit, is_queued = ROWS_PER_COMMIT, False
    encoder: Encoder
    if is_endpoint(options.encoder):
        encoder, rows_per_commit = open_endpoint(options, kept), 1
    else:
        devices = choose_devices(options.device)
        is_queued = len(devices) > 1 or devices[0].type != "cpu"
        encoder = _on_devices(devices, options, kept, is_elsewhere=is_elsewhere)
    if not options.cache:
        return encoder
    cache = EmbeddingCache(cache_path(where, encoder.spec), encoder.spec)
    return CachedEncoder(
        encoder, cache, rows_per_commit=rows_per_commit, saves_in_background=is_queued
    )


def _on_devices(
    devices: Sequence[torch.device],
    options: EncoderOptions,
    kept: Path | None,
    *,
    is_elsewhere: bool,
) -> SentenceTransformerEncoder | ReplicatedEncoder:
    """Open a model on one device, or copies of it on several."""
    name = DEFAULT_ENCODER if options.encoder is None else options.encoder
    folder = find_model(name, offline=options.offline, settings=options)
    if not is_elsewhere:
        folder = suited(folder, options, abilities_of(devices, options.backend))
    if len(devices) > 1:
        check_replicable(is_spread=options.device_map is not None, backend=options.backend)
    replicas = [
        SentenceTransformerEncoder(
            folder,
            device,
            options.batch_tokens,
            options.device_map,
            options.backend,
            kept,
            accelerator_of(device) if len(devices) > 1 else None,
        )
        for device in devices
    ]
    return replicas[0] if len(replicas) == 1 else ReplicatedEncoder(replicas)
