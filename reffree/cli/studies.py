"""``reffree correlate``, ``encoders``, ``density``, ``granularity`` and the other studies.

An option of a study is called as the keyword of its function that it sets.
"""

from __future__ import annotations

from typing import Any

import click

from reffree.cli.completion import (
    EXPECTED,
    GAP_METHODS,
    GOLD_BASED,
    METHODS,
    REFERENCE_FREE,
    encoder_names,
    file_names,
    names,
)
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    FileOptions,
    check_encoding,
    input_files,
    is_given,
    read_corpus,
    read_vectors,
    score_files,
)
from reffree.cli.messages import progress, waiting
from reffree.cli.options import (
    Decorator,
    average_option,
    candidates_option,
    corpus_options,
    embeddings_option,
    metric_option,
    option_group,
    output_options,
    reading_options,
    run_options,
    scored_corpus_options,
    scores_option,
    seed_option,
    several_encoders,
    system_of_one_corpus,
    table_option,
    unsegmented_option,
    whole,
)
from reffree.cli.output import Output, require_charts
from reffree.formats import corpus_names
from reffree.util.bounds import Count, Folds, Positive, Repetitions, Resamples


def run_study(name: str, given: Any) -> None:  # noqa: ANN401  (values of options)
    """Read what the options name, run the study of that name, and write what it found.

    Every CORPUS is a corpus of its own, called by its file's name without extension.
    """
    from reffree.studies import find_study

    embeddings = given.get("embeddings")
    files, n_corpora = input_files(given), len(given["corpora"])
    if n_corpora > 1 and (given.get("systems") or embeddings):
        option = "--system" if given.get("systems") else "--embeddings"
        raise click.UsageError(f"{option} with {n_corpora} corpora: name one CORPUS.")
    if n_corpora > 1 and given.get("score_files"):
        raise click.UsageError(f"--scores with {n_corpora} corpora: name one CORPUS.")
    keywords: dict[str, Any] = {
        key: value
        for key, value in given.items()
        if key not in FileOptions.__annotations__ and is_given(value)
    }
    if name == "encoders":
        keywords.setdefault("encoders", ())  # for its function to refuse
    check_encoding(given, embeddings, keywords.get("encoders", ()))
    out = Output.of(given["output_format"], given["output"], files)
    corpora = {}
    for corpus, path in corpus_names(given["corpora"]).items():
        corpora[corpus] = read_corpus(given | {"corpora": (path,)})
    if given.get("score_files"):
        keywords["scores"] = {corpus: score_files(given) for corpus in corpora}
    if embeddings is not None:
        keywords["embeddings"] = {c: read_vectors(corpora[c], embeddings) for c in corpora}

    if out.format == "html":
        require_charts()  # before the work, not after it
    with waiting("Loading"):
        study = find_study(name)
    out.show(study(corpora, progress=progress, **keywords), given.get("table"))


def study_command(name: str, help: str, *options: Decorator) -> click.Command:
    """Make the command of a study from its options; those of the output are added."""

    def run(**given: Any) -> None:  # noqa: ANN401  (values of any option)
        run_study(name, given)

    decorate = option_group(*options, output_options)
    return click.command(name=name, cls=PagedCommand, help=help)(decorate(run))


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> list[float] | None:
    """Read numbers with commas between them."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--{param.name} {text!r}: expected numbers with commas between them, such as 0.2,0.5."
        ) from None


_correlation_options = option_group(
    metric_option(
        "As in reffree score; may be repeated.  [default: all without gold, and pk, windowdiff, "
        "boundary_similarity]"
    ),
    click.option(
        "--pool",
        type=click.Choice(["auto", "given", "default", "both", "paper"]),
        default="auto",
        show_default=True,
        metavar="POOL",
        help="Systems: given (the corpus's), default (reffree's), both, auto (both where there are "
        "few) or paper (gold, nine random, supervised ones).",
    ),
    click.option(
        "--supervised",
        multiple=True,
        type=click.Choice(["bilstm", "sheikh-bilstm", "transformer"]),
        metavar="NAME",
        help="Also bilstm, sheikh-bilstm or transformer for every encoder, trained on the corpus's "
        "other documents; may be repeated.  [default: all with --pool paper]",
    ),
    click.option(
        "--folds",
        type=whole(Folds),
        default=5,
        show_default=True,
        help="Parts of a corpus, each segmented by what was trained on the others.",
    ),
    click.option(
        "--cohesion",
        multiple=True,
        metavar="SYSTEM",
        help="A system of the corpus that optimises embedding similarity; may be repeated.",
    ),
    unsegmented_option(),
    average_option,
    click.option(
        "--resamples",
        type=whole(Resamples),
        default=1000,
        show_default=True,
        help="Of documents, for intervals.",
    ),
    click.option(
        "--texts",
        type=whole(Count),
        default=3,
        show_default=True,
        help="Documents of each corpus whose text goes into the JSON, for reffree report.",
    ),
    table_option,
    run_options,
    corpus_options,
    several_encoders,
)

correlate = study_command(
    "correlate",
    """Correlate reference-free with gold-based metrics over the systems of every CORPUS.

    Each CORPUS is read as in reffree score and needs gold; where it has fewer than eight systems,
    gold, random, perturbed, lexical and cohesion-seeking ones are added. Systems that seek cohesion
    in the embedding space are reported apart: on them a low loss means little.
    """,
    system_of_one_corpus,
    embeddings_option("Your vectors of the one CORPUS, as in reffree score."),
    click.option(
        "--fallback",
        shell_complete=encoder_names,
        metavar="ENCODER",
        help="Leave out encoders that are not to be had, with a note; take this one if none is.",
    ),
    _correlation_options,
)

encoders = study_command(
    "encoders",
    """Compare encoders: agreement with gold, speed, anisotropy, and how they judge each other.

    Runs reffree correlate under every --encoder, on the same systems; those that seek cohesion are
    made with every encoder and scored with every other. --no-measure leaves out speed and memory,
    which no two runs measure alike.
    """,
    click.option(
        "--measure/--no-measure",
        default=True,
        show_default=True,
        help="Measure speed and memory of every encoder here.",
    ),
    _correlation_options,
)

_scored_methods = option_group(
    click.option(
        "--method",
        "methods",
        multiple=True,
        shell_complete=names(GAP_METHODS),
        metavar="METHOD",
        help="With a score per gap: depth, texttiling, posterior, scorer:path=FOLDER, "
        "csm:path=FOLDER or random; may be repeated.  [default: depth, texttiling, random]",
    ),
    scores_option("Beside them, any scorer's gap scores as NAME, of the one CORPUS"),
)
_gap_option = click.option(
    "--gap",
    "min_gap",
    type=whole(Positive),
    default=3,
    show_default=True,
    help="Units between two boundaries.",
)

density = study_command(
    "density",
    """How far quality depends on how many boundaries there are.

    Sweeps the threshold of methods that score every gap, with W-F1, coverage, purity and
    reference-free losses at each; says which thresholds give too few and too many boundaries; and
    compares methods and the corpus's systems in pairs, as they are and at equal density. Each
    CORPUS is a corpus of its own and needs gold. With -f csv the curves are written.
    """,
    _scored_methods,
    click.option(
        "--thresholds",
        callback=_numbers,
        metavar="T,T,…",
        help="Of the sweep, on probabilities, else on ranks from 0 to 1.  [default: 0.05 to 0.95 "
        "in steps of 0.05]",
    ),
    candidates_option,
    _gap_option,
    click.option(
        "--matching",
        "matchings",
        multiple=True,
        type=click.Choice(["many_to_one", "one_to_one"]),
        metavar="KIND",
        help="W-F1's: many_to_one, one_to_one; may be repeated.  [default: both]",
    ),
    metric_option(
        "Further metrics on the sweep, as in reffree score; may be repeated.  [default: "
        "expected_pk, arp_pair, silhouette]"
    ),
    system_of_one_corpus,
    unsegmented_option(),
    scored_corpus_options,
)

selection = study_command(
    "selection",
    """Whether an adaptive threshold keeps the number of boundaries, whatever the candidates.

    Thins out the gaps that each scorer scores, by a fine and by a coarse candidate threshold.
    Selects from both statically and by the adaptive threshold that is steered to a rate, and says
    how far rates and places of boundaries differ. No gold is needed. Each CORPUS is a corpus of its
    own.
    """,
    _scored_methods,
    click.option(
        "--rate",
        type=float,
        default=0.167,
        show_default=True,
        help="Boundaries a gap that the adaptive threshold is steered to.",
    ),
    click.option(
        "--shares",
        callback=_numbers,
        metavar="S,S,…",
        help="Of gaps that are candidates, from fine to coarse.  [default: 0.735,0.577]",
    ),
    _gap_option,
    click.option(
        "--step",
        "step_size",
        type=float,
        default=0.2,
        show_default=True,
        help="How far the threshold can move at a time, on the scores' own scale.",
    ),
    click.option(
        "--threshold",
        type=float,
        default=0.5,
        show_default=True,
        help="The first threshold.",
    ),
    candidates_option,
    scored_corpus_options,
)

granularity = study_command(
    "granularity",
    """Which system is better where annotators cut coarsely, and where finely.

    Follows every system's expected error along the number of segments that annotators are assumed
    to make, and says where another system becomes the best. Beside the curves: how many segments
    each system has, how many the metric itself assumes, and where there is gold, how many gold has
    and the metric against it. No gold is needed. Each CORPUS is a corpus of its own. With -f csv
    the curves are written.
    """,
    metric_option(
        "expected_pk, expected_windowdiff, expected_boundary_similarity or expected_w_f1; may be "
        "repeated.  [default: expected_pk]",
        EXPECTED,
    ),
    click.option(
        "--length",
        type=float,
        metavar="UNITS",
        help="Units that a segment is expected to have, where that is known.",
    ),
    click.option(
        "--evidence",
        default="all",
        show_default=True,
        metavar="SOURCE",
        help="What the posterior rests on: embedding, words, cues, scorer:FOLDER or all at hand.",
    ),
    system_of_one_corpus,
    scored_corpus_options,
)

diagnose = study_command(
    "diagnose",
    """What makes metrics mislead on a corpus, and which of them can be trusted there.

    Looks for units with twins in other segments, topics that come back, one-unit segments, text
    that was cut off and vectors that say little. Then damages the best segmentation at hand and
    sees which metrics notice; no gold is needed. Each CORPUS is a corpus of its own.
    """,
    metric_option(
        "Reference-free, as in reffree score; may be repeated.  [default: those of reffree score]",
        REFERENCE_FREE,
    ),
    system_of_one_corpus,
    click.option(
        "--source",
        metavar="NAME",
        help="The segmentation to trust most.  [default: gold where it is complete, else the "
        "system with the lowest expected_pk]",
    ),
    click.option(
        "--threshold",
        type=float,
        default=0.95,
        show_default=True,
        help="Cosine from which two units are near twins.",
    ),
    click.option(
        "--seeds",
        type=whole(Repetitions),
        default=5,
        show_default=True,
        help="Draws of every damage.",
    ),
    scored_corpus_options,
)

baselines = study_command(
    "baselines",
    """How metrics judge systems that read no text, beside systems that do.

    Scores every --method and the corpus's systems against gold: no boundaries, boundaries
    everywhere, random ones and lexical segmenters by default. Says how much more boundaries
    everywhere cost than none at all, and which systems are no better than those that read no text.
    Each CORPUS is a corpus of its own and needs gold.
    """,
    click.option(
        "--method",
        "methods",
        multiple=True,
        shell_complete=names(METHODS),
        metavar="METHOD",
        help="As in reffree segment; may be repeated.  [default: none, all, random_known, "
        "random_unknown, texttiling, c99, textseg]",
    ),
    metric_option(
        "As in reffree score; may be repeated.  [default: pk, pk_prime, windowdiff, pr_error]"
    ),
    system_of_one_corpus,
    scored_corpus_options,
)


def _lengths(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> tuple[int, ...] | None:
    """Read whole numbers between commas, or the first and last of several."""
    if text is None:
        return None
    try:
        first, dash, last = text.partition("-")
        if dash:
            return tuple(range(int(first), int(last) + 1))
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(
            f"--units {text}: expected lengths, such as 5-12 or 12,15."
        ) from None


moves = study_command(
    "moves",
    """How often a metric cannot tell a small error from a large one.

    Moves every boundary of every reference, one at a time, and counts the references for which a
    metric ties a small move with one that crosses a boundary, with one between short segments, or
    with a farther one; or even prefers the larger. References are the gold of every CORPUS, and all
    that there are of the --units given; one of the two is needed. With -f csv the figures by number
    of segments are written.
    """,
    click.argument("corpora", nargs=-1, metavar="[CORPUS...]", shell_complete=file_names),
    click.option(
        "--units",
        callback=_lengths,
        metavar="LENGTHS",
        help="Go through all references of so many units, such as 5-12 or 12,15; at most 20.",
    ),
    metric_option(
        "Gold-based, as in reffree score; may be repeated.  [default: boundary_similarity, "
        "windowdiff with exact padding and as it is, alignment]",
        GOLD_BASED,
    ),
    reading_options,
)

pairs = study_command(
    "pairs",
    """Do metrics prefer the segmentations that people prefer?

    For every gold and kind of error makes the pair of segmentations that one metric tells apart
    most. With -f csv it writes them as a ballot: show the pairs to judges (reffree report shows
    texts), add a column of votes for each (first, second or equal), and give the file as --votes
    for how far judges agree, and metrics with most of them. Each CORPUS needs gold.
    """,
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice(["deletion", "insertion", "transposition"]),
        help="Of error; may be repeated.  [default: all]",
    ),
    click.option(
        "--by",
        shell_complete=names(GOLD_BASED),
        default="sed",
        show_default=True,
        metavar="METRIC",
        help="Gold-based: under which the two of a pair differ most.",
    ),
    metric_option(
        "Gold-based ones to hold against it; may be repeated.  [default: boundary_similarity, "
        "alignment, windowdiff]",
        GOLD_BASED,
    ),
    click.option(
        "--votes",
        metavar="FILE",
        help="CSV or TSV: the column pair, and one for each judge.",
    ),
    click.option(
        "--first-segment", is_flag=True, help="Make errors at the first segment of a document too."
    ),
    click.option(
        "--texts",
        type=whole(Count),
        default=3,
        show_default=True,
        help="Documents of each corpus whose text goes into the JSON, for reffree report.",
    ),
    seed_option,
    corpus_options,
)


def _of_corpora(flag: str, name: str, text: str) -> Decorator:
    return click.option(flag, name, multiple=True, metavar="NAME", help=text)


transfer = study_command(
    "transfer",
    """Train a boundary scorer on some corpora and test it on the others.

    Each CORPUS is a corpus of its own with gold, called by its file's name without extension. Those
    named by --train, --splices and --calibrate are learnt from as in reffree train scorer, all
    others are tested, at one threshold: W-F1, BOR, F1, purity and coverage of each. Without --train
    every corpus is trained on in turn and all others are tested. Test a split of a corpus that is
    trained on as a CORPUS of its own.
    """,
    _of_corpora(
        "--train", "train", "A corpus whose gold is learnt; may be repeated.  [default: each]"
    ),
    _of_corpora(
        "--splices",
        "splices",
        "A corpus whose segments are spliced first; may be repeated.  [default: those of --train]",
    ),
    _of_corpora(
        "--calibrate",
        "calibrate",
        "A corpus that temperature is chosen on; may be repeated.  [default: documents held out]",
    ),
    click.option(
        "--scorer",
        metavar="FOLDER",
        help="Test what reffree train scorer wrote instead of training; every CORPUS is tested.",
    ),
    click.option(
        "--method",
        "methods",
        multiple=True,
        shell_complete=names(METHODS),
        metavar="METHOD",
        help="As in reffree segment, beside the scorer; may be repeated.  [default: oracle_random]",
    ),
    metric_option("Further metrics, as in reffree score; may be repeated."),
    click.option(
        "--threshold",
        type=float,
        default=0.5,
        show_default=True,
        help="Of the scorer's probabilities.",
    ),
    click.option(
        "--gap",
        "min_gap",
        type=whole(Positive),
        default=3,
        show_default=True,
        help="Units between two boundaries of the scorer.",
    ),
    click.option("--finetune", is_flag=True, help="Train the encoder itself: slow without a GPU."),
    click.option(
        "--window",
        type=whole(Positive),
        default=4,
        show_default=True,
        help="Units on either side of a gap.",
    ),
    click.option(
        "--splice-epochs",
        type=whole(Count),
        default=3,
        show_default=True,
        help="Epochs on splices.",
    ),
    click.option(
        "--epochs", type=whole(Count), default=5, show_default=True, help="Epochs on gold."
    ),
    click.option(
        "--learning-rate",
        type=float,
        help="Of the first stage.  [default: 3e-4, with --finetune 2e-5]",
    ),
    scored_corpus_options,
)
