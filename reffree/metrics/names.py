"""Names of the metrics and where each is; imports nothing, for help and completion."""

from __future__ import annotations

FREE = {
    "placement": "free.placement.Placement",
    "granularity": "free.placement.Granularity",
    "expected_pk": "free.expected.ExpectedPk",
    "expected_windowdiff": "free.expected.ExpectedWindowDiff",
    "expected_boundary_similarity": "free.expected.ExpectedBoundarySimilarity",
    "expected_w_f1": "free.expected.ExpectedWF1",
    "arp_std": "free.published.ArpStd",
    "arp_cos": "free.published.ArpCos",
    "arp_pair": "free.published.ArpPair",
    "silhouette": "free.published.Silhouette",
    "segrefree": "free.published.SegReFree",
}
"""Metrics that need no gold, in the order of ``-m all``."""

GOLD = {
    "pk": "gold.windows.Pk",
    "windowdiff": "gold.windows.WindowDiff",
    "pk_prime": "gold.windows.PkPrime",
    "pr_error": "gold.windows.PrError",
    "pr_miss": "gold.windows.PrMiss",
    "pr_false_alarm": "gold.windows.PrFalseAlarm",
    "winpr": "gold.windows.WinPr",
    "winpr_precision": "gold.windows.WinPrPrecision",
    "winpr_recall": "gold.windows.WinPrRecall",
    "boundary_similarity": "gold.boundary_edits.BoundarySimilarity",
    "segmentation_similarity": "gold.boundary_edits.SegmentationSimilarity",
    "bed": "gold.boundary_edits.Bed",
    "bed_precision": "gold.boundary_edits.BedPrecision",
    "bed_recall": "gold.boundary_edits.BedRecall",
    "ghd": "gold.boundary_edits.Ghd",
    "alignment": "gold.alignment.Alignment",
    "sed": "gold.sed.Sed",
    "f1": "gold.granularity.F1",
    "w_f1": "gold.granularity.WF1",
    "w_f1_one_to_one": "gold.granularity.WF1OneToOne",
    "bor": "gold.granularity.Bor",
    "purity": "gold.granularity.Purity",
    "coverage": "gold.granularity.Coverage",
}
"""Metrics that compare with gold, in the order of ``-m gold``."""

OPENING = ("placement", "granularity", "expected_pk")
"""Where, how many, and the two together, by which systems are ranked: read first."""

WITHOUT_SEARCH = ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree")
"""The published ones: a document's hypotheses are scored without tables of evidence made first."""

DEFAULT = (*OPENING, *WITHOUT_SEARCH)
"""Scored unless others are asked for."""

STUDIED = ("expected_pk", *WITHOUT_SEARCH)
"""What studies of metrics are about unless others are asked for: one number for a system each."""

GOLD_DEFAULT = ("pk", "windowdiff", "boundary_similarity")
"""Shown beside the reference-free metrics where there is gold."""

COMPILED = (
    *("arp_std", "arp_std:p=1", "arp_cos", "arp_pair"),
    *("silhouette", "silhouette:average=units", "segrefree"),
)
"""What the compiled loop scores, in the order of its columns; by either rule, with any pooling."""
