"""Score segmentations, without gold labels or with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.declaration import read_declaration
from reffree.cli.derive import derived_command, derived_options, given_options
from reffree.cli.files import Output, fail_if, input_files, read_corpus, read_vectors
from reffree.cli.messages import progress
from reffree.cli.options import (
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    Decorator,
    SectionOption,
    corpora_argument,
)
from reffree.util.bounds import check_limit
from reffree.util.errors import check_documents, shorten

if TYPE_CHECKING:
    from reffree.formats.shards import Shards

DECLARATION = read_declaration("reffree.evaluate.score", "score")
IN_MEMORY = 1 / 8
"""Files larger than this share of the free memory are streamed."""


def _limits(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """Read METRIC=VALUE; a metric may have options, with = in them."""
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            limits[name] = float(number)
        except ValueError:
            limits[name] = math.nan
        if not name or not math.isfinite(limits[name]):
            raise click.UsageError(
                f"--fail-under {shorten(text)}: expected METRIC=VALUE, such as pk=0.4."
            )
    return limits


def fail_under_option(help: str) -> Decorator:
    """Make the option of limits by metric."""
    return click.option(
        "--fail-under",
        "limits",
        cls=SectionOption,
        multiple=True,
        metavar="METRIC=VALUE",
        callback=_limits,
        help=help,
    )


@derived_command(
    DECLARATION,
    corpora_argument(),
    derived_options(DECLARATION),
    click.option(
        "--only",
        cls=SectionOption,
        multiple=True,
        metavar="NAME",
        help="Of the rows of --explain and --per-document those of this document or system; may "
        "be repeated.",
    ),
    fail_under_option("Exit with 3 where a system is worse; may be repeated."),
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    help="""Score segmentations without gold labels, and against them where there are any.

    CORPUS is a file or folder of documents with systems' segmentations; - is standard input. JSONL
    and Parquet may be larger than memory.
    """,
)
def command(only: tuple[str, ...], limits: dict[str, float], **given: Any) -> None:  # noqa: ANN401
    """Score a corpus, or files that are too large to be in memory."""
    options = given_options(DECLARATION, given)
    check_limits(limits, options.get("metrics", ()))
    check_limit("null_draws", options.get("null", 0), f"--null {options.get('null')}")
    if only and not (options.get("explain") or options.get("per_document")):
        raise click.UsageError(
            "--only is for what --explain or --per-document shows: add one of them."
        )
    out = Output(given, input_files(given), command="score")
    corpus: Any = _large_files(given, options)
    if corpus is None:
        corpus = read_corpus(given)
        ids = [document.id for document in corpus]
        check_documents([name for name in only if name not in corpus.hypotheses], ids)
        options["embeddings"] = read_vectors(corpus, given["embeddings"])
    table = DECLARATION.load()(corpus, progress=progress, **options)

    from reffree.evaluate.table import judged_by

    if out.format not in ("json", "csv"):  # for people, best first
        table = table.sorted_by(judged_by(table.metrics))
    worse = table.worse_than(limits)
    if only:
        table = table.narrowed(only)
    is_screen = given["output_format"] is None and out.path is None
    out.show(table.shortened() if is_screen else table)
    fail_if(worse)


def check_limits(limits: Mapping[str, float], metrics: Sequence[str]) -> None:
    """Refuse limits for what will not be scored, as far as that is known before the work."""
    if not limits:
        return
    from reffree.evaluate.metric_set import ALL, check_metrics
    from reffree.metrics.registry import DEFAULT, GOLD_DEFAULT

    check_metrics([*limits])
    scored = {name for each in metrics for name in ALL.get(each, [each])}
    for name in limits:
        if name not in (scored or {*DEFAULT, *GOLD_DEFAULT}):
            raise click.UsageError(f"--fail-under {name}: it is not scored; add -m {name}.")


def _large_files(given: Mapping[str, Any], options: Mapping[str, Any]) -> Shards | None:
    """Return files that are to be streamed; None for what fits into memory, or must be in it."""
    beside = (given["system_files"], given["text"], given["embeddings"], options.get("drop"))
    if any(beside) or given["input_format"] not in (None, "jsonl"):
        return None
    import psutil

    from reffree.encoders.device import parse_ray

    is_remote = parse_ray(options.get("device")) is not None
    paths = map(Path, given["corpora"])
    try:
        files = chain.from_iterable(x.iterdir() if x.is_dir() else [x] for x in paths)
        size = sum(file.stat().st_size for file in files if file.is_file())
    except (OSError, ValueError):
        return None  # which reading them explains
    if not is_remote and size <= IN_MEMORY * psutil.virtual_memory().available:
        return None
    from reffree.formats.shards import Shards

    return Shards.of(given["corpora"], given["input_format"])
