"""Density–quality curves of methods that score gaps, and failure modes."""
