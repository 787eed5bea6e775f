"""What is written is there whole, or what was there before stays."""

from __future__ import annotations

import pytest

from reffree.util.atomic import cache_folder, replacing


def test_a_file_takes_the_place_of_another(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("before")
    with replacing(target) as temporary:
        temporary.write_text("after")
        assert target.read_text() == "before"
    assert target.read_text() == "after"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("write", [lambda path: path.write_text("half"), lambda path: path.mkdir()])
def test_what_fails_leaves_nothing_behind(tmp_path, write):
    target = tmp_path / "a"

    def fails():
        with replacing(target) as temporary:
            write(temporary)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_take_its_place_is_removed(tmp_path):
    target = tmp_path / "full"
    target.mkdir()
    (target / "theirs").touch()

    def in_vain():
        with replacing(target) as temporary:
            temporary.mkdir()
            (temporary / "ours").touch()

    with pytest.raises(OSError, match="not empty"):
        in_vain()
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "theirs"]


def test_the_cache_folder_is_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("REFFREE_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("REFFREE_CACHE_DIR")
    assert cache_folder().name == "reffree"
