"""Every kind, strength and seed of a perturbation as a system of one corpus."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus
from reffree.data.perturbation import PERTURBATIONS, Perturbation, parse_perturbation, perturb
from reffree.data.segmentation import Segmentation
from reffree.studies.strength_curves.strength_curve import Strength
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.progress import Progress, no_progress

STRENGTHS: tuple[Strength, ...] = tuple(range(1, 10))
"""Of Ghinassi et al. (2024), Figures 2 and 3, as their released code has it: 0 (gold) to 9."""

SHARES: tuple[Strength, ...] = tuple(i / 10 for i in range(1, 11))
"""For mixtures, which have no strength in boundaries or units."""


@dataclass(frozen=True, slots=True)
class PerturbationStep:
    """What one strength did, over all documents and seeds."""

    strength: Strength
    done: int  # edits
    not_done: int  # asked for, but there was no boundary or no place left
    unsegmented: float  # documents without a boundary, mean over seeds


@dataclass(frozen=True, slots=True)
class PerturbationGrid:
    """A corpus with the source and all its perturbations as systems, and where they are."""

    corpus: Corpus
    strengths: dict[str, tuple[Strength, ...]]  # by kind, the unperturbed source (0) first
    at: dict[str, NDArray[np.intp]]  # by kind: (seeds, strengths) numbers of systems
    steps: dict[str, tuple[PerturbationStep, ...]]  # by kind, without the source


def parse_strengths(
    kinds: Sequence[str], strengths: Sequence[Strength] | None
) -> dict[str, tuple[Strength, ...]]:
    """Check kinds and strengths; return the strengths of each kind in order, without 0.

    Whole numbers count boundaries (units for transposition), numbers with a point are shares. One
    curve has one or the other. A kind may name the option that its strengths are of.

    >>> parse_strengths(["transposition:distance=2,k"], [1, 3])
    {'transposition:distance=2,k': (1, 3)}
    """
    made: dict[str, tuple[Strength, ...]] = {}
    for kind in kinds:
        name = kind.partition(":")[0]
        if name not in PERTURBATIONS:
            raise UnknownNameError("perturbation", name, PERTURBATIONS)
        option = _option(kind)
        if not option or "=" in option:
            raise OptionError(
                f"the kind {kind!r}",
                expected="after the colon, at last the option that strengths are of, without value",
                remedy="write transposition:k or transposition:distance=2,k",
            )
        default = STRENGTHS if option in ("k", "distance") else SHARES
        wanted = sorted({s for s in (default if strengths is None else strengths) if s != 0})
        for strength in wanted:
            _with_strength(kind, strength)
        if len({isinstance(strength, float) for strength in wanted}) != 1:
            found = "whole numbers and shares" if wanted else "no strength above 0"
            raise OptionError(
                f"{found} as strengths",
                expected="whole numbers (boundaries or units) or shares (with a point)",
                remedy="write 1 2 3 or 0.1 0.2 0.3",
            )
        made[kind] = tuple(wanted)
    if not made:
        raise InputError(
            "no perturbation", expected="at least one kind", remedy="leave kinds out for both"
        )
    return made


def _option(kind: str) -> str:
    """Return the option that the strengths of a kind are of."""
    name, colon, options = kind.partition(":")
    return options.rpartition(",")[2] if colon else PERTURBATIONS[name].whole


def fitted_strengths(
    strengths: Mapping[str, Sequence[Strength]], corpus: Corpus, source: str = GOLD
) -> dict[str, tuple[Strength, ...]]:
    """Leave out numbers of boundaries above the source's mean number a document, but for 1.

    More edits than that are not possible in most documents. Distances and shares stay.
    """
    n_boundaries = [
        len(segmentation) - 1
        for document in corpus
        for segmentation in (document.references if source == GOLD else [document.systems[source]])
    ]
    most = max(1, sum(n_boundaries) // len(n_boundaries))
    return {
        kind: tuple(s for s in wanted if _option(kind) != "k" or s <= most)
        for kind, wanted in strengths.items()
    }


def _with_strength(kind: str, strength: Strength) -> Perturbation:
    """Make a perturbation of a kind, which may end in the option that strengths are of."""
    return parse_perturbation(f"{kind}={strength}" if ":" in kind else f"{kind}:{strength}")


def check_source(corpus: Corpus, source: str) -> None:
    """Refuse to perturb a system that is not there, and gold that is not complete."""
    if source != GOLD:
        if source not in corpus.hypotheses:
            raise UnknownNameError("system", source, corpus.hypotheses)
        return
    for document in corpus:
        if document.gold is None and not document.golds:
            raise InputError(
                "no gold to perturb",
                expected="gold in every document",
                remedy="add gold or perturb a system instead",
                place=document.place,
            )


def build_grid(
    corpus: Corpus,
    strengths: Mapping[str, Sequence[Strength]],
    seeds: Sequence[int],
    source: str = GOLD,
    progress: Progress = no_progress,
) -> PerturbationGrid:
    """Perturb gold, or the system ``source``, with every kind, strength and seed.

    Seeds and names are those of `perturb`: any step can be made again on its own. Where gold is
    several annotators', draw i perturbs that of annotator i, of as many as a document has.
    """
    systems: dict[str, tuple[Segmentation, ...]] = {}
    offset = int(corpus.has_gold)  # gold is the first system wherever it is complete
    corpora = [corpus] * len(seeds)  # by draw
    places_of_source = np.zeros(len(seeds), dtype=np.intp)
    check_source(corpus, source)
    if source != GOLD:
        systems[source] = corpus.hypotheses[source]
        places_of_source += offset
    elif not corpus.has_gold:
        corpora, n_sources = _annotators_in_turn(corpus, len(seeds))
        systems |= {f"gold of draw {i}": corpora[i].hypotheses[GOLD] for i in range(n_sources)}
        places_of_source += np.arange(len(seeds)) % n_sources
    at: dict[str, NDArray[np.intp]] = {}
    steps: dict[str, tuple[PerturbationStep, ...]] = {}
    total = len(seeds) * sum(map(len, strengths.values()))
    with progress("Perturbing", total) as advance:
        for kind, wanted in strengths.items():
            places = np.repeat(places_of_source[:, None], len(wanted) + 1, axis=1)
            found = []
            for j, strength in enumerate(wanted):
                done = not_done = bare = 0
                for i, seed in enumerate(seeds):
                    made = perturb(corpora[i], _with_strength(kind, strength), seed, source)
                    places[i, j + 1] = offset + len(systems)
                    systems[f"{made.name} seed {seed}"] = made.segmentations
                    done += sum(astuple(made.done))
                    not_done += sum(astuple(made.not_done))
                    bare += sum(len(each) == 1 for each in made.segmentations)
                    advance(1)
                found.append(PerturbationStep(strength, done, not_done, bare / len(seeds)))
            at[kind], steps[kind] = places, tuple(found)
    documents = tuple(
        replace(document, systems={name: made[d] for name, made in systems.items()})
        for d, document in enumerate(corpus.documents)
    )
    from_0 = {kind: (0, *wanted) for kind, wanted in strengths.items()}
    return PerturbationGrid(Corpus.of_checked(documents, corpus.notes), from_0, at, steps)


def _annotators_in_turn(corpus: Corpus, n_draws: int) -> tuple[list[Corpus], int]:
    """Return the corpus of every draw, with the next annotator's gold; and how many differ."""
    period = math.lcm(*{len(document.references) for document in corpus})
    corpora = [
        Corpus.of_checked(
            replace(document, gold=document.references[i % len(document.references)])
            for document in corpus
        )
        for i in range(min(period, n_draws))
    ]
    return [corpora[i % len(corpora)] for i in range(n_draws)], len(corpora)
