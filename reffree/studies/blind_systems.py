"""How metrics judge segmenters that read no text, beside segmenters that do.

Georgescul, Clark and Armstrong (2006), Figures 1 to 3: no boundaries, boundaries everywhere and
random ones under Pk, Pk′, WindowDiff and Pr_error, over corpora. A metric by which a system that
reads the text does no better than one that does not says nothing of the system, or the system
nothing of the text; and one that charges boundaries everywhere more than no boundaries at all
charges false alarms more than misses. Coen's Table 3 asks the same of W-F1 with other baselines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import CorpusScore
from reffree.segmenters.segment import HOMES, parse_segmenter, segment
from reffree.statistics.losses import as_loss
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.study import (
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.bounds import with_keywords, within_bounds
from reffree.util.errors import OptionError, listed

METHODS = (
    *("none", "all", "random_known", "random_unknown"),
    *("texttiling", "c99", "textseg"),
)
METRICS = ("pk", "pk_prime", "windowdiff", "pr_error")
"""Both of Georgescul et al. (2006)."""

BLIND = tuple(name for name, home in HOMES.items() if home.startswith("naive:"))
"""Methods that read no text; a system so called is one of them."""

EQUAL = 1e-9


@with_keywords(StudyKeywords)
@within_bounds
def baselines(
    corpora: Mapping[str, Corpus],
    *,
    methods: Sequence[str] = METHODS,
    metrics: Sequence[str] = METRICS,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score segmenters that read no text and segmenters that do, by gold-based metrics.

    Args:
        corpora: from `reffree.load`, by name, with gold; systems of theirs are scored too.
        methods: of `reffree.segment`.
        metrics: names as for `reffree.score`.
        embeddings: arrays of every document by corpus, as for `reffree.score`, instead of an
            encoder; only methods and metrics that look at vectors need them.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    parts = corpus_parts(corpora, embeddings, settings)
    parsed = [parse_segmenter(method) for method in methods]
    if not methods and all(set(corpus.hypotheses) <= {GOLD} for corpus in corpora.values()):
        raise OptionError(
            "no method and no system", expected="at least one", remedy="leave methods out for all"
        )
    chosen = choose_metrics(metrics, parts[0].corpus, seed=settings.seed, offline=settings.offline)
    needs_vectors = bool(chosen.reference_free) or any(m.needs_embeddings for m in parsed)
    for part in parts:
        check_gold(part.corpus, chosen)
        part.check(chosen.reference_free.values(), parsed, settings, needs_vectors=needs_vectors)
    studied = []
    for part in parts:
        corpus, embedded = part.corpus, None
        if needs_vectors:
            embedded = corpus_vectors(corpus, part.vectors, settings, settings.progress)
        wanted = [method for method in methods if method not in corpus.hypotheses]
        if wanted:
            corpus = segment(
                *(corpus, wanted),
                seed=settings.seed,
                embeddings=embedded,
                progress=settings.progress,
                device=settings.device,
            )
        how = ScoreSettings(settings, seed=settings.seed)
        scores = scores_of(corpus, chosen, how, embedded, settings.progress)
        signature = Signature.of(chosen, corpus, embedded, seed=settings.seed)
        studied.append(JudgedCorpus(part.name, corpus, embedded, signature, scores))
    rows = [row for each in studied for row in each.rows()]
    names = list(dict.fromkeys(row["metric"] for row in rows))
    return study_result(
        "baselines",
        studied,
        question="How do metrics judge systems that read no text, beside systems that do?",
        verdict=_answer(rows),
        tables=_tables(rows, names),
        signature={"methods": "+".join(methods) or "none"}
        | _made_with([each.embedded for each in studied]),
        settings={"methods": list(methods), "metrics": names, "seed": settings.seed},
        notes=(),
        reading={
            "reads": "Whether the system reads the text; as its name says, where it came with the "
            "corpus.",
            "value": "Mean over documents, with the interval over resampled documents.",
        },
    )


def _made_with(embedded: Sequence[Embeddings | None]) -> dict[str, str]:
    """Name the encoder whose vectors methods saw, as metrics may have needed none."""
    specs = [each.spec for each in embedded if each is not None]
    return {"made-with": f"{specs[0].name}@{specs[0].revision}"} if specs else {}


@dataclass(frozen=True, slots=True)
class JudgedCorpus(StudiedCorpus):
    """One corpus with its systems, scored."""

    scores: Scores

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every system but gold under every metric."""
        bootstrap = DocumentBootstrap(
            len(self.corpus), np.random.default_rng(self.scores.settings.seed)
        )
        for s, system in enumerate(self.scores.systems):
            if system == GOLD:
                continue
            for metric in self.scores.metrics.names:
                score = self.scores.corpus_score(metric, s, bootstrap)
                low, high = score.ci or (None, None)
                yield {
                    "corpus": self.name,
                    "system": system,
                    "reads": "no text" if system.partition(":")[0] in BLIND else "text",
                    "segments": int(self.scores.n_segments[:, s].sum()),
                    "metric": metric,
                    "value": score.value,
                    "ci": score.ci,
                    "low": low,
                    "high": high,
                    "loss": _loss(score),
                }


def _loss(score: CorpusScore) -> float | None:
    """Turn what is shown of a metric so that lower is better."""
    if score.value is None:
        return None
    return float(as_loss(np.array(score.value), score.direction))


def _tables(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Iterator[Table]:
    """A row per system, to be read; then a row per value, for charts."""
    wide: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["corpus"], row["system"]
        values = wide.setdefault(
            key, {n: row[n] for n in ("corpus", "system", "reads", "segments")}
        )
        values |= {row["metric"]: row["value"], f"{row['metric']}_ci": row["ci"]}
    fields = (
        *columns("text", "corpus", "system", "reads"),
        *columns("count", "segments"),
        *(field for name in metrics for field in estimate(name, name)),
    )
    yield Table.of("systems", "Systems that read no text, and others", fields, list(wide.values()))
    fields = (
        *columns("text", "corpus", "system", "reads"),
        *columns("count", "segments"),
        *columns("text", "metric"),
        *columns("number", "value", "low", "high"),
    )
    yield Table.of("values", "Every system under every metric", fields, rows, shown=False)


def _answer(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What no boundaries cost against boundaries everywhere; whom reading the text helps."""
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        of_corpus = [row for row in rows if row["corpus"] == corpus and row["loss"] is not None]
        costs: list[str] = []
        useless: dict[tuple[str, str], list[str]] = {}
        for metric in dict.fromkeys(row["metric"] for row in of_corpus):
            own = [row for row in of_corpus if row["metric"] == metric]
            blind = {row["system"]: row["loss"] for row in own if row["reads"] == "no text"}
            none, everywhere = blind.get("none", 0.0), blind.get("all", 0.0)
            if none > 0 and everywhere > 0:
                costs.append(f"{everywhere / none:.2f} times as much by {metric}")
            best = min(blind, key=lambda name: blind[name], default="")
            worse = [
                row["system"]
                for row in own
                if best and row["reads"] == "text" and row["loss"] > blind[best] - EQUAL
            ]
            if worse:
                useless.setdefault((listed(worse), best), []).append(metric)
        if costs:
            yield f"{corpus}: boundaries everywhere cost, against none at all, {listed(costs)}."
        for (worse_ones, best), metrics in useless.items():
            yield (
                f"{corpus}: by {listed(metrics)}, no better than {best}, which reads no text: "
                f"{worse_ones}."
            )
