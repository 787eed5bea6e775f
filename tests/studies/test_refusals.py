"""What can be refused is refused before anything is encoded, of all corpora, encoders and steps.

The encoder of these tests is found, and fails as soon as it is to encode.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
import yaml

from reffree.data.corpus import Corpus, Document
from reffree.evaluate.score import score
from reffree.segmenters.segment import segment
from reffree.segmenters.trained.scorer import train_scorer
from reffree.studies import (
    boundaries,
    compare,
    correlate,
    density,
    diagnose,
    encoders,
    granularity,
    perturb,
)
from reffree.util.errors import EncoderError, ReffreeError
from tests.checkpoints import save_checkpoint
from tests.helpers import halves, invoke, topical_corpus

GOLDS = [[4, 3, 5], [6, 4], [3, 4, 3, 4], [5, 5], [2, 6, 4], [4, 4, 4]]


def thirds(n):
    return [n // 3, n // 3, n - 2 * (n // 3)]


GOOD, VECTORS = topical_corpus(GOLDS, a=halves, b=thirds)
BARE = Corpus(tuple(replace(document, gold=None) for document in GOOD))
SHORT = Corpus(
    tuple(Document.build(f"s{i}", ["x", "y"], systems={"a": [1, 1], "b": [2]}) for i in range(3))
)
ONE = Corpus((Document.build("o", ["x"] * 4, systems={"a": [2, 2]}),))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A model that is found, and whose weights cannot be read."""
    folder = tmp_path_factory.mktemp("models") / "broken"
    save_checkpoint("roberta", folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    return folder


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorers") / "s"
    quick = {"splice_epochs": 1, "epochs": 1, "hidden": 4, "splices_per_document": 1}
    train_scorer({"d": GOOD}, embeddings={"d": VECTORS}, held_out=0.3, **quick).save(folder)
    return folder


BOTH = {"good": GOOD, "bare": BARE}
CALLS = {
    "correlate": partial(correlate, {"good": GOOD}),
    "encoders": partial(encoders, {"good": GOOD}, measure=False),
    "perturb": partial(perturb, {"good": GOOD}, seeds=1),
    "density": partial(density, {"good": GOOD}),
    "granularity": partial(granularity, {"good": GOOD}),
    "diagnose": partial(diagnose, {"good": GOOD}),
    "compare": partial(compare, GOOD),
    "boundaries": partial(boundaries, GOOD),
    "segment": partial(segment, GOOD, "depth"),
    "score": partial(score, GOOD),
}
REFUSED = [
    (correlate, BOTH, {}, "a document without gold"),
    (correlate, BOTH, {"pool": "every"}, "pool = every"),
    (correlate, {"good": GOOD}, {"cohesion": ["nobody"]}, "unknown system 'nobody'"),
    (correlate, {"good": GOOD}, {"metrics": ["arp_pear"]}, "unknown metric 'arp_pear'"),
    (correlate, {"good": GOOD}, {"metrics": ["sed:vectors=nowhere"]}, "nowhere"),
    (correlate, {"good": GOOD}, {"unsegmented": "best"}, "unsegmented = best"),
    (correlate, {"good": GOOD}, {"average": "most"}, "average = most"),
    (correlate, {"good": GOOD}, {"encoders": ["minilm", "nowhere/none"]}, "nowhere/none"),
    (encoders, {"good": GOOD}, {"encoders": ["minilm"]}, "the encoders 'minilm'"),
    (perturb, BOTH, {}, "no gold to perturb"),
    (perturb, BOTH, {"source": "nobody"}, "unknown system 'nobody'"),
    (perturb, BOTH, {"source": "a", "metrics": ["arp_pair", "pk"]}, "no gold to compare with"),
    (perturb, {"good": GOOD}, {"unsegmented": "best"}, "unsegmented = best"),
    (density, BOTH, {}, "a document without gold"),
    (density, {"good": GOOD}, {"metrics": ["arp_pear"]}, "unknown metric 'arp_pear'"),
    (density, {"good": GOOD}, {"unsegmented": "best"}, "unsegmented = best"),
    (granularity, {"good": GOOD, "short": SHORT}, {}, "'s0': found no document of 3 units or more"),
    (granularity, {"good": GOOD, "none": BARE.only_systems(())}, {}, "'d0': found no systems"),
    (diagnose, {"good": GOOD, "short": SHORT}, {}, "no system with an expected_pk"),
    (diagnose, {"good": GOOD, "one": ONE}, {"source": "b"}, "unknown system 'b'"),
    (diagnose, {"good": GOOD}, {"metrics": ["arp_pear"]}, "unknown metric 'arp_pear'"),
    (compare, ONE, {}, "too few systems to compare"),
    (compare, GOOD, {"unsegmented": "best"}, "unsegmented = best"),
    (boundaries, GOOD, {"systems": ["nobody"]}, "unknown system 'nobody'"),
    (boundaries, GOOD, {"documents": ["nothing"]}, "the document 'nothing'"),
    (segment, BARE, {"methods": ["depth", "depth:k=gold"]}, "no gold for depth"),
    (segment, BARE, {"methods": ["depth", "random_known"]}, "no gold for random_known"),
    (segment, GOOD, {"methods": {"a": "depth"}}, "the system a second time"),
    (segment, GOOD, {"methods": ["depth", "depth:min_gap=3"]}, "the system a second time"),
    (score, GOOD, {"unsegmented": "best"}, "unsegmented = best"),
    (score, BARE, {"metrics": ["arp_pair", "pk"]}, "no gold to compare with"),
]


@pytest.mark.parametrize("name", CALLS)
def test_the_encoder_of_these_tests_cannot_encode(name, broken):
    more = {"encoders": [str(broken), "minilm"]} if name == "encoders" else {"encoder": str(broken)}
    with pytest.raises(EncoderError):
        CALLS[name](cache=False, **more)


@pytest.mark.parametrize(("study", "corpora", "keywords", "said"), REFUSED)
def test_refused_before_anything_is_encoded(study, corpora, keywords, said, broken):
    with pytest.raises(ReffreeError) as error:
        study(corpora, **{"encoder": str(broken), "cache": False, **keywords})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("study", "corpora", "keywords"),
    [
        (density, {"good": GOOD}, {"methods": ["depth", "scorer:path={}"]}),
        (granularity, {"good": GOOD}, {"evidence": "scorer:{}"}),
        (correlate, {"good": GOOD}, {"metrics": ["expected_pk:evidence=scorer:{}"]}),
        (perturb, {"good": GOOD}, {"metrics": ["expected_pk:evidence=scorer:{}"]}),
        (diagnose, {"good": GOOD}, {"metrics": ["expected_pk:evidence=scorer:{}"]}),
        (score, GOOD, {"metrics": ["expected_pk:evidence=scorer:{}"]}),
        (compare, GOOD, {"metrics": ["expected_pk:evidence=scorer:{}"]}),
        (boundaries, GOOD, {"evidence": "scorer:{}"}),
        (segment, GOOD, {"methods": ["depth", "scorer:path={}"]}),
        (segment, GOOD, {"methods": ["depth", "posterior:evidence=scorer:{}"]}),
    ],
)
def test_a_scorer_of_another_encoder_is_refused_first(study, corpora, keywords, broken, scorer):
    filled = {
        key: value.format(scorer) if isinstance(value, str) else [v.format(scorer) for v in value]
        for key, value in keywords.items()
    }
    with pytest.raises(EncoderError, match="found vectors of another encoder"):
        study(corpora, encoder=str(broken), cache=False, **filled)


def test_a_later_step_is_refused_before_an_earlier_one_runs(tmp_path, broken):
    lines = [
        json.dumps({"id": d.id, "units": list(d.units), "gold": list(d.gold.masses)}) for d in GOOD
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    steps = [{"study": "diagnose"}, {"study": "perturb", "source": "nobody"}]
    config = {
        "name": "both",
        "corpora": [str(tmp_path / "c.jsonl")],
        "encoding": {"encoder": str(broken), "cache": False},
        "studies": steps,
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    found = invoke("run", tmp_path / "c.yaml", "-o", tmp_path / "out")
    assert "unknown system 'nobody'" in str(found.exception)
    config["studies"] = steps[:1]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    found = invoke("run", tmp_path / "c.yaml", "-o", tmp_path / "out")
    assert isinstance(found.exception, EncoderError)


@pytest.mark.parametrize("target", ["nowhere/out.jsonl", "out.odd"])
def test_no_place_for_the_segments_is_refused_first(tmp_path, broken, target):
    text = json.dumps({"id": "a", "units": ["x"] * 6})
    (tmp_path / "c.jsonl").write_text(text + "\n", encoding="utf-8")
    arguments = ("--method", "depth", "--encoder", broken, "-o", tmp_path / target)
    found = invoke("segment", tmp_path / "c.jsonl", *arguments)
    assert target in str(found.exception)
