"""The settings behind a number, as one line that fits beside it.

The same signature of the same corpus and vectors means the same bits on one machine. Between
machines and devices scores agree within `reffree.metrics.free.engine.TOLERANCE`, given the same
vectors; encoders' own vectors differ by what their backend says.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from hashlib import blake2b
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from reffree.data.corpus import Corpus
from reffree.evaluate.corpus_counts import CorpusCounts
from reffree.evaluate.metric_set import MetricSet
from reffree.metrics.free.result import OF_DOCUMENTS, OF_SEGMENTS, FreeMetric
from reffree.statistics.resampling import CONFIDENCE, RESAMPLES
from reffree.util.naming import settings_of

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings


OPTIONAL = ("layer", "attention", "prompt", "quantisation", "weights", "code", "dimension")
"""Settings of a model that are shown where they are not what goes without saying."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Named settings in a fixed order."""

    fields: dict[str, str]

    @classmethod
    def of(
        cls,
        metrics: MetricSet,
        corpus: Corpus | CorpusCounts,
        embedded: Embeddings | None,
        *,
        seed: int,
        unsegmented: str = "neutral",
        average: str = "macro",
        null: int = 0,
        dropped: str = "none",
    ) -> Signature:
        """Collect everything that went into a table of scores."""
        counts = corpus if isinstance(corpus, CorpusCounts) else CorpusCounts.of(corpus)
        named = [_with_settings(metrics.metric(name)) for name in metrics.names]
        fields = {"metrics": "+".join(named)}
        if embedded is not None and metrics.reference_free:
            spec, dtype = embedded.spec, embedded.spec.dtype
            if spec.deviation is not None:  # how far it was measured to be from float32
                from reffree.encoders.precision import PROBE, one_digit_up

                deviation = one_digit_up(spec.deviation)
                dtype += f"(cosine deviation<={deviation} on {len(PROBE)} texts)"
            usual = {f.name: f.default for f in dataclass_fields(spec)}
            unusual = {name: getattr(spec, name) for name in OPTIONAL}
            if spec.prompt:  # which may hold what divides the signature's fields
                unusual["prompt"] = json.dumps(spec.prompt).replace("|", "\\u007c")
            unlimited = "given" if spec.backend == "precomputed" else "none"
            fields |= {
                "encoder": f"{spec.name}@{spec.revision}",
                "backend": spec.backend,
                "pooling": spec.pooling,
                "normalisation": spec.normalisation,
                "dtype": dtype,
                **{n: str(x) for n, x in unusual.items() if getattr(spec, n) != usual[n]},
                "maxlen": unlimited if spec.max_length is None else str(spec.max_length),
                "context": str(spec.context),
                "truncated": f"{embedded.n_truncated / counts.n_units:.2%}",
                "device": embedded.device,
                "unsegmented": unsegmented,
                "aggregation": _aggregation(metrics.reference_free.values()),
            }
        if metrics.gold_based:
            several = "mean(annotators)>" if counts.annotators else ""
            fields["gold"] = f"{several}{average}(documents)"
        fields["dropped"] = dropped if embedded is None else embedded.spec.dropped
        fields["interval"] = f"bootstrap(documents,{RESAMPLES},{CONFIDENCE:.0%})"
        if null:
            fields["null"] = f"permuted-lengths({null})"
        return cls({**fields, "seed": str(seed), "reffree": version("reffree")})

    def __str__(self) -> str:
        return "|".join(f"{key}:{value}" for key, value in self.fields.items())


def _aggregation(metrics: Collection[FreeMetric]) -> str:
    """How scores become those of documents and of the corpus; weighted means are named."""
    kinds = {metric.aggregation for metric in metrics}
    if len(kinds) == 1:
        return kinds.pop()
    plain = [OF_SEGMENTS if OF_SEGMENTS in kinds else OF_DOCUMENTS]  # some have no segments
    others = sorted(kinds - {OF_SEGMENTS, OF_DOCUMENTS})
    named = [(kind, {m.name: None for m in metrics if m.aggregation == kind}) for kind in others]
    usual = plain if kinds - set(others) else []
    return ",".join([*usual, *(f"{'+'.join(names)}={kind}" for kind, names in named)])


def _with_settings(metric: Any) -> str:  # noqa: ANN401  (a metric of any kind)
    given = dataclass_fields(metric)
    usual = {f.name: f.default for f in given if f.metadata.get("shown") == "unusual"}
    settings: dict[str, object] = {
        name: value
        for name, value in settings_of(metric).items()
        if name not in usual or value != usual[name]
    }
    if hasattr(metric, "code"):  # of the user's own
        settings["code"] = metric.code
    if "word_vectors" in metric.needs and metric.table is not None:
        settings = {"vectors": metric.table.name}
        settings["threshold"] = metric.threshold or metric.table.threshold
        settings["left_out"] = _words(metric.left_out)
    if settings.get("unit") == "units":  # goes without saying
        del settings["unit"]
    options = ",".join(f"{k}={'auto' if v is None else v}" for k, v in settings.items())
    return f"{metric.name}({options})" if options else metric.name


def _words(words: frozenset[str]) -> str:
    """Name a set of words, the same in every run."""
    from reffree.metrics.gold.sed import FUNCTION_WORDS

    if words == FUNCTION_WORDS:
        return "function_words"
    digest = blake2b("\n".join(sorted(words)).encode(), digest_size=4).hexdigest()
    return f"{len(words)}_words:{digest}"
