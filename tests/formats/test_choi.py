"""Choi files and folders."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import load, save
from reffree.formats.choi import file_names
from tests.helpers import refusal

BAR = "=========="


@pytest.mark.parametrize(
    "content",
    [
        f"{BAR}\none\ntwo\n{BAR}\nthree\n{BAR}\n",
        f"one\ntwo\n{BAR}\nthree",
        f"{BAR}\n{BAR}\none\n\ntwo\n \n{BAR}===\n{BAR}\n\n{BAR}\nthree\n{BAR}\n{BAR}\n",
        f"one\ntwo\n  {BAR} \nthree\n",
    ],
)
def test_blocks_are_segments_and_empty_ones_are_none(tmp_path, content):
    path = tmp_path / "7.ref"
    path.write_text(content)
    document = load(path).documents[0]
    assert document.id == "7"
    assert document.units == ("one", "two", "three")
    assert document.gold == Segmentation((2, 1))
    assert document.n_dropped == 0


def test_a_file_without_separators_or_text_is_refused(tmp_path):
    (tmp_path / "a.ref").write_text("one\ntwo\n")
    assert refusal(load, "a.ref") == (
        "a.ref: found no line of ten or more =; expected a Choi file, whose segments are "
        "separated by ==========; put such a line before the first segment, or move the file "
        "elsewhere"
    )
    (tmp_path / "a.ref").write_text(f"{BAR}\n\n{BAR}\n")
    assert refusal(load, "a.ref").startswith("a.ref, document 'a': found no units; ")


def test_folders_are_searched_in_sorted_order(tmp_path):
    for name in ("b.txt", "a/2.txt", "a/1", ".hidden.ref", ".git/x.ref"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{BAR}\ntext\n")
    corpus = load(tmp_path)
    assert [document.id for document in corpus.documents] == ["a/1", "a/2", "b"]
    assert corpus.documents[0].place.file == str(tmp_path / "a" / "1")
    assert corpus.notes == ()


def test_other_files_are_counted_and_notes_of_each_file_kept(tmp_path):
    (tmp_path / "a.ref").write_bytes(b"==========\r\ntext\r\n")
    for name in ("x.json", "y.pdf"):
        (tmp_path / name).write_bytes(b"\xff")
    (tmp_path / "linked").symlink_to(tmp_path)
    notes = load(tmp_path).notes
    assert [note.removeprefix(str(tmp_path)) for note in notes] == [
        ": found a link to another folder, 'linked'; expected files and folders; it was not "
        "followed, give that folder by itself",
        "/a.ref, line 1: found a Windows line end (CRLF); expected LF; all were read as LF, save "
        "the file with LF to silence this",
        ": found 2 files of another kind; expected Choi files (.ref); "
        "they were not read, move them elsewhere to silence this",
    ]


def test_a_readme_beside_other_files_is_named(tmp_path):
    (tmp_path / "a.txt").write_text(f"{BAR}\ntext\n")
    (tmp_path / "b.md").write_text("About\n")
    assert "expected Choi files (.txt or without extension); it was not" in load(tmp_path).notes[0]
    (tmp_path / "README").write_text("About\n")
    assert refusal(load, tmp_path).startswith(f"{tmp_path}/README: found no line of ten")


def test_what_many_files_of_a_folder_have_is_one_note(tmp_path):
    for name in "abc":
        mark = b"" if name == "c" else b"\xef\xbb\xbf"
        (tmp_path / f"{name}.ref").write_bytes(mark + b"==========\r\ntext\r\n")
    assert load(".").notes == (
        ".: found byte-order marks in 2 of 3 files; expected plain UTF-8; they were ignored, save "
        "the files without them to silence this",
        ".: found Windows line ends (CRLF) in 3 of 3 files; expected LF; they were read as LF, "
        "save the files with LF to silence this",
    )


def test_empty_and_ambiguous_folders(tmp_path):
    assert refusal(load, tmp_path).startswith(f"{tmp_path}: found an empty folder; ")
    assert refusal(load, tmp_path, format="choi").endswith(
        "found no documents; expected at least one; check that the folder is not empty"
    )
    for name in ("a", "a.txt"):
        (tmp_path / name).write_text(f"{BAR}\ntext\n")
    assert refusal(load, tmp_path).startswith(
        f"{tmp_path}/a.txt, document 'a': found the id a second time, first at {tmp_path}/a; "
    )


def test_file_names_that_are_not_text(tmp_path):
    path = tmp_path / "a\udcff.ref"
    path.write_text(f"{BAR}\ntext\n")
    assert "found the file name 'a\\udcff', which is not UTF-8" in refusal(load, path)


units = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=9)
documents = st.lists(
    st.lists(units.filter(str.strip), min_size=1, max_size=4), min_size=1, max_size=4
)


@given(st.lists(documents, min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip(tmp_path_factory, blocks_of):
    corpus = Corpus(
        tuple(
            Document.build(f"d{i}", [*chain(*blocks)], gold=[len(block) for block in blocks])
            for i, blocks in enumerate(blocks_of)
        )
    )
    folder = tmp_path_factory.mktemp("choi") / "out"
    assert save(corpus, folder) == []
    assert load(folder) == corpus
    single = Corpus(corpus.documents[:1])
    assert save(single, folder.with_name("d0.ref")) == []
    assert load(folder.with_name("d0.ref")) == single


def test_long_ids_are_cut_to_what_a_file_name_may_have():
    for id, kept in (("x" * 200, 200), ("x" * 201, 200), ("é" * 150, 100), ("xé" + "é" * 99, 100)):
        assert file_names([id]) == [f"{id[:kept]}.ref"]


@given(st.lists(st.text(min_size=1, max_size=120), unique=True, max_size=12))
def test_file_names_are_safe_and_unique(ids):
    names = file_names(ids)
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        assert all(part and not part.startswith(".") for part in name.split("/"))
        assert not set(name) & set('\\\0\n\t :*?"<>|')
        assert len(name.encode()) < 220


def test_names_that_had_to_change_are_told(tmp_path):
    ids = ("a b", "a_b", "A_B", "..", "../up", "/root", "ok", "ok.ref/x", "a//b")
    documents = [Document.build(id, ["x"], gold=[1]) for id in ids]
    assert save(Corpus(tuple(documents)), tmp_path / "out") == [
        "choi files are named by their document: 7 ids change, such as 'a b' to 'a_b-3'"
    ]
    names = ["A_B-2", "_.", "_._up", "_root", "a__b", "a_b-3", "a_b", "ok.ref_x", "ok"]
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {f"{name}.ref" for name in names}
