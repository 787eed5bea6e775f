"""``reffree train-scorer``: a boundary scorer of one's own."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

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
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import counted

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.segmenters.scorer.description import Epoch, Training
    from reffree.segmenters.scorer.scorer import Checkpoint


@click.command(name="train-scorer")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="New folder for the scorer.",
)
@click.option(
    "--finetune",
    is_flag=True,
    help="Train the encoder itself on pairs of windows, not a small network on its vectors: slow "
    "without a GPU.",
)
@click.option("--window", type=int, help="Units on either side of a gap.  [default: 4]")
@click.option(
    "--splice-epochs",
    type=int,
    help="Epochs on segments of different documents put end to end.  [default: 3]",
)
@click.option("--epochs", type=int, help="Epochs on gold boundaries.  [default: 5]")
@click.option(
    "--learning-rate",
    type=float,
    help="Of the first stage; half of it in the second.  [default: 3e-4, with --finetune 2e-5]",
)
@click.option(
    "--held-out",
    type=float,
    help="Share of documents kept for choosing the epoch, the temperature and the threshold.  "
    "[default: 0.2]",
)
@click.option(
    "--min-gap",
    type=int,
    help="Units between boundaries when held-out documents are segmented.  [default: 3]",
)
@seed_option
@encoded_corpus_options
def command(folder: Path, **given: Unpack[CommandOptions]) -> None:
    """Train a boundary scorer on a corpus with gold, for --method scorer:path=FOLDER.

    First on splices of segments of different documents, then on the gold boundaries; then one
    temperature makes its scores probabilities on documents held out. Interrupted with Ctrl-C, it
    keeps the best state so far.
    """
    check_encoding(given)

    from reffree.segmenters.scorer.description import Training

    names = {field.name for field in fields(Training)}
    chosen: dict[str, Any] = {k: v for k, v in given.items() if k in names and is_given(v)}
    settings = Training(**chosen)
    corpus = read_corpus(given)

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.network_folder import check_target

    check_target(folder)
    checkpoint = _train(corpus, settings, EncoderOptions(**keywords_of(given, Encoding)))
    checkpoint.save(folder)
    _tell(checkpoint, folder, corpus.notes)
    if checkpoint.description.is_interrupted:
        sys.exit(INTERRUPTED)


def _train(corpus: Corpus, settings: Training, options: EncoderOptions) -> Checkpoint:
    from reffree.encoders.device import choose_device
    from reffree.encoders.embed import corpus_vectors
    from reffree.encoders.models import DEFAULT_ENCODER, find_model
    from reffree.encoders.unit_filter import filter_units
    from reffree.segmenters.scorer.data import examples_of
    from reffree.segmenters.scorer.train import train_head, train_pair

    device = choose_device(options.device)
    corpus = filter_units(corpus, options).corpus
    if settings.finetune:
        folder = find_model(options.encoder or DEFAULT_ENCODER, offline=options.offline)
        return train_pair(corpus, folder, device, settings, on_epoch=_tell_epoch, progress=progress)
    examples_of(corpus, settings)  # refuse what cannot be trained on before it is encoded
    embeddings = corpus_vectors(corpus, None, options, progress)
    return train_head(corpus, embeddings, settings, on_epoch=_tell_epoch, progress=progress)


def _tell_epoch(epoch: Epoch) -> None:
    bor = "-" if epoch.bor is None else f"{epoch.bor:.2f}"
    tell(
        f"{epoch.stage} {epoch.epoch}: training loss {epoch.training_loss:.4f}; held out: log loss "
        f"{epoch.log_loss:.4f}, F1 {epoch.f1:.3f}, BOR {bor}, negative control "
        f"{epoch.negative_control:.3f}",
        err=True,
    )


def _tell(checkpoint: Checkpoint, folder: Path, notes: tuple[str, ...]) -> None:
    told = checkpoint.description
    tell_notes(notes)
    if told.is_interrupted:
        tell_notes(["interrupted; the best state so far is kept"])
    tell(
        f"{folder}: trained on {counted(told.counts['training_documents'], 'document')}, "
        f"{told.counts['held_out_documents']} held out; temperature {told.temperature:.3f}, "
        f"held-out log loss {told.log_loss:.4f}, best held-out threshold {told.threshold:.2f}; "
        f"use it with --method scorer:path={folder}",
        err=True,
    )
