"""Make hypotheses: every method by name, run over a corpus, the results kept as its systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reffree.data.corpus import Corpus, keep_scores
from reffree.data.filter import FilteredCorpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors, coming_spec, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.segmenters.base import GapScorer, Inputs, Segmenter
from reffree.segmenters.naive import arp_random_baselines
from reffree.segmenters.selection import (
    Selection,
    StaticSelection,
    parse_selection,
    speaker_candidates,
)
from reffree.segmenters.trained.folder import trained_encoding
from reffree.util.arrays import Floats
from reffree.util.bounds import Seed
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, Place, listed
from reffree.util.naming import parse_named, spelling_of
from reffree.util.progress import Progress, no_progress

Given = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]
"""Any scorer's gap scores: lists by document id, or in corpus order."""

Source = Segmenter | tuple[Floats, ...]
"""What makes a system: a method, or scores that are given."""

ARP_BASELINES = "arp_baselines"
"""Stands for the nine random systems of Ghinassi et al. (2024)."""

HOMES = {
    "none": "naive:NoBoundaries",
    "all": "naive:AllBoundaries",
    "even": "naive:Even",
    "random": "naive:Random",
    "random_known": "naive:RandomKnown",
    "random_unknown": "naive:RandomUnknown",
    "oracle_random": "naive:OracleRandom",
    "oracle_periodic": "naive:OraclePeriodic",
    "texttiling": "texttiling:TextTiling",
    "c99": "c99:C99",
    "textseg": "textseg:TextSeg",
    "depth": "texttiling:Depth",
    "changepoint": "changepoint:ChangePoint",
    "greedy": "optimal:Greedy",
    "optimal": "optimal:Optimal",
    "posterior": "posterior:LeastExpectedPk",
    "scorer": "trained.scorer:Scorer",
    "csm": "trained.csm:CoherenceScoring",
    "trained": "trained.labeller:TrainedSegmenter",
    "supervised": "trained.labeller:Supervised",
}
"""Module and class of every method."""


class _Segmenters(Mapping[str, type[Segmenter]]):
    """Methods by name; a method's module is imported when it is named."""

    def __getitem__(self, name: str) -> type[Segmenter]:
        module, _, kind = HOMES[name].partition(":")
        found: type[Segmenter] = getattr(import_module(f"reffree.segmenters.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


SEGMENTERS: Mapping[str, type[Segmenter]] = _Segmenters()


def parse_segmenter(text: str) -> Segmenter:
    """Read ``name`` or ``name:option=value,…``, such as ``random:p=0.1``."""
    return parse_named(text, SEGMENTERS, "method", "--method")


@declared
def segment(
    corpus: Corpus,
    methods: str | Sequence[str] | Mapping[str, str] = (),
    *,
    scores: Mapping[str, Given] | None = None,
    select: Annotated[
        str | Sequence[str],
        Option(
            "How boundaries are selected from scores, of --scores or of a method that scores gaps: "
            "static:tau=0.5,gap=3, density:rate=0.1,gap=3 (of every document's gaps) or "
            "adaptive:rho=0.1,gap=3 (over the corpus). May be repeated.",
            metavar="RULE",
            default="static for --scores, the method's own for --method",
            check=parse_selection,
            names="selections",
        ),
    ] = (),
    candidates_speaker: Annotated[
        str | Sequence[str],
        Option(
            "Only this speaker's turns may start a segment; may be repeated. Shares and rates are "
            "then of these turns, distances stay in units.",
            metavar="NAME",
        ),
    ] = (),
    seed: Annotated[Seed, Option("Of methods that draw at random.")] = 0,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> Corpus:
    """Segment a corpus with published methods and baselines, or by any scorer's gap scores.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).

    Args:
        corpus: from `reffree.load`. Units that an option leaves out go with the unit before them.
        methods: such as ``texttiling`` or ``random:p=0.1``; a system is called as its method is
            spelt, or, in a mapping, by its key. ``arp_baselines`` stands for the nine random
            systems of the ARP paper, ``random_mean`` and ``random_2`` to ``random_9``.
        scores: any scorer's gap scores by the name of the system they are to become: a list per
            document, by id or in corpus order, one number for every gap between its units
            (`reffree.formats.read_scores` reads them from a file).
        embeddings: one array per document, in corpus order or by id, instead of an encoder. Without
            either, a trained method's own encoder is taken.
        progress: called as stages start.
        **encoding: which encoder, and how, as in `EncoderOptions`.

    Returns:
        The corpus with one more system for every method, and of several rules for each.
    """
    options = EncoderOptions(**encoding)
    rules = [parse_selection(each) for each in ([select] if isinstance(select, str) else select)]
    part, embeddings = units_taking_part(corpus, embeddings, options)
    parsed = _parse_methods(methods, part.corpus)
    if embeddings is None:
        trained_on = [spec for _, method in parsed for spec in method.encoders]
        options = trained_encoding(options, trained_on)
        part, _ = units_taking_part(corpus, None, options)
    corpus = part.corpus
    given = {name: given_scores(part, name, each) for name, each in (scores or {}).items()}
    if not rules:
        _check_threshold(given)
    candidates = speaker_candidates(corpus, candidates_speaker)
    if not parsed and not given:
        raise InputError(
            "no method", expected="at least one", remedy="name one, such as texttiling"
        )
    needs_vectors = any(method.needs_embeddings for _, method in parsed)
    spec = coming_spec(embeddings, options) if needs_vectors else None
    for _, method in parsed:
        _check_selects(method, rules, has_candidates=candidates is not None)
        method.check(corpus, spec)
    sources: list[tuple[str, Source]] = [*parsed, *given.items()]
    every = [name for source in sources for name in _system_names(*source, rules)]
    for i, name in enumerate(every):
        corpus.check_new_system(name, every[:i])
    inputs = Inputs(corpus, seed, device=options.device, candidates=candidates)
    if needs_vectors:
        embedded = corpus_vectors(corpus, embeddings, options, progress)
        inputs = replace(inputs, embeddings=embedded.vectors, encoder=embedded.spec)
    ids = [document.id for document in corpus.documents]
    n_steps = sum(method.n_steps for _, method in parsed) + len(given)
    with progress("Segmenting", n_steps) as advance:
        inputs = replace(inputs, advance=advance)
        for name, source in sources:
            names = _system_names(name, source, rules)
            for system, made in zip(names, _segment_by(source, rules, inputs), strict=True):
                corpus = corpus.with_system(system, dict(zip(ids, made, strict=True)))
            advance(1)
    return part.restored(corpus)


def _parse_methods(
    methods: str | Sequence[str] | Mapping[str, str], corpus: Corpus
) -> list[tuple[str, Segmenter]]:
    """Read methods, by the names of the systems they make."""
    given = [methods] if isinstance(methods, str) else methods
    texts = given.items() if isinstance(given, Mapping) else [(None, text) for text in given]
    made: list[tuple[str, Segmenter]] = []
    for name, text in texts:
        if text == ARP_BASELINES:
            made += arp_random_baselines(corpus)
        else:
            method = parse_segmenter(text)
            made.append((spelling_of(method) if name is None else name, method))
    return made


def _segment_by(
    source: Source, rules: Sequence[Selection], inputs: Inputs
) -> list[tuple[Segmentation, ...]]:
    """Segment by a method or by scores that are given; of several rules each makes a system."""
    if isinstance(source, GapScorer) and rules:
        source = source.boundary_scores(inputs)
    if isinstance(source, Segmenter):
        return [source(inputs)]
    return [rule(source, inputs.candidates) for rule in rules or [StaticSelection()]]


def _system_names(name: str, source: Source, rules: Sequence[Selection]) -> list[str]:
    """Names of the systems that a method or scores make by one rule, or by each of several."""
    selects = isinstance(source, GapScorer) or not isinstance(source, Segmenter)
    if not selects or len(rules) < 2:
        return [name]
    return [f"{name} {spelling_of(rule)}" for rule in rules]


def _check_selects(method: Segmenter, rules: Sequence[Selection], *, has_candidates: bool) -> None:
    """Refuse rules and candidates for methods that do not select from scores."""
    if isinstance(method, GapScorer) and (rules or not has_candidates or method.heeds_candidates):
        return
    if rules or has_candidates:
        option = "--select" if rules else "--candidates-speaker"
        scorers = {name: kind for name, kind in SEGMENTERS.items() if issubclass(kind, GapScorer)}
        known = [name for name, kind in scorers.items() if rules or kind.heeds_candidates]
        raise OptionError(
            f"{option} for {spelling_of(method)!r}, which does not select from scores of gaps",
            expected=f"one of {listed(known)}",
            remedy="segment with this method in a run of its own",
        )


def _check_threshold(given: Mapping[str, tuple[Floats, ...]]) -> None:
    """Refuse scores that the default rule is not meant for."""
    for name, scores in given.items():
        if not are_probabilities(scores):
            values = np.concatenate(scores)
            raise InputError(
                f"scores from {values.min():g} to {values.max():g} and no rule to select by",
                expected="scores from 0 to 1, for which a threshold of 0.5 is meant",
                remedy="name a rule, such as --select density:rate=0.1 or --select static:tau=2",
                place=Place(system=name),
            )


def checked_scores(corpus: Corpus, name: str, scores: Given) -> tuple[list[float], ...]:
    """Check scores of a corpus, lists or arrays; return them in its order."""

    def plain(values: Sequence[float]) -> Sequence[float]:
        return values.tolist() if isinstance(values, np.ndarray) else values

    if isinstance(scores, Mapping):
        return corpus.align_scores(name, {id: plain(each) for id, each in scores.items()})
    return corpus.align_scores(name, [plain(each) for each in scores])


def given_scores(part: FilteredCorpus, name: str, scores: Given) -> tuple[Floats, ...]:
    """Check scores of a whole corpus, and carry them over to the units that take part."""
    whole = zip(checked_scores(part.whole, name, scores), part.kept, strict=True)
    return tuple(np.array(keep_scores(each, kept)) for each, kept in whole)


def are_probabilities(scores: Sequence[ArrayLike]) -> bool:
    """Whether all scores lie between 0 and 1."""
    return all(((np.asarray(each) >= 0) & (np.asarray(each) <= 1)).all() for each in scores)


def refuse_dropped(options: EncoderOptions) -> None:
    """Refuse to leave units out of scores that are to be kept: they are of all units' gaps."""
    if options.dropped != "none":
        raise OptionError(
            f"scores to be kept, with {options.dropped} left out",
            expected="a score for every gap of the corpus",
            remedy="leave out --drop",
        )
