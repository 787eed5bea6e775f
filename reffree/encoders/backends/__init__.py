"""Other ways than plain torch to run a model's transformer, and how far their numbers are from it.

The tokenizer and the modules after the transformer (pooling, normalisation) are torch's in all of
them. An exact backend is refused where it is more than `TOLERANCE` away from torch; an approximate
one is only used by its name, and carries how far it moves cosines in the encoder's spec.
"""

from reffree.encoders.backends.backend import Accelerated, Vectors, check_backend, chosen_backend
from reffree.encoders.backends.probe import TOLERANCE

__all__ = ["TOLERANCE", "Accelerated", "Vectors", "check_backend", "chosen_backend"]
