"""Inputs made wrong at random, by seed: whatever is not read is refused in a sentence.

A few hundred in the suite; ``python -m tests.fuzz --cases 5000 --seed 3`` for thousands.
"""
