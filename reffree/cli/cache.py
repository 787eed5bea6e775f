"""``reffree cache``: cached vectors listed, checked, filled and removed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.derive import encoding_options
from reffree.cli.files import check_encoding, read_corpus
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import READING_OPTIONS, PagedCommand, corpora_argument
from reffree.encoders.options import EncoderOptions
from reffree.util.atomic import cache_folder
from reffree.util.errors import CacheError, EncoderError, counted

if TYPE_CHECKING:
    from reffree.encoders.cache import CachedEncoder

ROUNDING = {"float32": 1e-5, "tf32": 1e-2, "float16": 1e-2, "bfloat16": 1e-1}
"""How far two vectors of one text may lie apart: batches round differently."""

ENCODING = ("drop", "device", "offline", "cache")

_cache_option = encoding_options("cache")
_encoding_options = encoding_options("encoders", *ENCODING)


def _folder(cache: str | None) -> Path:
    if cache == "off":
        raise click.UsageError("reffree cache works on a cache: name its folder with --cache DIR.")
    return Path(cache) if cache else cache_folder()


def _megabytes(*paths: Path) -> str:
    from reffree.encoders.cache import size_of

    return f"{sum(map(size_of, paths)) / 1e6:,.1f} MB"


@click.group(name="cache")
def command() -> None:
    """List, check, fill and remove cached vectors."""


@command.command(cls=PagedCommand, name="ls")
@_cache_option
def list_files(cache: str | None) -> None:
    """Show every cache file (encoder, revision, vectors, size)."""
    from reffree.encoders import cache as store

    folder = _folder(cache)
    paths = store.cache_files(folder)
    for path in paths:
        try:
            with store.EmbeddingCache(path) as opened:
                spec, n, dimension = opened.meta["spec"], opened.n_rows, opened.dimension or 0
        except CacheError as error:
            tell(f"{path.stem}  {error}")
            continue
        encoder = f"{spec.get('name')}@{spec.get('revision')}"
        tell(f"{path.stem}  {encoder}  {n:,} vectors of {dimension}  {_megabytes(path)}")
    tell(f"{counted(len(paths), 'cache file')}, {_megabytes(*paths)}, in {folder}", err=True)
    if old := store.cache_files(folder, old=True):
        others = f"{counted(len(old), 'file')} of other versions of reffree, {_megabytes(*old)}"
        tell_notes([f"{others}: remove with reffree cache rm --old"])


@command.command(cls=PagedCommand, name="rm")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove all of the cache.")
@click.option("--old", is_flag=True, help="Remove the files of other versions of reffree.")
@_cache_option
def remove_files(names: tuple[str, ...], everything: bool, old: bool, cache: str | None) -> None:
    """Remove files by NAME, as reffree cache ls has it (a unique beginning will do)."""
    from reffree.encoders import cache as store

    if bool(names) + everything + old != 1:
        raise click.UsageError("name the files, or pass one of --all and --old.")
    folder = _folder(cache)
    chosen = store.cache_files(folder)
    if names:
        chosen = store.choose_files(names, chosen)
    else:
        chosen = [*(chosen if everything else []), *store.cache_files(folder, old=True)]
    facts = store.fact_files(folder) if everything else []
    freed = _megabytes(*chosen, *facts)
    store.remove([*chosen, *facts])
    tell(f"removed {counted(len(chosen), 'file')}, {freed}")


@command.command(cls=PagedCommand, name="verify")
@click.argument("names", nargs=-1)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Check the --encoder instead: NAMES are corpora, of whose cached texts N are encoded once "
    "more and compared.",
)
@READING_OPTIONS
@_encoding_options
def verify_files(names: tuple[str, ...], sample: int | None, **given: Any) -> None:  # noqa: ANN401
    """Check every vector's checksum, in the files named or in all; exit 1 if any is damaged."""
    from reffree.encoders.cache import EmbeddingCache, cache_files, choose_files

    folder, encoders = _folder(given["cache"]), given["encoders"]
    if sample is not None:
        if not names:
            raise click.UsageError("--sample N needs the corpora whose texts it takes.")
        for encoder, texts in _encoders_and_texts({**given, "corpora": names}):
            _compare_sample(encoder, texts, sample)
        return
    if encoders:
        raise click.UsageError("--encoder goes with --sample; without, name cache files.")
    paths, damaged = cache_files(folder), 0
    for path in choose_files(names, paths) if names else paths:
        try:
            with EmbeddingCache(path) as cache:
                n = cache.n_rows
                with progress("Verifying", n) as advance:
                    for _ in cache.verify():
                        advance(1)
        except CacheError as error:
            damaged += 1
            tell(f"{path.stem}  DAMAGED  {error}")
        else:
            tell(f"{path.stem}  ok  {n:,} vectors")
    if damaged:
        raise CacheError(
            f"found {counted(damaged, 'damaged cache file')}; remove with reffree cache rm"
        )


@command.command(cls=PagedCommand, name="fill")
@corpora_argument()
@READING_OPTIONS
@_encoding_options
def fill_cache(**given: Any) -> None:  # noqa: ANN401  (values of any option)
    """Encode a corpus into the cache, so that later commands need no encoder.

    Several devices share the work: --device cuda:0,cuda:1 or all; on many hosts, actors of Ray.
    """
    for encoder, texts in _encoders_and_texts(given):
        missing = [texts[i] for i in encoder.missing(texts)]
        if missing and encoder.cache.is_read_only:
            raise CacheError(
                f"{encoder.cache.path}: found a read-only cache that lacks "
                f"{counted(len(missing), 'text')}; expected one that can be filled; free the "
                "rights, or choose another --cache"
            )
        start = time.perf_counter()
        with progress("Encoding", len(missing)) as advance:
            for encoded in encoder.stream(missing):
                advance(len(encoded.positions))
        seconds = time.perf_counter() - start
        rate = f" in {seconds:.1f} s ({len(missing) / seconds:,.0f} a second)" if missing else ""
        tell(
            f"{encoder.cache.path.stem}  {counted(len(texts), 'distinct text')}: "
            f"{len(texts) - len(missing):,} cached before, {len(missing):,} encoded{rate}"
        )


def _encoders_and_texts(given: Mapping[str, Any]) -> list[tuple[CachedEncoder, list[str]]]:
    """Open every encoder with its cache, and find the texts that it encodes of the corpora."""
    _folder(given["cache"])
    check_encoding(given, None)
    shared = {name: given[name] for name in ENCODING if given[name] is not None}
    several = [EncoderOptions(encoder=e, **shared) for e in given["encoders"] or [None]]
    corpus = read_corpus(given)

    from reffree.data.filter import filter_units
    from reffree.encoders.cache import CachedEncoder
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.opening import open_encoder

    corpus = filter_units(corpus, given["drop"]).corpus
    tell_notes(corpus.notes)
    found = []
    for options in several:
        encoder = open_encoder(options)
        assert isinstance(encoder, CachedEncoder)  # there is a cache
        found.append((encoder, distinct_texts(corpus, options.context)))
    return found


def _compare_sample(encoder: CachedEncoder, texts: list[str], n: int) -> None:
    """Encode up to ``n`` of the texts that are cached, spread evenly, once more."""
    import numpy as np

    from reffree.encoders.base import encode_texts

    path, absent = encoder.cache.path, set(encoder.missing(texts))
    present = [text for i, text in enumerate(texts) if i not in absent]
    if not present:
        raise CacheError(
            f"{path}: found none of the corpus's texts; expected some to compare; fill the cache "
            "with reffree cache fill, or name the --encoder it was filled with"
        )
    chosen = present[:: -(-len(present) // n)]
    cached, cached_tokens = encode_texts(encoder, chosen)
    now, tokens = encode_texts(encoder.inner, chosen)
    allowed = ROUNDING[encoder.spec.dtype] * max(1.0, float(np.abs(now).max()))
    if cached.shape != now.shape:
        raise EncoderError(f"{path}: found vectors of another length than the encoder gives now")
    apart = np.abs(cached - now).max(axis=1)
    measured = f"largest deviation {apart.max():.1e} (allowed {allowed:.1e})"
    if wrong := int(((apart > allowed) | (cached_tokens != tokens)).sum()):
        raise CacheError(
            f"{path}: found {wrong} of {len(chosen)} vectors that differ from what the encoder "
            f"gives now, {measured}; expected the same; remove them with reffree cache rm "
            f"{path.stem}"
        )
    tell(f"{path.stem}  ok  {counted(len(chosen), 'vector')} encoded again, {measured}")
