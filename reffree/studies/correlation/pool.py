"""The systems of a correlation study: what the corpus brings, and a default pool where it is few.

Two pools are kept apart. *Independent* systems do not seek cohesion in vectors: gold, random and
lexical segmentations, perturbed gold, and supervised systems, which read vectors but have learnt
from gold what a boundary is. *Cohesion-seeking* ones optimise similarity in the
embedding space, which is what reference-free metrics measure, so on them a low loss says little.
Among the independent ones, the *blind* do not read the text at all; lexical segmenters do, and look
for cohesion in its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from reffree.data.corpus import GOLD, Corpus
from reffree.data.perturbation import parse_perturbation, perturb
from reffree.encoders.embed import Embeddings
from reffree.segmenters.segment import ARP_BASELINES, segment
from reffree.segmenters.trained.labeller import Supervised
from reffree.segmenters.trained.settings import Architecture
from reffree.util.errors import InputError, OptionError
from reffree.util.naming import spelling_of
from reffree.util.progress import Progress

Pool = Literal["independent", "cohesion"]
Kind = Literal["gold", "random", "perturbed", "lexical", "cohesion", "supervised", "given"]
Choice = Literal["auto", "given", "default", "both", "paper"]

CHOICES: tuple[Choice, ...] = get_args(Choice)
ENOUGH_SYSTEMS = 8
"""With as many systems of its own, a corpus needs no default pool."""

PERTURBED = (
    *("removal:0.25", "removal:0.5", "removal:0.75"),
    *("insertion:0.5", "insertion:1.0", "insertion:2.0"),
    *("transposition:1", "transposition:2", "transposition:3"),
    *("replacement:0.25", "replacement:0.5", "replacement:0.75"),
    *("mixture:0.3", "mixture:0.6"),
)
LEXICAL = ("texttiling", "c99", "textseg")
COHESION = (
    *("depth", "depth:threshold=1", "depth:k=gold"),
    *("changepoint", "changepoint:k=gold", "changepoint:kernel=linear,k=gold"),
    *("greedy:metric=arp_pair,climb=false", "greedy:metric=arp_pair,k=gold,climb=false"),
    *("greedy:metric=silhouette,climb=false", "greedy:metric=silhouette,k=gold,climb=false"),
    *("optimal:metric=arp_std", "optimal:metric=arp_std,k=gold"),
    "posterior",
)
Step = tuple[Kind, Pool, tuple[str, ...]]
STEPS: tuple[Step, ...] = (
    ("random", "independent", (ARP_BASELINES,)),
    ("lexical", "independent", LEXICAL),
    ("cohesion", "cohesion", COHESION),
)
"""What the default pool is made with, beside perturbed gold; the first is the paper's too."""

BLIND = ("gold", "random", "perturbed")
SEEKERS = ("depth", "changepoint", "greedy", "optimal", "posterior", "scorer")
"""Methods of ``reffree segment`` that look at vectors: a system so called is cohesion-seeking."""


@dataclass(frozen=True, slots=True)
class Member:
    """A system and where it belongs."""

    system: str
    kind: Kind
    pool: Pool

    def is_in(self, pool: str) -> bool:
        """Whether the system counts in a pool: its own, ``all``, or ``blind``."""
        return pool in (self.pool, "all") or (pool == "blind" and self.kind in BLIND)


def complete_pool(
    corpus: Corpus,
    embedded: Embeddings,
    choice: Choice = "auto",
    *,
    cohesion: Sequence[str] = (),
    supervised: Sequence[str] = (),
    seed: int,
    progress: Progress,
) -> tuple[Corpus, tuple[Member, ...]]:
    """Return the corpus with all systems of the study, and what each of them is.

    ``auto`` adds the default pool to a corpus with fewer than `ENOUGH_SYSTEMS` systems of its own;
    ``given`` never, ``both`` always; ``default`` leaves the corpus's own systems out, and so does
    ``paper``, the pool of Ghinassi et al. (2024), §3.4.1: gold, nine random systems and those named
    by ``supervised``, which were made for the study and are in every pool. ``cohesion`` names
    systems of the corpus that optimise embedding similarity, beside those whose names say so. A
    default system whose name the corpus has already is not made again.
    """
    check_pool(corpus, choice)
    given = [name for name in corpus.hypotheses if name not in (GOLD, *supervised)]
    if choice in ("default", "paper"):
        corpus, given = corpus.only_systems(supervised), []
    members = [Member(GOLD, "gold", "independent")]
    members += [Member(name, "supervised", "independent") for name in supervised]
    for name in given:
        seeks = name in cohesion or name.partition(":")[0] in SEEKERS
        members.append(Member(name, "given", "cohesion" if seeks else "independent"))
    if choice == "given" or (choice == "auto" and len(given) >= ENOUGH_SYSTEMS):
        return corpus, tuple(members)
    steps = STEPS[:1] if choice == "paper" else STEPS
    made, added = _with_made(corpus, embedded, steps, seed, progress)
    if choice != "paper":
        made, perturbed = _with_perturbed(made, seed)
        added += perturbed
    return made, (*members, *added)


def supervised_methods(architectures: Sequence[Architecture], folds: int) -> dict[str, str]:
    """Methods of ``reffree segment`` by architecture."""
    return {each: spelling_of(Supervised(architecture=each, folds=folds)) for each in architectures}


def _with_made(
    corpus: Corpus, embedded: Embeddings, steps: Sequence[Step], seed: int, progress: Progress
) -> tuple[Corpus, list[Member]]:
    made, members, bare = corpus, [], corpus.only_systems(())
    ids = [document.id for document in corpus.documents]
    for kind, pool, methods in steps:
        wanted = [method for method in methods if method not in corpus.hypotheses]
        if wanted:
            produced = segment(bare, wanted, seed=seed, embeddings=embedded, progress=progress)
            for name, segmentations in produced.hypotheses.items():
                if name not in made.hypotheses:
                    made = made.with_system(name, dict(zip(ids, segmentations, strict=True)))
                    members.append(Member(name, kind, pool))
    return made, members


def _with_perturbed(corpus: Corpus, seed: int) -> tuple[Corpus, list[Member]]:
    made, members = corpus, []
    ids = [document.id for document in corpus.documents]
    for text in PERTURBED:
        system = perturb(corpus, parse_perturbation(text), seed)
        if system.name not in made.hypotheses:
            made = made.with_system(system.name, dict(zip(ids, system.segmentations, strict=True)))
            members.append(Member(system.name, "perturbed", "independent"))
    return made, members


def check_pool(corpus: Corpus, choice: str) -> None:
    """Refuse a choice that does not exist, and a corpus without gold."""
    if choice not in CHOICES:
        raise OptionError(
            f"the pool {choice!r}", expected=" or ".join(CHOICES), remedy="leave it out for auto"
        )
    if GOLD not in corpus.hypotheses:
        place = next(d.place for d in corpus.documents if d.gold is None)
        raise InputError(
            "a document without gold",
            expected="gold in every document, to correlate with",
            remedy="add it, or ask reffree diagnose, which needs none",
            place=place,
        )
