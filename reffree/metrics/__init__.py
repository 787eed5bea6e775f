"""Metrics: reference-free ones in `free`, gold-based ones in `gold`."""
