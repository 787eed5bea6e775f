"""Supervised segmenters: networks that are trained, kept in folders, and asked for every gap."""
