"""The table of the papers' figures: rows are checked with sentences, and shown by paper."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from reffree.studies.config import shipped_configs

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
spec = importlib.util.spec_from_file_location("papers", BENCHMARKS / "papers.py")
papers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(papers)

ROW = dict.fromkeys(papers.KEYS, "x") | {"paper": "Coen", "where": "Table 3", "command": "a | b"}


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "results" / "papers").glob("*.json")))
def test_every_row_can_be_shown(path):
    assert papers.read_rows(path)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{k: v for k, v in ROW.items() if k != "why"}], "row 1: found no 'why'; expected why"),
        ([ROW, ROW | {"says": 0.5}], "row 2: found 0.5 as 'says'"),
        ([ROW | {"note": "x"}], "found 'note'; expected only paper"),
        ([ROW | {"paper": "Choi 2000"}], "found the paper 'Choi 2000'; expected one of Ghinassi"),
        ({}, "found dict; expected a list"),
        (["x"], "row 1: found str; expected an object"),
    ],
)
def test_a_bad_row_gets_a_sentence(rows, sentence, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(papers.RowError, match=f"^mine.json.*{sentence}"):
        papers.read_rows(path)


def test_rows_are_shown_by_paper_and_place():
    other = ROW | {"paper": "Georgescul et al. (2006)", "where": "Figure 1"}
    text = papers.page([other, ROW | {"where": "Table 10"}, ROW | {"where": "Table 9"}])
    places = [text.index(part) for part in ("## Coen", "Table 9", "Table 10", "## Georgescul")]
    assert places == sorted(places)
    assert r"`a \| b`" in text


def test_commands_name_what_is_there():
    """Modules and names that a row's Python imports, files of this checkout, studies of `run`."""
    paths = (BENCHMARKS / "results" / "papers").glob("*.json")
    commands = [row["command"] for path in paths for row in papers.read_rows(path)]
    imports = [
        line for each in commands for line in re.findall(r"from [\w.]+ import [\w, ]+", each)
    ]
    files = [
        name for each in commands for name in re.findall(r"\b(?:tests|benchmarks)/\S+\.py", each)
    ]
    studies = [name for each in commands for name in re.findall(r"reffree run ([\w-]+)", each)]
    assert min(map(len, (imports, files, studies)))
    for line in imports:
        exec(line, {})
    assert [name for name in files if not (BENCHMARKS.parent / name).is_file()] == []
    assert {*studies} <= {*shipped_configs()}
