"""``reffree train-segmenter``: a supervised segmenter of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import CommandOptions, keywords_of, read_inputs
from reffree.cli.messages import progress, tell
from reffree.cli.options import embeddings_option, encoded_corpus_options, seed_option
from reffree.cli.training import (
    keep_network,
    mixed_precision_option,
    output_folder_option,
    settings_of,
    told_once,
)
from reffree.encoders.options import Encoding
from reffree.util.errors import counted

if TYPE_CHECKING:
    from reffree.segmenters.labeller.description import LabellerDescription, LabellerEpoch


@click.command(cls=PagedCommand, name="train-segmenter")
@output_folder_option("segmenter")
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
@mixed_precision_option
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

    settings = settings_of(LabellerTraining, given)
    corpus, vectors = read_inputs(given)

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.labeller.train import train_segmenter
    from reffree.segmenters.network_folder import check_target

    check_target(folder)
    labeller = train_segmenter(
        corpus,
        settings,
        embeddings=vectors,
        on_epoch=told_once(_tell_epoch),
        progress=progress,
        **keywords_of(given, Encoding),
    )
    keep_network(labeller, folder, corpus.notes, _told(labeller.description, folder))


def _tell_epoch(epoch: LabellerEpoch) -> None:
    tell(
        f"epoch {epoch.epoch}: training loss {epoch.training_loss:.4f}; held out: log loss "
        f"{epoch.log_loss:.4f}, {_judged(epoch.pk, epoch.f1)} at {epoch.threshold:.3g}",
        err=True,
    )


def _told(told: LabellerDescription, folder: Path) -> str:
    return (
        f"{told.settings.architecture} trained on "
        f"{counted(told.counts['training_documents'], 'document')} ({told.device}), "
        f"{told.counts['held_out_documents']} held out; epoch {told.epoch}, threshold "
        f"{told.threshold:.3g}, {_judged(told.pk, told.f1)} on those it was chosen on; use it with "
        f"--method trained:path={folder}"
    )


def _judged(pk: float | None, f1: float | None) -> str:
    shown = ("-" if value is None else f"{value:.3f}" for value in (pk, f1))
    return "Pk {}, F1 {}".format(*shown)
