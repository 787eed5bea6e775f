"""What the shell offers for values of options: names, listed here so that a Tab imports no torch.

Names are those of the registries, without options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from reffree.metrics.names import FREE, GOLD

EXPECTED = tuple(name for name in FREE if name.startswith("expected"))
REFERENCE_FREE = tuple(FREE)
GOLD_BASED = tuple(GOLD)
METRICS = (*FREE, *GOLD)
METHODS = (
    *("none", "all", "even", "random", "random_known", "random_unknown"),
    *("oracle_random", "oracle_periodic", "arp_baselines"),
    *("texttiling", "c99", "textseg", "depth", "changepoint", "greedy", "optimal", "posterior"),
    *("scorer", "csm", "trained", "supervised"),
)
GAP_METHODS = ("depth", "texttiling", "posterior", "scorer", "csm", "random")
SELECTIONS = ("static", "density", "adaptive")
PERTURBATIONS = ("removal", "insertion", "replacement", "transposition", "mixture")

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names(known: Iterable[str]) -> Complete:
    """Offer the names that begin as what is typed."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    return complete


def encoder_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer aliases, or folders where a path is typed."""
    from reffree.encoders.aliases import ALIASES

    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="dir")]
    return [CompletionItem(name) for name in ALIASES if name.startswith(incomplete)]


def file_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell to offer files and folders."""
    return [CompletionItem(incomplete, type="file")]


KINDS = {
    "expected": EXPECTED,
    "free": REFERENCE_FREE,
    "gold": GOLD_BASED,
    "metrics": ("all", "gold", *METRICS),
    "methods": METHODS,
    "gap_methods": GAP_METHODS,
    "selections": SELECTIONS,
    "perturbations": PERTURBATIONS,
}
"""Names by what an option calls them."""


def complete(kind: str) -> Complete:
    """Offer the names of a kind that begin as what is typed; files and folders are the shell's."""
    if kind == "files":
        return file_names
    if kind == "encoders":
        return encoder_names
    if kind == "chunkers":
        from reffree.chunkers.registry import CHUNKERS

        return names(CHUNKERS)
    return format_names if kind == "formats" else names(KINDS[kind])


def format_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the formats, whose modules are imported for that."""
    from reffree import formats

    return [CompletionItem(n) for n in formats.format_names() if n.startswith(incomplete)]
