"""How far the formulas of ``gpu_costs.py`` can be trusted: published figures, and this CPU.

python benchmarks/gpu_model.py --calibrate
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_costs import BATCH_TOKENS, CARDS, MATMUL_SHARE, MEMORY_SHARE, MINILM, Dtype, Transformer

import reffree
from reffree.encoders.base import encode_texts
from reffree.encoders.batching import make_batches
from reffree.encoders.cache import EmbeddingCache, make_rows
from reffree.encoders.embed import distinct_texts
from reffree.encoders.models import find_model
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

SIZES = ((384, 102_400), (4544, 20_480))
"""Numbers of a vector, and vectors that are written."""

AT_ONCE = 4096

TOKENISED = 8192
"""Units whose batches are made."""


A100_40GB = replace(CARDS[0], name="A100 40GB", bandwidth=1555e9, memory=40e9)
BERT_BASE = Transformer("BERT-base", 12, 768, 12, 3072, 110e6, "eager")
BERT_LARGE = Transformer("BERT-large", 24, 1024, 16, 4096, 335e6, "eager")
TENSORRT = "NVIDIA/TensorRT, demo/BERT, 128 × 128 tokens, float16"
PYTORCH = "NVIDIA/DeepLearningExamples, PyTorch BERT, SQuAD, 8 × 384 tokens"
PUBLISHED: tuple[tuple[str, Transformer, int, Dtype, bool, float], ...] = (
    # Where, model, tokens, numbers (float16 is as fast as bfloat16), fused by an engine, units/s.
    (TENSORRT, BERT_BASE, 128, "bfloat16", True, 128 / 16.14e-3),
    (TENSORRT, BERT_LARGE, 128, "bfloat16", True, 128 / 51.61e-3),
    (f"{PYTORCH}, mixed precision", BERT_LARGE, 384, "bfloat16", False, 283.0),
    (f"{PYTORCH}, TF32", BERT_LARGE, 384, "tf32", False, 188.0),
)


def published() -> Iterator[dict[str, Any]]:
    """Hold the formulas against what others measured on a card (A100 40GB)."""
    for source, model, tokens, dtype, fused, measured in PUBLISHED:
        card = A100_40GB
        seconds = model.flops(tokens) / (card.peak[dtype] * MATMUL_SHARE)
        seconds += model.activation_bytes(tokens, dtype, fused=fused) / (
            card.bandwidth * MEMORY_SHARE
        )
        yield {
            "source": source,
            "model": model.name,
            "measured": round(measured),
            "predicted": round(1 / seconds),
            "ratio": round(1 / seconds / measured, 2),
        }


def best(run: Callable[[], object], rounds: int = 5) -> float:
    """Shortest CPU time in seconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def calibrate() -> dict[str, float]:
    """Measure products, memory, MiniLM, its tokenizer and the cache, each on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {**_encoding(), **_python(), **_cache()}
    finally:
        torch.set_num_threads(threads)


def _encoding() -> dict[str, float]:
    model = find_model("minilm")
    encoder = SentenceTransformerEncoder(model, torch.device("cpu"))
    texts = distinct_texts(reffree.load(Path(reffree.__file__).parent / "resources" / "demo.jsonl"))
    tokens = round(float(encode_texts(encoder, texts)[1].mean()))
    rows = 256  # tokens of a batch on a CPU
    a, b = torch.randn(rows, MINILM.hidden), torch.randn(MINILM.hidden, MINILM.feed)
    flops = 2 * rows * MINILM.hidden * MINILM.feed * 100 / best(lambda: _repeat(a, b))
    large, copied = torch.randn(1 << 24), torch.zeros(1 << 24)
    bandwidth = 2 * large.nbytes / best(lambda: copied.copy_(large))
    # What a batch on a CPU reads and writes stays in its cache: only weights come from memory.
    moved = MINILM.read_bytes("float32") * tokens / rows
    predicted = 1 / (MINILM.flops(tokens) / flops + moved / bandwidth)
    measured = len(texts) / best(lambda: encode_texts(encoder, texts))

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(model.path), local_files_only=True)
    many = texts * 4
    spent = best(lambda: tokenizer(many))
    return {
        "gflops": flops / 1e9,
        "bandwidth": bandwidth,
        "tokens": tokens,
        "predicted": predicted,
        "measured": measured,
        "tokens_per_second": tokens * len(many) / spent,
    }


def _python() -> dict[str, float]:
    """Time batches being made less what the tokenizer itself takes: a line through two lengths."""
    encoder = SentenceTransformerEncoder(find_model("minilm"), torch.device("cpu"))
    tokeniser = encoder._tokeniser
    fast = tokeniser.tokenizer.backend_tokenizer
    found = []
    for words in (15, 45):
        texts = texts_of(TOKENISED, words)
        tokens = sum(encoder.count_tokens(texts)) / len(texts)
        made = best(lambda t=texts: list(make_batches(t, tokeniser, lambda: (BATCH_TOKENS, None))))  # type: ignore[misc]
        inside = best(lambda t=texts: fast.encode_batch_fast(t))  # type: ignore[misc]
        found.append((tokens, 1e6 * (made - inside) / len(texts)))
    (short, least), (long, most) = found
    token = (most - least) / (long - short)
    return {
        "python_unit_microseconds": least - token * short,
        "python_token_microseconds": token,
    }


def texts_of(n: int, words: int) -> list[str]:
    """Draw distinct units of the demo's words, half as long to one and a half times as long."""
    demo = reffree.load(Path(reffree.__file__).parent / "resources" / "demo.jsonl")
    vocabulary = " ".join(unit for document in demo for unit in document.units).split()
    rng = np.random.default_rng(0)
    lengths = rng.integers(max(1, words // 2), words + words // 2 + 1, size=n)
    return [
        f"{i} " + " ".join(vocabulary[j] for j in rng.integers(len(vocabulary), size=length))
        for i, length in enumerate(lengths)
    ]


def _repeat(a: torch.Tensor, b: torch.Tensor) -> None:
    for _ in range(100):
        torch.mm(a, b)


def _cache() -> dict[str, float]:
    """Write rows as an encoder would: a line through two sizes of vectors."""
    spec = find_model("minilm").spec
    seconds = []
    for dimension, n in SIZES:
        vectors = np.random.default_rng(0).normal(size=(AT_ONCE, dimension)).astype(np.float32)
        own = replace(spec, name=f"calibration-{dimension}")
        with tempfile.TemporaryDirectory() as name:
            cache = EmbeddingCache(Path(name) / "cache.sqlite", own)
            start = time.perf_counter()
            for first in range(0, n, AT_ONCE):
                texts = [f"unit {first + i}" for i in range(AT_ONCE)]
                cache.add(make_rows(own.fingerprint, texts, vectors, [5] * AT_ONCE))
            seconds.append((time.perf_counter() - start) / n)
            cache.close()
    (small, _), (large, _) = SIZES
    byte = (seconds[1] - seconds[0]) / (4 * (large - small))
    row = seconds[0] - 4 * small * byte
    return {"row_microseconds": row * 1e6, "byte_nanoseconds": byte * 1e9}
