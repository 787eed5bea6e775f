"""Splitters scored as systems, sizes of their chunks, and a search of their parameters."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import chonkie
import numpy as np
import pytest

import reffree
from reffree.chunkers.libraries import ChonkieSemantic
from reffree.chunkers.registry import CHUNKERS
from reffree.data.corpus import Corpus, Document
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.evaluate.result import Result, load_result
from reffree.formats import load
from reffree.report.charts import charts_of
from reffree.studies import chunks
from reffree.util.errors import InputError, ReffreeError
from reffree.util.naming import settings_of
from tests.chunkers.test_libraries import embed
from tests.chunkers.test_sizes import MARKDOWN
from tests.chunkers.texts import PROSE, unit_spans
from tests.helpers import invoke, refusal, rows

TUTORIAL = Path(reffree.__file__).parents[1] / "docs" / "tutorials" / "chunkers.md"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "a.txt").write_text(PROSE + "\n")
    (tmp_path / "b.txt").write_bytes(PROSE.replace("\n", "\r\n").encode())
    (tmp_path / "a.md").write_text(MARKDOWN)
    (tmp_path / "own_cutter.py").write_text("def cut(text):\n    return text.split('\\n\\n')\n")
    rng = np.random.default_rng(0)
    vectors = {name: rng.normal(size=(10, 4)) for name in ("a", "b", "stdin")}
    np.savez(tmp_path / "v.npz", a=vectors["a"], b=vectors["b"])
    np.savez(tmp_path / "a.npz", a=vectors["a"])
    np.savez(tmp_path / "stdin.npz", stdin=vectors["stdin"])
    n = len(unit_spans(MARKDOWN))
    np.savez(tmp_path / "m.npz", a=rng.normal(size=(n, 4)))
    return tmp_path


def command(*arguments, stdin=None):
    """Run it; return its result as read from JSON, and what it said beside."""
    done = invoke("chunks", *arguments, "-f", "json", stdin=stdin)
    if done.exception is not None:
        raise done.exception
    return Result.from_dict(json.loads(done.stdout)), done


OWN = ("--chunker", "own_cutter:cut", "--embeddings", "v.npz")


def test_chunkers_are_scored_like_systems(files):
    arguments = ("--chunker", "chonkie-token:chunk_size=90", "--null", 20, "--save", "c.jsonl")
    metrics = ("-m", "arp_pair", "-m", "silhouette")
    result, done = command("a.txt", "b.txt", *OWN, *arguments, *metrics)
    found = rows(result, "systems")
    assert [row["system"] for row in found] == ["own_cutter:cut", "chonkie-token:chunk_size=90"]
    assert result.corpora[0]["units"] == 20
    assert found[0]["segments"] == 6
    notes = "\n".join(result.notes)
    assert "b.txt, line 1: found a Windows line end (CRLF)" in notes
    own, token = (rows(result, "starts", chunker=row["system"])[0] for row in found)
    assert (own["starts"], own["inside"], own["merged"]) == (4, 0, 0)
    assert (token["starts"], token["inside"], token["furthest"]) == (4, 1, 7)
    assert f"|chunkers:chonkie@{chonkie.__version__}" in result.signature
    assert "|sentences:sentencex@" in result.signature
    for note in result.notes:
        assert note in done.stderr

    saved = load(files / "c.jsonl")
    assert saved[0].systems["own_cutter:cut"].masses == (4, 3, 3)
    assert saved[1].units == saved[0].units
    from reffree.encoders.embed import from_file
    from reffree.evaluate.score import score

    vectors = from_file(saved, files / "v.npz")
    again = score(saved, embeddings=vectors, metrics=["arp_pair", "silhouette"], null=20)
    assert result.verdict[: len(again.verdict)] == again.verdict
    for row, other in zip(found, again.systems, strict=True):
        for name, cell in other.metrics.items():
            assert row[name] == pytest.approx(cell.value, abs=1e-9)
            assert row[f"{name}_ci"] == (None if cell.ci is None else pytest.approx(cell.ci))
            assert row[f"{name}_p"] == pytest.approx(cell.null.p)


def test_standard_input_and_further_systems(files):
    (files / "gold.jsonl").write_text('{"id": "stdin", "segmentation": [4, 3, 3]}\n')
    result, _ = command(
        *("-", "--chunker", "own_cutter:cut", "--embeddings", "stdin.npz"),
        *("--system", "gold=gold.jsonl", "-m", "pk", "-m", "arp_pair"),
        stdin=PROSE,
    )
    values = {row["system"]: row["pk"] for row in rows(result, "systems")}
    assert values == {"gold": 0, "own_cutter:cut": 0}


def test_texts_in_memory_and_their_language(files):
    np.savez(files / "de.npz", de=np.eye(2))
    text = {"de": "Am 3. Mai kam er.\n\nAlles war gut."}
    given = {"language": "de", "metrics": ["arp_pair"], "embeddings": "de.npz"}
    result = chunks(text, chunkers=["own_cutter:cut"], **given)
    assert result.corpora[0]["units"] == 2
    assert result.signature.split("|")[-1].startswith("sentences:sentencex@")
    assert result.signature.endswith("(de)")


def test_files_of_the_same_name_are_kept_apart(files):
    (files / "sub").mkdir()
    (files / "sub" / "a.txt").write_text(PROSE)
    np.savez(files / "two.npz", **{"a.txt": np.eye(10), "sub/a.txt": np.eye(10)})
    own = ("--chunker", "own_cutter:cut", "--embeddings", "two.npz", "-m", "arp_pair")
    command("a.txt", "sub/a.txt", *own, "--save", "c.jsonl")
    assert [document.id for document in load(files / "c.jsonl")] == ["a.txt", "sub/a.txt"]


def test_sizes_and_what_is_cut_are_tables(files):
    arguments = ("a.md", "--embeddings", "m.npz", "--chunker", "chonkie-token:chunk_size=120")
    arguments += ("--chunker", "langchain-recursive:chunk_size=120,chunk_overlap=40")
    arguments += ("-m", "arp_pair")
    result, _ = command(*arguments)
    (token,) = rows(result, "sizes", chunker="chonkie-token:chunk_size=120")
    assert token["characters_max"] == token["characters_p95"] == 120
    assert token["tokens_p95"] is None  # no encoder counts
    (token,) = rows(result, "cut", chunker=token["chunker"])
    assert (token["code"], token["tables"], token["headings"], token["lists"]) == (1, 1, 2, 1)
    assert (token["sentences"], token["code_cut"]) == (6, 1)
    _, overlapping = sorted(rows(result, "starts"), key=lambda row: row["overlapping"])
    assert overlapping["overlapping"] > 0
    assert overlapping["shared"] <= 40
    assert "tables  cut" in invoke("chunks", *arguments).stdout
    plain = invoke("chunks", "a.txt", *OWN[:2], "--embeddings", "a.npz", "-m", "arp_pair").stdout
    assert "sentences" in plain
    assert "tables" not in plain


def test_tokens_are_those_of_the_encoder(files):
    from transformers import AutoTokenizer

    from reffree.encoders.models import find_model

    result, _ = command("a.md", "--chunker", "chonkie-token", "-m", "arp_pair")
    (row,) = rows(result, "sizes")
    tokenizer = AutoTokenizer.from_pretrained(find_model("minilm").path)
    assert row["tokens_max"] == len(tokenizer(MARKDOWN.strip())["input_ids"])


def test_chunkers_of_one_size(files):
    chunkers = ("--chunker", "langchain:recursive", "--chunker", "chonkie:token")
    given = ("--equal-size", 80, "--embeddings", "a.npz", "-m", "arp_pair")
    result, _ = command("a.txt", *chunkers, *given)
    said = ": 86 characters a chunk, where 80 were asked for."
    assert result.notes[:2] == tuple(n + said for n in result.table("systems").column("system"))
    said = refusal(chunks, ["a.txt"], chunkers=["own_cutter:cut"], equal_size=9)
    assert "own_cutter:cut, which has no size to choose" in said


def test_two_sizes_of_one_splitter_are_one_at_equal_size(files):
    chunkers = [f"langchain:recursive,chunk_size={size}" for size in (50, 90)]
    result = chunks(["a.txt"], chunkers, equal_size=80, embeddings="a.npz", metrics=["arp_pair"])
    (name,) = result.table("systems").column("system")
    assert f"langchain-recursive:chunk_size=90 is {name}, too, at this size" in str(result.notes)


def test_folders_and_patterns(files):
    (files / "docs" / "more").mkdir(parents=True)
    (files / "docs" / "a.md").write_text(MARKDOWN)
    (files / "docs" / "more" / "b.rst").write_text(PROSE)
    (files / "docs" / "more" / "empty.txt").write_text("\n")
    (files / "docs" / "logo.png").write_bytes(b"\x89PNG")
    (files / "docs" / ".hidden.md").write_text("no")
    n = len(unit_spans(MARKDOWN))
    np.savez("docs.npz", a=np.random.default_rng(0).normal(size=(n, 4)), b=np.eye(10)[:, :4])
    more = (
        "--chunker",
        "chonkie-token:chunk_size=90",
        "--embeddings",
        "docs.npz",
        "-m",
        "arp_pair",
    )
    for texts in (["docs"], ["docs/**/*.md", "docs/**/*.rst", "docs/more/empty.txt"]):
        result, _ = command(*texts, *more, "--save", "c.jsonl")
        assert [document.id for document in load("c.jsonl")] == ["a", "b"]
        assert "Without text, left out: empty." in result.notes
        is_noted = any("docs: found 1 file of another kind" in note for note in result.notes)
        assert is_noted == (texts == ["docs"])
    assert result.texts[0].systems["chonkie-token:chunk_size=90"]


@pytest.mark.parametrize(
    ("texts", "part"),
    [
        ("docs/**/*.org", "docs/**/*.org: found no file of this pattern"),
        ("nothing", "nothing: found a folder without any"),
        ("gone.md", "gone.md: found no file of this name"),
        ("scan.pdf", "scan.pdf: found a .pdf file that cannot be read"),
        ("logo.png", "logo.png: found what looks like a PNG image"),
        ([3], "no text"),
    ],
)
def test_what_is_no_text_is_refused_at_once(files, texts, part):
    (files / "nothing").mkdir()
    (files / "nothing" / "a.py").write_text("x = 1\n")
    (files / "scan.pdf").write_bytes(b"%PDF-1.4 nothing")
    (files / "logo.png").write_bytes(b"\x89PNG")
    assert part in refusal(chunks, texts, ["chonkie"])


def by_lines(text):
    return [line for line in text.split("\n\n") if line]


def test_splitters_of_libraries_and_functions(files):
    """Objects, a function, a name; texts as strings; from Python."""
    import langchain_text_splitters as langchain
    from semantic_text_splitter import TextSplitter

    np.savez("two.npz", **{"text 1": np.eye(10), "text 2": np.eye(10)})
    splitters = [
        langchain.RecursiveCharacterTextSplitter(chunk_size=50, chunk_overlap=30),
        langchain.RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0),
        chonkie.SentenceChunker(tokenizer="character", chunk_size=100, chunk_overlap=0),
        TextSplitter(100),
        TextSplitter(60),
        by_lines,
        "chonkie:token,chunk_size=90",
    ]
    result = chunks([PROSE, PROSE], splitters, embeddings="two.npz", metrics=["arp_pair"])
    named = result.settings["chunkers"]
    assert named[:3] == [
        "RecursiveCharacterTextSplitter:chunk_size=50,chunk_overlap=30",
        "RecursiveCharacterTextSplitter:chunk_size=90,chunk_overlap=0",
        "SentenceChunker:chunk_size=100,chunk_overlap=0",
    ]
    assert named[3:5] == ["TextSplitter", "TextSplitter (2)"]
    assert named[5].endswith("test_chunks:by_lines")
    own = {row["system"]: row["segments"] for row in rows(result, "systems")}
    assert own[named[5]] == 6
    counts = {row["chunker"]: row["chunks"] for row in rows(result, "sizes")}
    assert counts[named[0]] == 2 * len(splitters[0].split_text(PROSE))
    assert counts[named[4]] == 2 * len(TextSplitter(60).chunks(PROSE))
    (overlapping,) = rows(result, "starts", chunker=named[0])
    assert 0 < overlapping["shared"] <= 30
    assert "<table" in result._repr_html_()
    Result.from_dict(json.loads(json.dumps(result.to_dict())))


def test_objects_that_are_no_chunkers(files):
    assert "int as a chunker" in refusal(chunks, [PROSE], [3])

    class Odd:
        def chunk(self, text):
            return [3]

    assert "chunks of type int" in refusal(chunks, [PROSE], [Odd()])


def test_llamaindex_objects(files):
    reason = "needs pip install 'reffree[llamaindex]'"
    parsers = pytest.importorskip("llama_index.core.node_parser", reason=reason)
    np.savez("one.npz", **{"text 1": np.eye(10)})
    sentences = parsers.SentenceSplitter(chunk_size=24, chunk_overlap=8)
    splitters = [sentences, parsers.MarkdownNodeParser()]
    result = chunks(PROSE, splitters, embeddings="one.npz", metrics=["arp_pair"])
    assert len(rows(result, "systems")) == 2


def test_a_limit_for_ci(files):
    arguments = ("a.txt", *OWN[:2], "--embeddings", "a.npz", "-m", "arp_pair", "-m", "placement")
    passed = invoke("chunks", *arguments, "--fail-under", "arp_pair=2")
    assert passed.exit_code == 0, passed.output
    failed = invoke("chunks", *arguments, "--fail-under", "arp_pair=-2")
    assert failed.exit_code == 3
    assert "reffree: worse: system 'own_cutter:cut': arp_pair is " in failed.stderr
    assert failed.stdout.splitlines()[0] == passed.stdout.splitlines()[0]
    unknown = invoke("chunks", *arguments, "--fail-under", "pk=0.4")
    assert unknown.exit_code == 2
    result = chunks(["a.txt"], [by_lines], embeddings="a.npz", fail_under={"placement": 1.1})
    assert len(result.settings["worse"]) == 1
    from reffree.cli import chunks as module

    assert module.METRICS == sys.modules["reffree.studies.chunks"].METRICS


def test_chunkers_are_ranked_by_placement_of_sizes_in_characters(topics, monkeypatch):
    monkeypatch.chdir(topics)
    specs = [f"chonkie:token,chunk_size={size}" for size in (400, 150)]
    specs = ["langchain:chunk_size=400", *specs]
    result = chunks(["t0.txt", "t1.txt", "t2.txt"], specs, embeddings="v.npz")
    found = {row["system"]: row for row in rows(result, "systems")}
    order = list(found)
    assert order[0] == "langchain-recursive:chunk_size=400"
    assert result.verdict[0].startswith(f"{order[0]} is best of 3 systems by placement: ")
    assert found[order[0]]["placement"] > 0.8
    assert [row["chunker"] for row in rows(result, "sizes")] == order
    assert "placement(evidence=all,draws=100,sizes=characters)" in result.signature
    assert result.table("curve").shown is False


def test_a_corpus_is_no_prose(files):
    units = ["One here.", "Two  there.", "Three."]
    own = {"own": [1, 2]}
    corpus = Corpus(tuple(Document.build(f"d{i}", units, gold=[2, 1], systems=own) for i in "ab"))
    reffree.save(corpus, files / "c.jsonl")
    np.savez(files / "w.npz", da=np.eye(3), db=np.eye(3))
    arguments = ("--chunker", "langchain-recursive:chunk_size=22", "--embeddings", "w.npz")
    result, _ = command("c.jsonl", *arguments, "-m", "pk", "--save", "s.jsonl")
    assert result.corpora[0]["units"] == 6
    systems = [row["system"] for row in rows(result, "systems")]
    assert systems == ["gold", "langchain-recursive:chunk_size=22"]
    assert "The corpus's own systems are not scored here: reffree score does that." in result.notes
    assert "|sentences:given|" in result.signature
    saved = load(files / "s.jsonl")
    assert saved[0].units == corpus[0].units
    assert saved[0].systems["langchain-recursive:chunk_size=22"].masses == (2, 1)


def test_json_under_another_name_is_refused(files):
    (files / "c.txt").write_text('{"id": "a", "units": ["One.", "Two."]}\n')
    with pytest.raises(InputError, match=r"c.txt: found JSON, one object a line; expected plain"):
        command("c.txt", "--chunker", "chonkie-token")
    (files / "code.txt").write_text("{ braces } are fine. So is this.\n")
    np.savez(files / "x.npz", code=np.eye(2))
    command("code.txt", "--chunker", "chonkie-token", "--embeddings", "x.npz", "-m", "arp_pair")


class CountingEncoder:
    """Stands in for a model, and hands its vectors out last first."""

    spec = EncoderSpec("counting", "1", "none", "none", "float32", None, "test")

    def stream(self, texts):
        assert len(set(texts)) == len(texts)
        for position in reversed(range(len(texts))):
            yield EncodedTexts([position], embed([texts[position]]), [1])


def test_semantic_chunks_take_the_encoder_that_scores(files, monkeypatch):
    opened = []

    def open_counting(options, **how):
        opened.append(options)
        return CountingEncoder()

    for home in ("reffree.studies.chunks", "reffree.encoders.opening"):
        monkeypatch.setattr(sys.modules[home], "open_encoder", open_counting)
    module = sys.modules["reffree.studies.chunks"]
    monkeypatch.setattr(module, "_token_counter", lambda _: (None, None))  # it has no tokens
    chunkers = ["chonkie-semantic", "chonkie-semantic:threshold=0.5"]
    given = {"encoder": "some/model", "metrics": ["arp_pair"]}
    result = chunks({"long": PROSE * 5}, chunkers=chunkers, **given)
    expected = len(ChonkieSemantic(embed=embed)(PROSE * 5))
    assert rows(result, "systems")[0]["segments"] == expected > 2
    assert any("cuts by the encoder that scores it" in note for note in result.notes)
    assert {each.encoder for each in opened} == {"some/model"}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--chunker", "own_cutter:cut"], "Missing argument 'TEXT...'"),
        (["a.txt", *OWN, "--save", "-"], "--save -"),
        (["a.txt", *OWN, "--save", "a.txt"], "this is an input"),
        (["a.txt", *OWN, "--save", "s.json", "-o", "s.json"], "this is also -o"),
        (["a.txt", *OWN, "-o", "a.txt"], "this is an input"),
        (["a.txt", *OWN, "--encoder", "minilm"], "exclude each other"),
        (["a.txt", *OWN, "--system", "x"], "expected NAME=FILE"),
    ],
)
def test_usage_errors(files, arguments, part):
    before = (files / "a.txt").read_bytes()
    done = invoke("chunks", *arguments)
    assert done.exit_code == 2
    assert part in done.stderr
    assert (files / "a.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("texts", "keywords", "part"),
    [
        (["a.txt"], {}, "no chunker"),
        ([], {"chunkers": ["chonkie"]}, "no text"),
        (["-", "-"], {"chunkers": ["chonkie"]}, "standard input (-) twice"),
        (["a.txt"], {"chunkers": ["chonkie", "chonkie:recursive"]}, "chonkie:recursive twice"),
        (["a.txt"], {"chunkers": ["chunkie"]}, "unknown chunker 'chunkie'"),
        (["a.txt"], {"chunkers": ["chonkie"], "metrics": ["no"]}, "unknown metric 'no'"),
        (
            ["a.txt"],
            {"chunkers": ["chonkie-semantic"], "embeddings": "v.npz"},
            "no vectors for what chonkie-semantic",
        ),
        (["empty.txt"], {"chunkers": ["chonkie"]}, "empty.txt"),
        (["latin.txt"], {"chunkers": ["chonkie"]}, "latin.txt, line 1"),
    ],
)
def test_what_is_refused(files, texts, keywords, part):
    (files / "empty.txt").write_bytes(b" \n\n ")
    (files / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ReffreeError) as error:
        chunks(texts, **keywords)
    assert part in str(error.value)


def test_help_and_tutorial_say_what_scores_do_not_and_list_every_chunker():
    text = " ".join(invoke("chunks", "--help").stdout.split())
    for said in (text, TUTORIAL.read_text()):
        assert "do not predict retrieval quality" in said
        assert "2505.02171" in said
    for name, kind in CHUNKERS.items():
        splitter = name.partition("-")[2]
        assert f":{splitter}" in text or name in text.replace("- ", "-")
        options = ", ".join(f"{key}={value}" for key, value in settings_of(kind()).items())
        assert f"| `{name}` | {f'`{options.lower()}`' if options else ''} |" in TUTORIAL.read_text()


def test_the_tutorials_tests_pass(tmp_path):
    title, body = re.search(
        r'```python title="(.*?)"\n(.*?)```', TUTORIAL.read_text(), re.S
    ).groups()
    (tmp_path / title).write_text(body)
    assert invoke("demo", "--save", tmp_path / "book.txt").exit_code == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", title]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout


def planted(n_topics=14, seed=0):
    """Text whose every topic is a paragraph of 399 characters, and vectors by topic."""
    rng = np.random.default_rng(seed)
    letters = list("bcdfgklmnprstv")
    paragraphs, vectors = [], []
    for _ in range(n_topics):
        words = ["{}a{}e{}i".format(*rng.choice(letters, 3)) for _ in range(6)]
        lines = [" ".join(rng.choice(words, 7)).capitalize() + "." for _ in range(8)]
        paragraphs.append(" ".join(lines))
        centre = rng.normal(size=24)
        vectors += [centre + 0.4 * rng.normal(size=24) for _ in lines]
    return "\n\n".join(paragraphs), np.array(vectors)


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """A folder with three texts of planted topics and their vectors."""
    folder = tmp_path_factory.mktemp("topics")
    vectors = {}
    for i in range(3):
        text, vectors[f"t{i}"] = planted(seed=i)
        (folder / f"t{i}.txt").write_text(text)
        assert len(unit_spans(text)) == len(vectors[f"t{i}"])
    np.savez(folder / "v.npz", **vectors)
    return folder


def test_the_planted_size_is_found(topics, monkeypatch):
    monkeypatch.chdir(topics)
    files = ("t0.txt", "t1.txt", "t2.txt", "--embeddings", "v.npz")
    values = ("--values", "chunk_size=100,200,400,800,1600,3200")
    for metric, choose in (("expected_pk", min), ("placement", max)):
        more = ("-m", metric, "-m", "granularity", "-o", "found.json")
        done = invoke("chunks", *files, "--chunker", "langchain", *values, *more)
        assert done.exit_code == 0, done.output
        result = load_result("found.json")
        found = {row["setting"]: row["value"] for row in rows(result, "curve")}
        assert len(found) == 6
        assert found[result.settings["best"]] == choose(found.values())
        # Half a topic is well placed, too; how many there are says the other score.
        planted_size = found["langchain-recursive:chunk_size=400"]
        assert planted_size == pytest.approx(choose(found.values()), abs=0.02)
        assert abs(planted_size - found["langchain-recursive:chunk_size=1600"]) > 0.05
        sizes = [row["size"] for row in rows(result, "curve")]
        assert sizes == sorted(sizes)
        (chart,) = charts_of(result)
        assert len(chart.rows) == 6
    assert "is nearest to as many chunks as the text suggests" in " ".join(result.verdict)


def test_what_is_finer_than_units_is_not_chosen(topics, monkeypatch):
    monkeypatch.chdir(topics)
    values = ["chunk_size=12,200,400,800"]
    texts = ["t0.txt", "t1.txt", "t2.txt"]
    result = chunks(texts, ["langchain"], values=values, embeddings="v.npz")
    fine = "langchain-recursive:chunk_size=12"
    assert f"Finer than sentences, so that placement cannot judge it: {fine}." in result.verdict
    assert result.settings["best"] != fine
    assert "of 3 settings" in result.verdict[0]


def test_ten_sizes_without_those_that_cut_alike(topics, monkeypatch):
    monkeypatch.chdir(topics)
    (topics / "one").mkdir(exist_ok=True)
    np.savez("one/v.npz", t0=np.load("v.npz")["t0"])
    chunkers = ["langchain:recursive", "chonkie:token,tokenizer=word"]
    given = {"metrics": ["expected_pk:length=6"], "embeddings": "one/v.npz"}
    result = chunks(["t0.txt"], chunkers=chunkers, values=["size"], **given)
    alike = "langchain-recursive:chunk_size=600 cuts the texts as"
    assert any(note.startswith(alike) for note in result.notes)
    settings = result.table("curve").column("setting")
    assert "chonkie-token:chunk_size=30,tokenizer=word" in settings
    assert not any("chunk_size=600" in each for each in settings if "recursive" in each)
    assert "expected_pk:length=6" in result.verdict[0]


def test_the_end_of_a_range_is_told(topics, monkeypatch):
    monkeypatch.chdir(topics)
    texts, vectors = [f"t{i}.txt" for i in range(3)], {"embeddings": "v.npz"}
    for sizes, end in (("400,800,1600", "finest"), ("100,200,400", "coarsest")):
        values = [f"chunk_size={sizes}"]
        by = ["expected_pk"]
        result = chunks(texts, chunkers=["langchain"], values=values, metrics=by, **vectors)
        assert result.verdict[0].startswith("No optimum within the range: the lowest expected_pk")
        assert f"is at its {end} end" in result.verdict[0]
    values = ["chunk_size=100,200,400,800", "chunk_overlap=0,50"]
    result = chunks(texts, chunkers=["langchain"], values=values, metrics=by, **vectors)
    assert "is best: the lowest expected_pk is" in result.verdict[0]
    n_alike = sum("cuts the texts as" in note for note in result.notes)
    assert len(result.table("curve").rows) == 8 - n_alike > 4


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"values": ["chunk_size"]}, "expected OPTION=V,V,…"),
        ({"values": ["chunk_size=1,,2"]}, "expected OPTION=V,V,…"),
        ({"values": ["chunk_size=1", "chunk_size=2"]}, "values of chunk_size twice"),
        ({"values": ["size=1,2"]}, "the option 'size=1' of langchain-recursive"),
        ({"values": ["chunk_size=0"]}, "chunk_size = 0"),
        ({"values": ["size"], "chunkers": ["docling:hierarchical"]}, "which has no size to choose"),
        (
            {"values": ["size"], "chunkers": ["langchain:chunk_overlap=3300,chunk_size=4000"]},
            "no size that goes with",
        ),
        ({"values": ["size"], "equal_size": 9}, "values beside an equal size"),
        ({"values": ["size"], "chunkers": ["os.path:split"]}, "a function; expected a chunker"),
    ],
)
def test_values_that_are_none(keywords, said):
    keywords = {"chunkers": ["langchain"], **keywords}
    assert said in refusal(chunks, {"t": "One. Two. Three."}, **keywords)


def test_texts_too_short_are_not_searched(tmp_path):
    np.savez(tmp_path / "v.npz", t=np.eye(2))
    vectors = str(tmp_path / "v.npz")
    keywords = {"chunkers": ["chonkie"], "values": ["size"], "embeddings": vectors}
    said = refusal(chunks, {"t": "One. Two."}, **keywords)
    assert "no chunker with a defined placement" in said
