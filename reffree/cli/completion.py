"""What the shell offers for values of options: names, listed here so that a Tab imports no torch.

Names are those of the registries, without options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

EXPECTED = (
    *("expected_pk", "expected_windowdiff", "expected_boundary_similarity", "expected_w_f1"),
)
REFERENCE_FREE = (
    *EXPECTED,
    *("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree", "sag"),
)
GOLD_BASED = (
    *("pk", "windowdiff", "pk_prime", "pr_error", "pr_miss", "pr_false_alarm"),
    *("winpr", "winpr_precision", "winpr_recall"),
    *("boundary_similarity", "segmentation_similarity", "bed", "bed_precision", "bed_recall"),
    *("ghd", "alignment", "sed", "f1", "w_f1", "w_f1_one_to_one", "bor", "purity", "coverage"),
)
METRICS = (*REFERENCE_FREE, *GOLD_BASED)
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


def format_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the formats of files."""
    from reffree.formats import format_names

    return names(format_names())(ctx, param, incomplete)


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
