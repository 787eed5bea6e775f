"""Where work runs: in this process, or on Ray's actors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from reffree.cli.options import together

if TYPE_CHECKING:
    from reffree.encoders.ray_actors import Actors


engine_options = together(
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="This process, or Ray's actors (needs reffree[ray]); results are the same.",
    ),
    click.option(
        "--ray-address",
        metavar="ADDRESS",
        help="A running cluster for --engine ray, such as auto.  [default: start one here]",
    ),
    click.option(
        "--ray-actors",
        type=click.IntRange(min=1),
        metavar="N",
        help="Actors of --engine ray.  [default: 2 on this host, else all GPUs or CPUs]",
    ),
)


def check_engine(engine: str, ray_address: str | None, ray_actors: int | None) -> None:
    """Refuse Ray's options without Ray."""
    if engine != "ray" and (ray_address is not None or ray_actors is not None):
        raise click.UsageError("--ray-address and --ray-actors need --engine ray.")


@contextmanager
def opened_actors(
    engine: str, address: str | None, n: int | None, device: str
) -> Iterator[Actors | None]:
    """Start or meet the actors; None for this process."""
    if engine != "ray":
        yield None
        return
    from reffree.encoders.ray_actors import ray_actors

    with ray_actors(address, n, device=device) as actors:
        yield actors
