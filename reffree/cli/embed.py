"""``reffree embed``: fill the embedding cache, with one process or many."""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.cache import limit_option
from reffree.cli.inputs import (
    CommandOptions,
    FileOptions,
    check_encoding,
    check_engine,
    keywords_of,
    read_corpus,
)
from reffree.cli.interrupts import INTERRUPTED
from reffree.cli.messages import log_to_terminal, progress, tell, tell_json, tell_notes
from reffree.cli.options import encoded_corpus_options, engine_options
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import EncoderError, OptionError, counted

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.encoders.cache import CachedEncoder
    from reffree.encoders.fill_cache import Advance, Filled
    from reffree.encoders.launcher import SingleProcess


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for, as every process needs it."""

    reading: FileOptions
    options: EncoderOptions
    devices: tuple[str, ...]
    cache_limit: int | None
    as_json: bool


@click.command(name="embed")
@click.option(
    "-f",
    "report_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Report as a line on standard error, or as JSON on standard output too.",
)
@limit_option
@engine_options
@encoded_corpus_options
def command(
    report_format: str,
    cache_limit: int | None,
    engine: str,
    ray_address: str | None,
    ray_actors: int | None,
    **given: Unpack[CommandOptions],
) -> None:
    """Encode a corpus into the cache, so that later commands need no encoder.

    CORPUS is read as in reffree score. Several devices share the work: name them, as in --device
    cuda:0,cuda:1, or say --device all; or start it with torchrun or accelerate launch on one host.
    On many hosts --engine ray has actors encode; only this process writes the cache.
    """
    check_engine(engine, ray_address, ray_actors)
    if not given["cache"]:
        raise click.UsageError("reffree embed fills the cache: leave --no-cache out.")
    check_encoding(given)

    from reffree.encoders.launcher import SingleProcess, is_launched, launch, split_devices

    devices = tuple(split_devices(given["device"]))
    if "-" in given["corpora"] and (len(devices) > 1 or is_launched()):
        raise click.UsageError("only one process can read standard input: name a file.")
    request = Request(
        reading=given,
        options=EncoderOptions(**keywords_of(given, Encoding)),
        devices=devices,
        cache_limit=cache_limit,
        as_json=report_format == "json",
    )
    if engine == "ray":
        _embed_by_actors(request, ray_address, ray_actors)
    elif is_launched():
        embed_as_rank(request)
    elif len(devices) > 1:
        sys.exit(launch(embed_as_rank, [request], len(devices)))
    else:
        _embed(request, SingleProcess())


def embed_as_rank(request: Request) -> None:
    """Do one rank's share; the first speaks for all."""
    with log_to_terminal():  # the process may be one that the command has started
        _embed_as_rank(request)


def _embed_as_rank(request: Request) -> None:
    from reffree.encoders.launcher import RankError, Ranks

    try:
        ranks = Ranks()
    except EncoderError as error:
        if os.environ.get("RANK", "0") == "0":
            tell(f"reffree: error: {error}", err=True)
        sys.exit(1)
    if ranks.rank > 0:
        logging.getLogger("reffree").setLevel(logging.ERROR)
    try:
        _embed(request, ranks)
    except RankError as error:
        if ranks.rank == 0:
            tell(f"reffree: error: {error}", err=True)
        with suppress(RankError):
            ranks.leave()
        sys.exit(1)
    except KeyboardInterrupt:
        if ranks.rank == 0:
            raise
        sys.exit(INTERRUPTED)


def _embed(request: Request, ranks: SingleProcess) -> None:
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.fill_cache import fill

    corpus, encoder = ranks.run(lambda: _open(request, ranks))
    texts = distinct_texts(corpus, request.options.context)
    started = time.perf_counter()
    with ExitStack() as stack:

        def bar(total: int) -> Advance:
            shown = progress("Encoding", total)
            return stack.enter_context(shown) if ranks.rank == 0 else lambda done: None

        filled = fill(encoder, texts, ranks, bar)
    if ranks.rank == 0:
        seconds = time.perf_counter() - started
        _report(request, corpus, texts, encoder, filled, seconds, _devices(request, ranks))
    ranks.leave()


def _embed_by_actors(request: Request, address: str | None, n: int | None) -> None:
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.launcher import SingleProcess
    from reffree.encoders.ray_actors import fill_by_actors, ray_actors

    # The driver only writes: whatever device the actors have, it needs none.
    corpus, encoder = _open(replace(request, devices=("cpu",)), SingleProcess())
    texts = distinct_texts(corpus, request.options.context)
    with ExitStack() as stack:
        actors = stack.enter_context(ray_actors(address, n, device=request.options.device))
        started = time.perf_counter()
        filled = fill_by_actors(
            actors,
            encoder,
            texts,
            request.options,
            lambda total: stack.enter_context(progress("Encoding", total)),
        )
        seconds = time.perf_counter() - started
    who = counted(actors.n, "Ray actor")
    _report(request, corpus, texts, encoder, filled, seconds, [who])


def _open(request: Request, ranks: SingleProcess) -> tuple[Corpus, CachedEncoder]:
    corpus = read_corpus(request.reading)

    from reffree.encoders.cache import CachedEncoder
    from reffree.encoders.sentence_transformer import open_encoder
    from reffree.encoders.unit_filter import filter_units

    corpus = filter_units(corpus, request.options).corpus
    device = _devices(request, ranks)[ranks.rank]
    encoder = open_encoder(replace(request.options, device=device))
    if not isinstance(encoder, CachedEncoder):
        raise EncoderError(
            f"encoder {encoder.spec.name!r}: found vectors that are not cached; expected an "
            "encoder worth caching; use it without reffree embed"
        )
    if request.cache_limit is not None:
        encoder.limit = request.cache_limit
    return corpus, encoder


def _devices(request: Request, ranks: SingleProcess) -> list[str]:
    """One device per rank: those named, or a CUDA device each where there are any."""
    import torch

    from reffree.encoders.device import choose_device

    (first, *others) = request.devices
    if others and len(request.devices) != ranks.size:
        raise OptionError(
            f"{len(request.devices)} devices for {counted(ranks.size, 'process')}",
            expected="one device per process",
            remedy="let the launcher start as many, or leave --device out",
        )
    if others:
        return list(request.devices)
    if ranks.size > 1 and first in ("auto", "cuda") and torch.cuda.is_available():
        return [f"cuda:{rank}" for rank in range(ranks.size)]
    return [str(choose_device(first))] * ranks.size


def _report(
    request: Request,
    corpus: Corpus,
    texts: list[str],
    encoder: CachedEncoder,
    filled: Filled,
    seconds: float,
    devices: list[str],
) -> None:
    encoded = sum(filled.encoded)
    kept = len(texts) - len(encoder.missing(texts)) if filled.evicted else len(texts)
    speed = encoded / seconds if encoded else None
    notes = list(corpus.notes)
    if filled.evicted:
        notes.append(
            f"the cache limit had {counted(filled.evicted, 'vector')} evicted; {kept:,} of this "
            f"corpus's {counted(len(texts), 'distinct text')} are cached now"
        )
    tell_notes(notes)
    rate = f" in {seconds:.1f} s ({speed:,.0f} a second)" if speed else ""
    tell(
        f"{counted(len(texts), 'distinct text')}: {filled.cached:,} cached before, {encoded:,} "
        f"encoded{rate} on {', '.join(devices)}; in {encoder.cache.path}",
        err=True,
    )
    if request.as_json:
        report = {
            "encoder": encoder.spec.name,
            "revision": encoder.spec.revision,
            "fingerprint": encoder.spec.fingerprint,
            "file": str(encoder.cache.path),
            "documents": len(corpus),
            "units": corpus.n_units,
            "texts": len(texts),
            "cached": filled.cached,
            "encoded": encoded,
            "evicted": filled.evicted,
            "kept": kept,
            "seconds": round(seconds, 3),
            "texts_per_second": None if speed is None else round(speed, 1),
            "processes": [
                {"device": device, "encoded": n}
                for device, n in zip(devices, filled.encoded, strict=True)
            ],
        }
        tell_json(report)
