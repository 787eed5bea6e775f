"""Keywords that several studies take, each with its bounds and its help; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.bounds import MOST_SEED, Bounds
from reffree.util.declare import Option
from reffree.util.progress import Progress

SeedOption = Annotated[int, Bounds(0, MOST_SEED), Option("Seed of everything random.", initial=0)]


class GoldKeywords(TypedDict, total=False):
    """Keywords of studies of gold alone, which encode nothing."""

    seed: SeedOption
    progress: Progress


class StudyKeywords(Encoding, GoldKeywords, total=False):
    """Keywords that every study takes: how to encode, the seed, and who is told of progress."""


class WordKeywords(GoldKeywords, total=False):
    """Keywords of studies of gold and of words, whose vectors may have to be fetched."""

    offline: Annotated[bool, Option("Never connect to a model hub.", initial=False)]


def check_encoder(name: str) -> None:
    """Refuse an address that may hold a secret, which a result would repeat."""
    EncoderOptions(encoder=name)


def check_metric(name: str) -> None:
    """Refuse the name of no metric."""
    from reffree.evaluate.metric_set import check_metrics  # not needed for help

    check_metrics([name])


def metric_option(help: str, *, names: str = "metrics", default: str | None = None) -> Option:
    """Declare ``-m``; which metrics a study takes, and which by default, is its own."""
    return Option(help, "-m/--metric", "METRIC", default=default, names=names, check=check_metric)


def method_option(help: str, check: Callable[[str], object], *, names: str = "methods") -> Option:
    """Declare ``--method``; which methods a study takes, and how they are read, is its own."""
    return Option(help, "--method", "METHOD", check=check, names=names)


UnsegmentedOption = Annotated[
    Literal["neutral", "skip", "worst"],
    Option(
        "What documents without a boundary score: neutral, skip or worst.",
        metavar="RULE",
        initial="neutral",
    ),
]
AverageOption = Annotated[
    Literal["macro", "micro"],
    Option("Of gold-based metrics over documents, macro or micro.", cli=False, initial="macro"),
]
ResamplesOption = Annotated[
    int, Bounds(100, 100_000), Option("Of documents, for intervals.", initial=1000)
]
TextsOption = Annotated[
    int,
    Bounds(0),
    Option(
        "Documents of each corpus whose text goes into the JSON, for the report.",
        cli=False,
        initial=3,
    ),
]
MinGapOption = Annotated[int, Bounds(1), Option("Units between two boundaries.", "--gap", "UNITS")]
EncodersOption = Annotated[
    Sequence[str] | None,
    Option(
        "Alias (reffree models), folder, hub id or http://host/v1#model, with settings as in "
        "mpnet:pooling=cls,layer=-2; may be repeated.",
        "--encoder",
        "NAME",
        default="minilm",
        names="encoders",
        check=check_encoder,
    ),
]
ScoresOption = Annotated[
    Mapping[str, Mapping[str, Any]] | None,
    Option(
        "Beside methods, any scorer's gap scores as NAME, of the one CORPUS: JSONL of "
        '{"id": "a", "scores": [0.1, 0.9]}, a number for every gap between units, higher = more '
        "of a boundary; may be repeated.",
        metavar="NAME=FILE",
    ),
]
"""By corpus and then by name: a file, or lists by document id or in corpus order."""

CandidatesOption = Annotated[
    Sequence[str],
    Option("Only this speaker's turns may start a segment; may be repeated.", metavar="NAME"),
]


class CorrelationKeywords(StudyKeywords, total=False):
    """Keywords of `correlate` and `encoders`; `CaseSettings` has their defaults, too."""

    metrics: Annotated[
        Sequence[str] | None,
        metric_option(
            "Of both kinds, as in reffree score; may be repeated.",
            default="all without gold, and pk, windowdiff, boundary_similarity",
        ),
    ]
    pool: Annotated[
        Literal["auto", "given", "default", "both", "paper"],
        Option(
            "Systems: given (the corpus's), default (reffree's), both, auto (both where there are "
            "few) or paper (gold, nine random, supervised ones).",
            metavar="POOL",
            initial="auto",
        ),
    ]
    supervised: Annotated[
        Sequence[Literal["bilstm", "sheikh-bilstm", "transformer"]] | None,
        Option(
            "Also bilstm, sheikh-bilstm or transformer for every encoder, trained on the corpus's "
            "other documents; may be repeated.",
            metavar="NAME",
            default="all with --pool paper",
        ),
    ]
    folds: Annotated[
        int,
        Bounds(2, 1_000),
        Option(
            "Parts of a corpus, each segmented by what was trained on the others.",
            cli=False,
            initial=5,
        ),
    ]
    cohesion: Annotated[
        Sequence[str],
        Option(
            "A system of the corpus that optimises embedding similarity; may be repeated.",
            metavar="SYSTEM",
            initial=(),
        ),
    ]
    unsegmented: UnsegmentedOption
    average: AverageOption
    resamples: ResamplesOption
    texts: TextsOption
