"""``reffree embed``: fill the embedding cache, with one process or many."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Unpack

import click

from reffree.cli.cache import limit_option
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    check_encoding,
    check_engine,
    keywords_of,
    read_corpus,
)
from reffree.cli.interrupts import INTERRUPTED
from reffree.cli.messages import log_to_terminal, progress, tell, tell_json, tell_notes
from reffree.cli.options import encoded_corpus_options, engine_options
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.errors import EncoderError, counted

if TYPE_CHECKING:
    from reffree.encoders.fill_cache import CacheJob, CacheReport


@click.command(cls=PagedCommand, name="embed")
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
    check_engine(engine, ray_address, ray_actors, given.get("encoder"))
    if not given["cache"]:
        raise click.UsageError("reffree embed fills the cache: leave --no-cache out.")
    check_encoding(given)

    from reffree.encoders.device import split_devices
    from reffree.encoders.fill_cache import CacheJob, fill_by_actors, fill_by_processes
    from reffree.encoders.launcher import SingleProcess, is_launched, launch

    devices = tuple(split_devices(given["device"]))
    if "-" in given["corpora"] and (len(devices) > 1 or is_launched()):
        raise click.UsageError("only one process can read standard input: name a file.")
    options = EncoderOptions(**keywords_of(given, Encoding))
    job = CacheJob(partial(read_corpus, given), options, devices, cache_limit)
    as_json = report_format == "json"
    if engine == "ray":
        _report(fill_by_actors(job, ray_address, ray_actors, progress), as_json=as_json)
    elif is_launched():
        embed_as_rank(job, as_json)
    elif len(devices) > 1:
        sys.exit(launch(embed_as_rank, [job, as_json], len(devices)))
    else:
        _report(fill_by_processes(job, SingleProcess(), progress), as_json=as_json)


def embed_as_rank(job: CacheJob, as_json: bool) -> NoReturn:
    """Do the share of this process, which a launcher or the command has started, and end it.

    The first rank reports, and tells of errors, for all.
    """
    from reffree.encoders.launcher import end_rank

    with log_to_terminal():
        code = _embed_share(job, as_json)
    end_rank(code)


def _embed_share(job: CacheJob, as_json: bool) -> int:
    from reffree.encoders.fill_cache import fill_by_processes
    from reffree.encoders.launcher import RankError, Ranks

    try:
        ranks = Ranks()
    except EncoderError as error:
        if os.environ.get("RANK", "0") == "0":
            tell(f"reffree: error: {error}", err=True)
        return 1
    if ranks.rank > 0:
        logging.getLogger("reffree").setLevel(logging.ERROR)
    try:
        report = fill_by_processes(job, ranks, progress)
        if ranks.rank == 0:
            _report(report, as_json=as_json)
        report.encoder.cache.close()  # moves what other files hold of it into the one
        ranks.leave()
    except RankError as error:
        if ranks.rank == 0:
            tell(f"reffree: error: {error}", err=True)
        with suppress(RankError):
            ranks.leave()
        return 1
    except KeyboardInterrupt:
        if ranks.rank == 0:
            raise
        return INTERRUPTED
    return 0


def _report(report: CacheReport, *, as_json: bool) -> None:
    texts, filled = counted(len(report.texts), "distinct text"), report.filled
    notes = list(report.corpus.notes)
    if filled.evicted:
        notes.append(
            f"the cache limit had {counted(filled.evicted, 'vector')} evicted; {report.kept:,} of "
            f"this corpus's {texts} are cached now"
        )
    tell_notes(notes)
    rate = f" in {report.seconds:.1f} s ({report.speed:,.0f} a second)" if report.speed else ""
    tell(
        f"{texts}: {filled.cached:,} cached before, {report.encoded:,} encoded{rate} on "
        f"{', '.join(report.devices)}; in {report.encoder.cache.path}",
        err=True,
    )
    if as_json:
        tell_json(report.to_dict())
