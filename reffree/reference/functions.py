"""Every gold-based metric as a function of (hypothesis, reference).

Either argument is one segmentation (masses or a `Segmentation`), several, a matrix of masses padded
with zeros, or a boolean matrix with a column per gap; one stands for as many as the other has. One
pair gives a number, None where it is undefined; several give an array, NaN where undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reffree.reference.alignment import Alignment
from reffree.reference.boundary_edits import (
    Bed,
    BedPrecision,
    BedRecall,
    BoundarySimilarity,
    Ghd,
    SegmentationSimilarity,
)
from reffree.reference.cohesion import THRESHOLD, WordVectors
from reffree.reference.granularity import F1, WF1, Bor, Coverage, Purity, WF1OneToOne
from reffree.reference.metric import Result, evaluate, evaluate_pairs
from reffree.reference.pairs import Given, Pairs
from reffree.reference.sed import Sed
from reffree.reference.windows import (
    Padding,
    Pk,
    PkPrime,
    PrError,
    PrFalseAlarm,
    PrMiss,
    WindowDiff,
    WinPr,
    WinPrPrecision,
    WinPrRecall,
)


def pk(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """Pk: share of unit pairs ``k`` apart that only one side keeps in one segment (`Pk`).

    >>> pk([5, 5], [2, 3, 5])
    0.25
    """
    return evaluate(Pk(k=k), hypothesis, reference)


def windowdiff(
    hypothesis: Given, reference: Given, *, k: int | None = None, padding: Padding = "plain"
) -> Result:
    """WindowDiff: share of windows with different numbers of boundaries (`WindowDiff`).

    >>> windowdiff([[5, 5], [10]], [2, 3, 5], k=2)
    array([0.25, 0.5 ])
    """
    return evaluate(WindowDiff(k=k, padding=padding), hypothesis, reference)


def pk_prime(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """P′k of Georgescul et al. (`PkPrime`)."""
    return evaluate(PkPrime(k=k), hypothesis, reference)


def pr_error(
    hypothesis: Given,
    reference: Given,
    *,
    k: int | None = None,
    c_miss: float = 0.5,
    c_fa: float = 0.5,
) -> Result:
    """Weighed miss and false-alarm rates of Georgescul et al. (`PrError`).

    >>> pr_error([3, 2, 5], [2, 3, 5])
    0.1875
    """
    return evaluate(PrError(k=k, c_miss=c_miss, c_fa=c_fa), hypothesis, reference)


def pr_miss(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """Miss rate of Georgescul et al. (`PrMiss`)."""
    return evaluate(PrMiss(k=k), hypothesis, reference)


def pr_false_alarm(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """False-alarm rate of Georgescul et al. (`PrFalseAlarm`)."""
    return evaluate(PrFalseAlarm(k=k), hypothesis, reference)


def winpr(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """F of WinPR (`WinPr`)."""
    return evaluate(WinPr(k=k), hypothesis, reference)


def winpr_precision(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """Precision of WinPR (`WinPrPrecision`)."""
    return evaluate(WinPrPrecision(k=k), hypothesis, reference)


def winpr_recall(hypothesis: Given, reference: Given, *, k: int | None = None) -> Result:
    """Recall of WinPR (`WinPrRecall`).

    >>> winpr_recall([5, 5], [2, 3, 5])
    0.5
    """
    return evaluate(WinPrRecall(k=k), hypothesis, reference)


def boundary_similarity(hypothesis: Given, reference: Given, *, n_t: int = 2) -> Result:
    """Fournier's B (`BoundarySimilarity`).

    >>> boundary_similarity([3, 2, 5], [2, 3, 5])
    0.75
    """
    return evaluate(BoundarySimilarity(n_t=n_t), hypothesis, reference)


def segmentation_similarity(hypothesis: Given, reference: Given, *, n_t: int = 2) -> Result:
    """Fournier's S (`SegmentationSimilarity`)."""
    return evaluate(SegmentationSimilarity(n_t=n_t), hypothesis, reference)


def bed(hypothesis: Given, reference: Given, *, n_t: int = 2) -> Result:
    """F of boundaries under boundary edit distance (`Bed`)."""
    return evaluate(Bed(n_t=n_t), hypothesis, reference)


def bed_precision(hypothesis: Given, reference: Given, *, n_t: int = 2) -> Result:
    """Precision under boundary edit distance (`BedPrecision`)."""
    return evaluate(BedPrecision(n_t=n_t), hypothesis, reference)


def bed_recall(hypothesis: Given, reference: Given, *, n_t: int = 2) -> Result:
    """Recall under boundary edit distance (`BedRecall`)."""
    return evaluate(BedRecall(n_t=n_t), hypothesis, reference)


def ghd(
    hypothesis: Given,
    reference: Given,
    *,
    insertion: float = 2.0,
    deletion: float = 2.0,
    shift: float = 1.0,
) -> Result:
    """Generalised Hamming distance (`Ghd`)."""
    return evaluate(Ghd(insertion=insertion, deletion=deletion, shift=shift), hypothesis, reference)


def alignment(hypothesis: Given, reference: Given) -> Result:
    """Segment alignment A (`Alignment`); `align` gives the alignment itself.

    >>> alignment([5, 5], [2, 3, 5])
    0.6666666666666666
    """
    return evaluate(Alignment(), hypothesis, reference)


def f1(hypothesis: Given, reference: Given) -> Result:
    """F of exact boundaries (`F1`)."""
    return evaluate(F1(), hypothesis, reference)


def w_f1(hypothesis: Given, reference: Given, *, w: int = 1) -> Result:
    """F of boundaries within a tolerance (`WF1`).

    >>> w_f1([5, 5], [4, 2, 4])
    1.0
    """
    return evaluate(WF1(w=w), hypothesis, reference)


def w_f1_one_to_one(hypothesis: Given, reference: Given, *, w: int = 1) -> Result:
    """F of boundaries within a tolerance, each used once (`WF1OneToOne`)."""
    return evaluate(WF1OneToOne(w=w), hypothesis, reference)


def bor(hypothesis: Given, reference: Given) -> Result:
    """Boundaries per reference boundary (`Bor`)."""
    return evaluate(Bor(), hypothesis, reference)


def purity(hypothesis: Given, reference: Given) -> Result:
    """Units in their segment's largest reference segment (`Purity`).

    >>> purity([9, 1], [5, 5])
    0.6
    """
    return evaluate(Purity(), hypothesis, reference)


def coverage(hypothesis: Given, reference: Given) -> Result:
    """Units in their reference segment's largest segment (`Coverage`)."""
    return evaluate(Coverage(), hypothesis, reference)


def sed(
    hypothesis: Given,
    reference: Given,
    units: Sequence[str],
    vectors: WordVectors,
    *,
    threshold: float = THRESHOLD,
) -> Result:
    """Segment edit distance over a document's text (`Sed`); `align_segments` gives the edits.

    ``vectors`` come from `reffree.encoders.word_vectors.open_word_vectors`.
    """
    pairs = Pairs.of(hypothesis, reference)
    pairs = replace(pairs, units=[units] * len(pairs))
    return evaluate_pairs(Sed(vectors, threshold), pairs, hypothesis, reference)
