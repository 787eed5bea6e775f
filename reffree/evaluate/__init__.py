"""Whole evaluations: corpus, encoder and metrics to results with their uncertainty."""
