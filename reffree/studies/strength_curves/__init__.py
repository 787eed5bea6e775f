"""Metrics against the strength of a perturbation."""
