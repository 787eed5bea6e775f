"""`reffree segment` and `reffree perturb`: systems in the corpus, named and written whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reffree
from reffree.cli import main
from reffree.data.corpus import Corpus, Document
from reffree.segmenters.segment import HOMES, SEGMENTERS, parse_segmenter
from reffree.util.errors import InputError, OptionError, UnknownNameError
from reffree.util.naming import spelling_of

SPELLINGS = {
    **{name: name for name in HOMES},
    "even": "even:k=3",
    "random": "random:p=0.3",
}
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


def test_every_home_holds_its_method():
    for name in SEGMENTERS:
        assert SEGMENTERS[name].name == name


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


def test_the_nine_baselines_of_the_arp_paper():
    made = reffree.segment(AWKWARD, "arp_baselines")
    names = ["random_mean", *(f"random_{n}" for n in range(2, 10))]
    assert sorted(made.documents[0].systems) == sorted(names)


def test_methods_that_need_gold_say_so():
    bare = corpus_of(["a", "b", "c"], gold=False)
    with pytest.raises(InputError, match="no gold for oracle_random"):
        reffree.segment(bare, "oracle_random")


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


def test_perturb_command(file, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    asked = ["--perturbation", "removal:3", "--perturbation", "transposition:1"]
    main(["perturb", str(file), *asked, "-o", str(out)])
    said = capsys.readouterr().err
    assert "removal_3: 6 removed; not possible: 3 to remove" in said
    assert "transposition_1: 6 moved" in said
    for line in map(json.loads, out.read_text().splitlines()):
        assert line["systems"]["removal_3"] == [12]
        moved = np.cumsum(line["systems"]["transposition_1"])[:-1]
        assert np.abs(moved - [4, 8]).tolist() == [1, 1]
    with pytest.raises(SystemExit) as stop:
        main(["perturb", str(file), "--perturbation", "shuffle:1", "-o", str(out)])
    assert stop.value.code == 2
