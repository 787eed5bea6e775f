"""The doors through which input comes, each with a damaged input; what is refused raises."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
import pandas as pd
import yaml

import reffree
from reffree.cli import cli
from reffree.formats import format_names, load, read_system, save
from tests import synthetic_results
from tests.fuzz import mutations
from tests.helpers import run_main

Door = Callable[[Random, Path], None]

UNITS = ("Bees fly out.", "They bring nectar.", "Honey is made.", "A router fails.", "It blinks.")
DOCUMENTS = [
    {
        "id": id,
        "units": [f"{unit} {id}" for unit in UNITS],
        "gold": [3, 2],
        "systems": {"late": [4, 1], "early": [1, 1, 3]},
        "speakers": ["A", "B", "A", "B", "A"],
        "meta": {"x": 1},
    }
    for id in ("m1", "m2", "m3")
]
TIAGE = {"1": [["hello", "-1"], ["hi", "0"], ["bees", "1"]], "2": [["a", "-1"], ["b", "1"]]}
QMSUM = {
    "topic_list": [
        {"topic": "bees", "relevant_text_span": [["0", "1"], ["3", "3"]]},
        {"topic": "hive", "relevant_text_span": [["2", "2"]]},
    ],
    "meeting_transcripts": [{"speaker": "A", "content": unit} for unit in UNITS],
}
TIMES = ("00:00:01.000 --> 00:00:03.000", "00:00:03.000 --> 00:01:00.500")
VTT = f"WEBVTT\n\n1\n{TIMES[0]}\n<v Ann>Bees fly.\n\n2\n{TIMES[1]}\n<v Bob>They do.\n"
SPOKEN = [{"speaker": "USER", "utterance": unit, "text": unit, "message": unit} for unit in UNITS]
TAXI = {"service": "taxi", "state": {"active_intent": "x", "slot_values": {"a": ["b"]}}}
PIZZA = {"annotations": [{"name": "pizza.size"}]}
TREES = {
    "tiage": TIAGE,
    "qmsum": QMSUM,
    "utterances": [{"dial_id": 0, "utterances": list(UNITS), "segments": [3, 2], "set": "test"}],
    "multiwoz": [{"dialogue_id": "a", "turns": [{**turn, "frames": [TAXI]} for turn in SPOKEN]}],
    "topical-chat": {"t": {"content": [{**turn, "knowledge_source": ["FS1"]} for turn in SPOKEN]}},
    "taskmaster": [
        {"conversation_id": "a", "utterances": [{**turn, "segments": [PIZZA]} for turn in SPOKEN]}
    ],
    "chapters": {"version": "1", "chapters": [{"startTime": 0, "title": "a"}, {"startTime": 2.5}]},
    "wikisection": [
        {
            "id": "https://en.wikipedia.org/wiki/Bee",
            "text": "Bees fly. They work.\nHoney is sweet.\n",
            "annotations": [
                {"begin": 0, "length": 21, "sectionHeading": "Work", "sectionLabel": "a"},
                {"begin": 21, "length": 16, "sectionHeading": "Honey", "sectionLabel": "b"},
            ],
        }
    ],
    "radionews": {
        "data": {"getProgrammeById": {"segments": [{"transcript": unit} for unit in UNITS]}}
    },
}
"""Formats of JSON that are only read, or are lists."""

PLAIN = {
    "table": "document,text,speaker,segment,start\na,Bees,A,1,0\na,fly,B,1,1\nb,x,A,2,2.5\n",
    "tiage-tsv": "0\thello\t0\n1\thi\t1\n0\ta\t0\n1\tb\t1\n",
    "tadam": "call_id_0\n0 check the weather\n0 What city?\n1 a hotel\ncall_id_1\n0 hi\n",
    "youtube": "0:00 Intro\n0:02 - Bees\n",
    "dailydialog": "Hi . __eou__ Hello . __eou__\nA job . __eou__\n",
    "subtitles": VTT,
    "transcript": "[00:00:05] Ann: Hi.\n[00:01:00] Bob: Ho,\nthere.\n[01:00:00] Ann: He.\n",
    "markdown": "---\nx: 1\n---\n# A\n\nBees fly. They do.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "document": "<h1>Bees</h1><p>They fly. So.<ul><li>a</ul><table><tr><td>1</table><pre>x</pre>",
    "headings": "INTRO\n\nBees fly. They do.\n\n2.1 Honey\n\nSweet.\n\nWax\n---\nHard.\n",
    "lines": "one\ntwo\n\nthree\n",
}
NXT = '<nite:root xmlns:nite="http://nite.sourceforge.net/">{}</nite:root>'
MEETING = {
    "M.A.words.xml": "".join(
        f'<w nite:id="w{i}" starttime="{i}">{unit}</w>' for i, unit in enumerate(UNITS)
    ),
    "M.A.segs.xml": "".join(
        f'<segment nite:id="s{i}" starttime="{i}" endtime="{i + 1}">'
        f'<nite:child href="M.A.words.xml#id(w{i})..id(w{i})"/></segment>'
        for i in range(len(UNITS))
    ),
    "M.topic.xml": "".join(
        f'<topic><nite:child href="M.A.segs.xml#id(s{i})..id(s{i + 1})"/></topic>' for i in (0, 2)
    ),
}
STUDY = {
    "name": "small",
    "corpora": ["demo"],
    "seed": 1,
    "encoding": {"device": "cpu", "context": 0},
    "studies": [
        {"study": "correlate", "name": "first", "metrics": ["arp_pair", "pk"], "resamples": 200},
        {"study": "perturb", "kinds": ["removal"], "strengths": [1, 2], "seeds": 3},
        {"study": "density", "methods": ["depth"], "thresholds": [0.1, 0.5], "min_gap": 2},
        {"study": "selection", "methods": ["texttiling"], "rate": 0.2, "shares": [0.9, 0.4]},
        {"study": "granularity", "metrics": ["expected_pk"], "length": 4.5, "evidence": "words"},
        {"study": "diagnose", "threshold": 0.9, "source": None},
    ],
}
YAML = (
    *("2001-02-30", '!!int "abc"', '!!float "x"', '!!bool "x"', '!!timestamp "x"', "9" * 5000),
    *("0x" + "f" * 9999, ".nan", "-.inf", "&a [*a]", "*nowhere", "!!binary '???'", "{? [1] : 2}"),
    *("{? {a: 1} : 2}", "{1: 2}", "{~: 1}", "<<", "!!set {a, b}", "!!omap [a: 1]", '"\\0"'),
    *('"\\ud800"', "[" * 1100, "- ", "? ", "|", ">", "%TAG", "---", "2001-01-01", "1:30", "1e3"),
    *("!!python/name:os.system", "!<x> y", "@", "`", "\t", "!!null x", "!!map [1]", "!!seq {a: 1}"),
)


@cache
def _corpus() -> reffree.Corpus:
    from reffree.formats import jsonl
    from reffree.util.errors import Place

    return reffree.Corpus(tuple(jsonl.document(dict(each), Place()) for each in DOCUMENTS))


@cache
def _vectors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {document["id"]: rng.normal(size=(5, 4)).astype("float32") for document in DOCUMENTS}


def _written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def corpus(format: str, rng: Random, folder: Path) -> None:
    """Read a damaged corpus; one that is read can be written and read again."""
    whole = folder / "whole"
    if format in format_names(writable=True):
        one = reffree.Corpus(_corpus().documents[:1])
        is_single = format in ("segeval-tsv", "choi")
        whole = folder / "whole.ref" if format == "choi" else whole
        save((one if is_single else _corpus()).only_systems(()), whole, format=format)
        data = whole.read_bytes()
        if format == "jsonl" and rng.random() < 0.7:
            rows = [mutations.mutate_tree(each, rng) for each in DOCUMENTS[: rng.randrange(1, 4)]]
            data = b"\n".join(mutations.dumped(row, rng) for row in rows)
        else:
            data = mutations.mutate_bytes(data, rng)
    elif format in TREES:
        data = mutations.mutated_json(TREES[format], rng)
    elif format != "nxt":
        data = mutations.mutate_bytes(PLAIN[format].encode(), rng)
    if format == "nxt":
        path = _meeting(rng, folder)
    else:
        packed = rng.random() < 0.1
        if packed:
            data = mutations.mutate_bytes(gzip.compress(data, mtime=0), rng) if data else data
        ending = rng.choice(
            ("jsonl", "json", "txt", "tsv", "csv", "ref", "x", "md", "vtt", "srt", "html")
        )
        path = _written(folder, f"in.{ending}{'.gz' if packed else ''}", data)
    text: Path | bool | None = None
    given = format if rng.random() < 0.8 else None
    if given in ("segeval", "segeval-tsv", "nltk"):
        text = folder / "text.jsonl"
        save(_corpus(), text)
        text = rng.choice((text, False))
    elif given in ("chapters", "youtube"):
        text = _written(folder, "text.vtt", VTT.encode())
    if given in ("segeval", "segeval-tsv"):
        given += rng.choice(("", ":coders=golds"))
    read = load(path, format=given, text=text)
    save(read, folder / "again.jsonl")
    assert len(load(folder / "again.jsonl")) == len(read)


def _meeting(rng: Random, folder: Path) -> Path:
    """A folder of a meeting's files, one of them damaged."""
    (folder / "meeting").mkdir()
    damaged = rng.choice(list(MEETING))
    for name, inside in MEETING.items():
        data = NXT.format(inside).encode()
        data = mutations.mutate_bytes(data, rng) if name == damaged else data
        _written(folder / "meeting", name, data)
    return folder / "meeting"


def frame(rng: Random, folder: Path) -> None:
    """Read damaged Python values."""
    kinds: list[Any] = [
        mutations.mutate_tree(DOCUMENTS, rng),
        mutations.mutate_tree([list(UNITS), list(UNITS)], rng),
        mutations.mutate_tree(list(UNITS), rng),
    ]
    columns = {"text": list(UNITS), "segment": [1, 1, 2, 2, 3], "document": list("aabbb")}
    given = mutations.mutate_tree({**columns, "start": [0, 1.5, 2, 3, 4]}, rng)
    row = mutations.mutate_tree(columns, rng)
    with contextlib.suppress(ValueError, TypeError, AttributeError):  # of pandas
        kinds.append(pd.DataFrame([row]))
        kinds.append(pd.DataFrame(given))
    read = load(rng.choice(kinds))
    save(read, folder / "again.jsonl")
    assert len(load(folder / "again.jsonl")) == len(read)


def system(rng: Random, folder: Path) -> None:
    """Read a damaged file of segmentations."""
    rows = [{"id": each["id"], "segmentation": each["gold"]} for each in DOCUMENTS]
    data = b"\n".join(mutations.mutated_json(row, rng) for row in rows)
    path = _written(folder, "system.jsonl", data)
    read_system(path, rng.choice(("mine", "late", "gold", *mutations.TEXTS)), _corpus())


def vectors(kind: str, rng: Random, folder: Path) -> None:
    """Read damaged arrays, and score with what is read."""
    from reffree.encoders.embed import from_file

    arrays = {
        id: x.astype(rng.choice(("f4", "f8", "f2", "i8", "i1"))) for id, x in _vectors().items()
    }
    scale = rng.choice((1.0, 1.0, 1e30, 1e150, 1e-30, 1e-200, 0.0))
    with np.errstate(all="ignore"):
        arrays = {
            id: x * x.dtype.type(scale) if x.dtype.kind == "f" else x for id, x in arrays.items()
        }
    buffer = io.BytesIO()
    if kind == "npz":
        (np.savez if rng.random() < 0.5 else np.savez_compressed)(buffer, **arrays)
    else:
        np.save(buffer, np.concatenate(list(arrays.values())))
    data = buffer.getvalue()
    if rng.random() < 0.9:
        data = mutations.mutate_bytes(data, rng) if rng.random() < 0.5 else _header(data, rng)
    found = from_file(_corpus(), _written(folder, f"v.{kind}", data))
    table = reffree.score(_corpus(), embeddings=found.vectors, metrics=["all"], device="cpu")
    json.dumps(table.to_dict(), allow_nan=False)


def _header(data: bytes, rng: Random) -> bytes:
    """Damage what numpy reads as Python: shape, type and order."""
    at = data.find(b"{'descr'")
    if at < 0:
        return mutations.mutate_bytes(data, rng)
    end = data.index(b"}", at) + 1
    return (
        data[:at]
        + mutations.mutate_bytes(data[at:end], rng)[: end - at].ljust(end - at)
        + data[end:]
    )


def parquet(rng: Random, folder: Path) -> None:
    """Read a damaged Parquet file (needs pyarrow)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{k: v for k, v in each.items() if k != "meta"} for each in DOCUMENTS]
    sink = io.BytesIO()
    compression = rng.choice(("snappy", "none", "zstd", "gzip"))
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=2, compression=compression)
    load(_written(folder, "c.parquet", mutations.mutate_bytes(sink.getvalue(), rng)))


def _products() -> tuple[Any, Any]:
    """A comparison, whose tables are wide, and a map of boundaries, which is drawn."""
    from reffree.data.corpus import Corpus, Document
    from reffree.studies import boundaries, compare

    units = ["bees and honey", "a ship", "a rope", "cable", "honey"]
    systems = {"a": [2, 3], "b": [1, 4]}
    given = [Document.build(f"d{i}", units, systems=systems) for i in range(2)]
    vectors = [[[1, 2], [2, 1], [0, 3], [3, 3], [1, 1]]] * 2
    corpus = Corpus(tuple(given))
    compared = compare(corpus, metrics=["arp_pair", "silhouette"], embeddings=vectors)
    return compared, boundaries(corpus, embeddings=vectors)


@cache
def _results() -> list[dict[str, Any]]:
    made = (
        synthetic_results.correlate(n_documents=2, corpora=("a", "b"), encoders=("minilm",)),
        synthetic_results.perturb(),
        synthetic_results.density(n_thresholds=3),
        synthetic_results.selection(),
        synthetic_results.chunks(),
        synthetic_results.granularity(n_numbers=3),
        synthetic_results.encoders(),
        synthetic_results.diagnose(),
        *_products(),
    )
    trees = [result.to_dict() for result in made]
    for tree in trees:  # few rows, so that damage hits more than rows
        for table in tree["tables"]:
            if tree["command"] != "boundaries":
                table["rows"] = table["rows"][:: max(1, len(table["rows"]) // 6)]
    return trees


def results(rng: Random, folder: Path) -> None:
    """Read damaged results of a study and render them in every way."""
    from reffree.evaluate.result import load_result
    from reffree.report.boundaries import mapped_documents
    from reffree.report.charts import charts_of
    from reffree.report.page import packed, page_corpora, page_settings, page_texts
    from reffree.report.render import render

    data = mutations.mutated_json(rng.choice(_results()), rng)
    result = load_result(_written(folder, "r.json", data))
    for format in ("table", "json", "csv", "md", "latex"):
        render(result, format, width=rng.choice((None, 40)))
    page_corpora(result.corpora)
    page_settings(result.settings)
    page_texts(result.texts)
    list(mapped_documents(result))
    for chart in charts_of(result):
        json.dumps(packed(chart.rows), allow_nan=False)
        chart.body.to_dict()
        chart.drawn({choice.field: choice.values[0] for choice in chart.choices})


def study(rng: Random, folder: Path) -> None:
    """Read a damaged study file."""
    from reffree.studies.config import load_config

    if rng.random() < 0.6:
        tree = mutations.mutate_tree(STUDY, rng)
        text = yaml.dump(tree, sort_keys=False)
        if rng.random() < 0.5:
            lines = text.splitlines()
            at = rng.randrange(len(lines))
            lines[at] = lines[at].partition(":")[0] + ": " + rng.choice(YAML + mutations.NUMBERS)
            text = "\n".join(lines)
        data = text.encode(errors="surrogatepass")
    else:
        data = mutations.mutate_bytes(yaml.safe_dump(STUDY).encode(), rng)
    config = load_config(_written(folder, "s.yaml", data))
    again = _written(folder, "again.yaml", yaml.safe_dump(config.to_dict()).encode())
    assert load_config(again) == config
    for step in config.steps:
        (folder / f"{step.name}.json").touch()
    (folder / config.name).mkdir()
    assert (folder / config.name).resolve().parent == folder.resolve()


def _names(registry: Any) -> tuple[list[str], Callable[[str], list[str]]]:
    from reffree.util.naming import _options

    return list(registry), lambda name: list(_options(registry[name]))


def metric(rng: Random, folder: Path) -> None:
    """Score with a metric of odd options."""
    from reffree.metrics.registry import FREE_METRICS, GOLD_METRICS

    registry = rng.choice((FREE_METRICS, GOLD_METRICS))
    text = mutations.named_text(*_names(registry), rng)
    if text.startswith("sed"):  # its word vectors come from an encoder
        return
    table = reffree.score(
        _corpus(), metrics=[text], embeddings=list(_vectors().values()), device="cpu"
    )
    json.dumps(table.to_dict(), allow_nan=False)


def method(rng: Random, folder: Path) -> None:
    """Segment with a method of odd options."""
    from reffree.segmenters.segment import SEGMENTERS

    text = mutations.named_text(*_names(SEGMENTERS), rng)
    reffree.segment(_corpus(), text, embeddings=list(_vectors().values()), device="cpu")


def perturbation(rng: Random, folder: Path) -> None:
    """Perturb gold by odd amounts."""
    from reffree.data.perturbation import PERTURBATIONS, parse_perturbation, perturb

    text = mutations.named_text(*_names(PERTURBATIONS), rng)
    if rng.random() < 0.4:
        text = f"{rng.choice(list(PERTURBATIONS))}:{mutations.option_value(rng)}"
    perturb(_corpus(), parse_perturbation(text))


def chunker(rng: Random, folder: Path) -> None:
    """Name a chunker with odd options."""
    from reffree.chunkers.registry import CHUNKERS, find_chunker

    find_chunker(mutations.named_text(*_names(CHUNKERS), rng))


@cache
def _flags(command: str) -> list[str]:
    """Return the options of a command that take a value; an encoder or a device is not for this."""
    found: Any = cli
    for word in command.split():
        found = found.get_command(click.Context(found), word)
    taking = [p for p in found.params if p.param_type_name == "option" and not p.is_flag]
    return [each.opts[0] for each in taking if each.name not in ("encoder", "device")]


def command(rng: Random, folder: Path) -> None:
    """Run a command with odd values of its options."""
    save(_corpus(), folder / "c.jsonl")
    np.savez(folder / "v.npz", **_vectors())
    base_of = {
        "score": ["c.jsonl", "-m", "arp_pair", "-m", "pk", "--embeddings", "v.npz"],
        "compare": ["c.jsonl", "-m", "pk", "-m", "arp_pair", "--embeddings", "v.npz"],
        "boundaries": ["c.jsonl", "--embeddings", "v.npz"],
        "segment": ["c.jsonl", "--method", "even:k=2"],
        "perturb": ["c.jsonl", "--perturbation", "removal:1"],
        "study agreement": ["c.jsonl"],
        "report": ["c.jsonl"],
        "convert": ["c.jsonl", "-"],
    }
    name, base = rng.choice(list(base_of.items()))
    flags = _flags(name)
    given = [part for _ in range(2) for part in (rng.choice(flags), mutations.option_value(rng))]
    args = [*name.split(), *base, *given[: rng.choice((2, 2, 4))]]
    code, _, err = run_main(
        [each.replace("\0", "").replace("\ud800", "\udcff") for each in args], folder
    )
    assert code in (0, 1, 2), (args, code, err)
    assert code == 0 or "rror: " in err, (args, err)
    assert "Traceback" not in err, (args, err)


DOORS: dict[str, Door] = {
    **{f"corpus-{each}": partial(corpus, each) for each in format_names() if each != "parquet"},
    "frame": frame,
    "system": system,
    "vectors-npz": partial(vectors, "npz"),
    "vectors-npy": partial(vectors, "npy"),
    **({"parquet": parquet} if find_spec("pyarrow") else {}),
    "results": results,
    "study": study,
    "metric": metric,
    "method": method,
    "perturbation": perturbation,
    "chunker": chunker,
    "command": command,
}
