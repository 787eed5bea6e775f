"""Scores in torch: packed documents × hypotheses, pair sums, metrics."""
