"""``reffree cache verify``: are cached vectors as they were written, and as they would be now?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.atomic import cache_folder
from reffree.cli.inputs import check_encoding
from reffree.cli.messages import progress, tell
from reffree.cli.options import encoding_options, seed_option
from reffree.errors import CacheError, counted

if TYPE_CHECKING:
    from reffree.encoders.options import Encoding


@click.command(name="verify")
@click.argument("names", nargs=-1)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Encode N random texts of --corpus that are cached once more, and compare.",
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="CORPUS",
    help="Where the sample's texts come from, as the cache keeps no text; may be repeated.",
)
@seed_option
@encoding_options
def verify_files(
    names: tuple[str, ...],
    sample: int | None,
    corpora: tuple[str, ...],
    seed: int,
    **encoding: Unpack[Encoding],
) -> None:
    """Check every vector's checksum, in the files named or in all; exit 1 if any is damaged.

    With --sample, check instead that the encoder (--encoder and its options) still gives the
    vectors that are cached for it.
    """
    if not encoding["cache"]:
        raise click.UsageError("reffree cache verify reads the cache: leave --no-cache out.")
    if (sample is None) != (not corpora):
        raise click.UsageError("--sample N and --corpus CORPUS go together: give both or neither.")
    if sample is None:
        if encoding["encoder"] is not None:
            raise click.UsageError("--encoder goes with --sample; without, name cache files.")
        _verify_checksums(names, encoding["cache_dir"])
    elif names:
        raise click.UsageError("--sample checks the file of its --encoder: leave the names out.")
    else:
        check_encoding(encoding)
        _verify_sample(sample, corpora, seed, encoding)


def _verify_checksums(names: Sequence[str], cache_dir: Path | str | None) -> None:
    from reffree.encoders.cache import (
        EmbeddingCache,
        cache_files,
        choose_files,
    )

    paths = cache_files(Path(cache_dir) if cache_dir else cache_folder())
    damaged = 0
    for path in choose_files(names, paths) if names else paths:
        try:
            with EmbeddingCache(path) as cache:
                rows = cache.n_rows
                with progress("Verifying", rows) as advance:
                    for _ in cache.verify():
                        advance(1)
        except CacheError as error:
            damaged += 1
            tell(f"{path.stem}  DAMAGED  {error}")
        else:
            tell(f"{path.stem}  ok  {rows:,} vectors")
    if damaged:
        raise CacheError(
            f"found {counted(damaged, 'damaged cache file')}; remove with reffree cache rm"
        )


def _verify_sample(n: int, corpora: tuple[str, ...], seed: int, encoding: Encoding) -> None:
    from reffree.formats import load

    corpus = load(*corpora)

    from reffree.encoders.cache import CachedEncoder
    from reffree.encoders.cache.encoder import compare_sample
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.options import EncoderOptions
    from reffree.encoders.sentence_transformer import open_encoder
    from reffree.encoders.unit_filter import filter_units

    options = EncoderOptions(**encoding)
    encoder = open_encoder(options)
    if not isinstance(encoder, CachedEncoder):
        raise CacheError(f"encoder {encoder.spec.name!r}: found no cache of its vectors")
    name = encoder.cache.path.stem
    texts = distinct_texts(filter_units(corpus, options).corpus, options.context)
    result = compare_sample(encoder, texts, n, seed)
    if not result.compared:
        raise CacheError(
            f"{encoder.cache.path}: found none of the corpus's texts; expected some to compare; "
            "fill the cache with reffree embed, or name the --encoder it was filled with"
        )
    measured = f"largest deviation {result.largest:.1e} (allowed {result.allowed:.1e})"
    if result.differing:
        raise CacheError(
            f"{encoder.cache.path}: found {result.differing} of {result.compared} vectors that "
            f"differ from what the encoder gives now, {measured}; expected the same; remove them "
            f"with reffree cache rm {name}"
        )
    tell(f"{name}  ok  {counted(result.compared, 'vector')} encoded again, {measured}")
