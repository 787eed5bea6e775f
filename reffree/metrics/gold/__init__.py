"""Metrics that compare with gold, batched over pairs of segmentations."""
