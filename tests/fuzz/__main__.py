"""``python -m tests.fuzz --cases 5000 --seed 3``: thousands of damaged inputs."""

from __future__ import annotations

import signal
import sys
import warnings
from collections import Counter

import click

from tests.fuzz.attacks import ATTACKS
from tests.fuzz.doors import DOORS
from tests.fuzz.running import run_case

SECONDS = 180
CHOICE = click.Choice([*DOORS, *ATTACKS])


@click.command()
@click.option("--cases", default=1000, show_default=True, help="Of all doors together.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--door", "doors", multiple=True, type=click.Choice([*DOORS, *ATTACKS]), help="Only these."
)
@click.option("--case", type=int, help="Only this case, of the one --door.")
def command(cases: int, seed: int, doors: tuple[str, ...], case: int | None) -> None:
    """Try damaged inputs; exit 1 if any is neither read nor refused in a sentence."""
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, _too_long)
    chosen = doors or tuple(DOORS)
    numbers = range(-(-cases // len(chosen))) if case is None else [case]
    failures: Counter[str] = Counter()
    for door in chosen:
        for number in numbers:
            signal.alarm(SECONDS)
            told = run_case(door, seed, number)
            signal.alarm(0)
            if told is not None:
                failures[door] += 1
                click.echo(f"--door {door} --seed {seed} --case {number}\n{told}")
    tried = len(chosen) * len(numbers)
    click.echo(f"{tried:,} inputs, {failures.total():,} failures {dict(failures) or ''}")
    sys.exit(1 if failures else 0)


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


if __name__ == "__main__":
    command()
