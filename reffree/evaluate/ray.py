"""Blocks encoded and scored by Ray's actors, each of which does what this process would do."""

from __future__ import annotations
