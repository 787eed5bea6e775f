"""``reffree cache``: what is on disk, whether it is intact, how to carry it and be rid of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import check_encoding
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import cache_dir_option, encoding_options, seed_option
from reffree.util.atomic import cache_folder
from reffree.util.errors import CacheError, counted

if TYPE_CHECKING:
    from reffree.encoders.cache.transfer import Added
    from reffree.encoders.options import Encoding


def _limit(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    from reffree.encoders.cache.eviction import parse_limit

    return parse_limit(text, "--cache-limit")


limit_option = click.option(
    "--cache-limit",
    envvar="REFFREE_CACHE_LIMIT",
    callback=_limit,
    metavar="SIZE",
    help="The most that all cached embeddings may take, such as 500M or 2G, graphs of backends not "
    "counted; those used longest ago make room. REFFREE_CACHE_LIMIT sets it for every command.",
)


@click.group(name="cache")
def command() -> None:
    """List, check, carry and remove cached embeddings."""


@command.command(cls=PagedCommand, name="ls")
@cache_dir_option
def list_files(cache_dir: Path | None) -> None:
    """Show every cache file (encoder, revision, vectors, size) and the graphs of backends."""
    from reffree.encoders.cache import EmbeddingCache, cache_files, old_files
    from reffree.encoders.cache.files import graphs

    folder = cache_dir or cache_folder()
    paths = cache_files(folder)
    size = 0
    for path in paths:
        try:
            with EmbeddingCache(path) as cache:
                spec, vectors = cache.meta["spec"], f"{cache.n_rows:,} vectors"
                encoder = f"{spec.get('name')}@{spec.get('revision')}"
                content, taken = f"{encoder}  {vectors} of {cache.dimension or 0}", cache.size
        except CacheError as error:
            tell(f"{path.stem}  {error}")
            continue
        size += taken
        tell(f"{path.stem}  {content}  {_megabytes(taken)}")
    exported = graphs(folder)
    for graph in exported:
        tell(f"{graph.path.name}  {graph.encoder}  graph  {_megabytes(graph.size)}")
    told = f"{counted(len(paths), 'cache file')}, {_megabytes(size)}"
    if exported:
        total = sum(graph.size for graph in exported)
        told += f", and {counted(len(exported), 'graph')}, {_megabytes(total)}"
    tell(f"{told}, in {folder}", err=True)
    if old := old_files(folder):
        size = sum(path.stat().st_size for path in old)
        others = f"{counted(len(old), 'file')} of other versions of reffree, {_megabytes(size)}"
        tell_notes([f"{others}: remove with reffree cache rm --old"])


@command.command(cls=PagedCommand, name="rm")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove every cache file and graph.")
@click.option("--old", is_flag=True, help="Remove the files of other versions of reffree.")
@click.option(
    "--graphs",
    "only_graphs",
    is_flag=True,
    help="Remove what backends have exported and batch sizes that were found out.",
)
@cache_dir_option
def remove_files(
    names: tuple[str, ...], everything: bool, old: bool, only_graphs: bool, cache_dir: Path | None
) -> None:
    """Remove cache files by NAME, as shown by reffree cache ls (a unique beginning will do)."""
    from reffree.encoders.cache import cache_files, choose_files, old_files, remove
    from reffree.encoders.cache.files import remove_graphs

    if bool(names) + everything + old + only_graphs != 1:
        raise click.UsageError("name the files, or pass one of --all, --old and --graphs.")
    folder = cache_dir or cache_folder()
    paths = cache_files(folder)
    if names:
        chosen = choose_files(names, paths)
    else:
        chosen = [*(paths if everything else []), *([] if only_graphs else old_files(folder))]
    told = []
    if everything or only_graphs:
        n, freed = remove_graphs(folder)
        told.append(f"{counted(n, 'graph')}, {_megabytes(freed)}")
    if not only_graphs:
        freed = remove(chosen)
        told.insert(0, f"{counted(len(chosen), 'cache file')}, {_megabytes(freed)}")
    tell(f"removed {'; '.join(told)}")


@command.command(cls=PagedCommand, name="evict")
@limit_option
@cache_dir_option
def evict_rows(cache_limit: int | None, cache_dir: Path | None) -> None:
    """Delete the vectors used longest ago until the rest fits into --cache-limit."""
    from reffree.encoders.cache import cache_files
    from reffree.encoders.cache.eviction import evict

    if cache_limit is None:
        raise click.UsageError("say how much may stay: --cache-limit SIZE, such as 2G.")
    done = evict(cache_files(cache_dir or cache_folder()), cache_limit)
    tell(
        f"evicted {counted(done.rows, 'vector')}: {_megabytes(done.before)} before, "
        f"{_megabytes(done.after)} now"
    )
    tell_notes(f"{path.stem} cannot be read and is left as it is" for path in done.unreadable)
    if done.after > cache_limit:
        rest = f"{_megabytes(done.after)} is what files without vectors take"
        tell_notes([f"{rest}; remove them with reffree cache rm"])


@command.command(cls=PagedCommand, name="export")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The safetensors file to write: vectors, keys of their texts, tokens, checksums.",
)
@cache_dir_option
def export_rows(name: str, output: Path, cache_dir: Path | None) -> None:
    """Write a cache file's vectors to a safetensors file, for reffree cache import elsewhere."""
    from reffree.encoders.cache import EmbeddingCache, cache_files, choose_files
    from reffree.encoders.cache.transfer import export_file

    (path,) = choose_files([name], cache_files(cache_dir or cache_folder()))
    with EmbeddingCache(path) as cache:
        rows, damaged = export_file(cache, output)
    tell(f"{path.stem}  {counted(rows, 'vector')} written to {output}")
    if damaged:
        tell_notes([f"{counted(damaged, 'row')} failing the checksum left out"])


@command.command(cls=PagedCommand, name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@cache_dir_option
def import_rows(files: tuple[Path, ...], cache_dir: Path | None) -> None:
    """Take the vectors of FILES, as reffree cache export wrote them, into the cache."""
    from reffree.encoders.cache.transfer import import_file

    folder = cache_dir or cache_folder()
    _tell_added([import_file(file, folder) for file in files])


@command.command(cls=PagedCommand, name="merge")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@cache_dir_option
def merge_files(sources: tuple[Path, ...], cache_dir: Path | None) -> None:
    """Take the vectors of other cache files, or of all files of other cache folders, into this."""
    from reffree.encoders.cache import cache_files
    from reffree.encoders.cache.transfer import merge_file

    folder = cache_dir or cache_folder()
    paths: list[Path] = []
    for source in sources:
        found = cache_files(source) or sorted(source.glob("*.sqlite"))
        if source.is_dir() and not found:
            raise CacheError(
                f"{source}: found no cache files of this version of reffree; expected a cache "
                "folder; check the path"
            )
        paths += found if source.is_dir() else [source]
    _tell_added([merge_file(path, folder) for path in paths])


def _tell_added(results: Sequence[Added]) -> None:
    """Say what became of the rows; exit 1 unless all are here now, as they were there."""
    for added in results:
        refused = [
            f", {n:,} {what}"
            for n, what in (
                (added.conflicting, "refused: here with another vector"),
                (added.damaged, "refused: failing the checksum"),
            )
            if n
        ]
        tell(
            f"{added.path.stem}  {added.new:,} new, {added.present:,} already here"
            f"{''.join(refused)}"
        )
    conflicting = sum(added.conflicting for added in results)
    damaged = sum(added.damaged for added in results)
    if conflicting or damaged:
        raise CacheError(
            f"found {counted(conflicting, 'conflicting row')} and {counted(damaged, 'damaged row')}"
            "; expected the vectors of one encoder, intact; all others are taken over; see "
            "reffree cache verify on both sides"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@command.command(cls=PagedCommand, name="verify")
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
    from reffree.encoders.cache import EmbeddingCache, cache_files, choose_files

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

    from reffree.data.filter import filter_units
    from reffree.encoders.cache import CachedEncoder
    from reffree.encoders.cache.encoder import compare_sample
    from reffree.encoders.embed import distinct_texts
    from reffree.encoders.options import EncoderOptions
    from reffree.encoders.sentence_transformer import open_encoder

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
