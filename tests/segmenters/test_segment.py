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
from reffree.segmenters.base import Inputs
from reffree.segmenters.segment import HOMES, SEGMENTERS, parse_segmenter
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.naming import spelling_of

TRAINED = ("scorer", "csm", "trained", "supervised")
ARPS = ("arp_std", "arp_std:p=1", "arp_cos", "arp_pair")
METRICS = (*ARPS, "silhouette", "silhouette:average=units", "segrefree")
KERNELS = ("linear", "cosine", "rbf")
HUGE = 10**9
EVERY = [
    *("none", "all", "even:k=3", "even:every=4", "random:p=0.3", "random:p=0.3,draw=2"),
    *("random_known", "random_unknown", "oracle_random", "oracle_periodic"),
    *("oracle_periodic:match=document", "depth", "depth:window=2,threshold=-0.5,min_gap=1"),
    *("depth:k=3,min_gap=1", "depth:density=0.3", "changepoint:penalty=0.1,min_size=3"),
    *(f"changepoint:kernel={kernel}" for kernel in KERNELS),
    *(f"changepoint:kernel={kernel},k=3,min_size=1" for kernel in KERNELS),
    *(f"greedy:metric={metric}" for metric in METRICS),
    *(f"greedy:metric={metric},k=3,climb=false" for metric in METRICS),
    *(f"optimal:metric={metric}" for metric in ARPS),
    *(f"optimal:metric={metric},k=3" for metric in ARPS),
    *("posterior", "posterior:length=2", "texttiling", "c99", "textseg"),
    *(f"{name}:k={k}" for name in ("texttiling", "c99", "textseg") for k in (0, 3, 1000)),
    *(f"texttiling:block={HUGE},smoothing={HUGE},min_gap={HUGE}", f"c99:mask={HUGE - 1}"),
    f"texttiling:block={HUGE},measure=words",
]


def awkward_vectors():
    """One unit, identical units, zeros, opposites, and numbers that overflow or vanish."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(1, 4))
    return [
        *(rng.normal(size=(n, 4)) for n in (1, 2, 3, 4, 40)),
        *(np.repeat(one, n, axis=0) for n in (2, 3, 30)),
        np.zeros((6, 4)),
        np.array([[1.0], [-1.0]] * 6),
        np.array([[0.0, 0.0], [1.0, 0.0]] * 6),
        1e200 * rng.normal(size=(8, 3)),
        1e-200 * rng.normal(size=(8, 3)),
        rng.normal(size=(9, 3)) + 1e6,
        rng.normal(size=(9, 3)).astype(np.float16),
        np.array([[1e150], [1.0], [1e-150], [0.0], [2.0]]),
    ]


AWKWARD_TEXTS = [
    *(["apple"], ["the"], ["apple", "boat"], ["apple", "apple"], ["apple boat"] * 30),
    [f"{chr(97 + i)}{chr(98 + i)}z" for i in range(24)],
    *(["the of and"] * 15, ["…", "!?", "--", "()"] * 5, ["12", "1958 1959", "3"] * 4),
    ["the"] * 9 + ["apple"] + ["of"] * 9,
    ["你好 世界", "привет мир", "नमस्ते दुनिया", "🙂 🙂"] * 4,
    ["apple boat " * 5000, "cloud", "drum", "cloud"],
]


def awkward_inputs():
    vectors = awkward_vectors()
    texts = [[f"unit {i}" for i in range(len(x))] for x in vectors] + AWKWARD_TEXTS
    rng = np.random.default_rng(1)
    vectors += [rng.normal(size=(len(units), 4)) for units in AWKWARD_TEXTS]
    documents = [
        Document.build(
            f"d{i}", units, gold=[n for n in (len(units) // 2, -(-len(units) // 2)) if n]
        )
        for i, units in enumerate(texts)
    ]
    return Inputs(Corpus(tuple(documents)), embeddings=vectors)


def test_every_method_is_tried():
    assert {text.partition(":")[0] for text in EVERY} == HOMES.keys() - {*TRAINED}


@pytest.mark.parametrize("text", EVERY)
def test_every_document_is_segmented_and_on_its_own(text):
    method, inputs = parse_segmenter(text), awkward_inputs()
    found = method(inputs)
    sizes = [len(document.units) for document in inputs.corpus]
    assert [segmentation.n_units for segmentation in found] == sizes
    k = getattr(method, "k", None)
    if method.name in ("c99", "textseg") and isinstance(k, int):
        assert [len(each) for each in found] == [min(k, n - 1) + 1 for n in sizes]
    again = awkward_inputs()
    assert method(inputs) == found
    for x, copy in zip(inputs.embeddings, again.embeddings, strict=True):
        np.testing.assert_array_equal(x, copy)
    if text != "oracle_periodic":  # one period for the corpus
        pairs = zip(again.corpus, again.embeddings, strict=True)
        alone = [method(Inputs(Corpus((d,)), embeddings=[x])) for d, x in pairs]
        assert [each for (each,) in alone] == [*found]


AWKWARD = Corpus(tuple(Document.build(f"d{i}", ["x"] * n) for i, n in enumerate([1, 2, 7, 4, 16])))


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
