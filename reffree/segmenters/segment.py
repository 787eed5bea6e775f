"""Make hypotheses: every method by name, run over a corpus, the results kept as its systems."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Unpack

from reffree.corpus import Corpus
from reffree.encoders.embed import Vectors, coming_spec, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError
from reffree.naming import parse_named, spelling_of
from reffree.progress import Progress, no_progress
from reffree.segmenters.base import Inputs, Segmenter
from reffree.segmenters.naive import arp_random_baselines

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
    "depth": "depth:Depth",
    "changepoint": "changepoint:ChangePoint",
    "greedy": "greedy:Greedy",
    "optimal": "optimal:Optimal",
    "posterior": "posterior:LeastExpectedPk",
    "scorer": "scorer.scorer:Scorer",
}


class _Segmenters(Mapping[str, type[Segmenter]]):
    """Methods by name; a method's module is imported when it is named."""

    def __getitem__(self, name: str) -> type[Segmenter]:
        module, _, kind = HOMES[name].partition(":")
        found: type[Segmenter] = getattr(
            importlib.import_module(f"reffree.segmenters.{module}"), kind
        )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


SEGMENTERS: Mapping[str, type[Segmenter]] = _Segmenters()


def parse_segmenter(text: str) -> Segmenter:
    """Read ``name`` or ``name:option=value,…``, such as ``random:p=0.1``."""
    return parse_named(text, SEGMENTERS, "method", "--method")


def segment(
    corpus: Corpus,
    methods: str | Sequence[str] | Mapping[str, str],
    *,
    seed: int = 0,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> Corpus:
    """Segment every document with every method; return the corpus with these systems added.

    Units that an option leaves out go with the unit before them.

    Args:
        corpus: from `reffree.load`.
        methods: such as ``texttiling`` or ``random:p=0.1``; a system is called as its method is
            spelt, or, in a mapping, by its key. ``arp_baselines`` stands for the nine random
            systems of the ARP paper, ``random_mean`` and ``random_2`` to ``random_9``.
        seed: of methods that draw at random.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        progress: called as stages start.
        **encoding: which encoder, and how, as in `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    part, embeddings = units_taking_part(corpus, embeddings, options)
    corpus = part.corpus
    given = [methods] if isinstance(methods, str) else methods
    texts = given.items() if isinstance(given, Mapping) else [(None, text) for text in given]
    parsed: list[tuple[str | None, Segmenter]] = []
    for name, text in texts:
        if text == ARP_BASELINES:
            parsed += arp_random_baselines(corpus)
        else:
            parsed.append((name, parse_segmenter(text)))
    if not parsed:
        raise InputError(
            "no method", expected="at least one", remedy="name one, such as texttiling"
        )
    named = [(spelling_of(method) if name is None else name, method) for name, method in parsed]
    needs_vectors = any(method.needs_embeddings for _, method in named)
    spec = coming_spec(embeddings, options) if needs_vectors else None
    for i, (name, method) in enumerate(named):
        corpus.check_new_system(name, (other for other, _ in named[:i]))
        method.check(corpus, spec)
    if needs_vectors:
        embedded = corpus_vectors(corpus, embeddings, options, progress)
        inputs = Inputs(corpus, seed, embedded.vectors, embedded.spec, options.device)
    else:
        inputs = Inputs(corpus, seed, device=options.device)
    ids = [document.id for document in corpus.documents]
    with progress("Segmenting", len(parsed)) as advance:
        for name, method in named:
            made = method(inputs)
            corpus = corpus.with_system(name, dict(zip(ids, made, strict=True)))
            advance(1)
    return part.restored(corpus)
