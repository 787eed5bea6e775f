"""A boundary scorer that is trained: two windows of units in, the probability of a boundary out."""
