"""Several options as one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reffree.bounds import bounds_in

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def whole(hint: object) -> click.IntRange:
    """Take whole numbers within the bounds that stand beside a keyword's type."""
    bounds = bounds_in(hint)
    if bounds is None:
        raise TypeError(f"{hint} has no bounds")
    return click.IntRange(bounds.least, bounds.most)


def together(*options: Decorator) -> Decorator:
    """Add options in the order in which the help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
