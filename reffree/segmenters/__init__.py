"""Segmenters: named methods that make hypotheses."""
