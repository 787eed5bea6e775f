"""What a shell offers at a Tab."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete

from reffree.chunkers.registry import CHUNKERS
from reffree.cli import cli
from reffree.cli.options import NAMES
from reffree.data.perturbation import PERTURBATIONS
from reffree.encoders.aliases import ALIASES
from reffree.formats import format_names
from reffree.metrics.registry import FREE_METRICS, GOLD_METRICS
from reffree.segmenters.segment import ARP_BASELINES, SEGMENTERS
from reffree.segmenters.selection import SELECTIONS
from tests.test_architecture import HEAVY


def offered(*typed, kind="plain"):
    """Values of a kind that are offered for the last word, after the others."""
    items = ShellComplete(cli, {}, "reffree", "_REFFREE_COMPLETE").get_completions(
        list(typed[:-1]), typed[-1]
    )
    return [item.value for item in items if item.type == kind]


def test_names_are_those_of_the_registries():
    registries = {
        "free": FREE_METRICS,
        "expected": [name for name in FREE_METRICS if name.startswith("expected_")],
        "gold": GOLD_METRICS,
        "methods": {*SEGMENTERS, ARP_BASELINES},
        "selections": SELECTIONS,
        "perturbations": PERTURBATIONS,
    }
    for kind, names in registries.items():
        assert set(NAMES[kind]) == set(names), kind
    assert set(NAMES["gap_methods"]) < set(NAMES["methods"])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("score", "x.jsonl", "-m", ""), {"all", "gold", *FREE_METRICS, *GOLD_METRICS}),
        (("score", "x.jsonl", "-m", "pk", "-m", "win"), {n for n in GOLD_METRICS if "win" in n}),
        (("score", "x.jsonl", "--metric", "arp_"), {"arp_std", "arp_cos", "arp_pair"}),
        (("study", "correlate", "-m", ""), {"all", "gold", *FREE_METRICS, *GOLD_METRICS}),
        (("study", "moves", "-m", ""), set(GOLD_METRICS)),
        (("study", "granularity", "-m", ""), set(NAMES["expected"])),
        (("segment", "--method", ""), {*SEGMENTERS, ARP_BASELINES}),
        (
            ("study", "baselines", "--method", "random"),
            {"random", "random_known", "random_unknown"},
        ),
        (("study", "density", "--method", ""), set(NAMES["gap_methods"])),
        (("segment", "--select", ""), set(SELECTIONS)),
        (("score", "--encoder", ""), set(ALIASES)),
        (("study", "encoders", "--encoder", "minilm", "--encoder", "mp"), {"mpnet"}),
        (("score", "--format", ""), set(format_names())),
        (("score", "-f", ""), {"table", "json", "csv", "md", "latex", "html"}),
        (("chunks", "--chunker", "chonkie-"), {n for n in CHUNKERS if n.startswith("chonkie-")}),
        (("perturb", "--perturbation", ""), set(PERTURBATIONS)),
        (("sc",), {"score"}),
        (("score", "--unseg"), {"--unsegmented"}),
        (("score", "--unsegmented", ""), {"neutral", "skip", "worst"}),
    ],
)
def test_offered(typed, expected):
    found = offered(*typed)
    assert set(found) == expected
    assert len(found) == len(expected)


def test_files_and_folders_are_left_to_the_shell():
    assert offered("score", "cor", kind="file") == ["cor"]
    assert offered("chunks", "a.t", kind="file") == ["a.t"]
    assert offered("convert", "a.jsonl", "b", kind="file") == ["b"]
    assert offered("score", "--encoder", "./mod", kind="dir") == ["./mod"]


def test_every_option_that_names_a_metric_method_or_encoder_is_completed():
    with click.Context(cli) as ctx:
        for name in cli.list_commands(ctx):
            for param in cli.get_command(ctx, name).params:
                if param.metavar in ("METRIC", "METHOD") or "--encoder" in param.opts:
                    assert param.shell_complete(ctx, ""), (name, param.opts)


@pytest.mark.parametrize("words", ["reffree score -m p", "reffree score --encoder m"])
def test_a_tab_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom reffree.cli import cli\n"
        "try:\n    cli.main([], prog_name='reffree')\nexcept SystemExit: pass\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    shell = {"_REFFREE_COMPLETE": "bash_complete", "COMP_WORDS": words}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **shell, "COMP_CWORD": str(len(words.split()) - 1)},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    *items, last = done.stdout.splitlines()
    assert items
    assert all(item.startswith("plain,") for item in items)
    assert last == "HEAVY []"
