"""Probabilities of boundaries beside the text: right, complete, and safe to look at."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import reffree
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.result import Result
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior
from reffree.report.boundaries import BAR, NOTICED
from reffree.report.page import MAX_COLUMNS, render_page
from reffree.report.render import render
from reffree.studies import boundaries
from reffree.util.errors import InputError, OptionError, UnknownNameError
from tests.oracles.expected import (
    boundary_probabilities,
    evidence_and_nodes,
    expected_pk,
    information,
    mixture,
)

WORDS = ("bees", "honey", "router", "cable", "ship", "rope")
EVIL = "e\x1b]0;t\x07\x9b2J\u202evil <b>|`</td><script>x()</script>"
STEERING = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def made(*sizes, seed=0, **fields):
    """A corpus of random words, and random vectors for it."""
    rng = np.random.default_rng(seed)
    documents = [
        Document.build(f"d{i}", [" ".join(rng.choice(WORDS, 2)) for _ in range(n)], **fields)
        for i, n in enumerate(sizes)
    ]
    return Corpus(tuple(documents)), [rng.normal(size=(n, 3)) for n in sizes]


def facts_of(result, document="d0"):
    (row,) = result.table("documents").records(document=document)
    return row


def gaps_of(result, document="d0", column="probability"):
    return [row[column] for row in result.table("gaps").records(document=document)]


def own(result, system, document="d0"):
    (row,) = result.table("own").records(document=document, system=system)
    return row


@pytest.mark.parametrize("length", [None, 2.0])
@pytest.mark.parametrize("evidence", ["all", "embedding", "words"])
def test_probabilities_are_those_of_every_segmentation(evidence, length):
    corpus, vectors = made(8, gold=(3, 5), systems={"every": (1,) * 8, "none": (8,)})
    found = boundaries(corpus, embeddings=vectors, evidence=evidence, length=length)
    units = corpus[0].units
    posterior = Posterior(vectors[0], Reading(units), evidence=evidence)
    known = {
        "embeddings": None if evidence == "words" else vectors[0],
        "terms": None if evidence == "embedding" else [unit.split() for unit in units],
        "units": units if evidence == "all" else None,
        "orders": [order.tolist() for order in posterior.orders],
        "n": 8,
        "length": length,
    }
    evidence_table, nodes = evidence_and_nodes(**known)
    mixed = mixture(evidence_table, 8, nodes)
    expected = boundary_probabilities(mixed, 8)
    facts = facts_of(found)
    assert gaps_of(found) == pytest.approx(expected, abs=1e-9)
    assert facts["mean_probability"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert facts["information"] == pytest.approx(information(**known), abs=1e-6)
    assert facts["assumed_segments"] == pytest.approx(
        np.exp(sum(weight * np.log(segments) for segments, weight, _ in nodes)), abs=1e-6
    )
    assert gaps_of(found, column="gold") == [0, 0, 1, 0, 0, 0, 0]
    assert own(found, "gold")["probability"] == pytest.approx(expected[2], abs=1e-9)
    assert own(found, "every")["probability"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert own(found, "none")["probability"] is None
    for system, masses in {"gold": (3, 5), "every": (1,) * 8, "none": (8,)}.items():
        error = own(found, system)["expected_pk"]
        assert error == pytest.approx(expected_pk(masses, mixed), abs=1e-9)


def test_systems_over_documents_count_boundaries_and_gaps_once():
    corpus, vectors = made(5, 20)
    corpus = corpus.with_system("s", {"d0": (1, 1, 3), "d1": (10, 10)})
    found = boundaries(corpus, embeddings=vectors)
    (system,) = found.table("systems").records()
    p, q = gaps_of(found, "d0"), gaps_of(found, "d1")
    assert (system["documents"], system["boundaries"]) == (2, 3)
    assert system["probability"] == pytest.approx((p[0] + p[1] + q[9]) / 3)
    assert system["gap_probability"] == pytest.approx((sum(p) + sum(q)) / (4 + 19))


def test_gold_of_some_documents_and_of_annotators():
    first = Document.build("a", ["x y"] * 5, gold=(2, 3), systems={"s": (1, 4)})
    golds = {"ann": (1, 3), "bob": (3, 1)}
    second = Document.build("b", ["x y", "z", "x", "w"], golds=golds, systems={"s": (4,)})
    found = boundaries(Corpus((first, second)), embeddings=[np.eye(5), np.eye(4, 5)])
    systems = found.table("systems")
    counts = dict(zip(systems.column("system"), systems.column("documents"), strict=True))
    assert counts == {"gold": 1, "s": 2, "gold:ann": 1, "gold:bob": 1}
    assert gaps_of(found, "b", "gold:ann") == [1, 0, 0]
    assert gaps_of(found, "b", "gold:bob") == [0, 0, 1]
    rows = list(csv.DictReader(io.StringIO(render(found, "csv"))))
    cells = [(r["document"], r["at"], r["gold"], r["gold:ann"]) for r in rows[3:5]]
    assert cells == [("a", "4", "0", ""), ("b", "1", "", "1")]
    systems = {"s": (3,), "gold:ann": (3,)}
    clash = Document.build("c", ["x"] * 3, golds={"ann": (3,)}, systems=systems)
    with pytest.raises(InputError, match="a system called 'gold:ann'"):
        boundaries(Corpus((clash,)), embeddings=[np.eye(3)])


def test_only_what_is_asked_for():
    corpus, vectors = made(6, 9, 12, systems=None)
    for name in ("s", "t"):
        corpus = corpus.with_system(name, {d.id: (3, len(d.units) - 3) for d in corpus})
    every = boundaries(corpus, embeddings=vectors)
    some = boundaries(corpus, embeddings=vectors, documents=["d2", "d0"], systems=["t"])
    assert [text.id for text in some.texts] == ["d2", "d0"]
    assert some.table("systems").column("system") == ["t"]
    for document in ("d0", "d2"):
        assert facts_of(some, document) == facts_of(every, document)
        assert own(some, "t", document) == own(every, "t", document)
        for column in ("at", "probability", "t"):
            assert gaps_of(some, document, column) == gaps_of(every, document, column)
    assert some.corpora[0]["documents"] == 2


def test_systems_called_as_columns_are_told_apart():
    corpus, vectors = made(4)
    found = boundaries(corpus.with_system("at", {"d0": (1, 3)}), embeddings=vectors)
    assert gaps_of(found, column="at") == [1, 2, 3]
    assert gaps_of(found, column="system:at") == [1, 0, 0]


def test_only_documents_that_are_asked_for_are_encoded():
    corpus, _ = made(4, 5)
    stages = []

    class Advance:
        def __init__(self, stage, total):
            stages.append((stage, total))

        def __enter__(self):
            return lambda n: None

        def __exit__(self, *_):
            return None

    boundaries(corpus, documents=["d0"], encoder="wordllama", cache=False, progress=Advance)
    assert stages[0] == ("Encoding", len(set(corpus[0].units)))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"documents": ["d7"]}, OptionError, r"the document 'd7'; expected one of .* 2 ids"),
        ({"documents": []}, OptionError, "no document"),
        ({"systems": ["golt"]}, UnknownNameError, "unknown system 'golt'; did you mean 'gold'"),
        ({"length": 0.5}, OptionError, r"length = 0\.5; expected a number, 1 or more"),
        ({"length": float("nan")}, OptionError, "length = nan"),
        ({"evidence": "guess"}, OptionError, "evidence=guess"),
        ({"evidence": "scorer:nowhere"}, InputError, "nowhere"),
    ],
)
def test_what_cannot_be_is_refused(options, error, said):
    corpus, vectors = made(4, 4, gold=(2, 2))
    with pytest.raises(error, match=said):
        boundaries(corpus, embeddings=vectors, **options)


def test_long_documents_are_read_in_steps():
    n = 1030
    rng = np.random.default_rng(0)
    units = [str(word) for word in rng.choice(WORDS, n)]
    document = Document.build("d", units, systems={"s": (501, n - 501), "t": (500, n - 500)})
    found = boundaries(Corpus((document,)), embeddings=[rng.normal(size=(n, 4))])
    probabilities = gaps_of(found, "d")
    assert set(probabilities[0::2]) == {0.0}  # inside a step of two
    # Each system's boundary has the probability at a step's end, itself or next to it.
    assert own(found, "t", "d")["probability"] == probabilities[499]
    assert own(found, "s", "d")["probability"] in (probabilities[499], probabilities[501])
    mean = facts_of(found, "d")["mean_probability"]
    assert mean == pytest.approx(np.mean(probabilities[1::2]))
    assert any("read in steps" in note for note in found.notes)


def odd():
    documents = [
        Document.build("one", ["SingleProcess."], systems={"s": (1,)}),
        Document.build("two", ["A bee.", "A ship."], systems={"s": (1, 1)}),
        Document.build("same", ["Again."] * 12, systems={"s": (6, 6)}),
        Document.build("evil", [EVIL, *WORDS], systems={"s": (1, 6)}),
    ]
    vectors = [np.eye(1, 4), np.eye(2, 4), np.ones((12, 4)), np.arange(28.0).reshape(7, 4)]
    return boundaries(Corpus(tuple(documents)), embeddings=vectors)


def test_no_document_is_lost_and_nothing_is_not_a_number():
    found = odd()
    assert [text.id for text in found.texts] == ["one", "two", "same", "evil"]
    one, two, same = (facts_of(found, name) for name in ("one", "two", "same"))
    assert one["reason"] == two["reason"] == "fewer than three units"
    assert two["information"] is own(found, "s", "two")["expected_pk"] is None
    assert (gaps_of(found, "two"), gaps_of(found, "two", "s")) == ([None], [1])
    assert same["information"] == pytest.approx(0.0, abs=1e-9)  # the prior, and no more
    assert gaps_of(found, "same") == pytest.approx(gaps_of(found, "same")[::-1])
    assert found.notes == ("2 documents without a posterior: fewer than three units.",)
    plain = json.loads(render(found, "json"), parse_constant=pytest.fail)
    schema = json.loads((files("reffree") / "report" / "result.schema.json").read_text())
    jsonschema.validate(plain, schema)
    read = Result.from_dict(plain)
    assert read == found
    assert render_page(read) == render_page(found)
    shown = render(read, "table")
    assert "1 unit; no posterior: fewer than three units." in shown
    for page in (shown, render_page(found)):
        assert not re.search(r"\bnan\b", page, re.IGNORECASE)


@pytest.mark.parametrize("format", ["table", "json", "csv", "html", "md", "latex"])
def test_text_of_others_stays_text(format):
    result = odd()
    if format == "html":
        page = render_page(result)
        assert not STEERING.search(page)
        assert page.count("<script") == 2  # the page's own, and its data
        assert r"e\x1b]0;t\x07\x9b2J\u202evil &lt;b&gt;|`&lt;/td&gt;" in page
    else:
        shown = render(result, format, width=100)
        assert not STEERING.search(shown)
        if format == "table":
            assert r"e\x1b]0;t\x07\x9b2J\u202evil <b>" in shown


def test_a_corpus_without_systems():
    corpus, vectors = made(6)
    found = boundaries(corpus, embeddings=vectors)
    assert found.table("systems").rows == ()
    likely = sum(p >= 0.5 for p in gaps_of(found))
    assert found.verdict == (f"A boundary is more likely than not in {likely} of 5 gaps.",)
    shown = render(found, "table")
    assert "expected_pk:" not in shown.replace("metrics:", "")
    assert "system" not in shown
    assert 'href="#tables"' not in render_page(found)


def drawn(probabilities, systems=(), units=None):
    """The lines of a document with these probabilities, below its title."""
    corpus, vectors = made(len(probabilities) + 1)
    for name, masses in dict(systems).items():
        corpus = corpus.with_system(name, {"d0": masses})
    found = boundaries(corpus, embeddings=vectors)
    gaps = found.table("gaps")
    rows = [(*row[:2], p, *row[3:]) for row, p in zip(gaps.rows, probabilities, strict=True)]
    tables = [replace(t, rows=tuple(rows)) if t is gaps else t for t in found.tables]
    (text,) = found.texts
    text = replace(text, units=units or text.units)
    lines = render(replace(found, tables=tuple(tables), texts=(text,)), "table").splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r" *1 ", line))
    return lines[start : lines.index("", start)]


def test_a_bar_is_as_long_as_its_boundary_is_likely():
    lines = drawn([0.0, 0.04, 0.05, 0.5, 0.999, 1.0], units=tuple("abcdefg"))
    half = "█" * (BAR // 2)
    empty = " " * (BAR - len(half))
    assert lines[0] == f"1 {' ' * BAR}      a"
    assert lines[1] == f"2 {' ' * BAR}      b"
    assert lines[2].split() == ["3", "▌", "c"]
    assert lines[3].split()[2:] == [".05", "d"]
    assert lines[4] == f"5 {half}{empty} .50  e"
    assert lines[6] == f"7 {'█' * BAR} 1.0  g"


def test_letters_mark_the_systems():
    """The best system comes first: here it is t."""
    lines = drawn([0.5] * 3, {"s": (1, 3), "t": (1, 2, 1)})
    assert [line.split(" ")[-3] for line in lines] == ["··", "ab", "··", "a·"]


def test_many_systems_are_counted():
    systems = {f"s{i}": (2, 2) if i % 2 else (1, 3) for i in range(30)}
    lines = drawn([0.5] * 3, systems)
    assert [line.split(".50")[-1].split()[0] for line in lines[1:3]] == ["15", "15"]
    corpus, vectors = made(4)
    for name, masses in systems.items():
        corpus = corpus.with_system(name, {"d0": masses})
    found = boundaries(corpus, embeddings=vectors)
    assert "how many systems have one there" in render(found, "table")
    page = render_page(found)
    assert page.count('class="name"') == MAX_COLUMNS
    assert f"The first {MAX_COLUMNS} of 30 systems have a column" in page


def test_stretches_where_nothing_happens_are_folded():
    quiet = NOTICED / 2
    probabilities = [quiet] * 10 + [0.3] + [quiet] * 3 + [0.3] + [quiet] * 4
    lines = drawn(probabilities, {"s": (18, 2)})
    numbers = [line.split()[0] for line in lines]
    # First and last are there, and both sides of what happens; three on end are one line.
    assert numbers == ["1", "⋮", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"]
    assert lines[1].split(maxsplit=1)[1] == "9 units, none above 0.025"


def test_a_terminal_says_how_many_follow(monkeypatch):
    corpus, vectors = made(*[12] * 6)
    found = boundaries(corpus, embeddings=vectors)
    monkeypatch.setattr("reffree.report.boundaries.SCREEN_LINES", 40)
    shown = render(found, "table", width=80)
    assert re.findall(r"^d\d", shown, re.MULTILINE) == ["d0", "d1"]
    assert "4 further documents not drawn here" in shown
    assert max(map(len, shown.splitlines())) <= 80
    monkeypatch.setattr("reffree.report.boundaries.SCREEN_LINES", 1)
    first = render(found, "table", width=80)
    assert re.findall(r"^d\d", first, re.MULTILINE) == ["d0"]
    assert "further" not in render(found, "table")
    chosen = boundaries(corpus, embeddings=vectors, documents=[d.id for d in corpus])
    assert "further" not in render(chosen, "table", width=80)


def test_page_needs_nothing_else(monkeypatch):
    corpus, vectors = made(6, 8, gold=None)
    corpus = corpus.with_system("gold", {d.id: (2, len(d.units) - 2) for d in corpus})
    page = render_page(boundaries(corpus, embeddings=vectors))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert " style=" not in page
    assert not re.search(r'\b(?:src|href|action)="(?!#|data:,)', page)
    assert page.count("<rect") == 5 + 7
    assert page.count("<hr>") == 2
    assert page.count("<details open>") == 1
    monkeypatch.setattr("reffree.report.page.MAX_CELLS", 7)
    assert "Shown: 1 of 2 documents." in render_page(boundaries(corpus, embeddings=vectors))
    monkeypatch.setattr("reffree.report.page.MAX_UNITS", 4)
    short = render_page(boundaries(corpus, embeddings=vectors))
    assert "d0: the first 4 of 6 units are shown." in short
    assert short.count("<rect") == 3


def test_page_opens_on_the_document_where_systems_differ_most():
    corpus, vectors = made(6, 8, 8)
    for name, places in {"a": (3, 3, 4), "b": (3, 2, 5), "c": (3, 6, 5)}.items():
        cuts = zip(corpus, places, strict=True)
        corpus = corpus.with_system(name, {d.id: (at, len(d.units) - at) for d, at in cuts})
    result = boundaries(corpus, embeddings=vectors)
    page = render_page(result)
    titles = re.findall(r"<details( open)?>\s*<summary><bdi>(\w+)", page)
    assert titles == [(" open", "d1"), ("", "d0"), ("", "d2")]
    # Each of three pairs differs at both of its boundaries, of 7 gaps.
    assert "two of them at 28.6% of its gaps" in page
    same = corpus.only_systems(["a"])
    assert "differ most" not in render_page(boundaries(same, embeddings=vectors))


def test_systems_stand_best_first_unless_they_are_named():
    corpus, vectors = made(9, 9)
    for name, at in {"x": 2, "y": 4, "z": 7}.items():
        corpus = corpus.with_system(name, {d.id: (at, 9 - at) for d in corpus})
    found = boundaries(corpus, embeddings=vectors)
    errors = found.table("systems").column("expected_pk")
    assert errors == sorted(errors)
    order = found.table("systems").column("system")
    assert found.table("own").column("system") == order * 2
    assert [*found.texts[0].systems] == order
    for named in (order, order[::-1]):
        chosen = boundaries(corpus, embeddings=vectors, systems=named)
        assert chosen.table("systems").column("system") == named
        assert [*chosen.texts[0].systems] == named


@pytest.fixture
def given(write_corpus, tmp_path):
    corpus, vectors = made(6, 2, 9)
    np.savez(tmp_path / "own.npz", **{d.id: x for d, x in zip(corpus, vectors, strict=True)})
    documents = [
        {"id": d.id, "units": list(d.units), "systems": {"s": [1, len(d.units) - 1]}}
        for d in corpus
    ]
    return [write_corpus(documents), "--embeddings", "own.npz"]


def test_the_command_in_every_format(run, given, tmp_path):
    done = run("boundaries", *given)
    assert done.returncode == 0, done.stderr
    assert all(f"d{i}\n" in done.stdout for i in range(3))
    assert "metrics:expected_pk" in done.stdout
    done = run("boundaries", *given, "-f", "json", "--length", "3")
    found = Result.from_dict(json.loads(done.stdout, parse_constant=pytest.fail))
    assert [len(gaps_of(found, f"d{i}")) for i in range(3)] == [5, 1, 8]
    assert found.signature.startswith("metrics:expected_pk(length=3.0")
    assert found.settings["length"] == 3.0
    assert "reffree: note: 1 document without a posterior" in done.stderr
    done = run("boundaries", *given, "-o", "gaps.csv", "--document", "d2")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "gaps.csv").read_text())))
    found = [(row["document"], row["at"], row["s"]) for row in rows[:2]]
    assert found == [("d2", "1", "1"), ("d2", "2", "0")]
    assert 0 < float(rows[0]["probability"]) < 1
    assert run("boundaries", *given, "-f", "html").stdout.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--document", "d9"], "found the document 'd9'; expected one of the corpus's 3 ids"),
        (["--only", "t"], "unknown system 't'"),
        (["--length", "0"], "found length = 0.0; expected a number, 1 or more"),
        (["--evidence", "guess"], "found evidence=guess"),
        (["--system", "s"], "expected NAME=FILE"),
        (["-f", "xml"], "'xml' is not one of"),
    ],
)
def test_the_command_says_no(run, given, arguments, said):
    done = run("boundaries", *given, *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_gold_has_likelier_boundaries_than_other_placements(run):
    done = run("boundaries", files("reffree") / "resources" / "demo.jsonl", "-f", "json")
    systems = Result.from_dict(json.loads(done.stdout)).table("systems").records()
    found = {each["system"]: each for each in systems}
    gold = found["gold"]["probability"]
    assert gold > 1.5 * found["gold"]["gap_probability"]
    assert all(gold > found[name]["probability"] for name in ("near_miss", "even", "random"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["texts"][0]["units"].pop(),
        lambda data: data["texts"][0].update(id="other"),
        lambda data: data["tables"][1]["rows"].pop(),
        lambda data: data["tables"].pop(1),
        lambda data: data["tables"][3]["fields"][2].update(name="other"),
    ],
)
def test_damaged_maps_are_refused(damage):
    corpus, vectors = made(4, gold=(2, 2))
    data = json.loads(render(boundaries(corpus, embeddings=vectors), "json"))
    damage(data)
    for format in ("table", "html"):
        with pytest.raises(reffree.ReffreeError, match=r"damaged results|unknown table"):
            render(Result.from_dict(data), format)
