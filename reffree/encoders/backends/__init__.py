"""Other ways than plain torch to run a model's transformer, and how far their numbers are from it.

The tokenizer and the modules after the transformer (pooling, normalisation) are torch's in all of
them. An exact backend is refused where it is more than `probe.TOLERANCE` away from torch; an
approximate one is only used by its name, and carries how far it moves cosines in the encoder's
spec.
"""
