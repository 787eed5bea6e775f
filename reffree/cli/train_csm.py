"""``reffree train-csm``: a coherence model of one's own."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    check_encoding,
    is_given,
    keywords_of,
    read_corpus,
)
from reffree.cli.interrupts import INTERRUPTED
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import encoded_corpus_options, seed_option
from reffree.encoders.options import Encoding
from reffree.errors import counted
from reffree.formats import corpus_names

if TYPE_CHECKING:
    from reffree.segmenters.coherence.description import CoherenceEpoch


@click.command(cls=PagedCommand, name="train-csm")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="New folder for the model.",
)
@click.option(
    "--finetune",
    is_flag=True,
    help="Train the encoder itself on pairs of units, not a small network on its vectors: slow "
    "without a GPU.",
)
@click.option("--epochs", type=int, help="Times that every pair is seen.  [default: 10]")
@click.option(
    "--margin", type=float, help="By which coherent pairs are to be above others.  [default: 1]"
)
@click.option(
    "--learning-rate", type=float, help="[default: 3e-4, with --finetune 2e-5]", show_default=False
)
@click.option(
    "--held-out", type=float, help="Share of documents to choose the epoch on.  [default: 0.2]"
)
@seed_option
@encoded_corpus_options
def command(folder: Path, **given: Unpack[CommandOptions]) -> None:
    """Train a coherence model on dialogues, for --method csm:path=FOLDER.

    A unit is to go with the next better than with another of its document, and with that better
    than with one of another document (Xing and Carenini 2021). No gold is needed; where documents
    held out have it, csm:path=FOLDER,threshold=held_out has the threshold of their lowest Pk. The
    published setting: --finetune --encoder bert. Interrupted with Ctrl-C, it keeps the best state
    so far.
    """
    check_encoding(given)

    from reffree.segmenters.coherence.description import CoherenceTraining

    names = {field.name for field in fields(CoherenceTraining)}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if k in names and is_given(v)}
    settings = CoherenceTraining(**chosen)
    files = corpus_names(given["corpora"])
    read = {name: read_corpus(given | {"corpora": (file,)}) for name, file in files.items()}

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.coherence.train import train_csm
    from reffree.segmenters.network_folder import check_target

    check_target(folder)
    made = train_csm(
        read,
        settings=settings,
        on_epoch=_tell_epoch,
        progress=progress,
        **keywords_of(given, Encoding),
    )
    made.save(folder)
    told = made.description
    tell_notes([note for corpus in read.values() for note in corpus.notes])
    if told.is_interrupted:
        tell_notes(["interrupted; the best state so far is kept"])
    best = "" if told.threshold is None else f", best held-out threshold {told.threshold:.1f}"
    tell(
        f"{folder}: trained on {counted(told.counts['training_documents'], 'document')}, "
        f"{told.counts['held_out_documents']} held out; {told.accuracy:.3f} of held-out orders "
        f"right{best}; use it with --method csm:path={folder}",
        err=True,
    )
    if told.is_interrupted:
        sys.exit(INTERRUPTED)


def _tell_epoch(epoch: CoherenceEpoch) -> None:
    tell(
        f"epoch {epoch.epoch}: training loss {epoch.training_loss:.4f}; held out: loss "
        f"{epoch.loss:.4f}, {epoch.accuracy:.3f} of orders right",
        err=True,
    )
