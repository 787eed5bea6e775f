"""``reffree run``: a whole study from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import PagedCommand, files_by_name
from reffree.util.atomic import write_file
from reffree.util.progress import Timed

if TYPE_CHECKING:
    from reffree.studies.run import Finished


def _list_configs(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    """Name the configurations that ship with reffree, and end the command."""
    if is_wanted and not ctx.resilient_parsing:
        from reffree.studies.config import shipped_configs

        configs = shipped_configs()
        for name, about in configs.items():
            tell(f"{name.ljust(max(map(len, configs)))}  {about}")
        ctx.exit()


@click.command(cls=PagedCommand, name="run")
@click.argument("config")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_configs,
    help="Name the studies that ship with reffree, and stop.",
)
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="NAME=FILE",
    callback=files_by_name,
    help="A corpus in place of those the file names; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the results.  [default: results/NAME, by the file's name field]",
)
@click.option("--fresh", is_flag=True, help="Run finished steps again.")
def command(config: str, corpora: dict[str, str], output: Path | None, fresh: bool) -> None:
    """Run the studies of a YAML file and write results, tables and pages into a folder.

    CONFIG is such a file, or one of --list by its name: reffree run arp-tables. Every field is
    checked before anything runs. Interrupted, it goes on where it stopped: finished steps are kept
    as long as settings and files stay the same, and so are embeddings.
    """
    from reffree.studies.config import find_config, load_config

    loaded = load_config(find_config(config), corpora or None)
    folder = output or Path("results") / loaded.name

    from reffree.report.render import render
    from reffree.studies.run import run_config

    timed = Timed(progress)

    def tell_step(finished: Finished) -> None:
        """Write a step's tables, and its page where charts can be drawn; say what it found."""
        write_file(finished.path.with_suffix(".md"), [render(finished.result, "md")])
        try:
            import reffree.report.charts.drawing  # noqa: F401
        except ModuleNotFoundError as error:
            remedy = "run python -m pip install 'reffree[report]', then reffree report"
            tell_notes([f"no pages: found no package {error.name}; {remedy}"])
        else:
            write_file(finished.path.with_suffix(".html"), [render(finished.result, "html")])
        state = timed.summary() if finished.is_new else "already there"
        tell(f"{finished.path}: {state}", err=True)
        tell(" ".join(finished.result.verdict))
        tell_notes(finished.result.notes)

    finished = run_config(
        loaded,
        folder,
        fresh=fresh,
        progress=timed,
        write=lambda result: render(result, "json"),
        on_step=tell_step,
    )
    from reffree.report.page import render_index

    steps = [(step.path.stem, step.result.question, step.result.verdict) for step in finished]
    pages = {name for name, _, _ in steps if (folder / f"{name}.html").is_file()}
    write_file(folder / "index.html", [render_index(loaded.name, steps, pages)])
    tell(f"results in {folder}; start with {folder / 'index.html'}", err=True)
