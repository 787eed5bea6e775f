"""Encode with whatever the loaders made: batches by tokens, smaller ones when memory runs out."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from reffree.encoders.base import Encoded, EncoderSpec
from reffree.encoders.batching import plan_batches
from reffree.encoders.loaders import LOADING_ERRORS, DeviceMap, load
from reffree.encoders.models import ModelFolder
from reffree.errors import EncoderError, shorten

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["LOADING_ERRORS", "SentenceTransformerEncoder"]

TOKENS_PER_BATCH = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Default budget; on two CPU cores 1,024 was the fastest measured."""

STATIC_TOKENS_PER_BATCH = 100_000
"""Of static vectors, which take no more memory than their tokens."""

TOKENISED_AT_ONCE = 10_000


class SentenceTransformerEncoder:
    """Loads the model at the first text, so that a fully cached run never does."""

    def __init__(
        self,
        folder: ModelFolder,
        device: torch.device,
        batch_tokens: int | None = None,
        device_map: DeviceMap = None,
    ) -> None:
        """Remember what to load."""
        self.folder = folder
        self.device = device
        self.device_map = device_map
        is_static = folder.loader == "static"
        default = STATIC_TOKENS_PER_BATCH if is_static else TOKENS_PER_BATCH[device.type]
        self.batch_tokens = batch_tokens or default

    @property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors."""
        return self.folder.spec

    def stream(self, texts: Sequence[str]) -> Iterator[Encoded]:
        """Encode longest first; when memory runs out, go on with half the tokens per batch."""
        from accelerate.utils.memory import should_reduce_batch_size

        tokens = self._count_tokens(texts)
        limit = self.spec.max_length
        lengths = [min(count, limit) if limit else count for count in tokens]
        todo = list(range(len(texts)))
        while todo:
            plan = plan_batches([lengths[i] for i in todo], self.batch_tokens)
            batches = [[todo[j] for j in batch] for batch in plan]
            for done, batch in enumerate(batches):
                try:
                    vectors = self._encode([texts[i] for i in batch])
                except (RuntimeError, IndexError) as error:
                    if len(batch) == 1 or not should_reduce_batch_size(error):
                        raise self._failure(error) from error
                    self.batch_tokens = max(1, self.batch_tokens // 2)
                    todo = [i for rest in batches[done:] for i in rest]
                    break
                yield Encoded(batch, vectors, [tokens[i] for i in batch])
            else:
                return

    def _encode(self, texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        vectors = self._model.encode(
            texts,
            prompt=self.spec.prompt,
            batch_size=len(texts),
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        vectors = np.asarray(vectors, dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise EncoderError(
                f"encoder {self.spec.name!r}: found NaN or infinity in the vector of "
                f"{shorten(text)!r}; expected finite numbers; use another encoder, --dtype or "
                "device"
            )
        return vectors

    def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of every text before truncation, with those of the prompt."""
        counts: list[int] = []
        tokenizer = self._model.tokenizer
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            part = [self.spec.prompt + text for text in texts[start : start + TOKENISED_AT_ONCE]]
            if self.folder.loader == "static":
                encodings = tokenizer.encode_batch(part, add_special_tokens=False)
                counts.extend(len(encoding.ids) for encoding in encodings)
            else:
                ids = tokenizer(part, truncation=False, verbose=False)["input_ids"]
                counts.extend(map(len, ids))
        return counts

    @cached_property
    def _model(self) -> SentenceTransformer:
        offload = Path(tempfile.mkdtemp(prefix="reffree-offload-"))
        weakref.finalize(self, shutil.rmtree, offload, ignore_errors=True)
        try:
            return load(self.folder, self.device, self.device_map, offload)
        except LOADING_ERRORS as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> EncoderError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        has_attention = self.spec.attention != "auto"
        remedy = "leave out --attention" if has_attention else "try another --encoder, --device"
        return EncoderError(
            f"encoder {self.spec.name!r} on {self.device}: {reason}; expected a model that "
            f"sentence-transformers loads and runs here; {remedy} or a smaller --batch-tokens"
        )
