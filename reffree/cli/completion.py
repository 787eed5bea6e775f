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


def complete(
    kind: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Offer the names of a kind that begin as what is typed; files and folders are the shell's."""

    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if kind == "files":
            return [CompletionItem(incomplete, type="file")]
        if kind == "encoders" and incomplete.startswith((".", "/", "~")):
            return [CompletionItem(incomplete, type="dir")]
        return [CompletionItem(name) for name in names_of(kind) if name.startswith(incomplete)]

    return offer


def names_of(kind: str) -> Iterable[str]:
    """Return all names of a kind; those of formats are the only ones that import modules."""
    match kind:
        case "encoders":
            from reffree.encoders.aliases import ALIASES

            return ALIASES
        case "chunkers":
            from reffree.chunkers.registry import CHUNKERS

            return CHUNKERS
        case "formats":
            from reffree import formats

            return formats.format_names()
    return KINDS[kind]
