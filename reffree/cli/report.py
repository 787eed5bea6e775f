"""``reffree report``: a study's results as a page, as tables, as charts for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.files import Output
from reffree.cli.messages import tell
from reffree.cli.options import OUTPUT_OPTIONS, TABLE_OPTION, PagedCommand
from reffree.util.atomic import make_folder, write_file
from reffree.util.errors import counted

if TYPE_CHECKING:
    from reffree.report.charts.drawing import FileFormat


@click.command(cls=PagedCommand, name="report")
@click.argument("results", type=click.Path(dir_okay=False, path_type=Path), metavar="RESULTS.json")
@click.option(
    "--charts",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Also write every chart to a file in this folder, in place of files of the same name.",
)
@click.option(
    "--chart-format",
    type=click.Choice(["svg", "png", "pdf"]),
    default="svg",
    show_default=True,
    help="Format of those files.",
)
@click.option(
    "--choose",
    multiple=True,
    metavar="NAME=VALUE",
    help="What those files show, by the choices of the page: metric=arp_cos, x=expected_pk, y=pk, "
    "coefficient=kendall, …; may be repeated.  [default: the first of each; a file for every "
    "corpus and encoder]",
)
@OUTPUT_OPTIONS
@TABLE_OPTION
def command(
    results: Path,
    charts: Path | None,
    chart_format: FileFormat,
    choose: tuple[str, ...],
    **given: Any,  # noqa: ANN401
) -> None:
    """Show a study's results: one self-contained page, tables, charts for papers.

    RESULTS.json is what studies, compare, boundaries and run write with -f json, now or in
    earlier versions; the JSON of score is another and not taken. report.html is one file that asks
    nothing of the network; .md, .tex, .csv and .json are written by their endings as well.
    """
    if choose and charts is None:
        raise click.UsageError("--choose is for charts: add --charts FOLDER.")
    picks = {}
    for text in choose:
        name, _, picks[name] = text.partition("=")
        if not (name and picks[name]):
            raise click.UsageError(f"--choose {text}: expected NAME=VALUE, such as metric=arp_cos.")
    out = Output(given, [str(results)])
    if out.table is not None and out.format in ("html", "json"):
        raise click.UsageError("--table is for table, csv, md and latex.")

    from reffree.evaluate.result import load_result
    from reffree.report.charts import charts_of, require_drawing

    result = load_result(results)
    if charts is None or given["output"] is not None or given["output_format"] is not None:
        out.show(result)
    if charts is not None:
        drawn = charts_of(result)
        make_folder(charts)
        n = 0
        for file, content in require_drawing().draw_files(drawn, chart_format, picks):
            write_file(charts / file, [content])
            n += 1
        tell(f"{charts}: {counted(n, 'chart')}", err=True)
