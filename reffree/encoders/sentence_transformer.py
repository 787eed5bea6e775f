"""Loads a model's files and encodes: batches by tokens, smaller ones when memory runs out.

Four ways lead to a `SentenceTransformer`: sentence-transformers folders are loaded as they were
saved; plain transformers get a pooling over the layer that was chosen, encoders and decoder-only
language models alike (their base model: no head is loaded); static vectors are read from their two
files. Safetensors and GGUF are read, pickles and code only where the spec says that the user asked
for it.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import re
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, redirect_stderr
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from reffree.encoders import precision
from reffree.encoders.aliases import PACKAGED, packaged_folder
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.batching import (
    MASK,
    Batch,
    Features,
    ThreadShare,
    Tokeniser,
    batch_of,
    draw_ahead,
    make_batches,
    queue_ahead,
    run_side_by_side,
    share_threads,
    split,
    tokeniser_of,
)
from reffree.encoders.cache import fact_path, recall, remember
from reffree.encoders.models import ModelFolder
from reffree.encoders.options import ModelSettings
from reffree.encoders.precision import PROBE
from reffree.util.errors import EncoderError, first_line, shorten
from reffree.util.optional import missing_packages

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

LOADING_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, ImportError, TypeError, AttributeError),
    *(IndexError, SafetensorError, UnpicklingError),
)
"""What the libraries raise for folders that are no working model."""

_loading = threading.Lock()
"""One model at a time: the libraries change settings of the whole process meanwhile."""

TEXT = ("text", "message")
"""What units may be. Other modalities would take one that looks like a path for a file to open."""


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
        self.folder, self.device, self.settings, self.kept = folder, device, settings, kept
        self.is_compiled = settings.backend == "compile"
        is_spread = settings.device_map is not None
        is_static = folder.loader == "static"
        self.is_queued = (device.type != "cpu" or is_replica) and not self.is_compiled
        # Weights that are moved about, and code that is compiled, serve one batch at a time.
        is_alone = is_spread or is_replica or is_static or self.is_compiled
        is_shared = device.type == "cpu" and not is_alone
        self.share = share_threads() if is_shared else ThreadShare(1, 1)
        default = TOKENS_PER_BATCH[device.type] * self.share.threads
        card = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        slug = re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")  # one of all cards of a make
        self._budget = fact_path(kept, "budget", folder.spec.fingerprint, slug)
        self.batch_tokens: int = (
            settings.batch_tokens
            or recall(self._budget, "batch_tokens", int, LARGEST_BUDGET)  # fitted before
            or (STATIC_TOKENS_PER_BATCH if is_static else default)
        )
        enough = None if is_static else ENOUGH_TOKENS.get(device.type)
        self.enough = enough and enough * self.share.threads

    @cached_property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors; how far off reduced ones are is measured for it."""
        spec = self.folder.spec
        if not (self.is_queued and precision.is_reduced(self.folder)):
            return spec
        path = fact_path(self.kept, "deviation", spec.fingerprint)
        found = recall(path, "cosine_deviation", float, 2)
        if found is None and (found := self._measure_deviation()) is not None:
            remember(path, {"cosine_deviation": found})
        return replace(spec, deviation=found)

    def _measure_deviation(self) -> float | None:
        """Hold vectors against float32's; None where that does not fit into the device's memory."""
        plain = SentenceTransformerEncoder(
            precision.in_float32(self.folder), self.device, self.settings
        )
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
        found = precision.cosine_deviation(*vectors)
        LOGGER.warning(
            "reffree: note: encoder %r computes in %s, which moves cosines of %d texts by %s at "
            "most; dtype=float32 is exact.",
            *(
                self.folder.spec.name,
                self.folder.spec.dtype,
                len(PROBE),
                precision.one_digit_up(found),
            ),
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
                from accelerate.utils.memory import clear_device_cache

                clear_device_cache(garbage_collection=self.device.type != "cpu")
            # Also batches that were planned before memory ran out.
            parts = self._parts(batch)
            todo += [(part, partial(self._compute, part)) for part in reversed(parts)]

    def _parts(self, batch: Batch) -> list[Batch]:
        """Split a batch into such as fit into memory now."""
        parts = split(batch.reads, self.batch_tokens)
        return [batch_of(reads, self._tokeniser) for reads in parts]

    def _compute(self, batch: Batch) -> Matrix:
        return self._begin(batch)()

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
        with (
            torch.inference_mode(),
            precision.tf32() if self.folder.spec.dtype == "tf32" else nullcontext(),
        ):
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
        precision.check_type(self.folder.spec.dtype, self.device)
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
        spec, remedy = self.folder.spec, "try another encoder, device"
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


def load(
    folder: ModelFolder, device: torch.device, device_map: str | None, offload: Path
) -> SentenceTransformer:
    """Load a model onto a device, or spread it over several, memory and the folder ``offload``."""
    from sentence_transformers import SentenceTransformer

    spec, note = folder.spec, "reffree: note: encoder %r %s."
    if spec.code == "trusted":
        LOGGER.warning(note, spec.name, "may run code that comes with it (trust_remote_code)")
    if spec.weights == "bin":
        LOGGER.warning(note, spec.name, "is read from pickled weights (allow_pickle)")
    if folder.packaged:
        packaged_folder(folder.packaged)  # the weights are those whose hash is known
    with _loading, silence_libraries():
        if folder.loader == "static":
            return _load_static(folder, device)
        weights = _weight_settings(spec, device, device_map, offload)
        if folder.loader == "sentence-transformers":
            model = SentenceTransformer(
                str(folder.path),
                model_kwargs=weights,
                device=None if "device_map" in weights else str(device),
                local_files_only=True,
                trust_remote_code=spec.code == "trusted",
            )
        else:
            model = _load_pooled(folder, device, weights)
        _read_as_text(model, spec.name)
        tokenizer = model.tokenizer
        if tokenizer is not None and tokenizer.pad_token is None:
            # Padding is masked, so any token serves.
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
        model.max_seq_length = spec.max_length
    return model


def _load_pooled(
    folder: ModelFolder, device: torch.device, weights: dict[str, Any]
) -> SentenceTransformer:
    """Put a pooling on one layer of a plain transformer, encoder or decoder.

    The explicit text modality keeps chat templates away from plain text.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    spec = folder.spec
    files: dict[str, Any] = {"local_files_only": True, "trust_remote_code": spec.code == "trusted"}
    parsed_once: Any = nullcontext()
    if spec.weights == "gguf":
        files["gguf_file"] = PACKAGED["smollm2"].weights
        from unittest.mock import patch

        # transformers asks the same of the file again and again: a third of the time to load.
        gguf = importlib.import_module("gguf")
        once: dict[str, Any] = {
            name: cache(getattr(gguf, name)) for name in ("GGUFReader", "get_tensor_name_map")
        }
        parsed_once = patch.multiple(gguf, **once)
    output = "last_hidden_state" if spec.layer is None else ("hidden_states", spec.layer)
    with parsed_once:
        transformer = Transformer(
            str(folder.path),
            model_kwargs={**weights, **files},
            processor_kwargs=dict(files),
            config_kwargs=dict(files),
            modality_config={"text": {"method": "forward", "method_output_name": output}},
            module_output_name="token_embeddings",
        )
    # Positions count from the left, so only padding on the right leaves every text its own;
    # decoders do not look to the right at all.
    transformer.tokenizer.padding_side = "right"
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode=spec.pooling)
    is_spread = "device_map" in weights
    return SentenceTransformer(
        modules=[transformer, pooling],
        model_kwargs={"device_map": weights["device_map"]} if is_spread else None,
        device=None if is_spread else str(device),
    )


def _load_static(folder: ModelFolder, device: torch.device) -> SentenceTransformer:
    """Read a table of token vectors and its tokenizer; a text's vector is their mean."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    weights, tokenizer = (folder.path / name for name in PACKAGED["wordllama"].files)
    (table,) = load_file(weights).values()
    static = StaticEmbedding(Tokenizer.from_file(str(tokenizer)), embedding_weights=table.float())
    return SentenceTransformer(modules=[static], device=str(device))


def _weight_settings(
    spec: EncoderSpec, device: torch.device, device_map: str | None, offload: Path
) -> dict[str, Any]:
    """How the weights are read, and where they go."""
    kept_as = "float32" if spec.dtype == "tf32" else spec.dtype  # of which TF32 is a use
    weights: dict[str, Any] = {"dtype": getattr(torch, kept_as)}
    if spec.weights != "gguf":
        weights["use_safetensors"] = spec.weights == "safetensors"
    if spec.attention != "auto":
        weights["attn_implementation"] = spec.attention
    if device_map is not None:
        is_json = device_map.lstrip().startswith("{")
        weights["device_map"] = json.loads(device_map) if is_json else device_map
        weights["offload_folder"] = str(offload)
    if spec.quantisation != "none":
        if missing_packages(["bitsandbytes"]):
            raise EncoderError(
                f"quantisation {spec.quantisation}: found no installed package bitsandbytes; "
                "expected it beside a CUDA build of torch; run python -m pip install bitsandbytes, "
                "or leave out quantisation"
            )
        from transformers import BitsAndBytesConfig

        how: dict[str, Any] = {"load_in_8bit": True}
        if spec.quantisation == "4bit":
            how = {"load_in_4bit": True, "bnb_4bit_compute_dtype": weights["dtype"]}
        weights["quantization_config"] = BitsAndBytesConfig(**how)
        weights.setdefault("device_map", {"": str(device)})
    return weights


def _read_as_text(model: SentenceTransformer, name: str) -> None:
    """Close every other modality: a unit "notes.png" is not a picture to be opened."""
    first = model[0]
    if not hasattr(first, "modality_config"):
        return
    kept = {kind: how for kind, how in first.modality_config.items() if kind in TEXT}
    if not kept:
        raise EncoderError(
            f"encoder {name!r}: found a model of {' and '.join(first.modality_config)}; expected "
            "one that reads text; use another"
        )
    first.modality_config = kept
    first.input_formatter.supported_modalities = list(kept)


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Keep back the libraries' bars, warnings and log, which are not the user's to act on."""
    from transformers.utils import logging as chatter

    level, disabled = chatter.get_verbosity(), logging.root.manager.disable
    chatter.disable_progress_bar()
    chatter.set_verbosity_error()
    logging.disable(logging.WARNING)
    try:
        # The bar over a GGUF's tensors heeds no setting.
        with warnings.catch_warnings(action="ignore"), redirect_stderr(io.StringIO()):
            yield
    finally:
        chatter.set_verbosity(level)
        logging.disable(disabled)
