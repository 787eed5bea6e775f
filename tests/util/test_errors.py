"""Text of others on its way to a terminal, a spreadsheet, a page: it stays text."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import re
import unicodedata
from pathlib import Path

import pytest

import reffree
from reffree.cli import main
from reffree.data.corpus import is_name
from reffree.report.grid import json_text, latex_table, markdown_page, render_terminal, to_csv
from reffree.report.render import render
from reffree.studies import agreement, boundaries
from reffree.util.errors import InputError, visible, visible_json
from reffree.util.grid import Cell, Grid

CLI = Path(reffree.__file__).parent / "cli"
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
STEERING = [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *BIDI, "\u2028", "\u2029", "\ud800"]
EVIL = "e\x1b]0;t\x07\x9b2J\u202evil\r\n% \\input{x}<b>|`[x](javascript:x)"
NASTY = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("character", STEERING, ids=ascii)
def test_what_steers_is_spelt_out(character):
    shown = visible(f"a{character}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert json.loads(f'"{visible_json(character)}"', strict=False) == character
    assert not is_name(f"a{character}b")


def test_everything_else_stays():
    others = "".join(
        chr(code)
        for code in range(0x30000)
        if chr(code) not in STEERING and unicodedata.category(chr(code)) != "Cs"
    )
    assert visible(others) == visible_json(others) == others
    assert is_name("שלום – 東京 👩‍🚀")


def test_every_line_of_the_command_passes_the_door():
    for path in CLI.glob("*.py"):
        if path.name == "messages.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call)
            assert not (is_call and ast.unparse(node.func) in ("click.echo", "print")), path


GRIDS = [Grid.of((EVIL, "n"), [(Cell(EVIL, (EVIL,), is_best=True), "1")], title=EVIL)]


def test_terminal_tables():
    shown = render_terminal(GRIDS, [EVIL, EVIL], color=False, width=None)
    assert not NASTY.search(shown)
    assert shown.count(r"\x1b]0;t\x07\x9b2J\u202evil\r\n") == 6


def test_markdown():
    page = markdown_page(GRIDS, "", [EVIL], EVIL)
    assert not NASTY.search(page)
    lines = page.split("\n")
    assert lines[-2].startswith("`` e")
    rest = "\n".join(lines[:-2])
    assert "<" not in rest
    assert "](" not in rest
    assert not re.search(r"(?<!\\)`", rest)
    cells = [re.findall(r"(?<!\\)\|", line) for line in lines if line.startswith("|")]
    assert [len(found) for found in cells] == [3, 3, 3]


def test_latex():
    page = latex_table(GRIDS[0])
    assert not NASTY.search(page)
    assert [line[:2] for line in page.split("\n")].count("% ") == 1
    for line in page.split("\n"):
        if not line.startswith("% "):
            assert "\\input" not in line


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1", "-", "=\x1b"])
def test_spreadsheets_do_not_compute_text(text):
    (header, row) = csv.reader(io.StringIO(to_csv([text], [[text]])))
    assert header == row
    assert row[0][0] not in "=+-@\t\r＝"
    assert row[0].lstrip("'") == visible(text)
    assert not NASTY.search(row[0])


def test_numbers_in_a_spreadsheet_stay_numbers():
    text = to_csv(["a"], [[-1.5, -3, None, "x", "1-2"]])
    assert text == "a\n-1.5,-3,,x,1-2\n"


def test_json_says_the_same():
    assert json.loads(json_text({EVIL: [EVIL]})) == {EVIL: [EVIL]}
    assert not NASTY.search(json_text({EVIL: [EVIL]}))


@pytest.fixture(scope="module")
def corpus():
    """Names may hold what means something to a format; texts and notes may hold anything."""
    name = "=a<b>|%\\input"
    documents = [
        reffree.Document.build(
            f"{name}{i}",
            [f"{EVIL} {j}" for j in range(4)],
            golds={"=x": [2, 2], "<y>": [1, 3]},
            gold=[2, 2],
            systems={name: [1, 3]},
        )
        for i in range(2)
    ]
    return reffree.Corpus(tuple(documents), notes=(EVIL,))


VECTORS = [[[1, 2], [2, 1], [0, 3], [3, 3]]] * 2


def every_output(corpus):
    from reffree.studies import diagnose

    scores = reffree.score(corpus, metrics=["arp_cos"], embeddings=VECTORS, explain=True)
    results = (
        scores,
        reffree.compare(corpus, metrics=["arp_cos"], embeddings=VECTORS),
        agreement({EVIL: corpus}),
        boundaries(corpus, embeddings=VECTORS),
        diagnose({EVIL: corpus}, metrics=["arp_cos"], embeddings={EVIL: VECTORS}),
    )
    for format in ("table", "json", "csv", "md", "latex"):
        for result in results:
            yield render(result, format)


def test_no_output_carries_what_steers(corpus):
    outputs = list(every_output(corpus))
    assert len(outputs) == 25
    for text in outputs:
        assert not NASTY.search(text)
        if text.startswith("%"):
            assert all(
                line[0] in "% " or "\\input" not in line for line in text.split("\n") if line
            )


def test_explanations_show_units_as_text(corpus):
    table = reffree.score(corpus, metrics=["arp_cos"], embeddings=VECTORS, explain=True)
    for color in (False, True):
        drawn = render(table, "table", color=color, width=80)
        assert r"e\x1b]0;t\x07\x9b2J\u202evil" in drawn
        assert "\x9b" not in drawn
        assert "\x1b]" not in drawn


def test_errors_and_usage_are_lines_of_text(capsys):
    for arguments in (
        ["score", "no\x1b[2J\u202esuch\nfile.jsonl"],
        ["score", "x", "--null", "\x9b2J"],
        ["no\x1b[2Jcommand"],
        ["cache", "rm", "\x1b[2J\nreffree: fine", "--cache", "."],
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        errors = capsys.readouterr().err
        assert not NASTY.search(errors), arguments
        assert "\\x1b" in errors or "\\x9b" in errors
        assert "\nreffree: fine" not in errors


def test_notes_from_below_are_lines_of_text(capsys, monkeypatch):
    def command(**_):
        logging.getLogger("reffree.encoders.cache").warning("reffree: note: %s", EVIL)
        raise InputError(EVIL, expected=EVIL, remedy=EVIL)

    monkeypatch.setattr("reffree.cli.cli.main", command)
    with pytest.raises(SystemExit):
        main([])
    note, error, end = capsys.readouterr().err.split("\n")
    assert note == f"reffree: note: {visible(EVIL)}"
    assert error.startswith("reffree: error: found e\\x1b]0;t")
    assert end == ""
