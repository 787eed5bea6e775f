"""Gold-based metrics, batched over pairs of segmentations."""
