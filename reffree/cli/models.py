"""``reffree models``: which encoders there are, and how a model can be told to encode."""

from __future__ import annotations

from typing import Any

import click

from reffree.cli.files import Output
from reffree.cli.options import PagedCommand, output_options
from reffree.encoders.options import SETTINGS

FORMATS = ("table", "json")
HEADER = (
    *("alias", "model", "loader", "licence", "languages", "offline"),
    *("dimension", "parameters", "size", "units/s"),
)
ANY = (
    "Any hub id, model folder or OpenAI-compatible endpoint (http://host:port/v1#model) is an "
    "encoder, too; --offline never connects."
)


class WithSettings(PagedCommand):
    """Shows the settings that stand behind an encoder's name, wherever one is named."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them below the command's own options."""
        with formatter.section("Settings of an encoder, as in mpnet:pooling=cls,layer=-2"):
            formatter.write_dl([(f"{name}=", f"{use}.") for name, (_, use) in SETTINGS.items()])


@click.command(name="models", cls=WithSettings)
@output_options(FORMATS)
def command(**given: Any) -> None:  # noqa: ANN401
    """List the encoders with short names.

    Offline says whether a model is on this disk, from an installed package or the hub's cache;
    nothing is connected to. The JSON lists all languages that a model was made for, and names the
    machine that speeds were measured on.
    """
    out = Output(given, formats=FORMATS)

    from reffree.encoders.models import catalogue

    listed = catalogue()
    if out.format == "json":
        from reffree.report.grid import json_text

        out.write(json_text(listed))
        return
    out.write(_table(listed, color=out.color, width=out.width))


def _table(listed: list[dict[str, Any]], *, color: bool, width: int | None) -> str:
    from reffree.report.grid import render_terminal
    from reffree.util.grid import Grid

    rows = []
    for model in listed:
        speed = "–" if model["speed"] is None else f"{model['speed']['units_per_second']:,}"
        codes = model["languages"]
        cells = (
            *(model["alias"], model["model"], model["loader"], model["licence"]),
            ", ".join(codes) if len(codes) <= 3 else str(len(codes)),
            "yes" if model["offline"] else "no",
            *(f"{model['dimension']:,}", _short(model["parameters"]), f"{_short(model['bytes'])}B"),
            speed,
        )
        rows.append(cells)
    measured = dict.fromkeys(m["speed"]["on"] for m in listed if m["speed"])
    remarks = [f"units/s: {on}." for on in measured]
    remarks += [f"To get {m['alias']}: {m['get']}" for m in listed if not m["offline"]]
    tried = [f"{m['alias']} ({m['tried']})" for m in listed if m["tried"] != "own weights"]
    remarks.append(f"Tests run everywhere on what packages have, and on {', '.join(tried)}.")
    remarks.append(
        "To prove one on its own weights, where a hub answers: python -m pytest -m network "
        "'tests/encoders/test_aliases.py::test_its_own_weights[mpnet]'; on a card: -m gpu "
        "'…_on_a_card[mpnet]'."
    )
    grid = Grid.of(HEADER, rows, n_labels=6)
    return render_terminal([grid], [*remarks, ANY], color=color, width=width)


def _short(number: int) -> str:
    """Return three digits and a letter.

    >>> _short(22_713_216), _short(6_921_720_704)
    ('22.7M', '6.92G')
    """
    value, letter = (number / 1e9, "G") if number >= 1e9 else (number / 1e6, "M")
    return f"{value:#.3g}".rstrip(".") + letter
