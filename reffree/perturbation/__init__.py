"""Segmentations made worse on purpose, by a known amount."""
