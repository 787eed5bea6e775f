"""How do metrics judge systems that read no text, beside systems that do?

Georgescul, Clark and Armstrong (2006), Figures 1 to 3: no boundaries, boundaries everywhere and
random ones under Pk, Pk′, WindowDiff and Pr_error, over corpora. A metric by which a system that
reads the text does no better than one that does not says nothing of the system, or the system
nothing of the text; and one that charges boundaries everywhere more than no boundaries at all
charges false alarms more than misses. Coen's Table 3 asks the same of W-F1 with other baselines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, golds_of, scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.gold.windows import Windowed
from reffree.segmenters.segment import HOMES, parse_segmenter, segment
from reffree.statistics.losses import as_loss
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.keywords import StudyKeywords, method_option, metric_option
from reffree.studies.study import StudiedCorpus, StudySettings, corpus_parts, study_result
from reffree.util.declare import declared
from reffree.util.errors import OptionError, listed
from reffree.util.grid import Row, group_by

METHODS = (*("none", "all", "random_known", "random_unknown"), *("texttiling", "c99", "textseg"))
METRICS = ("pk", "pk_prime", "windowdiff", "pr_error")
"""Both of Georgescul et al. (2006)."""

EQUAL = 1e-9
SYSTEM = (*columns("text", "corpus", "system", "reads"), *columns("count", "segments"))
VALUES = (*SYSTEM, *columns("text", "metric"), *columns("number", "value", "low", "high"))


@declared
def baselines(
    corpora: Mapping[str, Corpus],
    *,
    methods: Annotated[
        Sequence[str], method_option("As in reffree segment; may be repeated.", parse_segmenter)
    ] = METHODS,
    metrics: Annotated[
        Sequence[str], metric_option("As in reffree score; may be repeated.")
    ] = METRICS,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Judge systems that read no text by metrics, beside systems that do.

    Scores every --method and the corpus's systems against gold: no boundaries, boundaries
    everywhere, random ones and lexical segmenters by default. Says how much more boundaries
    everywhere cost than none at all, and which systems are no better than those that read no text.
    Each CORPUS is a corpus of its own and needs gold.
    """
    settings = StudySettings(**keywords)
    parts = corpus_parts(corpora, embeddings, settings)
    parsed = [parse_segmenter(method) for method in methods]
    if not methods and all(set(corpus.hypotheses) <= {GOLD} for corpus in corpora.values()):
        remedy = "leave methods out for all"
        raise OptionError("no method and no system", expected="at least one", remedy=remedy)
    chosen = settings.choose_metrics(metrics, parts[0].corpus)
    needs_vectors = bool(chosen.reference_free) or any(m.needs_embeddings for m in parsed)
    for part in parts:
        check_gold(part.corpus, chosen)
        part.check(chosen.reference_free.values(), parsed, settings, needs_vectors=needs_vectors)
    studied: list[StudiedCorpus] = []
    rows: list[Row] = []
    notes: list[str] = []
    for part in parts:
        corpus, embedded = part.corpus, part.encode(settings) if needs_vectors else None
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
        rows += _rows(part.name, corpus, scores)
        notes += _describe_windows(part.name, corpus, chosen)
        signature = Signature.of(chosen, corpus, embedded, seed=settings.seed)
        studied.append(StudiedCorpus(part.name, corpus, embedded, signature))
    names = list(dict.fromkeys(row["metric"] for row in rows))
    specs = [each.embedded.spec for each in studied if each.embedded is not None]
    made_with = {"made-with": f"{specs[0].name}@{specs[0].revision}"} if specs else {}
    wide: list[Row] = []
    for own in group_by(rows, "corpus", "system").values():
        wide.append(own[0] | {row["metric"]: row["value"] for row in own})
        wide[-1] |= {f"{row['metric']}_ci": row["ci"] for row in own}
    fields = (*SYSTEM, *(field for name in names for field in estimate(name, name)))
    title = "Systems that read no text, and others"
    return study_result(
        "baselines",
        studied,
        question="How do metrics judge systems that read no text, beside systems that do?",
        verdict=_describe(rows),
        tables=(
            Table.of("systems", title, fields, wide),
            Table.of("values", "Every system under every metric", VALUES, rows, shown=False),
        ),
        # Methods may have seen vectors where metrics needed none.
        signature={"methods": "+".join(methods) or "none", **made_with},
        settings={"metrics": names},
        notes=notes,
        reading={
            "reads": "Whether the system reads the text; as its name says, where it came with the "
            "corpus.",
            "value": "Mean over documents, with the interval over resampled documents.",
        },
    )


def _describe_windows(corpus: str, documents: Corpus, metrics: MetricSet) -> Iterator[str]:
    """Say how large the windows of metrics are that slide one over a document."""
    golds = golds_of(documents)
    named: dict[str, list[str]] = {}
    for name, metric in metrics.over(golds).gold_based.items():
        if isinstance(metric, Windowed):
            sizes = np.concatenate([metric.sizes(metric.measured(pairs)) for pairs in golds()])
            low, middle, high = np.quantile(sizes, [0, 0.5, 1])
            span = f"{low:g} {metric.unit}"
            if low < high:
                span = f"{low:g} to {high:g} {metric.unit}, {middle:g} in the middle"
            named.setdefault(span, []).append(name)
    for span, names in named.items():
        yield f"{corpus}: windows of {span}: {listed(names)}."


def _rows(name: str, corpus: Corpus, scores: Scores) -> Iterator[Row]:
    """Every system but gold under every metric; ``loss`` is its value with lower as better."""
    bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(scores.settings.seed))
    for s, system in enumerate(scores.systems):
        if system == GOLD:
            continue
        is_blind = HOMES.get(system.partition(":")[0], "").startswith("naive:")
        for metric in scores.metrics.names:
            score = scores.corpus_score(metric, s, bootstrap)
            low, high = score.ci or (None, None)
            value = score.value
            yield {
                **{"corpus": name, "system": system, "reads": "no text" if is_blind else "text"},
                **{"segments": int(scores.n_segments[:, s].sum()), "metric": metric},
                **{"value": value, "ci": score.ci, "low": low, "high": high},
                "loss": None if value is None else float(as_loss(value, score.direction)),
            }


def _describe(rows: Sequence[Row]) -> Iterator[str]:
    """What no boundaries cost against boundaries everywhere; whom reading the text helps."""
    known = [row for row in rows if row["loss"] is not None]
    for (corpus,), of_corpus in group_by(known, "corpus").items():
        costs: list[str] = []
        useless: dict[tuple[str, str], list[str]] = {}
        for (metric,), own in group_by(of_corpus, "metric").items():
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
            blindly = f"no better than {best}, which reads no text"
            yield f"{corpus}: by {listed(metrics)}, {blindly}: {worse_ones}."
