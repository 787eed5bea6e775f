"""Blocks scored by Ray's actors: each does with a block what this process would do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from reffree.data.corpus import Corpus, Document
from reffree.encoders.address import refuse_endpoint
from reffree.encoders.device import parse_ray
from reffree.encoders.embed import Embeddings
from reffree.encoders.opening import ray_actors, remote_options
from reffree.evaluate.corpus_counts import blocks_of
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.score import Plan, score_documents
from reffree.evaluate.scores import Scores
from reffree.metrics.free.custom import CustomMetric
from reffree.util.errors import OptionError
from reffree.util.progress import Progress, no_progress

BLOCKS_AT_ONCE = 64
"""Blocks for an actor whose documents and vectors are in the memory of this process."""

Item = tuple[Corpus, Embeddings | None]


def score_on_ray(
    documents: Iterable[Document], plan: Plan, n_units: int, progress: Progress = no_progress
) -> Scores:
    """Have actors encode what the cache lacks, then score; this process reads and writes it."""
    options = plan.settings.options
    cluster = parse_ray(options.device)
    assert cluster is not None, "what is scored here has a cluster for its device"
    refuse_endpoint(options.model, "Ray's actors")
    for name, metric in plan.metrics.reference_free.items():
        if isinstance(metric, CustomMetric):
            raise OptionError(
                f"the registered metric {name!r} on Ray's actors, which do not know it",
                expected="metrics of reffree",
                remedy="score it on another device",
            )
    remote = replace(plan, settings=replace(plan.settings, options=remote_options(options)))
    parts: list[Scores] = []
    rest = blocks_of(documents)
    with ray_actors(cluster) as actors, progress("Scoring", n_units) as advance:
        plan = plan.with_encoder()
        while group := list(islice(rest, BLOCKS_AT_ONCE * actors.n)):
            items: list[Item] = [(block, None) for block in group]
            if plan.embed is not None:
                whole = Corpus.of_checked(each for block in group for each in block)
                embed = plan.with_vectors(whole, plan.embed(whole, no_progress)).embed
                assert embed is not None
                items = [(block, embed(block, no_progress)) for block in group]
            for block, scores in zip(group, actors.map(_scorer, (remote,), items), strict=True):
                parts.append(replace(scores, metrics=plan.metrics, settings=plan.settings))
                advance(block.n_units)
    return Scores.concatenate(parts)


def _scorer(plan: Plan) -> Callable[[Item], Scores]:
    """Return what an actor does with a block and its vectors; metrics, often large, stay there."""

    def score(item: Item) -> Scores:
        block, embedded = item
        embed = None if embedded is None else lambda *_: embedded
        scores = score_documents(block, replace(plan, embed=embed))
        return replace(scores, metrics=MetricSet((), {}, {}))

    return score
