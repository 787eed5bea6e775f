"""``reffree train-scorer``: a boundary scorer of one's own."""

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
from reffree.util.errors import counted, listed

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.segmenters.scorer.description import Description, Epoch, Figures

LEAST = 4
"""Documents that a corpus must have to be learnt from."""


@click.command(cls=PagedCommand, name="train-scorer")
@output_folder_option("scorer")
@finetune_option("windows")
@click.option(
    "--splices",
    multiple=True,
    metavar="FILE",
    help="A corpus whose segments are spliced; may be repeated.  [default: every CORPUS]",
)
@click.option(
    "--calibrate",
    multiple=True,
    metavar="FILE",
    help="A corpus with gold to choose temperature and threshold on, not to train on; may be "
    "repeated.  [default: documents held out]",
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
    help="Share of every corpus's documents kept for choosing the epoch and, without --calibrate, "
    "temperature and threshold.  [default: 0.2]",
)
@click.option(
    "--min-gap",
    type=int,
    help="Units between boundaries when held-out documents are segmented.  [default: 3]",
)
@mixed_precision_option
@seed_option
@encoded_corpus_options
def command(
    folder: Path,
    splices: tuple[str, ...],
    calibrate: tuple[str, ...],
    **given: Unpack[CommandOptions],
) -> None:
    """Train a boundary scorer on corpora with gold, for --method scorer:path=FOLDER.

    First on splices of segments of different documents, judged on splices of documents held out;
    then on the gold boundaries of every CORPUS; then one temperature makes its scores
    probabilities. What is judged after every epoch is told here and kept in FOLDER/scorer.json.
    Each CORPUS is a corpus of its own; files of fewer than four documents are read as one. The
    published setting: --finetune --encoder distilbert, with --splices and --calibrate.
    Started by accelerate launch, it trains on all devices. Interrupted with Ctrl-C, it keeps the
    best state so far.
    """
    check_encoding(given)

    from reffree.segmenters.scorer.description import Training

    settings = settings_of(Training, given)
    files = corpus_names(list(dict.fromkeys([*given["corpora"], *splices, *calibrate])))
    read = {name: read_corpus(given | {"corpora": (file,)}) for name, file in files.items()}
    gold, spliced, calibration = (
        _joined({name: read[name] for name, file in files.items() if file in chosen_files})
        for chosen_files in (given["corpora"], splices, calibrate)
    )

    # Torch is imported only once the input is known to be good.
    from reffree.segmenters.network_folder import check_target
    from reffree.segmenters.scorer.train import train_scorer

    check_target(folder)
    checkpoint = train_scorer(
        gold,
        splices=spliced,
        calibration=calibration,
        settings=settings,
        on_epoch=told_once(_tell_epoch),
        progress=progress,
        **keywords_of(given, Encoding),
    )
    notes = [note for corpus in read.values() for note in corpus.notes]
    keep_network(checkpoint, folder, notes, _told(checkpoint.description, folder))


def _joined(corpora: dict[str, Corpus]) -> dict[str, Corpus]:
    """Make one corpus of files too small to hold documents out of each."""
    from reffree.data.corpus import Corpus

    small = {name: corpus for name, corpus in corpora.items() if len(corpus) < LEAST}
    if len(small) < 2:
        return corpora
    others = {name: corpus for name, corpus in corpora.items() if name not in small}
    return {**others, f"{len(small)} small files": Corpus.merge(small.values())}


def _tell_epoch(epoch: Epoch) -> None:
    what = "held-out splices" if epoch.stage == "splices" else "held out"
    line = (
        f"{epoch.stage} {epoch.epoch}: training loss {epoch.training_loss:.4f}; {what}: log loss "
        f"{epoch.log_loss:.4f}, F1 {epoch.f1:.3f}, W-F1 {epoch.w_f1:.3f}, BOR {_bor(epoch)}, mean "
        f"|score| {epoch.mean_score:.3f}, negative control {epoch.negative_control:.3f}"
    )
    if len(epoch.corpora) > 1:
        each = [f"{name} {part.f1:.3f} / {_bor(part)}" for name, part in epoch.corpora.items()]
        line += f"; F1 / BOR: {', '.join(each)}"
    tell(line, err=True)


def _bor(figures: Figures) -> str:
    return "-" if figures.bor is None else f"{figures.bor:.2f}"


def _told(told: Description, folder: Path) -> str:
    calibrated = told.corpora["calibration"]
    where = f"on {listed(calibrated)}" if calibrated else "held-out"
    return (
        f"trained on {counted(told.counts['training_documents'], 'document')}, "
        f"{told.counts['held_out_documents']} held out; temperature {told.temperature:.3f}, "
        f"{where} log loss {told.log_loss:.4f}, best {where} threshold {told.threshold:.2f}; "
        f"use it with --method scorer:path={folder}"
    )
