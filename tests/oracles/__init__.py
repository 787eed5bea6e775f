"""Slow, obvious reference implementations that the tests hold the fast ones against."""
