"""`reffree segment` and `reffree perturb`: systems in the corpus, named and written whole."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

import reffree
from reffree.cli import main
from reffree.data.corpus import Corpus, Document
from reffree.segmenters.segment import HOMES, SEGMENTERS, parse_segmenter
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.naming import spelling_of

SPELLINGS = {**{name: name for name in HOMES}, "even": "even:k=3", "random": "random:p=0.3"}
TRAINED = ("scorer", "csm", "trained", "supervised")
EVERY = [text for name, text in SPELLINGS.items() if name not in TRAINED]


def corpus_of(*texts, gold=True):
    return Corpus(
        tuple(
            Document.build(f"d{i}", units, gold=[len(units)] if gold else None)
            for i, units in enumerate(texts)
        )
    )


AWKWARD = corpus_of(
    ["One unit only."],
    ["the", "of and"],
    ["Same words here."] * 7,
    ["…", "!!", "—", "?"],
    [f"Sentence number {i} about {'ships' if i < 8 else 'bread'} and weather." for i in range(16)],
)


@pytest.mark.parametrize("method", EVERY)
def test_every_method_segments_every_document(method):
    arrays = [
        np.random.default_rng(i).normal(size=(len(d.units), 4)) for i, d in enumerate(AWKWARD)
    ]
    arrays[2][:] = arrays[2][0]
    arrays[3][:] = 0
    made = reffree.segment(AWKWARD, method, embeddings=arrays)
    name = spelling_of(parse_segmenter(method))
    for document in made:
        assert document.systems[name].n_units == len(document.units)
    again = reffree.segment(AWKWARD, method, embeddings=arrays)
    assert made == again


def test_names_and_mappings():
    made = reffree.segment(AWKWARD, {"mine": "even:every=2", "other": "none"})
    assert list(made.documents[0].systems) == ["mine", "other"]
    assert made.documents[4].systems["mine"].masses == (2,) * 8
    with pytest.raises(InputError, match="the system a second time"):
        reffree.segment(made, {"mine": "none"})
    with pytest.raises(UnknownNameError, match=r"unknown method 'textiling'; did you mean"):
        reffree.segment(AWKWARD, "textiling")
    with pytest.raises(OptionError, match="the option 'q=1' of random; expected p=NUMBER"):
        reffree.segment(AWKWARD, "random:q=1")
    with pytest.raises(InputError, match="no method"):
        reffree.segment(AWKWARD, [])


@pytest.mark.parametrize(
    "text",
    [
        *("none", "all", "even:k=5", "even:every=10", "random:p=0.1,draw=3", "random_unknown"),
        *("oracle_periodic:match=document", "c99:k=gold,mask=5", "textseg:k=3,language=german"),
        *("c99:k=5,c=0.5", "textseg:k=mean", "texttiling:block=200,measure=words", "depth:k=gold"),
        *("texttiling:cutoff=liberal,min_gap=1", "depth:density=0.3", "changepoint:kernel=rbf,k=3"),
        *("greedy:metric=arp_std:p=1,climb=false", "optimal:metric=arp_cos", "posterior:length=12"),
        *("posterior:evidence=words", "csm:encoder=bert", "supervised:architecture=transformer"),
        *("scorer:path=p", "scorer:path=p,rate=0.1", "trained:path=p,threshold=0.5"),
    ],
)
def test_methods_have_spellings(text):
    method = parse_segmenter(text)
    assert spelling_of(method) == text
    assert parse_segmenter(spelling_of(method)) == method


REFUSED = {
    "even": "found neither k nor every in 'even'; .*; write even:k=5 or even:every=10",
    "even:k=2,every=3": "found both k and every",
    "even:every=-1": "found every = -1",
    "random": "found no probability p in 'random'; .*write random:p=0.1",
    "random:p=1.1": "found p = 1.1 .*from 0 to 1",
    "oracle_periodic:match=units": "match=corpus or match=document",
    "c99:k=-1": "k = -1 .*expected a whole number, 0 or more; leave it out for auto",
    "c99:mask=4": "mask = 4 .*expected an odd whole number, 3 or more",
    "textseg:k=some": "k=auto or k=gold or k=mean or k=INTEGER",
    "textseg:language=klingon": "language=danish or",
    "texttiling:measure=pages": "measure=units or measure=words",
    "depth:density=1.5": "density = 1.5 .*expected a number, 1 or less",
    "depth:density=0.1,k=3": "density = 0.1 and k = 3 .*one of the two",
    "changepoint:kernel=poly": "kernel=linear or kernel=cosine or kernel=rbf",
    "changepoint:penalty=0": "a penalty above 0",
    "changepoint:penalty=1,k=2": "one of the two",
    "greedy:metric=arp": "unknown metric 'arp'",
    "greedy:metric=expected_pk": "take the method posterior",
    "optimal:metric=silhouette": "write greedy:metric=silhouette",
    "optimal:metric=arp_std:pool_n=median": "expected arp_std, arp_cos or arp_pair, by the mean",
    "posterior:length=0": "length=0",
    "posterior:evidence=letters": "evidence=letters.*scorer:FOLDER",
    "scorer:path=p,threshold=1.5": "found threshold = 1.5",
    "scorer:path=p,threshold=high": "threshold=NUMBER or threshold=held_out",
    "scorer:path=p,rate=0.1,density=0.1": "found more than one of k, density and rate",
    "scorer:path=p,rate=0.5": "found rate = 0.5 with min_gap = 3",
    "csm:path=p,encoder=bert": "found both a path and an encoder",
    "csm:encoder=bert,threshold=held_out": "held_out for a model that is not trained",
    "trained:path=x,threshold=2": "threshold = 2",
    "supervised:architecture=gru": "architecture=gru",
    "supervised:hidden=3,architecture=transformer": "hidden = 3 with heads = 4",
    "supervised:epochs=0": "epochs = 0",
}


@pytest.mark.parametrize("text", REFUSED)
def test_options_out_of_range_are_refused(text):
    with pytest.raises((OptionError, UnknownNameError), match=REFUSED[text]):
        parse_segmenter(text)


GIVEN = {"even": {"k": 3}, "random": {"p": 0.3}} | {name: {"path": "p"} for name in TRAINED[:3]}


@pytest.mark.parametrize("name", SEGMENTERS)
def test_whatever_has_a_type_or_bounds_is_held_to_them(name):
    """Options from Python, where no text is read, of every method."""
    kind, given = SEGMENTERS[name], GIVEN.get(name, {})
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        text = str(hints[each.name])
        if each.name in ("path", "encoder", "metric", "evidence"):
            continue
        bounds = re.search(r"Bounds\(least=(\d+)", text)
        wrong = [True, "x", float("nan")] if "bool" not in text else []
        wrong += [int(bounds[1]) - 1] if bounds else []
        for value in wrong:
            with pytest.raises(InputError, match=f"{each.name} = "):
                kind(**given | {each.name: value})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "c.jsonl"
    lines = [
        {"id": f"d{i}", "units": [f"w{i} {j}" for j in range(12)], "gold": [4, 4, 4]}
        for i in range(3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_segment_command(file, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    main(["segment", str(file), "--method", "even:k=2", "--method", "random:p=0.5", "-o", str(out)])
    said = capsys.readouterr()
    assert said.out == ""
    assert "even:k=2: 6 segments in 3 documents" in said.err
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["systems"]["even:k=2"] for line in written] == [[6, 6]] * 3
    # Another seed draws otherwise, the same one not.
    again = tmp_path / "again.jsonl"
    for seed, same in (("0", True), ("1", False)):
        main(["segment", str(file), "--method", "random:p=0.5", "--seed", seed, "-o", str(again)])
        other = [json.loads(line) for line in again.read_text().splitlines()]
        drawn = [line["systems"]["random:p=0.5"] for line in other]
        assert (drawn == [line["systems"]["random:p=0.5"] for line in written]) == same
