"""Fill the cache with a corpus's vectors: by this process, by many of a host, or by Ray's actors.

Processes share the missing texts out, and vectors travel through the cache only: they tell each
other positions, counts and failures. Actors hand their rows to the driver, which alone writes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reffree.data.corpus import Corpus
from reffree.encoders.address import is_endpoint, refuse_endpoint
from reffree.encoders.cache import CachedEncoder
from reffree.encoders.launcher import SingleProcess
from reffree.encoders.options import EncoderOptions
from reffree.util.errors import CacheError, EncoderError, OptionError, counted
from reffree.util.progress import Progress, no_progress

TEXTS_PER_ITEM = 4096
"""Texts that an actor encodes in one go; what an interrupted run may lose per actor."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What filling the cache did."""

    cached: int  # texts whose vectors were there before
    encoded: list[int]  # texts, by process
    evicted: int  # rows that made room under the cache limit


@dataclass(frozen=True, slots=True)
class CacheJob:
    """What is to be encoded, as every process needs it; none of it loads a model."""

    read: Callable[[], Corpus]
    options: EncoderOptions
    devices: tuple[str, ...]  # one for all processes, or one each
    limit: int | None = None  # bytes that all cache files may take

    def corpus(self) -> Corpus:
        """Read the corpus, without the units that take no part."""
        corpus = self.read()

        from reffree.data.filter import filter_units

        return filter_units(corpus, self.options).corpus

    def encoder(self, device: str, *, is_elsewhere: bool = False) -> CachedEncoder:
        """Open the encoder with its cache; ``is_elsewhere`` is that of `open_encoder`."""
        from reffree.encoders.sentence_transformer import open_encoder

        options = replace(self.options, device=device)
        encoder = open_encoder(options, is_elsewhere=is_elsewhere)
        if not isinstance(encoder, CachedEncoder):
            raise EncoderError(
                f"encoder {encoder.spec.name!r}: found vectors that are not cached; expected an "
                "encoder worth caching; use it without reffree embed"
            )
        if self.limit is not None:
            encoder.limit = self.limit
        return encoder

    def device_names(self, n: int) -> list[str]:
        """Name a device for each of ``n`` processes: as given, or a CUDA device each if any."""
        import torch

        from reffree.encoders.device import choose_device

        first, *others = self.devices
        if others and len(self.devices) != n:
            raise OptionError(
                f"{len(self.devices)} devices for {counted(n, 'process')}",
                expected="one device per process",
                remedy="let the launcher start as many, or leave --device out",
            )
        if others:
            return list(self.devices)
        if n > 1 and first in ("auto", "cuda") and torch.cuda.is_available():
            return [f"cuda:{rank}" for rank in range(n)]
        return [str(choose_device(first))] * n


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What a job has done, and what ``reffree embed`` says of it."""

    corpus: Corpus
    encoder: CachedEncoder
    texts: Sequence[str]
    filled: Filled
    seconds: float
    devices: Sequence[str]  # by process

    @property
    def encoded(self) -> int:
        """Texts that were encoded, by all processes."""
        return sum(self.filled.encoded)

    @property
    def speed(self) -> float | None:
        """Texts encoded in a second; None where there was nothing to encode."""
        return self.encoded / self.seconds if self.encoded else None

    @property
    def kept(self) -> int:
        """Texts of the corpus whose vectors are in the cache now."""
        missing = self.encoder.missing(self.texts) if self.filled.evicted else ()
        return len(self.texts) - len(missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        spec = self.encoder.spec
        return {
            "encoder": spec.name,
            "revision": spec.revision,
            "fingerprint": spec.fingerprint,
            "file": str(self.encoder.cache.path),
            "documents": len(self.corpus),
            "units": self.corpus.n_units,
            "texts": len(self.texts),
            "cached": self.filled.cached,
            "encoded": self.encoded,
            "evicted": self.filled.evicted,
            "kept": self.kept,
            "seconds": round(self.seconds, 3),
            "texts_per_second": None if self.speed is None else round(self.speed, 1),
            "processes": [
                {"device": device, "encoded": n}
                for device, n in zip(self.devices, self.filled.encoded, strict=True)
            ],
        }


def fill_by_processes(
    job: CacheJob, ranks: SingleProcess, progress: Progress = no_progress
) -> CacheReport:
    """Do the share of this process, one of ``ranks``; returns what all of them have done.

    The first shows the progress of its share.
    """
    from reffree.encoders.embed import distinct_texts

    def opened() -> tuple[Corpus, list[str], CachedEncoder]:
        if ranks.size > 1:
            refuse_endpoint(job.options.encoder, "several processes")
        corpus = job.corpus()
        devices = job.device_names(ranks.size)
        return corpus, devices, job.encoder(devices[ranks.rank])

    corpus, devices, encoder = ranks.run(opened)
    if is_endpoint(job.options.encoder):
        devices = [encoder.spec.revision]
    texts = distinct_texts(corpus, job.options.context)
    start = time.perf_counter()
    filled = fill(encoder, texts, ranks, progress if ranks.rank == 0 else no_progress)
    return CacheReport(corpus, encoder, texts, filled, time.perf_counter() - start, devices)


def fill_by_actors(
    job: CacheJob, address: str | None, n: int | None, progress: Progress = no_progress
) -> CacheReport:
    """Have Ray's actors do a job; ``address`` and ``n`` are those of `ray_actors`."""
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.ray_actors import TextWork, for_actors, ray_actors

    refuse_endpoint(job.options.encoder, "Ray's actors")
    # The driver only writes: whatever device the actors have, it needs none.
    corpus, encoder = job.corpus(), job.encoder("cpu", is_elsewhere=True)
    texts = distinct_texts(corpus, job.options.context)
    with ray_actors(address, n, device=job.options.device) as actors:
        start = time.perf_counter()
        missing = [texts[i] for i in _missing(encoder, texts)]
        parts = [missing[i : i + TEXTS_PER_ITEM] for i in range(0, len(missing), TEXTS_PER_ITEM)]
        with progress("Encoding", len(missing)) as advance:
            for rows in actors.map(TextWork, (for_actors(job.options), encoder.spec), parts):
                encoder.add(rows)
                advance(len(rows))
        seconds = time.perf_counter() - start
    filled = Filled(len(texts) - len(missing), [encoder.n_encoded], encoder.n_evicted)
    return CacheReport(corpus, encoder, texts, filled, seconds, [counted(actors.n, "Ray actor")])


def fill(
    encoder: CachedEncoder,
    texts: Sequence[str],
    ranks: SingleProcess,
    progress: Progress = no_progress,
) -> Filled:
    """Encode the missing ones of distinct texts into the cache that all ranks share, each by one.

    The first rank looks up what is missing: were all to look, those who come later would miss
    what the first have already written, and the shares would not fit together.
    """
    if ranks.size > 1:
        ranks.run(lambda: _check_same(encoder, texts, ranks))
    missing = ranks.share(ranks.run(lambda: _missing(encoder, texts) if ranks.rank == 0 else []))
    mine = [texts[i] for i in split_by_length(texts, missing, ranks.size)[ranks.rank]]

    def encode() -> None:
        with progress("Encoding", len(mine)) as advance:
            for encoded in encoder.stream(mine):
                advance(len(encoded.positions))

    ranks.run(encode)
    return Filled(
        cached=len(texts) - len(missing),
        encoded=ranks.gather(encoder.n_encoded),
        evicted=sum(ranks.gather(encoder.n_evicted)),
    )


def split_by_length(texts: Sequence[str], positions: Sequence[int], n: int) -> list[list[int]]:
    """Share positions out over ``n`` processes: every n-th, from the longest text to the shortest.

    So each gets the same number of texts, within one, and as many long ones as the others; slices
    of the sorted list would give one process all the long texts.

    >>> split_by_length(["aa", "b", "cccc", "ddd"], [0, 1, 2, 3], 2)
    [[2, 0], [3, 1]]
    """
    longest_first = sorted(positions, key=lambda i: (-len(texts[i]), i))
    return [longest_first[rank::n] for rank in range(n)]


def _missing(encoder: CachedEncoder, texts: Sequence[str]) -> list[int]:
    """Return the texts to encode; refuse a cache that would not keep them."""
    missing = encoder.missing(texts)
    if missing and encoder.cache.is_read_only:
        raise CacheError(
            f"{encoder.cache.path}: found a read-only cache that lacks "
            f"{counted(len(missing), 'text')}; expected one that can be filled; free the rights, "
            "or choose another --cache-dir"
        )
    return missing


def _check_same(encoder: CachedEncoder, texts: Sequence[str], ranks: SingleProcess) -> None:
    """Refuse ranks that were given something else than the first."""
    digest = hashlib.blake2b(encoder.spec.fingerprint.encode(), digest_size=7)
    for text in texts:
        digest.update(f"{len(text)} {text}".encode())
    own = int.from_bytes(digest.digest(), "big")
    if ranks.share([own]) != [own]:
        raise EncoderError(
            "found another corpus or encoder than the first rank's; expected the same for all; "
            "start every rank with the same command, on files that do not change"
        )
