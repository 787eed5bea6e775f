"""Encode with a sentence-transformers model, or any transformer with mean pooling."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError

from reffree.encoders.base import Encoded, EncoderSpec
from reffree.encoders.batching import plan_batches
from reffree.encoders.models import ModelFolder
from reffree.errors import EncoderError, shorten

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOKENS_PER_BATCH = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Default budget; on two CPU cores 1,024 was the fastest measured."""

TOKENISED_AT_ONCE = 10_000

LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    SafetensorError,
)
"""What the libraries raise for folders that are no working model."""


class SentenceTransformerEncoder:
    """Loads the model at the first text, so that a fully cached run never does."""

    def __init__(
        self, folder: ModelFolder, device: torch.device, batch_tokens: int | None = None
    ) -> None:
        """Remember what to load."""
        self.folder = folder
        self.device = device
        self.batch_tokens = batch_tokens or TOKENS_PER_BATCH[device.type]

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
                except RuntimeError as error:
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
            texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True
        )
        vectors = np.asarray(vectors, dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise EncoderError(
                f"encoder {self.spec.name!r}: found NaN or infinity in the vector of "
                f"{shorten(text)!r}; expected finite numbers; use another encoder or device"
            )
        return vectors

    def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            part = list(texts[start : start + TOKENISED_AT_ONCE])
            ids = self._model.tokenizer(part, truncation=False, verbose=False)["input_ids"]
            counts.extend(map(len, ids))
        return counts

    @cached_property
    def _model(self) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        options = {
            "device": str(self.device),
            "local_files_only": True,
            "trust_remote_code": False,
        }
        try:
            # Third-party deprecation warnings are not the user's to act on.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self.folder.is_sentence_transformer:
                    model = SentenceTransformer(
                        str(self.folder.path), model_kwargs=self._weights, **options
                    )
                else:
                    model = SentenceTransformer(modules=self._plain_modules(), **options)
        except LOADING_ERRORS as error:
            raise self._failure(error) from error
        model.max_seq_length = self.spec.max_length
        if model.tokenizer.pad_token is None:
            # Padding is masked out of the mean, so any token serves.
            model.tokenizer.pad_token = model.tokenizer.eos_token
        return model

    @property
    def _weights(self) -> dict[str, object]:
        """Read safetensors only, and compute in the type the spec states."""
        return {"use_safetensors": True, "dtype": getattr(torch, self.spec.dtype)}

    def _plain_modules(self) -> list[torch.nn.Module]:
        """Build mean pooling over the last layer, for models without a sentence-transformers head.

        The explicit text modality keeps chat templates away from plain text.
        """
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        no_code = {"trust_remote_code": False, "local_files_only": True}
        transformer = Transformer(
            str(self.folder.path),
            model_kwargs={**self._weights, **no_code},
            processor_kwargs=no_code,
            config_kwargs=no_code,
            modality_config={
                "text": {"method": "forward", "method_output_name": "last_hidden_state"}
            },
            module_output_name="token_embeddings",
        )
        return [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")]

    def _failure(self, error: Exception) -> EncoderError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return EncoderError(
            f"encoder {self.spec.name!r} on {self.device}: {reason}; expected a model that "
            "sentence-transformers loads and runs here; try another --encoder, --device or a "
            "smaller --batch-tokens"
        )
