"""``reffree train``: networks of one's own, as the functions that train them declare."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli import LazyGroup
from reffree.cli.declaration import Declaration, read_declaration
from reffree.cli.derive import derived_command, derived_options, given_options
from reffree.cli.files import read_corpus, read_vectors
from reffree.cli.interrupts import INTERRUPTED, end_process
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import EMBEDDINGS_OPTION, READING_OPTIONS, Decorator, corpora_argument
from reffree.util.atomic import check_new_folder
from reffree.util.errors import counted

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.segmenters.trained.base import Trained

KINDS = {
    "scorer": ("scorer", "scorer", "Train a boundary scorer on corpora with gold."),
    "csm": ("csm", "csm", "Train a coherence model on dialogues; no gold is needed."),
    "segmenter": ("labeller", "trained", "Train a supervised segmenter on corpora with gold."),
}
"""Module, method that uses it, and help of every kind of network."""

LAUNCHED = (
    "\n\nStarted by accelerate launch, it trains on all devices. Interrupted with Ctrl-C, it keeps "
    "the best state so far."
)
LEAST = 4
"""Documents that a corpus must have for some to be held out of it."""

FIGURES = {
    "loss": "loss {:.4f}",
    "temperature": "temperature {:.3f}",
    "log_loss": "log loss {:.4f}",
    "accuracy": "{:.3f} of orders right",
    "f1": "F1 {:.3f}",
    "w_f1": "W-F1 {:.3f}",
    "bor": "BOR {:.2f}",
    "pk": "Pk {:.3f}",
    "threshold": "threshold {:.3g}",
    "mean_score": "mean |score| {:.3f}",
    "negative_control": "negative control {:.3f}",
}
OWN_OPTIONS: dict[str, tuple[Decorator, ...]] = {
    "scorer": (
        click.option(
            "--splices",
            multiple=True,
            metavar="FILE",
            help="A corpus whose segments are spliced; may be repeated.  [default: every CORPUS]",
        ),
        click.option(
            "--calibrate",
            multiple=True,
            metavar="FILE",
            help="A corpus with gold to choose temperature and threshold on, not to train on; may "
            "be repeated.  [default: documents held out]",
        ),
    ),
    "csm": (),
    "segmenter": (EMBEDDINGS_OPTION,),
}


def _load(kind: str) -> click.Command:
    """Derive the command of a kind of network."""
    module = f"reffree.segmenters.trained.{KINDS[kind][0]}"
    declaration = read_declaration(module, f"train_{kind}")

    @derived_command(
        declaration,
        corpora_argument(),
        click.option(
            *("-o", "--output", "folder"),
            required=True,
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help=f"New folder for the {kind}.",
        ),
        *OWN_OPTIONS[kind],
        derived_options(declaration),
        READING_OPTIONS,
        name=kind,
        help=declaration.help + LAUNCHED,
    )
    def command(**given: Any) -> None:  # noqa: ANN401  (values of any option)
        train(kind, declaration, given)

    return command


command = LazyGroup(
    "train",
    help="Train a scorer, a coherence model or a segmenter.",
    helps={kind: help for kind, (_, _, help) in KINDS.items()},
    load=_load,
)


def train(kind: str, declaration: Declaration, given: Mapping[str, Any]) -> None:
    """Read the corpora, train on them, and keep the network in a new folder."""
    from reffree.formats import corpus_names

    options = given_options(declaration, given)
    roles = [given["corpora"], given.get("splices", ()), given.get("calibrate", ())]
    if kind == "segmenter":
        corpora: Any = read_corpus(given)
        notes = list(corpora.notes)
        options["embeddings"] = read_vectors(corpora, given["embeddings"])
    else:
        files = corpus_names(list(dict.fromkeys(file for role in roles for file in role)))
        read = {name: read_corpus({**given, "corpora": (file,)}) for name, file in files.items()}
        named = [{n: read[n] for n, file in files.items() if file in role} for role in roles]
        notes = [note for corpus in read.values() for note in corpus.notes]
        corpora = named[0]
        if kind == "scorer":
            corpora, *others = map(_join_small, named)
            options |= dict(zip(("splices", "calibration"), others, strict=True))

    # Torch is imported only once the input is known to be good.
    check_new_folder(given["folder"])
    made = declaration.load()(corpora, on_epoch=_tell_epoch, progress=progress, **options)
    _keep(made, given["folder"], notes)


def _join_small(corpora: dict[str, Corpus]) -> dict[str, Corpus]:
    """Make one corpus of files too small to hold documents out of each."""
    from reffree.data.corpus import Corpus

    small = {name: corpus for name, corpus in corpora.items() if len(corpus) < LEAST}
    if len(small) < 2:
        return corpora
    others = {name: corpus for name, corpus in corpora.items() if name not in small}
    return {**others, f"{len(small)} small files": Corpus.merge(small.values())}


def _is_first_process() -> bool:
    """Whether this is the only process, or the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def _tell_epoch(row: Mapping[str, Any]) -> None:
    """Tell how an epoch went, and each of several corpora, in the first process only."""
    if not _is_first_process():
        return
    stage = row.get("stage", "epoch")
    on = "held-out splices" if stage == "splices" else "held out"
    line = f"{stage} {row['epoch']}: training loss {row['training_loss']:.4f}; {on}: "
    line += _format_figures(row)
    if len(row.get("corpora", ())) > 1:
        each = [f"{name} {_format_figures(part)}" for name, part in row["corpora"].items()]
        line += f"; {'; '.join(each)}"
    tell(line, err=True)


def _format_figures(values: Mapping[str, Any]) -> str:
    """Write the figures that there are."""
    shown = [text.format(values[k]) for k, text in FIGURES.items() if values.get(k) is not None]
    return ", ".join(shown)


def _keep(made: Trained[Any], folder: Path, notes: list[str]) -> None:
    """Save what was trained, once, and say so; ends the program if training was interrupted.

    A launcher's process ends here in any case, without the interpreter's own way down: modules that
    are imported after the processes have met keep their group as a default argument, so gloo's
    threads outlive the group's end; one that then lets go of a tensor while the interpreter ends
    aborts the process, now and then (https://github.com/pytorch/pytorch/pull/179291).
    """
    description = made.description
    if _is_first_process():
        made.save(folder)
        if description.is_interrupted:
            notes = [*notes, "interrupted; the best state so far is kept"]
        tell_notes(notes)
        counts = description.counts
        tell(
            f"{folder}: trained on {counted(counts['training_documents'], 'document')} "
            f"({description.device}), {counts['held_out_documents']} held out; "
            f"{_format_figures(description.figures)}; use it with --method "
            f"{KINDS[description.kind][1]}:path={folder}",
            err=True,
        )
    code = INTERRUPTED if description.is_interrupted else 0
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        end_process(code)
    if code:
        sys.exit(code)
