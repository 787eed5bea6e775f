"""``reffree train-csm``: a coherence model of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    check_encoding,
    keywords_of,
    read_corpus,
)
from reffree.cli.messages import progress, tell
from reffree.cli.options import encoded_corpus_options, seed_option
from reffree.cli.training import (
    finetune_option,
    keep_network,
    mixed_precision_option,
    output_folder_option,
    settings_of,
    told_once,
)
from reffree.encoders.options import Encoding
from reffree.formats import corpus_names
from reffree.util.errors import counted

if TYPE_CHECKING:
    from reffree.segmenters.coherence.description import CoherenceEpoch


@click.command(cls=PagedCommand, name="train-csm")
@output_folder_option("model")
@finetune_option("units")
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
@mixed_precision_option
@seed_option
@encoded_corpus_options
def command(folder: Path, **given: Unpack[CommandOptions]) -> None:
    """Train a coherence model on dialogues, for --method csm:path=FOLDER.

    A unit is to go with the next better than with another of its document, and with that better
    than with one of another document (Xing and Carenini 2021). No gold is needed; where documents
    held out have it, csm:path=FOLDER,threshold=held_out has the threshold of their lowest Pk. The
    published setting: --finetune --encoder bert. Started by accelerate launch, it trains on all
    devices. Interrupted with Ctrl-C, it keeps the best state so far.
    """
    check_encoding(given)

    from reffree.segmenters.coherence.description import CoherenceTraining

    settings = settings_of(CoherenceTraining, given)
    files = corpus_names(given["corpora"])
    read = {name: read_corpus(given | {"corpora": (file,)}) for name, file in files.items()}

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.coherence.train import train_csm
    from reffree.segmenters.network_folder import check_target

    check_target(folder)
    made = train_csm(
        read,
        settings=settings,
        on_epoch=told_once(_tell_epoch),
        progress=progress,
        **keywords_of(given, Encoding),
    )
    told = made.description
    best = "" if told.threshold is None else f", best held-out threshold {told.threshold:.1f}"
    keep_network(
        made,
        folder,
        [note for corpus in read.values() for note in corpus.notes],
        f"trained on {counted(told.counts['training_documents'], 'document')}, "
        f"{told.counts['held_out_documents']} held out; {told.accuracy:.3f} of held-out orders "
        f"right{best}; use it with --method csm:path={folder}",
    )


def _tell_epoch(epoch: CoherenceEpoch) -> None:
    tell(
        f"epoch {epoch.epoch}: training loss {epoch.training_loss:.4f}; held out: loss "
        f"{epoch.loss:.4f}, {epoch.accuracy:.3f} of orders right",
        err=True,
    )
