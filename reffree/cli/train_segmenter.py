"""``reffree train-segmenter``: a supervised segmenter of one's own."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import CommandOptions, is_given, keywords_of, read_inputs
from reffree.cli.interrupts import INTERRUPTED
from reffree.cli.messages import progress, tell, tell_notes
from reffree.cli.options import embeddings_option, encoded_corpus_options, seed_option
from reffree.encoders.options import Encoding
from reffree.errors import counted

if TYPE_CHECKING:
    from reffree.segmenters.labeller.description import LabellerEpoch
    from reffree.segmenters.labeller.trained import Labeller


@click.command(cls=PagedCommand, name="train-segmenter")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="New folder for the segmenter.",
)
@click.option(
    "--architecture",
    type=click.Choice(["bilstm", "sheikh-bilstm", "transformer"]),
    default="bilstm",
    show_default=True,
    help="Over the vectors of a document: a BiLSTM, one whose two directions are held against each "
    "other at every gap (Sheikh et al.), or a transformer.",
)
@click.option("--hidden", type=int, help="Size of a state.  [default: 128]")
@click.option("--layers", type=int, help="[default: 2]")
@click.option("--epochs", type=int, help="At most.  [default: 40]")
@click.option(
    "--patience",
    type=int,
    help="Epochs without a lower held-out log loss, after which it ends.  [default: 6]",
)
@click.option(
    "--batch-size",
    type=int,
    help="Documents in a step.  [default: 8, fewer where an epoch had under 8 steps]",
)
@click.option("--learning-rate", type=float, help="[default: 0.001]")
@click.option(
    "--held-out",
    type=float,
    help="Share of documents kept for choosing the epoch and the threshold.  [default: 0.2]",
)
@click.option(
    "--criterion",
    type=click.Choice(["pk", "f1"]),
    help="By which the threshold is chosen on them.  [default: pk]",
)
@click.option(
    "--mixed-precision",
    type=click.Choice(["auto", "no", "bf16", "fp16"]),
    help="Of the training.  [default: auto, bf16 on a GPU that has it]",
)
@seed_option
@embeddings_option("Your own vectors instead of an encoder, as in reffree score.")
@encoded_corpus_options
def command(folder: Path, **given: Unpack[CommandOptions]) -> None:
    """Train a segmenter on a corpus with gold, for --method trained:path=FOLDER.

    A sequence labeller over cached vectors, one of the three of Ghinassi et al. (2024). Started by
    accelerate launch, it trains on all devices. Interrupted with Ctrl-C, it keeps the best state so
    far.
    """
    from reffree.segmenters.labeller.description import LabellerTraining

    names = {field.name for field in fields(LabellerTraining)}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if k in names and is_given(v)}
    settings = LabellerTraining(**chosen)
    corpus, vectors = read_inputs(given)

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.labeller.train import train_segmenter
    from reffree.segmenters.network_folder import check_target
    from reffree.segmenters.training import is_first_process

    check_target(folder)
    labeller = train_segmenter(
        corpus,
        settings,
        embeddings=vectors,
        on_epoch=_tell_epoch,
        progress=progress,
        **keywords_of(given, Encoding),
    )
    if is_first_process():
        labeller.save(folder)
        _tell(labeller, folder, corpus.notes)
    if labeller.description.is_interrupted:
        sys.exit(INTERRUPTED)


def _tell_epoch(epoch: LabellerEpoch) -> None:
    tell(
        f"epoch {epoch.epoch}: training loss {epoch.training_loss:.4f}; held out: log loss "
        f"{epoch.log_loss:.4f}, {_judged(epoch.pk, epoch.f1)} at {epoch.threshold:.3g}",
        err=True,
    )


def _tell(labeller: Labeller, folder: Path, notes: tuple[str, ...]) -> None:
    told = labeller.description
    tell_notes(notes)
    if told.is_interrupted:
        tell_notes(["interrupted; the best state so far is kept"])
    tell(
        f"{folder}: {told.settings.architecture} trained on "
        f"{counted(told.counts['training_documents'], 'document')} ({told.device}), "
        f"{told.counts['held_out_documents']} held out; epoch {told.epoch}, threshold "
        f"{told.threshold:.3g}, {_judged(told.pk, told.f1)} on those it was chosen on; use it with "
        f"--method trained:path={folder}",
        err=True,
    )


def _judged(pk: float | None, f1: float | None) -> str:
    shown = ("-" if value is None else f"{value:.3f}" for value in (pk, f1))
    return "Pk {}, F1 {}".format(*shown)
