"""How does a boundary scorer do on corpora that it was not trained on?

Coen, "When F1 Fails", §7.5 and E: one threshold, one spacing and one temperature for all corpora
(Tables 9, 10 and 12): nothing is tuned on what is tested, so that where annotators cut finer or
coarser than those whose gold was learnt, density shows it (BOR) rather than a threshold hiding it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Annotated, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings, Vectors, coming_spec
from reffree.encoders.options import Encoding
from reffree.evaluate.metric_set import MetricSet, check_scorers
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, scores_of
from reffree.evaluate.scores import Average, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.gold.granularity import failure_mode
from reffree.segmenters.base import Inputs, Segmenter
from reffree.segmenters.segment import parse_segmenter
from reffree.segmenters.selection import select_above
from reffree.segmenters.trained.examples import TrainingCorpora, examples_of
from reffree.segmenters.trained.folder import Description
from reffree.segmenters.trained.scorer import TrainedScorer, train_scorer
from reffree.segmenters.trained.settings import ScorerSettings
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.keywords import StudyKeywords, method_option, metric_option
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import OptionError, UnknownNameError, listed
from reffree.util.grid import Row, group_by
from reffree.util.naming import spelling_of

METHODS = ("oracle_random",)
"""As many boundaries as gold has, anywhere: what density alone is worth (Coen's Table 3)."""

MEAN = ("w_f1", "purity", "coverage")
POOLED = ("f1", "bor")
"""F1 as in the tables: Table 9 has one above its W-F1, which means over documents cannot."""

AVERAGES: tuple[Average, Average] = ("macro", "micro")
GIVEN = "a given scorer"
Learnt = dict[str, TrainingCorpora | None]
"""What is learnt from, by the scorer's name in tables; None where the scorer is given."""

FIGURES = ("f1", "w_f1", "bor")

SYSTEMS = (
    *columns("text", trained_on="trained on", corpus="tested on", system="system"),
    *estimate("w_f1", "W-F1"),
    *estimate("bor", "BOR"),
    *estimate("f1", "F1"),
    *columns("number", "purity", "coverage"),
    *columns("count", predicted="boundaries", gold_boundaries="gold's"),
    *columns("text", mode="failure mode"),
)
HISTORY = (
    *columns("text", trained_on="trained on", stage="stage"),
    *columns("count", "epoch"),
    *columns("text", corpus="judged on"),
    *columns("number", log_loss="log loss", f1="F1", w_f1="W-F1", bor="BOR"),
    *columns("number", mean_score="mean |score|", negative_control="negative control"),
)


@declared
def transfer(
    corpora: Mapping[str, Corpus],
    *,
    train: Annotated[
        Sequence[str],
        Option(
            "A corpus whose gold is learnt; may be repeated.", "--train", "NAME", "each in turn"
        ),
    ] = (),
    splices: Annotated[
        Sequence[str],
        Option(
            "A corpus whose segments are spliced first; may be repeated.",
            metavar="NAME",
            default="those of --train",
        ),
    ] = (),
    calibrate: Annotated[
        Sequence[str],
        Option(
            "A corpus that temperature is chosen on; may be repeated.",
            metavar="NAME",
            default="documents held out",
        ),
    ] = (),
    scorer: Annotated[
        str | None,
        Option(
            "Test what reffree train scorer wrote instead of training; every CORPUS is tested.",
            metavar="FOLDER",
        ),
    ] = None,
    methods: Annotated[
        Sequence[str],
        method_option(
            "As in reffree segment, beside the scorer; may be repeated.", parse_segmenter
        ),
    ] = METHODS,
    metrics: Annotated[
        Sequence[str], metric_option("Further metrics, as in reffree score; may be repeated.")
    ] = (),
    threshold: Annotated[float, Option("Of the scorer's probabilities.", cli=False)] = 0.5,
    min_gap: Annotated[
        int, Bounds(1), Option("Units between two boundaries of the scorer.", cli=False)
    ] = 3,
    finetune: Annotated[
        bool, Option("Train the encoder itself, as the paper does: slow without a GPU.")
    ] = False,
    window: Annotated[int, Bounds(1), Option("Units on either side of a gap.", cli=False)] = 4,
    splice_epochs: Annotated[int, Bounds(0), Option("Epochs on splices.", cli=False)] = 3,
    epochs: Annotated[int, Bounds(0), Option("Epochs on gold.", cli=False)] = 5,
    learning_rate: Annotated[
        float | None, Option("Of the first stage; half of it in the second.", cli=False)
    ] = None,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Train a boundary scorer on some corpora and test it on the others, at one threshold.

    Each CORPUS is a corpus of its own with gold, called by its file's name without extension. Those
    named by --train, --splices and --calibrate are learnt from as in reffree train scorer, all
    others are tested, at one threshold: W-F1, BOR, F1, purity and coverage of each. Without --train
    every corpus is trained on in turn and all others are tested. Test a split of a corpus that is
    trained on as a CORPUS of its own. How the scorer is trained is set in a file of reffree run.
    """
    settings = StudySettings(**keywords)
    if not 0 <= threshold <= 1:
        expected, remedy = "a probability, from 0 to 1", "leave it out for 0.5"
        raise OptionError(f"threshold = {threshold}", expected=expected, remedy=remedy)
    how = ScorerSettings(
        window=window,
        splice_epochs=splice_epochs,
        epochs=epochs,
        learning_rate=learning_rate,
        min_gap=min_gap,
        seed=settings.seed,
        finetune=finetune,
    )
    parsed = {spelling_of(method): method for method in map(parse_segmenter, methods)}
    parts = [
        replace(part, corpus=part.corpus.only_systems(()))
        for part in corpus_parts(corpora, embeddings, settings)
    ]
    whole = {part.name: part.corpus for part in parts}
    learnt = _plan(whole, train, splices, calibrate, scorer)
    chosen = settings.choose_metrics([*MEAN, *POOLED, *metrics], parts[0].corpus)
    tested: dict[str, list[CorpusPart]] = {}
    for trained_on, source in learnt.items():
        seen = {} if source is None else source.everything
        tested[trained_on] = [part for part in parts if part.name not in seen]
        for part in tested[trained_on]:
            check_gold(part.corpus, chosen)
        if source is not None:
            examples_of(source, how)
    kept = None if scorer is None else TrainedScorer.load(scorer)
    embedded = _encode(parts, how, kept, list(parsed.values()), chosen, settings)
    studied: list[StudiedCorpus] = []
    rows: list[Row] = []
    history: list[Row] = []
    used: list[Description[ScorerSettings]] = []
    for trained_on, source in learnt.items():
        checkpoint = kept or _train(source, how, embedded, settings)
        history += _history(trained_on, checkpoint.description) if kept is None else ()
        used.append(checkpoint.description)
        for part in tested[trained_on]:
            vectors = embedded.get(part.name)
            inputs = Inputs(part.corpus, settings.seed, device=settings.device)
            if vectors is not None:
                made_by = vectors.spec if part.vectors is None else None
                inputs = replace(inputs, embeddings=vectors.vectors, encoder=made_by)
            scores = checkpoint.gap_scores(inputs)
            made = {"scorer": tuple(select_above(each, threshold, min_gap) for each in scores)}
            made |= {spelling: method(inputs) for spelling, method in parsed.items()}
            place = {"trained_on": trained_on, "corpus": part.name}
            rows += ({**place, **row} for row in _score(part, made, chosen, vectors, settings))
            signature = Signature.of(chosen, part.corpus, vectors, seed=settings.seed)
            studied.append(StudiedCorpus(part.name, part.corpus, vectors, signature))
    further = [name for name in chosen.names if name not in (*MEAN, *POOLED)]
    systems = [*SYSTEMS, *(field for name in further for field in estimate(name, name))]
    encoders = dict.fromkeys(f"{each.encoder.name}@{each.encoder.revision}" for each in used)
    return study_result(
        "transfer",
        studied,
        question="How does a boundary scorer do on corpora that it was not trained on?",
        verdict=_describe(rows, threshold),
        tables=(
            Table.of("transfer", "Tested at one threshold", systems, rows),
            Table.of("history", "Judged after every epoch", HISTORY, history, shown=bool(history)),
        ),
        signature={
            "trained-on": "/".join(learnt),
            "made-with": "/".join(encoders),
            "temperature": "/".join(f"{each.figures['temperature']:.3f}" for each in used),
            "threshold": f"{threshold:g}",
            "gap": f"{min_gap}",
            "pooled": "+".join(POOLED),
        },
        settings={
            "train": [list(source.gold) for source in learnt.values() if source is not None],
            "methods": list(parsed),
            "learning_rate": how.rate,
        },
        reading={
            "trained_on": "Whose gold the scorer learnt; what is tested was not seen in training.",
            "w_f1": "F of boundaries at most 1 unit from one of the other side, mean over "
            "documents.",
            "f1": "F of exact boundaries, all documents' together.",
            "bor": "Boundaries per gold boundary over the corpus: 1 is gold's density.",
            "purity": "Share of units in the gold segment that holds most of their predicted one.",
            "coverage": "Share of units in the predicted segment that holds most of their gold "
            "one.",
            "mean_score": "Mean size of the logits: near 0 the scorer has collapsed.",
            "negative_control": "Share of gaps with a boundary in segments taken alone: all false.",
        },
    )


def _plan(
    corpora: Mapping[str, Corpus],
    train: Sequence[str],
    splices: Sequence[str],
    calibrate: Sequence[str],
    scorer: str | None,
) -> Learnt:
    """Say what scorers learn from; refuse names that leave nothing to learn or to test."""
    for name in (*train, *splices, *calibrate):
        if name not in corpora:
            raise UnknownNameError("corpus", name, corpora)
    if scorer is not None and (train or splices or calibrate):
        found = "a given scorer beside corpora to train on"
        remedy = "leave out train, splices and calibrate, or the scorer"
        raise OptionError(found, expected="one of the two", remedy=remedy)
    if scorer is not None:
        return {GIVEN: None}
    if not train and (splices or calibrate):
        found = "corpora to splice or to calibrate on, and none to train on"
        remedy = "name them as train"
        raise OptionError(found, expected="corpora whose gold is learnt", remedy=remedy)
    learnt: Learnt = {}
    for turn in [tuple(train)] if train else [(name,) for name in corpora]:
        named = [{name: corpora[name] for name in each} for each in (turn, splices, calibrate)]
        source = TrainingCorpora(*named)
        if len(source.everything) == len(corpora):
            found = f"no corpus to test on beside {listed(source.everything)}"
            remedy = "name another corpus, such as a test split"
            raise OptionError(found, expected="at least one that is not trained on", remedy=remedy)
        learnt["+".join(source.gold)] = source
    return learnt


def _encode(
    parts: Collection[CorpusPart],
    how: ScorerSettings,
    scorer: TrainedScorer | None,
    methods: Sequence[Segmenter],
    metrics: MetricSet,
    settings: StudySettings,
) -> dict[str, Embeddings]:
    """Encode the corpora if anything needs vectors, once all that will not work is refused."""
    is_tuned = how.finetune if scorer is None else scorer.description.settings.finetune
    needs_vectors = any(method.needs_embeddings for method in methods)
    needs_any = not is_tuned or needs_vectors or bool(metrics.reference_free)
    is_encoded = needs_any and any(part.vectors is None for part in parts)
    spec = coming_spec(None, settings) if is_encoded else None
    check_scorers(metrics.reference_free.values(), spec)
    if scorer is not None:
        scorer.description.check_encoder(spec)
    for method, part in product(methods, parts):
        method.check(part.corpus, spec)
    return {part.name: part.encode(settings) for part in parts} if needs_any else {}


def _train(
    learnt: TrainingCorpora | None,
    how: ScorerSettings,
    embedded: Mapping[str, Embeddings],
    settings: StudySettings,
) -> TrainedScorer:
    """Train a scorer; an interruption ends the study."""
    assert learnt is not None  # else one is given
    encoding = {name: getattr(settings, name) for name in Encoding.__annotations__}
    more: Row = {"embeddings": embedded, "progress": settings.progress, **asdict(how), **encoding}
    more |= {"splices": learnt.splices, "calibration": learnt.calibration}
    made = train_scorer(learnt.gold, **more)
    if made.description.is_interrupted:
        raise KeyboardInterrupt
    return made


def _score(
    part: CorpusPart,
    systems: Mapping[str, tuple[Segmentation, ...]],
    metrics: MetricSet,
    embedded: Embeddings | None,
    settings: StudySettings,
) -> Iterator[Row]:
    """Score systems' segmentations of a corpus; a row for each, gold aside.

    The pooled metrics are of the counts of all documents together.
    """
    golds = [document.references for document in part.corpus if document.references]
    n_gold = sum(float(np.mean([len(gold) - 1 for gold in each])) for each in golds)
    corpus = part.corpus.with_systems(systems)
    how = ScoreSettings(settings, seed=settings.seed)
    macro, micro = (
        scores_of(corpus, metrics, replace(how, average=average), embedded, settings.progress)
        for average in AVERAGES
    )
    bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(settings.seed))
    for s, system in enumerate(macro.systems):
        if system == GOLD:
            continue
        found = {
            name: (micro if name in POOLED else macro).corpus_score(name, s, bootstrap)
            for name in macro.metrics.names
        }
        values = {name: score.value for name, score in found.items()}
        w_f1, purity, coverage = (values[name] or 0.0 for name in MEAN)
        yield {
            "system": system,
            **values,
            **{f"{name}_ci": score.ci for name, score in found.items()},
            "predicted": int(macro.n_segments[:, s].sum()) - len(corpus),
            "gold_boundaries": round(n_gold),
            "mode": failure_mode(w_f1, values["bor"], purity, coverage).label,
        }


def _history(trained_on: str, description: Description[ScorerSettings]) -> Iterator[Row]:
    """What a stage was judged on after each epoch, then each corpus of several (Tables 7, 8)."""
    for epoch in description.history:
        parts = epoch["corpora"]
        name = "all" if len(parts) > 1 else next(iter(parts))
        yield {**epoch, "trained_on": trained_on, "corpus": name}
        place = {"trained_on": trained_on, "stage": epoch["stage"], "epoch": epoch["epoch"]}
        for each, of in parts.items() if len(parts) > 1 else ():
            yield {**place, "corpus": each, **{figure: of[figure] for figure in FIGURES}}


def _describe(rows: Sequence[Row], threshold: float) -> Iterator[str]:
    """What the scorer does where, what chance does there, and how far densities go apart."""
    for (trained_on,), own in group_by(rows, "trained_on").items():
        by_system = group_by(own, "system")
        scored = by_system.pop(("scorer",))
        told = []
        for row in scored:
            bor = "" if row["bor"] is None else f" (BOR {row['bor']:.2f})"
            told.append(f"{row['w_f1']:.2f} on {row['corpus']}{bor}")
        who = "A given scorer" if trained_on == GIVEN else f"Trained on {trained_on}, the scorer"
        yield f"{who} has W-F1 {listed(told)}."
        for (system,), others in by_system.items():
            pairs = zip(scored, others, strict=True)
            beaten = [row["corpus"] for row, other in pairs if row["w_f1"] > other["w_f1"]]
            where = f": {listed(beaten)}" if beaten else ""
            yield f"{who} is above {system} by W-F1 on {len(beaten)} of {len(scored)}{where}."
        densities = [row["bor"] for row in scored if row["bor"] is not None]
        if len(densities) > 1:
            span = f"{min(densities):.2f} to {max(densities):.2f}"
            yield f"At the one threshold of {threshold:g} its BOR goes from {span}."
