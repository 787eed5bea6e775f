"""Encode with whatever the loaders made: batches by tokens, smaller ones when memory runs out."""

from __future__ import annotations

import logging
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.batching import (
    Batch,
    ThreadShare,
    batch_of,
    draw_ahead,
    make_batches,
    queue_ahead,
    run_side_by_side,
    share_threads,
    split,
)
from reffree.encoders.cache import fact_path, recall, remember
from reffree.encoders.device import device_slug
from reffree.encoders.loaders import LOADING_ERRORS, load
from reffree.encoders.models import ModelFolder
from reffree.encoders.options import ModelSettings
from reffree.encoders.precision import check_type, in_float32, is_reduced, tf32
from reffree.encoders.probe import PROBE, cosine_deviation, one_digit_up
from reffree.encoders.tokenising import MASK, Features, Tokeniser, tokeniser_of
from reffree.util.errors import EncoderError, first_line, shorten

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Matrix = NDArray[np.float32]
"""A vector a text."""

LOGGER = logging.getLogger(__name__)

TOKENS_PER_BATCH = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Default budget; on a CPU for every thread that works on a batch."""

ENOUGH_TOKENS = {"cpu": 256}
"""From here on a batch takes no text that would need padding; see benchmarks/encoding.py."""

STATIC_TOKENS_PER_BATCH = 100_000
"""Of static vectors, which take no more memory than their tokens."""

LARGEST_BUDGET = 2**31
PLAIN = ModelSettings()


class SentenceTransformerEncoder:
    """Loads the model at the first text, so that a fully cached run never does."""

    def __init__(
        self,
        folder: ModelFolder,
        device: torch.device,
        settings: ModelSettings = PLAIN,
        kept: Path | None = None,
        *,
        is_replica: bool = False,
    ) -> None:
        """Remember what to load; ``kept`` is where budgets are kept between runs.

        On devices other than the CPU, and for a replica beside others, one batch is computed behind
        the other, a few of them queued; on a CPU several side by side.
        """
        self.folder = folder
        self.device = device
        self.settings = settings
        self.kept = kept
        self.is_compiled = settings.backend == "compile"
        is_spread = settings.device_map is not None
        is_static = folder.loader == "static"
        self.is_queued = (device.type != "cpu" or is_replica) and not self.is_compiled
        # Weights that are moved about, and code that is compiled, serve one batch at a time.
        is_alone = is_spread or is_replica or is_static or self.is_compiled
        is_shared = device.type == "cpu" and not is_alone
        self.share = share_threads() if is_shared else ThreadShare(1, 1)
        default = TOKENS_PER_BATCH[device.type] * self.share.threads
        self._budget = fact_path(kept, "budget", folder.spec.fingerprint, device_slug(device))
        self.batch_tokens: int = settings.batch_tokens or (
            STATIC_TOKENS_PER_BATCH if is_static else default
        )
        found = recall(self._budget).get("batch_tokens")
        if settings.batch_tokens is None and type(found) is int and 0 < found <= LARGEST_BUDGET:
            self.batch_tokens = found  # fitted into memory before
        enough = None if is_static else ENOUGH_TOKENS.get(device.type)
        self.enough = enough and enough * self.share.threads

    @cached_property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors; how far off reduced ones are is measured for it."""
        spec = self.folder.spec
        if not (self.is_queued and is_reduced(self.folder)):
            return spec
        path = fact_path(self.kept, "deviation", spec.fingerprint)
        found = recall(path).get("cosine_deviation")
        if not (isinstance(found, float) and 0 <= found <= 2):
            found = self._measure_deviation()
            if found is not None:
                remember(path, {"cosine_deviation": found})
        return replace(spec, deviation=found)

    def _measure_deviation(self) -> float | None:
        """Hold vectors against float32's; None where that does not fit into the device's memory."""
        plain = SentenceTransformerEncoder(in_float32(self.folder), self.device, self.settings)
        try:
            vectors = []
            for encoder in (self, plain):
                reads = encoder._tokeniser.read(range(len(PROBE)), PROBE)
                parts = [batch_of(reads[i : i + 8], self._tokeniser) for i in range(0, 64, 8)]
                vectors.append(np.concatenate([encoder._begin(part)() for part in parts]))
        except (EncoderError, *LOADING_ERRORS) as error:
            cause = error.__cause__ if isinstance(error, EncoderError) else error
            if isinstance(cause, Exception) and is_out_of_memory(cause):
                return None
            raise error if isinstance(error, EncoderError) else self._failure(error) from cause
        found = cosine_deviation(*vectors)
        LOGGER.warning(
            "reffree: note: encoder %r computes in %s, which moves cosines of %d texts by %s at "
            "most; dtype=float32 is exact.",
            *(self.folder.spec.name, self.folder.spec.dtype, len(PROBE), one_digit_up(found)),
        )
        return found

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        return [read.tokens for read in self._tokeniser.read(range(len(texts)), texts)]

    def pieces(self, words: Sequence[str]) -> list[list[int | None]]:
        """Return the tokens of each word, special ones left out; None is the unknown one."""
        return self._tokeniser.pieces(words)

    def stream(self, texts: Sequence[str]) -> Generator[EncodedTexts, None, None]:
        """Encode longest first; when memory runs out, go on with half the tokens per batch."""
        batches = make_batches(
            texts,
            self._tokeniser,
            lambda: (self.batch_tokens, self.enough),
            pinned=self.device.type == "cuda",
        )
        with closing(draw_ahead(batches)) as prepared:
            if self.is_queued:
                computed = queue_ahead(self._split_large(prepared), self._begin)
            else:
                computed = run_side_by_side(prepared, self._compute, self.share)
            with closing(computed):
                for batch, result in computed:
                    yield from self._fit_into_memory(batch, result, texts)

    def _split_large(self, prepared: Iterator[Batch]) -> Iterator[Batch]:
        """Split batches that were planned before memory ran out."""
        for batch in prepared:
            if len(batch.reads) == 1 or batch.size <= self.batch_tokens:
                yield batch
            else:
                yield from self._parts(batch)

    def _fit_into_memory(
        self, batch: Batch, result: Callable[[], Matrix], texts: Sequence[str]
    ) -> Iterator[EncodedTexts]:
        """Take what was computed of a batch; in parts where it is too large for the memory."""
        todo, has_halved = [(batch, result)], False
        is_begun = self.is_queued  # what is queued is not computed again
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
                        remember(self._budget, {"batch_tokens": self.batch_tokens})
                    has_halved = False
                    yield self._check_finite(batch, vectors, texts)
                    continue
                self.batch_tokens = max(1, min(self.batch_tokens, batch.size // 2))
                has_halved = True
                free_memory(self.device)
            # Also batches that were planned before memory ran out.
            parts = self._parts(batch)
            todo += [(part, partial(self._compute, part)) for part in reversed(parts)]

    def _parts(self, batch: Batch) -> list[Batch]:
        """Split a batch into such as fit into memory now."""
        parts = split(batch.reads, self.batch_tokens)
        return [batch_of(reads, self._tokeniser) for reads in parts]

    def _compute(self, batch: Batch) -> Matrix:
        if self.is_queued:
            return self._begin(batch)()
        vectors: Matrix = self._vectors(batch.features).cpu().numpy()
        return vectors

    def _begin(self, batch: Batch) -> Callable[[], Matrix]:
        """Queue a batch on the device; returns what waits for its vectors.

        All is in the device's one queue, so memory is given to the next batch only in its turn.
        """
        vectors = self._vectors(batch.features)
        if vectors.device.type != "cuda":
            return lambda: vectors.cpu().numpy()
        with torch.cuda.device(vectors.device):
            rows = torch.empty(vectors.shape, dtype=torch.float32, pin_memory=True)
            rows.copy_(vectors, non_blocking=True)
            arrived = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            arrived.record()

        def wait() -> Matrix:
            arrived.synchronize()
            return rows.numpy()

        return wait

    def _vectors(self, features: Features) -> torch.Tensor:
        """Return float32 vectors on the model's device; torch may still be computing them there.

        transformers reads a mask to see if it has padding, and for that the host waits for the
        device; so a queued batch without padding is shown none.
        """
        model = self._model
        is_padded = MASK in features and not bool(features[MASK].all())
        there = {
            name: value.to(model.device, non_blocking=True)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in features.items()
        }
        with torch.inference_mode(), tf32() if self.folder.spec.dtype == "tf32" else nullcontext():
            if self.is_queued and MASK in there and not is_padded:
                mask, (first, *others) = there.pop(MASK), model
                there = {**first(there), MASK: mask}
                for module in others:
                    there = module(there)
            else:
                there = model(there)
            vectors: torch.Tensor = there["sentence_embedding"].float()
        return vectors

    def _check_finite(self, batch: Batch, vectors: Matrix, texts: Sequence[str]) -> EncodedTexts:
        positions = [read.position for read in batch.reads]
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[positions[int(np.argmin(finite))]]
            raise EncoderError(
                f"encoder {self.folder.spec.name!r}: found NaN or infinity in the vector of "
                f"{shorten(text)!r}; expected finite numbers; use another encoder, dtype or device"
            )
        return EncodedTexts(positions, vectors, [read.tokens for read in batch.reads])

    @cached_property
    def _tokeniser(self) -> Tokeniser:
        return tokeniser_of(self._model, self.folder.spec)

    @cached_property
    def _model(self) -> SentenceTransformer:
        check_type(self.folder.spec.dtype, self.device)
        offload = Path(tempfile.mkdtemp(prefix="reffree-offload-"))
        weakref.finalize(self, shutil.rmtree, offload, ignore_errors=True)
        try:
            model = load(self.folder, self.device, self.settings.device_map, offload).eval()
        except LOADING_ERRORS as error:
            raise self._failure(error) from error
        if self.is_compiled:
            model[0].compile(dynamic=True)  # when it is first called
        return model

    def _failure(self, error: Exception) -> EncoderError:
        spec = self.folder.spec
        remedy = "try another encoder, device"
        if self.is_compiled or spec.attention != "auto":
            remedy = f"leave out {'backend' if self.is_compiled else 'attention'}"
        return EncoderError(
            f"encoder {spec.name!r} on {self.device}: {first_line(error)}; expected a model that "
            f"sentence-transformers loads and runs here; {remedy} or a smaller batch_tokens"
        )


def is_out_of_memory(error: Exception) -> bool:
    """Whether smaller batches may help."""
    from accelerate.utils.memory import should_reduce_batch_size

    return bool(should_reduce_batch_size(error))


def free_memory(device: torch.device) -> None:
    """Give back what a batch that failed has left."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=device.type != "cpu")
