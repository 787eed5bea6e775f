"""Where what is kept goes."""

from __future__ import annotations

from reffree.folders import cache_folder


def test_the_cache_folder_is_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("REFFREE_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("REFFREE_CACHE_DIR")
    assert cache_folder().name == "reffree"
