"""What `gpu.py` measures on a device: encoding, scoring and training."""

from __future__ import annotations

import math
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from gpu_checks import texts_of
from gpu_costs import (
    CARDS,
    MATMUL_SHARE,
    MEMORY_SHARE,
    Card,
    Dtype,
    Transformer,
    encoding,
)
from gpu_scoring_costs import by_torch, scoring
from numpy.typing import NDArray

import reffree
from reffree.encoders.base import Encoder, encode_texts
from reffree.encoders.models import find_model
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precision import abilities_of
from reffree.segmenters.trained.labeller import train_segmenter
from reffree.segmenters.trained.scorer import train_scorer

DTYPES = ("float32", "tf32", "bfloat16", "auto")

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    units: int = 20_000
    words: tuple[int, ...] = (15, 45)  # of a unit: some 20 and 60 tokens
    hypotheses: tuple[int, ...] = (100, 10_000)
    shape: tuple[int, int] = (500, 768)  # of a document's vectors
    documents: int = 64  # to train on
    epochs: int = 5
    matrix: int = 8192
    rounds: int = 3


SMOKE = Sizes(24, (3, 9), (3,), (20, 8), 6, 2, 64, 1)


@dataclass(frozen=True, slots=True)
class Bench:
    """A device, and how much is measured on it."""

    device: torch.device
    sizes: Sizes

    def seconds(self, run: Callable[[], object]) -> float:
        """Shortest time of several rounds, until the device is done."""
        times = []
        for _ in range(self.sizes.rounds):
            self._wait()
            start = time.perf_counter()
            run()
            self._wait()
            times.append(time.perf_counter() - start)
        return min(times)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peak(self, dtype: torch.dtype, *, tf32: bool = False) -> float:
        """Operations a second of a large product."""
        n = self.sizes.matrix
        a = torch.ones(n, n, dtype=dtype, device=self.device)
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        try:
            a @ a  # the first product of a kind also looks for the best kernel
            return 2 * n**3 / self.seconds(lambda: a @ a)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def _capability(self) -> tuple[int, int] | None:
        is_cuda = self.device.type == "cuda"
        return torch.cuda.get_device_capability(self.device) if is_cuda else None

    def card(self) -> tuple[Card, dict[str, float]]:
        """Name the card by its data sheet, or by what is measured here; and what is measured."""
        n = self.sizes.matrix**2
        source, target = torch.ones(n, device=self.device), torch.zeros(n, device=self.device)
        bandwidth = 2 * source.nbytes / self.seconds(lambda: target.copy_(source))
        peaks: dict[Dtype, float] = {
            "float64": self.peak(torch.float64),
            "float32": self.peak(torch.float32),
            "tf32": self.peak(torch.float32, tf32=True),
            "bfloat16": self.peak(torch.bfloat16),
        }
        name = platform.machine()
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        measured = Card(
            name,
            "measured here",
            {key: value / MATMUL_SHARE for key, value in peaks.items()},
            bandwidth / MEMORY_SHARE,
            math.inf,
            bus=32e9,
            capability=self._capability(),
        )
        words = name.replace("-", " ").split()
        known = [card for card in CARDS if card.name.split()[0] in words]
        found = {**{str(key): value for key, value in peaks.items()}, "bandwidth": bandwidth}
        return (known[0] if known else measured), found


def transformer_of(name: str) -> Transformer:
    """Describe a model as its files do."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(str(find_model(name).path), local_files_only=True)
    is_decoder = config.model_type == "falcon"
    feed = getattr(config, "intermediate_size", None) or config.ffn_hidden_size
    made = Transformer(
        config.model_type,
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        feed,
        0.0,
        "eager" if config.model_type == "mpnet" else "fused",
        kv_heads=1 if getattr(config, "multi_query", False) else None,
        has_pooler=not is_decoder,
    )
    n = made.layers * made.layer_weights + config.vocab_size * made.hidden
    return replace(made, parameters=float(n))


def measure_encoding(name: str, bench: Bench, card: Card) -> Iterator[dict[str, Any]]:
    """Time an encoder in every kind of numbers that the card holds it in."""
    model = transformer_of(name)
    for words in bench.sizes.words:
        texts = texts_of(bench.sizes.units, words)
        reference: Vectors | None = None
        for dtype in DTYPES:
            if dtype != "auto" and not model.fits(card, cast(Dtype, dtype)):
                continue
            if dtype == "tf32" and not abilities_of([bench.device]).is_new:
                continue
            options = EncoderOptions(
                encoder=f"{name}:dtype={dtype}", device=str(bench.device), cache=False
            )
            vectors, row = encode_both_ways(options, texts, bench, model, card)
            reference = vectors if reference is None else reference
            yield row | {"cosine_deviation": float(1 - _cosines(vectors, reference).min())}


def encode_both_ways(
    options: EncoderOptions, texts: list[str], bench: Bench, model: Transformer, card: Card
) -> tuple[Vectors, dict[str, Any]]:
    """Encode with and without the cache, and by plain sentence-transformers; predict the first."""
    encoder = open_encoder(options)
    vectors, tokens = encode_texts(encoder, texts)  # loads the model, too
    numbers, mean = numbers_of(encoder), float(tokens.mean())
    plain = plain_encoder(options.model, bench.device, numbers)
    row: dict[str, Any] = {
        "encoder": options.model,
        "tokens": round(mean, 1),
        "dtype": options.model_settings.dtype,
        "computed_in": encoder.spec.dtype,
        "reffree": _rate(bench, len(texts), lambda: encode_texts(encoder, texts)),
        "reffree_cached": _with_cache(options, texts),
        "plain": _rate(bench, len(texts), lambda: plain.encode(texts, show_progress_bar=False)),
    }
    if (stages := encoding(model, round(mean), card, numbers)) is not None:
        row["predicted"] = round(replace(stages, cache=0.0).units_per_second, 1)
        row["predicted_cached"] = round(stages.units_per_second, 1)
        row["bound"] = stages.bound
    return vectors, row


def plain_encoder(name: str, device: torch.device, numbers: Dtype) -> Any:  # noqa: ANN401
    """Open a model as a user of sentence-transformers would."""
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(
        str(find_model(name).path),
        device=str(device),
        model_kwargs={"dtype": "bfloat16" if numbers == "bfloat16" else "float32"},
        local_files_only=True,
    )
    if plain.tokenizer.pad_token is None:  # Falcon's, which cannot make batches without one
        plain.tokenizer.pad_token = plain.tokenizer.eos_token
    return plain


def numbers_of(encoder: Encoder) -> Dtype:
    """The kind of numbers that an encoder's products are made in."""
    said = encoder.spec.dtype
    if "float16" in said:  # bfloat16, too: cards do both alike
        return "bfloat16"
    return "tf32" if "tf32" in said or torch.backends.cuda.matmul.allow_tf32 else "float32"


def _rate(bench: Bench, n: int, run: Callable[[], object]) -> float:
    return round(n / bench.seconds(run), 1)


def _with_cache(options: EncoderOptions, texts: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        encoder = open_encoder(replace(options, cache=folder))
        encode_texts(encoder, ["Load the model."])
        start = time.perf_counter()
        encode_texts(encoder, texts)  # once: after that they are there
        return round(len(texts) / (time.perf_counter() - start), 1)


def _cosines(a: Vectors, b: Vectors) -> Vectors:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines: Vectors = (a * b).sum(axis=1) / np.maximum(lengths, 1e-12)
    return cosines


def measure_scoring(bench: Bench, card: Card) -> Iterator[dict[str, Any]]:
    """Time torch on the device against the compiled loop on the CPU, and compare their scores."""
    n, dimension = bench.sizes.shape
    rng = np.random.default_rng(0)
    here = torch.from_numpy(rng.normal(size=(n, dimension)))
    there = here.to(bench.device)
    for count in bench.sizes.hypotheses:
        hypotheses = [masses_of(n, rng) for _ in range(count)]

        def score(x: torch.Tensor, given: list[list[int]] = hypotheses) -> dict[str, torch.Tensor]:
            return reffree.score_document(x, given)

        expected = score(here)  # compiles, the first time
        on_cpu = _rate(bench, count, lambda run=score: run(here))  # type: ignore[misc]
        with by_torch():
            found = score(there)
            on_device = _rate(bench, count, lambda run=score: run(there))  # type: ignore[misc]
        deviation = max(
            float((expected[name] - scores.cpu()).abs().nan_to_num().max())
            for name, scores in found.items()
        )
        cost = scoring(n, dimension, count, card)
        yield {
            "units": n,
            "dimension": dimension,
            "hypotheses": count,
            "cpu": on_cpu,
            "device": on_device,
            "predicted": round(cost.alone, 1),
            "bound": cost.bound_alone,
            "deviation": deviation,
        }


def masses_of(n: int, rng: np.random.Generator) -> list[int]:
    """Draw a segmentation with a boundary every 16 units on average."""
    cuts = np.sort(rng.choice(np.arange(1, n), size=max(1, n // 16), replace=False))
    return [int(m) for m in np.diff([0, *cuts, n])]


def measure_training(bench: Bench) -> Iterator[dict[str, Any]]:
    """Time an epoch of a segmenter and of a scorer, on the CPU and on the device."""
    n, dimension = bench.sizes.shape
    rng = np.random.default_rng(0)
    documents = [
        reffree.Document(
            f"d{i}",
            tuple(f"{i} {j}" for j in range(n)),
            gold=reffree.Segmentation(tuple(masses_of(n, rng))),
        )
        for i in range(bench.sizes.documents)
    ]
    corpus = reffree.Corpus(tuple(documents))
    vectors = [rng.normal(size=(n, dimension)).astype(np.float32) for _ in documents]
    few, many = 1, 1 + bench.sizes.epochs

    def labelled(epochs: int, device: str) -> object:
        return train_segmenter(
            corpus, epochs=epochs, patience=epochs, embeddings=vectors, device=device
        )

    def scored(epochs: int, device: str) -> object:
        return train_scorer(
            corpus,
            splice_epochs=0,
            epochs=epochs,
            embeddings=_named(vectors),
            device=device,
        )

    for name, train in (("segmenter, bilstm", labelled), ("scorer, on vectors", scored)):
        row: dict[str, Any] = {"network": name, "units": n * len(documents)}
        for who, device in (("cpu", "cpu"), ("device", str(bench.device))):
            times = [
                bench.seconds(lambda e=e, d=device, t=train: t(e, d))  # type: ignore[misc]
                for e in (few, many)
            ]
            row[who] = round((times[1] - times[0]) / (many - few), 4)
        yield row


def _named(vectors: list[Vectors]) -> dict[str, list[Vectors]]:
    return {"corpus": vectors}
