"""Train a boundary scorer on some corpora, test it on others (Coen, "When F1 Fails", §7.5 and E).

One threshold, one spacing and one temperature for all corpora (Tables 9, 10 and 12): nothing is
tuned on what is tested, so that where annotators cut finer or coarser than those whose gold was
learnt, density shows it (BOR) rather than a threshold hiding it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.embed import (
    Embeddings,
    Vectors,
    coming_spec,
    corpus_vectors,
    units_taking_part,
)
from reffree.encoders.options import Encoding
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.result import Field, Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, scores_of
from reffree.evaluate.scores import Average, Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.gold.failure_modes import failure_mode
from reffree.segmenters.base import Inputs, Segmenter
from reffree.segmenters.posterior import check_scorers
from reffree.segmenters.scorer.data import TrainingCorpora, examples_of
from reffree.segmenters.scorer.description import Description, Figures, Training
from reffree.segmenters.scorer.scorer import Checkpoint, load_checkpoint
from reffree.segmenters.scorer.train import PAPER_THRESHOLD, train_scorer
from reffree.segmenters.segment import parse_segmenter
from reffree.segmenters.selection import MIN_GAP, select_above
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.study import (
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    check_study,
    study_result,
)
from reffree.util.bounds import Count, Positive, within_bounds
from reffree.util.errors import OptionError, UnknownNameError, listed
from reffree.util.naming import spelling_of

METHODS = ("oracle_random",)
"""As many boundaries as gold has, anywhere: what density alone is worth (Coen's Table 3)."""

MEAN = ("w_f1", "purity", "coverage")
POOLED = ("f1", "bor")
"""F1 as in the tables: Table 9 has one above its W-F1, which means over documents cannot."""

AVERAGES: tuple[Average, Average] = ("macro", "micro")
GIVEN = "a given scorer"

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


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """What is learnt from, and what is tested."""

    learnt: TrainingCorpora | None  # None: the scorer is given
    tested: tuple[str, ...]

    @property
    def name(self) -> str:
        """How the scorer is called in tables."""
        return GIVEN if self.learnt is None else "+".join(self.learnt.gold)

    def check(self, corpora: Mapping[str, Corpus], metrics: MetricSet, how: Training) -> None:
        """Refuse what cannot be tested, and what cannot be trained on."""
        for name in self.tested:
            check_gold(corpora[name], metrics)
        if self.learnt is not None:
            examples_of(self.learnt, how)

    def train(
        self, how: Training, embedded: Mapping[str, Embeddings], settings: StudySettings
    ) -> Checkpoint:
        """Train the scorer; an interruption ends the study."""
        assert self.learnt is not None  # else one is given
        encoding = {name: getattr(settings, name) for name in Encoding.__annotations__}
        made = train_scorer(
            self.learnt.gold,
            splices=self.learnt.splices,
            calibration=self.learnt.calibration,
            settings=how,
            embeddings=embedded,
            progress=settings.progress,
            **cast(Encoding, encoding),
        )
        if made.description.is_interrupted:
            raise KeyboardInterrupt
        return made


@within_bounds
def transfer(
    corpora: Mapping[str, Corpus],
    *,
    train: Sequence[str] = (),
    splices: Sequence[str] = (),
    calibrate: Sequence[str] = (),
    scorer: str | None = None,
    methods: Sequence[str] = METHODS,
    metrics: Sequence[str] = (),
    threshold: float = PAPER_THRESHOLD,
    min_gap: Positive = MIN_GAP,
    finetune: bool = False,
    window: Positive = 4,
    splice_epochs: Count = 3,
    epochs: Count = 5,
    learning_rate: float | None = None,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Train a scorer on some of the corpora and test it on the others, at one threshold.

    Args:
        corpora: from `reffree.load`, by name, with gold in every document.
        train: names of those the scorer learns gold boundaries from. Those not named here, under
            splices or under calibrate are tested. By default each corpus in turn, tested on all
            others.
        splices: names of those whose segments are spliced in the first stage; by default those of
            ``train``.
        calibrate: names of those that temperature is chosen on; by default documents held out.
        scorer: a folder that ``reffree train-scorer`` wrote, to be tested instead of training.
        methods: of `reffree.segment`, to stand beside the scorer.
        metrics: further ones, as for `reffree.score`.
        threshold: of the scorer's calibrated probabilities.
        min_gap: units between two boundaries of the scorer.
        finetune: train the encoder itself, as the paper does.
        window: units on either side of a gap.
        splice_epochs: epochs on splices.
        epochs: epochs on gold.
        learning_rate: of the first stage; half of it in the second.
        embeddings: arrays of every document by corpus, instead of an encoder.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    check_study(corpora, embeddings)
    if not 0 <= threshold <= 1:
        raise OptionError(
            f"threshold = {threshold}",
            expected="a probability, from 0 to 1",
            remedy="leave it out for 0.5",
        )
    how = Training(
        window=window,
        splice_epochs=splice_epochs,
        epochs=epochs,
        learning_rate=learning_rate,
        min_gap=min_gap,
        seed=settings.seed,
        finetune=finetune,
    )
    parsed = {spelling_of(method): method for method in map(parse_segmenter, methods)}
    parts: dict[str, Corpus] = {}
    given: dict[str, Vectors | None] = {}
    for name, whole in corpora.items():
        part, given[name] = units_taking_part(whole, (embeddings or {}).get(name), settings)
        parts[name] = part.corpus.only_systems(())
    plans = _plans(parts, train, splices, calibrate, scorer)
    some = next(iter(parts.values()))
    wanted = [*MEAN, *POOLED, *metrics]
    chosen = choose_metrics(wanted, some, seed=settings.seed, offline=settings.offline)
    for plan in plans:
        plan.check(parts, chosen, how)
    kept = None if scorer is None else load_checkpoint(Path(scorer))
    is_tuned = how.finetune if kept is None else kept.description.settings.finetune
    embedded: dict[str, Embeddings] = {}
    needs_vectors = any(method.needs_embeddings for method in parsed.values())
    needs_any = not is_tuned or needs_vectors or bool(chosen.reference_free)
    spec = coming_spec(None, settings) if needs_any and None in given.values() else None
    _check_methods(parts, parsed.values(), chosen, kept, spec)
    if needs_any:
        for name, corpus in parts.items():
            embedded[name] = corpus_vectors(corpus, given[name], settings, settings.progress)
    studied: list[TestedCorpus] = []
    history: list[dict[str, Any]] = []
    used: list[Description] = []
    for plan in plans:
        checkpoint = kept or plan.train(how, embedded, settings)
        used.append(checkpoint.description)
        history += _history_rows(plan.name, checkpoint.description) if kept is None else ()
        for name in plan.tested:
            corpus, vectors = parts[name], embedded.get(name)
            inputs = Inputs(corpus, settings.seed, device=settings.device)
            if vectors is not None:
                spec = vectors.spec if given[name] is None else None
                inputs = replace(inputs, embeddings=vectors.vectors, encoder=spec)
            scores = checkpoint.boundary_scores(inputs)
            made = {"scorer": tuple(select_above(each, threshold, min_gap) for each in scores)}
            made |= {spelling: method(inputs) for spelling, method in parsed.items()}
            studied.append(
                TestedCorpus.of(name, corpus, vectors, plan.name, made, chosen, settings)
            )
    rows = [row for each in studied for row in each.rows()]
    return study_result(
        "transfer",
        studied,
        question="How does a boundary scorer do on corpora that it was not trained on?",
        verdict=_answer(rows, threshold),
        tables=(
            Table.of("transfer", "Tested at one threshold", _fields(chosen.names), rows),
            Table.of("history", "Judged after every epoch", HISTORY, history, shown=bool(history)),
        ),
        signature={
            "trained-on": "/".join(plan.name for plan in plans),
            "made-with": "/".join(
                dict.fromkeys(f"{each.encoder.name}@{each.encoder.revision}" for each in used)
            ),
            "temperature": "/".join(f"{each.temperature:.3f}" for each in used),
            "threshold": f"{threshold:g}",
            "gap": f"{min_gap}",
            "pooled": "+".join(POOLED),
        },
        settings={
            "train": [list(plan.learnt.gold) for plan in plans if plan.learnt is not None],
            "splices": list(splices),
            "calibrate": list(calibrate),
            "scorer": scorer,
            "methods": list(parsed),
            "metrics": list(metrics),
            "threshold": threshold,
            "min_gap": min_gap,
            **{name: getattr(how, name) for name in ("finetune", "window", "splice_epochs")},
            "epochs": epochs,
            "learning_rate": how.rate,
            "seed": settings.seed,
        },
        notes=(),
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


def _fields(metrics: Sequence[str]) -> list[Field]:
    """Columns of the table: the paper's, then those of further metrics."""
    further = [name for name in metrics if name not in (*MEAN, *POOLED)]
    return [*SYSTEMS, *(field for name in further for field in estimate(name, name))]


def _check_methods(
    parts: Mapping[str, Corpus],
    methods: Iterable[Segmenter],
    metrics: MetricSet,
    scorer: Checkpoint | None,
    encoder: EncoderSpec | None,
) -> None:
    """Refuse methods and metrics that will not work on a corpus, before anything is encoded."""
    check_scorers(metrics.reference_free.values(), encoder)
    if scorer is not None:
        scorer.description.check_encoder(encoder)
    for method, corpus in product(methods, parts.values()):
        method.check(corpus, encoder)


def _plans(
    corpora: Mapping[str, Corpus],
    train: Sequence[str],
    splices: Sequence[str],
    calibrate: Sequence[str],
    scorer: str | None,
) -> list[TransferPlan]:
    """Say what is trained on what and tested on what."""
    for name in (*train, *splices, *calibrate):
        if name not in corpora:
            raise UnknownNameError("corpus", name, corpora)
    if scorer is not None and (train or splices or calibrate):
        raise OptionError(
            "a given scorer beside corpora to train on",
            expected="one of the two",
            remedy="leave out train, splices and calibrate, or the scorer",
        )
    if scorer is not None:
        return [TransferPlan(None, tuple(corpora))]
    if not train and (splices or calibrate):
        raise OptionError(
            "corpora to splice or to calibrate on, and none to train on",
            expected="corpora whose gold is learnt",
            remedy="name them as train",
        )
    turns = [tuple(train)] if train else [(name,) for name in corpora]
    plans = []
    for turn in turns:
        named = [{name: corpora[name] for name in each} for each in (turn, splices, calibrate)]
        learnt = TrainingCorpora(*named)
        tested = tuple(name for name in corpora if name not in learnt.everything)
        if not tested:
            raise OptionError(
                f"no corpus to test on beside {listed(learnt.everything)}",
                expected="at least one that is not trained on",
                remedy="name another corpus, such as a test split",
            )
        plans.append(TransferPlan(learnt, tested))
    return plans


@dataclass(frozen=True, slots=True)
class TestedCorpus(StudiedCorpus):
    """One corpus, segmented and scored."""

    trained_on: str
    scores: Scores
    pooled: Scores  # with the counts of all documents together

    @classmethod
    def of(
        cls,
        name: str,
        corpus: Corpus,
        embedded: Embeddings | None,
        trained_on: str,
        systems: Mapping[str, tuple[Segmentation, ...]],
        metrics: MetricSet,
        settings: StudySettings,
    ) -> TestedCorpus:
        """Score systems' segmentations of a corpus."""
        ids = [document.id for document in corpus]
        for system, made in systems.items():
            corpus = corpus.with_system(system, dict(zip(ids, made, strict=True)))
        how = ScoreSettings(settings, seed=settings.seed)
        scores, pooled = (
            scores_of(corpus, metrics, replace(how, average=average), embedded, settings.progress)
            for average in AVERAGES
        )
        signature = Signature.of(metrics, corpus, embedded, seed=settings.seed)
        return cls(name, corpus, embedded, signature, trained_on, scores, pooled)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every system but gold."""
        n_gold = sum(
            float(np.mean([len(each) - 1 for each in document.references]))
            for document in self.corpus
            if document.references
        )
        seed = self.scores.settings.seed
        bootstrap = DocumentBootstrap(len(self.corpus), np.random.default_rng(seed))
        for s, system in enumerate(self.scores.systems):
            if system == GOLD:
                continue
            found = {
                name: (self.pooled if name in POOLED else self.scores).corpus_score(
                    name, s, bootstrap
                )
                for name in self.scores.metrics.names
            }
            values = {name: score.value for name, score in found.items()}
            w_f1, purity, coverage = (values[name] or 0.0 for name in MEAN)
            yield {
                "trained_on": self.trained_on,
                "corpus": self.name,
                "system": system,
                **values,
                **{f"{name}_ci": score.ci for name, score in found.items()},
                "predicted": int(self.scores.n_segments[:, s].sum()) - len(self.corpus),
                "gold_boundaries": round(n_gold),
                "mode": failure_mode(w_f1, values["bor"], purity, coverage).label,
            }


def _history_rows(trained_on: str, description: Description) -> Iterator[dict[str, Any]]:
    """What a stage was judged on after each epoch, then each corpus of several (Tables 7, 8)."""
    for epoch in description.history:
        place = {"trained_on": trained_on, "stage": epoch.stage, "epoch": epoch.epoch}
        every = {"log_loss": epoch.log_loss, "mean_score": epoch.mean_score}
        every["negative_control"] = epoch.negative_control
        parts = epoch.corpora.items()
        name = "all" if len(parts) > 1 else next(iter(epoch.corpora))
        yield {**place, **every, "corpus": name, **_figures(epoch)}
        if len(parts) > 1:
            yield from ({**place, "corpus": each, **_figures(of)} for each, of in parts)


def _figures(figures: Figures) -> dict[str, float | None]:
    return {name: getattr(figures, name) for name in ("f1", "w_f1", "bor")}


def _answer(rows: Sequence[Mapping[str, Any]], threshold: float) -> Iterator[str]:
    """What the scorer does where, what chance does there, and how far densities go apart."""
    for trained_on in dict.fromkeys(row["trained_on"] for row in rows):
        own = [row for row in rows if row["trained_on"] == trained_on]
        scored = [row for row in own if row["system"] == "scorer"]
        told = [f"{row['w_f1']:.2f} on {row['corpus']}{_of_density(row)}" for row in scored]
        who = "A given scorer" if trained_on == GIVEN else f"Trained on {trained_on}, the scorer"
        yield f"{who} has W-F1 {listed(told)}."
        for system in dict.fromkeys(row["system"] for row in own if row["system"] != "scorer"):
            others = {row["corpus"]: row for row in own if row["system"] == system}
            beaten = [
                row["corpus"] for row in scored if row["w_f1"] > others[row["corpus"]]["w_f1"]
            ]
            yield (
                f"{who} is above {system} by W-F1 on {len(beaten)} of {len(scored)}"
                f"{': ' + listed(beaten) if beaten else ''}."
            )
        densities = [row["bor"] for row in scored if row["bor"] is not None]
        if len(densities) > 1:
            yield (
                f"At the one threshold of {threshold:g} its BOR goes from {min(densities):.2f} to "
                f"{max(densities):.2f}."
            )


def _of_density(row: Mapping[str, Any]) -> str:
    return "" if row["bor"] is None else f" (BOR {row['bor']:.2f})"
