"""Expected errors over assumed numbers of segments: which system is better at which granularity.

Topics nest, and a text hardly says how finely its annotators would cut. So expected errors are
followed along the number of segments that annotators are assumed to make (`Assumed`), and each
curve is read with what is known of that number: what the metric itself assumes, how many segments
the system has, and how many gold has where there is gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from reffree.arrays import Floats
from reffree.bounds import Seed, check_number, within_bounds
from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, OptionError
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.masses import mass_matrix
from reffree.progress import Progress, no_progress
from reffree.reference.metric import GoldMetric
from reffree.reference.metrics import GOLD_METRICS
from reffree.scoring.evidence import Reading
from reffree.scoring.expected import EXPECTED, Expected
from reffree.scoring.inputs import check_embeddings
from reffree.scoring.metrics import parse_metrics, spelling
from reffree.segmenters.base import Inputs
from reffree.segmenters.posterior import readings
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.granularity_curves.curves import FEWEST_UNITS, POINTS, Assumed, Curves
from reffree.studies.granularity_curves.tables import granularity_tables
from reffree.studies.granularity_curves.words import answer_of, notes_of, reading_of
from reffree.studies.result import StudyResult
from reffree.studies.study import check_study, described, joint_signature, reading_notes

METRICS = ("expected_pk",)


@within_bounds
def granularity(
    corpora: Mapping[str, Corpus],
    *,
    metrics: Sequence[str] = METRICS,
    length: float | None = None,
    evidence: str = "all",
    embeddings: Mapping[str, Vectors] | None = None,
    seed: Seed = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> StudyResult:
    """Follow expected errors along the assumed number of segments; say where curves cross.

    Args:
        corpora: from `reffree.load`, by name, each with a system or a complete gold.
        metrics: expected errors, as for `reffree.score`.
        length: expected units per segment, of metrics that do not name it.
        evidence: what posteriors rest on, of metrics that do not name it: see `Expected`.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder.
        seed: of the bootstrap and of draws.
        short_signature: abbreviate the signature.
        memory: taken as by every study; the tables of one document are all that is held.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    check_study(corpora, embeddings)
    chosen = _checked_metrics(metrics, length, evidence, seed)
    for corpus in corpora.values():
        _check_systems(corpus)
    work = _Work(chosen, options, seed, progress)
    studied = [
        work.over(name, corpus, (embeddings or {}).get(name)) for name, corpus in corpora.items()
    ]
    curves = [each for corpus in studied for each in corpus.curves]
    return StudyResult(
        study="granularity",
        question="Which system is better where annotators cut coarsely, and where they cut finely?",
        answer=answer_of(curves),
        tables=granularity_tables(curves),
        signature=joint_signature(
            [each.signature for each in studied],
            {"assumed": f"{POINTS}(log-spaced)"},
            short=short_signature,
        ),
        settings={"metrics": list(chosen), "points": POINTS, "seed": seed},
        corpora=tuple(described(each.name, each.corpus, each.embedded) for each in studied),
        notes=(
            *(
                note
                for each in studied
                for note in reading_notes(each.name, each.corpus, each.embedded)
            ),
            *notes_of(curves),
        ),
        reading=reading_of(chosen),
    )


@dataclass(frozen=True, slots=True)
class _Studied:
    """One corpus, its systems followed by every metric."""

    name: str
    corpus: Corpus
    embedded: Embeddings
    signature: Signature
    curves: list[Curves]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is done to every corpus."""

    metrics: dict[str, Expected]
    options: EncoderOptions
    seed: int
    progress: Progress

    def over(self, name: str, whole: Corpus, vectors: Vectors | None) -> _Studied:
        """Make every document's posteriors, and score all systems at every assumed number."""
        part, given = units_taking_part(whole, vectors, self.options)
        corpus = part.corpus
        _check_lengths(corpus)
        embedded = corpus_vectors(corpus, given, self.options, self.progress)
        vectors_of = [
            check_embeddings(x, document.id).detach().double().cpu().numpy()
            for x, document in zip(embedded.vectors, corpus, strict=True)
        ]
        inputs = Inputs(corpus, embeddings=embedded.vectors, encoder=embedded.spec)
        gold = self._against_gold(corpus)
        # The same resamples as of reffree score, so that intervals agree.
        bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(self.seed))
        curves = []
        with self.progress("Scoring", len(corpus) * len(self.metrics)) as advance:
            for spelt, metric in self.metrics.items():
                assumed = Assumed.of(corpus, metric.length)
                read = readings(inputs, [metric])
                scored = _score(corpus, metric, assumed, vectors_of, read, advance)
                curves.append(
                    Curves(name, spelt, metric, corpus, assumed, *scored, gold, bootstrap)
                )
        against = {} if gold is None else gold.metrics.gold_based
        signature = Signature.of(
            MetricSet((*self.metrics, *against), dict(self.metrics), against),
            corpus,
            embedded,
            seed=self.seed,
        )
        return _Studied(name, corpus, embedded, signature, curves)

    def _against_gold(self, corpus: Corpus) -> Scores | None:
        """Score by the gold-based metrics themselves, where any document has gold."""
        if not any(document.references for document in corpus):
            return None
        wanted: dict[str, GoldMetric] = {
            name: GOLD_METRICS[name]() for name in map(_gold_name, self.metrics.values())
        }
        return scores_of(corpus, MetricSet(tuple(wanted), {}, wanted), ScoreSettings())


def _score(
    corpus: Corpus,
    metric: Expected,
    assumed: Assumed,
    vectors: Sequence[Floats],
    read: Sequence[Reading],
    advance: Callable[[int], None],
) -> tuple[Floats, Floats, Floats]:
    """Score every system of every document, NaN where it is too short.

    Returns:
        Scores (numbers, systems, documents) at every assumed number of segments; those of the
        metric itself (systems, documents); and the fewest, the mean and the most segments that the
        metric assumes (3, documents).
    """
    n_systems, n_documents = len(corpus.hypotheses), len(corpus)
    values = np.full((len(assumed.numbers), n_systems, n_documents), np.nan)
    overall = np.full((n_systems, n_documents), np.nan)
    span = np.full((3, n_documents), np.nan)
    for d in range(n_documents):
        if assumed.is_defined[d]:
            masses = mass_matrix([each[d] for each in corpus.hypotheses.values()], None)
            posterior = metric.posterior(vectors[d], read[d])
            overall[:, d] = metric.scores(posterior, masses)
            segments = [node.segments for node in posterior.nodes]
            span[:, d] = min(segments), posterior.segments, max(segments)
            for i, number in enumerate(assumed.of_documents[:, d]):
                values[i, :, d] = metric.scores(posterior.at(number), masses)
        advance(1)
    return values, overall, span


def _gold_name(metric: Expected) -> str:
    return metric.name.removeprefix("expected_")


def _checked_metrics(
    names: Sequence[str], length: float | None, evidence: str, seed: int
) -> dict[str, Expected]:
    """Every metric once, with the length and the evidence that go for all."""
    known = [each.name for each in EXPECTED]
    if length is not None:
        check_number("length", length, 1, remedy="leave it out where it is not known")
        length = float(length)
    metrics: dict[str, Expected] = {}
    for metric in parse_metrics(names, seed):
        if not isinstance(metric, Expected):
            raise OptionError(
                f"the metric {spelling(metric)!r}",
                expected=" or ".join(known),
                remedy="only expected errors can be followed along the number of segments",
            )
        filled = replace(
            metric,
            length=length if metric.length is None else metric.length,
            evidence=evidence if metric.evidence == "all" else metric.evidence,
        )
        _check_scorer(filled)
        metrics[spelling(filled)] = filled
    if not metrics:
        raise OptionError(
            "no metric", expected="at least one", remedy=f"leave it out for {METRICS[0]}"
        )
    return metrics


def _check_scorer(metric: Expected) -> None:
    """Read the trained scorer that is named, before anything is encoded for it."""
    if metric.scorer:
        from reffree.segmenters.scorer.scorer import load_checkpoint

        load_checkpoint(Path(metric.scorer))


def _check_systems(corpus: Corpus) -> None:
    if not corpus.hypotheses:
        raise InputError(
            "no systems",
            expected="a segmentation to score in every document",
            remedy="make some with reffree segment, or add --system NAME=FILE",
            place=corpus.documents[0].place,
        )


def _check_lengths(corpus: Corpus) -> None:
    if all(len(document.units) < FEWEST_UNITS for document in corpus):
        raise InputError(
            f"no document of {FEWEST_UNITS} units or more",
            expected="at least one: in a shorter one no window of Pk fits",
            remedy="check how the text is split into units",
            place=corpus.documents[0].place,
        )
