"""Gold-based metrics, batched over pairs of segmentations.

A metric is a class with its options, ``Pk(k=3)(hypothesis, reference)``, and a function of both,
``pk(hypothesis, reference, k=3)``; `GoldMetric.__call__` says what they take and return.

>>> pk([5, 5], [2, 3, 5]), windowdiff([[5, 5], [10]], [2, 3, 5], k=2)
(0.25, array([0.25, 0.5 ]))
"""

from __future__ import annotations

from reffree.metrics.gold.agreement import agreement as agreement
from reffree.metrics.gold.alignment import Alignment
from reffree.metrics.gold.alignment import align as align
from reffree.metrics.gold.boundary_edits import (
    Bed,
    BedPrecision,
    BedRecall,
    BoundarySimilarity,
    Ghd,
    SegmentationSimilarity,
)
from reffree.metrics.gold.failure_modes import failure_mode as failure_mode
from reffree.metrics.gold.granularity import F1, WF1, Bor, Coverage, Purity, WF1OneToOne
from reffree.metrics.gold.metric import as_function
from reffree.metrics.gold.sed import align_segments as align_segments
from reffree.metrics.gold.sed import sed as sed
from reffree.metrics.gold.windows import (
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

alignment = as_function(Alignment)
bed = as_function(Bed)
bed_precision = as_function(BedPrecision)
bed_recall = as_function(BedRecall)
bor = as_function(Bor)
boundary_similarity = as_function(BoundarySimilarity)
coverage = as_function(Coverage)
f1 = as_function(F1)
ghd = as_function(Ghd)
pk = as_function(Pk)
pk_prime = as_function(PkPrime)
pr_error = as_function(PrError)
pr_false_alarm = as_function(PrFalseAlarm)
pr_miss = as_function(PrMiss)
purity = as_function(Purity)
segmentation_similarity = as_function(SegmentationSimilarity)
w_f1 = as_function(WF1)
w_f1_one_to_one = as_function(WF1OneToOne)
windowdiff = as_function(WindowDiff)
winpr = as_function(WinPr)
winpr_precision = as_function(WinPrPrecision)
winpr_recall = as_function(WinPrRecall)
