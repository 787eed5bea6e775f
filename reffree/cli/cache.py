"""``reffree cache``: what is on disk, whether it is intact, and how to be rid of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from reffree.cli.options import progress
from reffree.errors import CacheError, UnknownNameError, counted

folder_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="REFFREE_CACHE_DIR",
    help="Folder of the embedding cache.  [default: the user's cache folder]",
)


@click.group(name="cache")
def command() -> None:
    """List, check and remove cached embeddings."""


@command.command(name="ls")
@folder_option
def list_files(cache_dir: Path | None) -> None:
    """Show every cache file: encoder, revision, vectors, size."""
    from reffree.encoders.cache import EmbeddingCache, cache_files, default_folder

    folder = cache_dir or default_folder()
    paths = cache_files(folder)
    for path in paths:
        try:
            info = EmbeddingCache(path).info()
        except CacheError as error:
            click.echo(f"{path.stem}  {error}")
            continue
        click.echo(
            f"{path.stem}  {info.encoder}@{info.revision}  {info.rows:,} vectors of "
            f"{info.dimension or 0}  {_megabytes(info.size)}"
        )
    click.echo(f"{counted(len(paths), 'cache file')} in {folder}", err=True)


@command.command(name="rm")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Remove every cache file.")
@folder_option
def remove_files(names: tuple[str, ...], everything: bool, cache_dir: Path | None) -> None:
    """Remove cache files by NAME, as shown by reffree cache ls (a unique beginning will do)."""
    from reffree.encoders.cache import cache_files, default_folder, remove

    if bool(names) == everything:
        raise click.UsageError("name the files to remove, or pass --all.")
    paths = cache_files(cache_dir or default_folder())
    chosen = paths if everything else _choose(names, paths)
    freed = remove(chosen)
    click.echo(f"removed {counted(len(chosen), 'cache file')}, {_megabytes(freed)}")


@command.command(name="verify")
@click.argument("names", nargs=-1)
@folder_option
def verify_files(names: tuple[str, ...], cache_dir: Path | None) -> None:
    """Check every vector's checksum, in the files named or in all; exit 1 if any is damaged."""
    from reffree.encoders.cache import EmbeddingCache, cache_files, default_folder

    paths = cache_files(cache_dir or default_folder())
    damaged = 0
    for path in _choose(names, paths) if names else paths:
        try:
            cache = EmbeddingCache(path)
            rows = cache.info().rows
            with progress("Verifying", rows) as advance:
                for _ in cache.verify():
                    advance(1)
        except CacheError as error:
            damaged += 1
            click.echo(f"{path.stem}  DAMAGED  {error}")
        else:
            click.echo(f"{path.stem}  ok  {rows:,} vectors")
    if damaged:
        raise CacheError(
            f"found {counted(damaged, 'damaged cache file')}; remove with reffree cache rm"
        )


def _choose(names: Sequence[str], paths: Sequence[Path]) -> list[Path]:
    chosen = []
    for name in names:
        matching = [path for path in paths if path.stem.startswith(name)]
        if not matching:
            raise UnknownNameError("cache file", name, [path.stem for path in paths])
        if len(matching) > 1 and name not in [path.stem for path in matching]:
            listed = ", ".join(path.stem for path in matching)
            raise click.UsageError(f"{name!r} begins the names of several cache files: {listed}.")
        chosen.append(next((p for p in matching if p.stem == name), matching[0]))
    return chosen


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
