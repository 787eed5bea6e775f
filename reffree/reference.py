"""Gold-based metrics for users, as in ``reffree.reference.pk(hypothesis, reference, k=3)``."""

from reffree.metrics.gold import *  # noqa: F403
