"""How fast an encoder is here, and what memory it takes: measured, so never twice the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import psutil
import torch

from reffree.encoders.device import choose_device
from reffree.encoders.options import EncoderOptions
from reffree.encoders.sentence_transformer import open_encoder

SAMPLE = 256
"""Distinct texts that are encoded for the measurement, drawn at random."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured."""

    units_per_second: float
    load_seconds: float
    memory_mb: float  # peak on the device if it is CUDA, else growth of the process
    texts: int
    device: str


def measure_speed(options: EncoderOptions, texts: Sequence[str], seed: int) -> Speed:
    """Load the encoder anew and encode a sample without the cache; loading is timed apart."""
    chosen = np.random.default_rng(seed).permutation(len(texts))[:SAMPLE]
    sample = [texts[i] for i in sorted(chosen)]
    device = choose_device(options.device)
    process = psutil.Process()
    before = process.memory_info().rss
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    encoder = open_encoder(replace(options, cache=False))
    for _ in encoder.stream(sample[:1]):
        pass
    loaded = time.perf_counter()
    done = sum(len(encoded.positions) for encoded in encoder.stream(sample))
    seconds = time.perf_counter() - loaded
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:
        peak = max(0, process.memory_info().rss - before)
    return Speed(done / seconds, loaded - start, peak / 1e6, len(sample), str(device))
