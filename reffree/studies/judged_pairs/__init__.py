"""Pairs of segmentations for people to judge, and how far metrics agree with their votes."""
