"""Bytes to lines: encodings, line ends, limits, missing files, and how a format is told."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from reffree.data.corpus import Document
from reffree.formats import format_names, load, save
from reffree.formats import source as source_module
from reffree.util.errors import UnknownNameError
from tests.formats.conftest import write
from tests.helpers import refusal

LINE = '{"id": "m1", "units": ["ä", "b"], "gold": [1, 1]}'


def file(content: bytes | str, name: str = "c.jsonl") -> str:
    return write(content, name)


MARK = (
    "c.jsonl, line 1: found a byte-order mark; expected plain UTF-8; it was ignored, save the file "
    "without it to silence this"
)
CRLF = (
    "c.jsonl, line 1: found a Windows line end (CRLF); expected LF; all were read as LF, save the "
    "file with LF to silence this"
)


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (f"\n{LINE}\n  \n".encode(), ()),
        (b"\xef\xbb\xbf" + LINE.encode(), (MARK,)),
        (f"{LINE}\r\n\r\n".encode(), (CRLF,)),
        (b"\xef\xbb\xbf" + f"{LINE}\r\n\r\n".encode(), (MARK, CRLF)),
    ],
)
def test_what_is_accepted_is_noted_once(content, notes):
    corpus = load(file(content))
    assert corpus.documents[0].units == ("ä", "b")
    assert corpus.documents[0].place.line == (1 if notes else 2)
    assert corpus.notes == notes


def test_windows_line_ends_do_not_enter_the_units():
    corpus = load(file("==========\r\none\r\ntwo\r\n==========\r\nthree\r\n", "d.ref"))
    assert corpus.documents[0].units == ("one", "two", "three")


def test_invalid_utf8_names_line_and_offset():
    bad = LINE.encode().replace("ä".encode(), b"\xe4")
    assert refusal(load, file(LINE.encode() + b"\n" + bad)) == (
        "c.jsonl, line 2: found the byte 0xe4 at offset 24 of the line, which is not UTF-8; "
        "expected UTF-8; save the file as UTF-8"
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_refused(encoding):
    content = ("\ufeff" + LINE).encode(encoding)
    assert refusal(load, file(content)) == (
        "c.jsonl, line 1: found a UTF-16 byte-order mark; expected UTF-8; save the file as UTF-8"
    )


def test_a_line_of_100_mb_is_refused_without_reading_it_all(tmp_path):
    path = tmp_path / "c.jsonl"
    with path.open("wb") as handle:
        handle.write(LINE.encode() + b"\n")
        handle.truncate(100_000_000)
    tracemalloc.start()
    try:
        sentence = refusal(load, "c.jsonl")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sentence == (
        "c.jsonl, line 2: found a line of more than 67,108,864 bytes; expected at most that many "
        "in a line; put one document on a line, or split this document"
    )
    # a buffered read holds its pieces and their sum
    assert peak < 2.1 * source_module.MAX_LINE_BYTES


def test_the_limit_is_exact(monkeypatch):
    monkeypatch.setattr(source_module, "MAX_LINE_BYTES", len(LINE.encode()) + 1)
    assert len(load(file(f"{LINE}\n"))) == 1
    assert "found a line of more than" in refusal(load, file(f" {LINE}\n"))


def test_a_path_that_is_none():
    for name in ("absent.jsonl", "absent"):
        assert refusal(load, name) == (
            f"{name}: found no file of this name; expected a readable file; check the path"
        )
    assert "found a path that cannot be read" in refusal(load, "a\0b.jsonl")
    assert "found a path that cannot be read (File name too long)" in refusal(load, "x" * 5000)


@pytest.mark.parametrize(
    ("function", "path", "format"),
    [("pathlib.Path.open", "c.jsonl", None), ("os.scandir", ".", "choi")],
)
def test_no_permission(monkeypatch, function, path, format):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", path)

    file(LINE)
    monkeypatch.setattr(function, refuse)
    assert refusal(load, path, format=format) == (
        f"{path}: found a file that may not be read; expected a readable file; "
        "change its permissions"
    )


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_file(content):
    assert refusal(load, file(content)) == (
        "c.jsonl: found no documents; expected at least one; check that the file is not empty"
    )


def test_nothing_to_read():
    assert refusal(load) == (
        "found no paths; expected at least one; pass the paths one by one, such as "
        'load("a.jsonl", "b.jsonl"), or - for standard input'
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [(["c.jsonl"], "a list"), (("c.jsonl",), "a tuple"), (None, "None"), (b"c.jsonl", "bytes")],
)
def test_paths_that_are_none(path, kind):
    assert refusal(load, path) == (
        f"found {kind} as a path; expected a string or a Path; pass the paths one by one, such as "
        'load("a.jsonl", "b.jsonl")'
    )


@pytest.mark.parametrize(("paths", "text"), [(("-", "-"), None), (("-",), "-")])
def test_stdin_twice(paths, text):
    assert refusal(load, *paths, text=text) == (
        "<stdin>: found - twice; expected it once, since standard input can be read only once; "
        "give the other input as a file"
    )


def test_stdin(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + LINE.encode() + b"\n{"))
    monkeypatch.setattr(sys, "stdin", stream)
    assert refusal(load, "-").startswith("<stdin>, line 2: found text that is not JSON (Expecting ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE.encode())))
    assert load("-").documents[0].place.file == "<stdin>"


INTO_JSONL = (
    "into a .jsonl file, one document a line such as "
    '{"id": "a", "units": ["One.", "Two."], "systems": {"mine": [1, 1]}}'
)


@pytest.mark.parametrize(
    ("data", "format", "sentence"),
    [
        (
            b"\n Once upon a time.\nThe end.\n",
            None,
            "<stdin>, line 2: found plain text, not JSON, 'Once upon a time.'; expected valid "
            f"JSON; put text of your own {INTO_JSONL}, or name the right format with --format",
        ),
        (
            b"%PDF-1.7\n%\xe2\xe3",
            None,
            "<stdin>: found what looks like a PDF file; expected text in UTF-8; give it as "
            "a .pdf file",
        ),
        (b"==========\na\n", None, "<stdin>: found what looks like the format choi; expected the "),
        (b"0110\n", None, "<stdin>: found what looks like the format nltk; expected the format "),
        (b"Coder\tMasses\n", None, "<stdin>: found what looks like the format segeval-tsv; expec"),
        (LINE.encode(), "segeval", "<stdin>: found what looks like the format jsonl; expected the"),
        (b"{\n", None, "<stdin>, line 1: found text that is not JSON (Expecting property name enc"),
        (b"[1]", None, "<stdin>, line 1: found a list as a document; expected an object in braces"),
    ],
)
def test_stdin_of_another_kind(monkeypatch, data, format, sentence):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert refusal(load, "-", format=format).startswith(sentence)


def test_no_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert refusal(load, "-").startswith("<stdin>: found no standard input; ")


def test_a_terminal_read_that_fails(monkeypatch):
    class Broken(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Broken()}))
    assert refusal(load, "-").startswith(
        "<stdin>: found a path that cannot be read (Input/output error)"
    )


DIALSEG = {"dial_data": {"d": [{"turns": [{"utterance": "a"}]}]}}
MEETING = {"meeting_transcripts": [{"speaker": "A", "content": "a"}]}
SEGEVAL = {"items": {"1": {"c": [1]}}}
TABLE = {"id": "1", "units": ["a"]}


@pytest.mark.parametrize(
    ("name", "content", "unit"),
    [
        ("x.jsonl", json.dumps(TABLE), "a"),
        ("x.ndjson", json.dumps(TABLE), "a"),
        ("x.jsonl", json.dumps(MEETING), "a"),
        ("x.jsonl", json.dumps(DIALSEG), "a"),
        ("x.json", json.dumps(DIALSEG), "a"),
        ("x.json", json.dumps(MEETING, indent=1), "a"),
        ("x.json", json.dumps({"1": [["a", "-1"]]}), "a"),
        ("x.json", json.dumps(TABLE), "a"),
        ("x.json", json.dumps([TABLE], indent=1), "a"),
        ("x.json", json.dumps(TABLE) + "\n" + json.dumps({**TABLE, "id": "2"}), "a"),
        ("x.json", json.dumps(SEGEVAL), "from text"),
        ("1.tsv", "Coder\tMasses\nc\t1\n", "from text"),
        ("1.csv", "Coder,Positions\nc,1\n", "from text"),
        ("x.ref", "==========\na\n", "a"),
        ("x.txt", "a\n==========\n", "a"),
        ("x.dat", "a\n===========\n", "a"),
        ("x", "a\n==========\n", "a"),
        ("x.txt", "1\t0\n", "from text"),
        ("x.txt", "0\n", "from text"),
    ],
)
def test_the_format_is_told_by_extension_and_content(name, content, unit):
    file("from text\n", "text")
    text = "text" if unit == "from text" else None
    assert load(file(content, name), text=text).documents[0].units == (unit,)


PLAIN = "plain text, which has no segmentation"
KNOWN = "expected a format that is known (reffree convert --help lists them)"
NO_FORMAT = f"{KNOWN}; put text of your own {INTO_JSONL}, or name the format with --format"
PROSE = ", such as lines (a unit a line) or headings (whose sections are gold)"


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("x.txt", "just words\n", PLAIN),
        ("x.txt", "", "an empty file"),
        ("x.json", "[]", "a file of no known format"),
        ("x.json", "{}", "a file of no known format"),
        ("x.json", "3", "a file of no known format"),
        ("x.json", '{"text": "a"}', "a file of no known format"),
        ("x.dat", "word\t\n", PLAIN),
    ],
)
def test_a_format_that_cannot_be_told(name, content, found):
    more = PROSE if found == PLAIN else ""
    assert refusal(load, file(content, name)) == f"{name}: found {found}; {NO_FORMAT}{more}"


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_prose_where_json_should_be(name):
    assert refusal(load, file("Once upon a time.\nThe end.\n", name)) == (
        f"{name}, line 1: found plain text, not JSON, 'Once upon a time.'; expected valid JSON; "
        f"put text of your own {INTO_JSONL}, or name the right format with --format"
    )


TWICE = gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0)
ZIP = "what looks like a zip file (.docx and .xlsx are such)"


@pytest.mark.parametrize(
    ("name", "content", "found", "remedy"),
    [
        ("x.txt", b"%PDF-1.7\n\xff", "what looks like a PDF file", "give it as a .pdf file"),
        ("x.rtf", b"{\\rtf1 Hello}", "what looks like an RTF file", f"put its text {INTO_JSONL}"),
        ("x.csv", b"PK\x03\x04\x14\0", ZIP, "give it as a .docx file, or unpack it"),
        ("c.jsonl.gz", TWICE, "what looks like a gzip file in a gzip file", "unpack it once first"),
        ("x.png", b"\x89PNG\r\n\x1a\n", "what looks like a PNG image", "give a text file"),
        ("x.jpg", b"\xff\xd8\xff\xe0", "what looks like a JPEG image", "give a text file"),
        ("x.bin", b"\0\0", "what looks like a binary file", "give a text file"),
        ("x.jsonl", b"\0\x01\0\x02", "what looks like a binary file", "give a text file"),
        ("x.json", b'{\n"\0\xff"}', "what looks like a binary file", "give a text file"),
    ],
)
def test_binary_files_are_called_so(name, content, found, remedy):
    assert refusal(load, file(content, name)) == (
        f"{name}: found {found}; expected text in UTF-8; {remedy}"
    )


LOOKS = "what looks like the format"
ITEMS = "expected the field 'items'"
SAYS_SEGEVAL = "expected the format segeval, as --format says; leave out --format"


@pytest.mark.parametrize(
    ("name", "content", "format", "sentence"),
    [
        ("x.jsonl", f"{LINE}\n{LINE}\n", "segeval", f"{LOOKS} jsonl; {SAYS_SEGEVAL}"),
        ("x.json", LINE, "segeval", f"{LOOKS} jsonl; {SAYS_SEGEVAL}"),
        ("x.json", json.dumps(DIALSEG), "segeval", f"{LOOKS} dialseg; {SAYS_SEGEVAL}"),
        ("x.ref", "==========\na\n", "segeval", f"{LOOKS} choi; {SAYS_SEGEVAL}"),
        (
            "x.csv",
            LINE,
            None,
            "what looks like the format jsonl; expected the format table, as its name says; "
            "write --format jsonl, or name the file .jsonl",
        ),
        (
            "x.jsonl",
            "a\n==========\nb\n",
            None,
            "what looks like the format choi; expected the format jsonl, as its name says; write "
            "--format choi, or name the file .ref",
        ),
        ("x.json", '{"id": "a", "tokens": 1}', "segeval", f"{LOOKS} jsonl; {SAYS_SEGEVAL}"),
        ("x.json", '{"systems": {}}', "segeval", f"no 'items' among 'systems'; {ITEMS}; add it"),
        (
            "x.json",
            '{"item": {}}',
            "segeval",
            f"no 'items' among 'item'; {ITEMS}; rename 'item' to 'items'",
        ),
    ],
)
def test_a_file_of_another_format_than_named(name, content, format, sentence):
    assert refusal(load, file(content, name), format=format) == f"{name}: found {sentence}"


@pytest.mark.parametrize(
    ("content", "format", "suffix"),
    [(LINE, "jsonl", ".jsonl"), ("Coder,Masses\nc,2\n", "segeval-tsv", ".tsv")],
)
def test_a_format_that_the_name_hides(content, format, suffix):
    assert refusal(load, file(content, "x.txt")) == (
        f"x.txt: found what looks like the format {format}, but is not named so; {KNOWN}; write "
        f"--format {format}, or name the file {suffix}"
    )


def test_folders_of_plain_text(tmp_path):
    assert refusal(load, ".") == f".: found an empty folder; {NO_FORMAT}"
    (tmp_path / "a.txt").write_text("just words\n")
    assert refusal(load, ".") == f".: found {PLAIN}; {NO_FORMAT}{PROSE}"
    (tmp_path / "b.txt").write_text("==========\nwords\n")
    assert refusal(load, ".", format="qmsum") == (
        ".: found what looks like the format choi; expected the format qmsum, as --format says; "
        "leave out --format"
    )


def test_folders_of_no_known_format(tmp_path):
    (tmp_path / "a.json").write_text('{"1": 2}')
    assert f"found a folder of no known format; {KNOWN}" in refusal(load, tmp_path)
    assert refusal(load, tmp_path, format="jsonl").endswith(
        "found a folder; expected a file, since the format jsonl has no folders; "
        "name its files one by one"
    )


def test_unknown_names_are_refused():
    name = file(LINE)
    with pytest.raises(UnknownNameError, match="unknown format 'json1'; did you mean 'jsonl'"):
        load(name, format="json1")
    with pytest.raises(UnknownNameError, match="unknown format 'chio'; did you mean 'choi'"):
        save(load(name), "out", format="chio")


def test_all_formats_are_named():
    assert " ".join(format_names()) == (
        "chapters choi dailydialog dialseg document headings jsonl lines markdown multiwoz nltk "
        "nxt parquet qmsum radionews segeval segeval-tsv subtitles table tadam taskmaster tiage "
        "tiage-tsv topical-chat transcript utterances wikisection youtube"
    )
    assert format_names(writable=True) == (
        *("choi", "dialseg", "jsonl", "nltk", "segeval", "segeval-tsv"),
    )


def test_text_that_nothing_needs():
    assert refusal(load, file(LINE), text="t.txt") == (
        "found --text t.txt, but no file that needs it; expected text only with segeval, nltk or "
        "chapter files; leave out --text"
    )


def test_several_files_are_merged_in_order():
    names = [file(LINE.replace("m1", id), f"{id}.jsonl") for id in ("z", "a")]
    assert [document.id for document in load(*names).documents] == ["z", "a"]
    assert refusal(load, names[0], names[0]).startswith(
        "z.jsonl, line 1, document 'z': found the id a second time, first at z.jsonl, line 1; "
    )


def test_formats_import_nothing_heavy():
    code = "import sys, reffree.formats; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# gzip


@pytest.mark.parametrize("name", ["c.jsonl.gz", "c.jsonl", "c.JSONL.GZ"])
def test_packed_files_are_unpacked_on_the_way(name):
    corpus = load(file(gzip.compress(f"{LINE}\n".encode()), name))
    assert corpus.documents[0].units == ("ä", "b")
    assert corpus.notes == ()


def test_packed_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(LINE.encode())))
    monkeypatch.setattr(sys, "stdin", stream)
    assert load("-").documents[0].id == "m1"


def test_packed_files_of_a_folder(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        content = gzip.compress(LINE.replace("m1", name).encode())
        (tmp_path / "d" / f"{name}.jsonl.gz").write_bytes(content)
    assert [document.id for document in load("d")] == ["a", "b"]
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "one.ref.gz").write_bytes(gzip.compress(b"==========\na\n"))
    assert [document.id for document in load("c")] == ["one"]
    assert [document.id for document in load("c/one.ref.gz")] == ["one"]


def test_a_packed_corpus_is_written_and_read():
    corpus = load(file(LINE))
    assert save(corpus, "out.jsonl.gz") == []
    first = Path("out.jsonl.gz").read_bytes()
    assert gzip.decompress(first).startswith(b'{"id": "m1"')
    assert load("out.jsonl.gz") == corpus
    save(corpus, "again.jsonl.gz")
    assert Path("again.jsonl.gz").read_bytes() == first
    save(corpus, "talk.ref.gz")
    assert load("talk.ref.gz").documents[0].units == ("ä", "b")


def test_packed_shards_are_streamed(monkeypatch):
    from reffree.formats.shards import Shards

    lines = "\n".join(LINE.replace("m1", f"m{i}") for i in range(5))
    name = file(gzip.compress(lines.encode()), "c.jsonl.gz")
    monkeypatch.setenv("REFFREE_LIMITS", "input_rows=2")
    assert "found 4 lines or rows, or more; expected at most 2; " in refusal(load, name)
    shards = Shards.of([name])
    for _ in range(2):  # a stream holds one document at a time
        assert [document.id for document in shards] == [f"m{i}" for i in range(5)]


def test_half_a_character_is_refused_in_a_packed_file_as_well(tmp_path):
    corpus = load([Document.build("a", ["x"], meta={"note": "\ud800"})])
    target = tmp_path / "out.jsonl.gz"
    assert "which UTF-8 cannot hold; expected text without lone" in refusal(save, corpus, target)
    assert not target.exists()


@pytest.mark.parametrize("cut", [4, 12, -4])
def test_a_packed_file_that_is_cut_off(cut):
    content = gzip.compress((LINE * 50).encode())[:cut]
    assert refusal(load, file(content, "c.jsonl.gz")).startswith(
        "c.jsonl.gz: found a gzip file that is damaged or cut off; expected a whole one; "
    )
