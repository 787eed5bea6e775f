"""What studies share: corpora made ready before encoding, gap scores beside methods, a result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.filter import FilteredCorpus
from reffree.encoders.embed import (
    Embeddings,
    Vectors,
    coming_spec,
    corpus_vectors,
    units_taking_part,
)
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.corpus_counts import CorpusCounts, dropped_notes
from reffree.evaluate.metric_set import MetricSet, check_scorers, choose_metrics
from reffree.evaluate.result import DocumentText, Result, Table
from reffree.evaluate.signature import Signature
from reffree.formats import read_scores
from reffree.metrics.gold.agreement import with_central_gold
from reffree.segmenters.base import Segmenter
from reffree.segmenters.segment import Given, checked_scores
from reffree.util.errors import OptionError, UnknownNameError, mistake
from reffree.util.progress import Progress, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings(EncoderOptions):
    """The values of `StudyKeywords`, with their defaults."""

    seed: int = 0
    progress: Progress = no_progress

    def choose_metrics(self, names: Sequence[str] | None, corpus: Corpus) -> MetricSet:
        """Choose metrics with this seed, from the network only where that is allowed."""
        return choose_metrics(names, corpus, seed=self.seed, offline=self.offline)


@dataclass(frozen=True, slots=True)
class StudiedCorpus:
    """A corpus as a study scored it: the units that took part, and their vectors, if any."""

    name: str
    corpus: Corpus
    embedded: Embeddings | None
    signature: Signature

    @property
    def description(self) -> dict[str, Any]:
        """Its size, as results of studies list it."""
        sizes = CorpusCounts.of(self.corpus).to_dict(self.embedded)
        return {"name": self.name, **sizes}

    @property
    def notes(self) -> list[str]:
        """What was dropped, cut off or remarked on while it was read and encoded."""
        notes = dropped_notes(CorpusCounts.of(self.corpus), self.embedded)
        return [f"{self.name}: {note}" for note in (*self.corpus.notes, *notes)]


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """A corpus before anything is encoded: the units that take part, and vectors if given.

    Where it has several annotators and no gold of its own, gold may be the central one's
    (`with_central_gold`); gold-based metrics compare with all of them in any case.
    """

    name: str
    corpus: Corpus
    vectors: Embeddings | None
    filtered: FilteredCorpus  # the same units, and the corpus they are from

    def check(
        self,
        metrics: Iterable[object],
        methods: Iterable[Segmenter],
        settings: EncoderOptions,
        *,
        needs_vectors: bool = True,
    ) -> None:
        """Find the encoder if one is needed; refuse methods and scorers that will not work."""
        spec = coming_spec(self.vectors, settings) if needs_vectors else None
        check_scorers(metrics, spec)
        for method in methods:
            method.check(self.corpus, spec)

    def encode(self, settings: StudySettings) -> Embeddings:
        """Return the vectors that were given, else those of the encoder."""
        return corpus_vectors(self.corpus, self.vectors, settings, settings.progress)


def corpus_parts(
    corpora: Mapping[str, Corpus],
    vectors: Mapping[str, Vectors] | None,
    settings: StudySettings,
    *,
    one_gold: bool = False,
) -> list[CorpusPart]:
    """Check corpora and the vectors given for them; leave out units as the settings say.

    ``one_gold``: where gold is several annotators', the central one's stands for it.
    """
    check_study(corpora, vectors)
    parts = []
    for name, whole in corpora.items():
        part, given = units_taking_part(whole, (vectors or {}).get(name), settings)
        own = None
        if given is not None:
            own = corpus_vectors(part.corpus, given, settings, settings.progress)
        corpus = with_central_gold(part.corpus) if one_gold else part.corpus
        parts.append(CorpusPart(name, corpus, own, part))
    return parts


def check_study(corpora: Mapping[str, Corpus], vectors: Mapping[str, object] | None) -> None:
    """Refuse no corpora, and vectors of corpora that are not there."""
    if not isinstance(corpora, Mapping) or not corpora:
        found = "no corpora" if isinstance(corpora, Mapping) else type(corpora).__name__
        remedy = 'write {"mine": reffree.load("mine.jsonl")}'
        raise mistake(None, f"{found} to study", "corpora by name", remedy)
    if vectors is not None and not isinstance(vectors, Mapping):
        expected = "arrays of every corpus, by the corpus's name"
        remedy = 'write embeddings={"mine": [array, …]}'
        raise mistake(None, f"embeddings as {type(vectors).__name__}", expected, remedy)
    for name in vectors or ():
        if name not in corpora:
            raise UnknownNameError("corpus", name, corpora)


def require_gold(corpus: Corpus, purpose: str, remedy: str) -> None:
    """Refuse a document without gold, of one or several annotators; ``purpose`` says what for."""
    for document in corpus:
        if not document.references:
            expected = f"gold in every document, {purpose}"
            raise mistake(document.place, "a document without gold", expected, remedy)


def study_result(
    command: str,
    studied: Sequence[StudiedCorpus],
    *,
    question: str,
    verdict: Iterable[str],
    tables: Iterable[Table],
    signature: Mapping[str, str],
    settings: Mapping[str, Any] | None = None,
    notes: Iterable[str] = (),
    reading: dict[str, str],
    sizes: Mapping[str, Mapping[str, Any]] | None = None,
    texts: Iterable[DocumentText] = (),
) -> Result:
    """Put what a study found together with what is to be said of its corpora.

    A corpus that was scored several times, with several encoders, is described once, as scored
    first. ``signature`` has the study's own fields, which stand before the seed; ``settings`` what
    is no option of the study, or was settled by it; ``sizes`` what else is to be listed of a
    corpus. A field on which the corpora's signatures
    differ has every value once, joined by ``+``.
    """
    once: dict[str, StudiedCorpus] = {}
    for each in studied:
        once.setdefault(each.name, each)
    fields: list[str] = []
    parts = [each.signature.fields for each in studied]
    for name in dict.fromkeys(name for part in parts for name in part):
        if name == "seed":
            fields += [f"{key}:{value}" for key, value in signature.items()]
        values = "+".join(dict.fromkeys(part[name] for part in parts if name in part))
        fields.append(f"{name}:{values}")
    return Result(
        command=command,
        question=question,
        verdict=tuple(verdict),
        tables=tuple(tables),
        signature="|".join(fields),
        settings=dict(settings or {}),
        corpora=tuple(e.description | dict((sizes or {}).get(e.name, {})) for e in once.values()),
        notes=(*(note for each in once.values() for note in each.notes), *notes),
        reading=reading,
        texts=tuple(texts),
    )


def read_score_files(
    corpora: Mapping[str, Corpus],
    scores: Mapping[str, Mapping[str, Any]] | None,
    methods: Collection[str],
) -> dict[str, dict[str, Given]]:
    """Read scores that are named by a file, check all, and refuse names that are taken.

    ``scores`` are by corpus and then by name: a file, or lists by document id or in corpus order.
    """
    found: dict[str, dict[str, Given]] = {}
    for corpus, by_name in (scores or {}).items():
        if corpus not in corpora:
            raise UnknownNameError("corpus", corpus, corpora)
        found[corpus] = {}
        for name, given in by_name.items():
            if name in methods:
                taken = f"scores called {name!r}, as a method of this study is"
                raise OptionError(taken, expected="a name of their own", remedy="choose another")
            is_file = isinstance(given, str | Path)
            lists = read_scores(given, corpora[corpus], name) if is_file else given
            found[corpus][name] = checked_scores(corpora[corpus], name, lists)
    return found


def score_fingerprints(scores: Mapping[str, Mapping[str, Given]]) -> dict[str, str]:
    """Return every scorer once, with a hash of its scores for signatures, as ``name@hash``."""
    found = {}
    for name in dict.fromkeys(name for by_name in scores.values() for name in by_name):
        digest = blake2b(digest_size=4)
        for by_name in scores.values():
            for each in by_name.get(name, ()):
                digest.update(np.array(each, dtype=np.float64).tobytes())
        found[name] = f"{name}@{digest.hexdigest()}"
    return found


def candidates_field(speakers: Sequence[str]) -> dict[str, str]:
    """Return a signature's field for candidates, where they are restricted."""
    return {"candidates": "+".join(speakers)} if speakers else {}
