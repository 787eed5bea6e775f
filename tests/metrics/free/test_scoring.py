"""The scorer against the definition-level oracles, other implementations and its own promises."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import silhouette_samples

from reffree.metrics.free import engine
from reffree.metrics.free.engine import score_document, score_documents
from reffree.metrics.registry import WITHOUT_SEARCH, parse_metric, parse_metrics, spelling
from reffree.util.errors import InputError, UnknownNameError
from tests.oracles.reference_free import (
    arp_segments,
    document_score,
    segrefree_segments,
    silhouette_segments,
)
from tests.properties import examples

AS_PRINTED = [f"{name}:rule=paper" for name in WITHOUT_SEARCH if name != "silhouette"]
SPELLINGS = [*WITHOUT_SEARCH, "arp_std:p=1", "silhouette:average=units"]
TOY = np.array([[1, 0], [1, 0.2], [0.9, 0.1], [0, 1], [0.1, 1], [0.2, 0.9], [0.5, 0.5]])


def oracle(embeddings, masses, metric):
    name, _, option = metric.partition(":")
    keywords = {"p=1": {"p": 1}, "average=units": {"average": "units"}}.get(option, {})
    keywords |= {"rule": "paper"} if option == "rule=paper" else {}
    return document_score(np.asarray(embeddings, dtype=np.float64), masses, name, **keywords)


@contextmanager
def by_torch():
    """Score as on other devices than CPUs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "COMPILED_DEVICES", frozenset())
        yield


def random_masses(rng, n, k):
    inner = np.sort(rng.choice(np.arange(1, n), size=k - 1, replace=False))
    return np.diff(np.concatenate([[0], inner, [n]])).tolist()


@st.composite
def documents(draw, min_units=1, max_units=14):
    """Awkward vectors: repeated, zero, opposite, unnormalised, of small integers or floats."""
    n = draw(st.integers(min_units, max_units))
    d = draw(st.integers(1, 4))
    coarse = [st.integers(-2, 2).map(float), st.sampled_from([0.0, 1.0])]
    fine = [
        st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 2)),
        st.integers(-100, 100).map(lambda x: 100.0 * x),
    ]
    dtype = draw(st.sampled_from([np.float64, np.float32, np.float16]))
    # Distinct vectors stay further apart than their type's rounding.
    component = draw(st.sampled_from(coarse if dtype is np.float16 else coarse + fine))
    distinct = draw(st.lists(st.lists(component, min_size=d, max_size=d), min_size=1, max_size=n))
    rows = draw(st.lists(st.sampled_from(distinct), min_size=n, max_size=n))
    return np.array(rows, dtype=dtype)


@st.composite
def hypotheses(draw, n):
    cuts = draw(
        st.lists(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1), min_size=1, max_size=4)
    )
    every = [
        [n],
        [1] * n,
        *([int(m) for m in np.diff([0, *np.flatnonzero(c) + 1, n])] for c in cuts),
    ]
    return draw(st.permutations(every))


@given(st.data())
@examples(300)
def test_scores_equal_the_definition(data):
    embeddings = data.draw(documents())
    masses = data.draw(hypotheses(len(embeddings)))
    with data.draw(st.sampled_from([by_torch, nullcontext]))():
        names = [*SPELLINGS, *AS_PRINTED]
        scores = score_document(embeddings, masses, names, unsegmented="skip")
    for name in names:
        expected = [oracle(embeddings, m, name) for m in masses]
        got = [None if math.isnan(x) else x for x in scores[name].tolist()]
        assert [x is None for x in got] == [x is None for x in expected], name
        for x, y, m in zip(got, expected, masses, strict=True):
            if y is not None:
                assert x == pytest.approx(y, abs=1e-6, rel=1e-6), (name, m)


@given(st.data())
@examples(60)
def test_segments_equal_the_definition(data):
    embeddings = data.draw(documents(min_units=2)).astype(np.float64)
    masses = data.draw(hypotheses(len(embeddings)))
    metrics = parse_metrics(WITHOUT_SEARCH)
    with data.draw(st.sampled_from([by_torch, nullcontext]))():
        raw = score_documents([embeddings], [masses], metrics, keep_segments=True)
    for i, m in enumerate(masses):
        if len(m) == 1:
            continue
        expected = {
            "arp_std": [*arp_segments(embeddings, m, "std", 2), None],
            "arp_cos": [*arp_segments(embeddings, m, "cos", 1), None],
            "arp_pair": [*arp_segments(embeddings, m, "pair", 1), None],
            "silhouette": silhouette_segments(embeddings, m),
            "segrefree": segrefree_segments(embeddings, m),
        }
        for name, values in expected.items():
            got = raw[name][0].segments[i][: len(m)].tolist()
            want = [math.nan if value is None else value for value in values]
            assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=name)


GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "released.json").read_text())


@pytest.mark.parametrize("document", GOLDEN["documents"], ids=lambda d: f"{len(d['embeddings'])}u")
def test_figures_of_the_authors_released_code(document):
    names = {
        "arp_std_p1": "arp_std:p=1",
        "arp_std_p2": "arp_std",
        "arp_cos": "arp_cos",
        "arp_pair": "arp_pair",
        "segrefree": "segrefree",
        "silhouette_units": "silhouette:average=units",
    }
    embeddings = np.array(document["embeddings"])
    checked = 0
    for case in document["cases"]:
        scores = score_document(embeddings, [case["masses"]], list(names.values()))
        for field, name in names.items():
            if field in case:
                assert scores[name].item() == pytest.approx(case[field], abs=1e-6), (field, case)
                checked += 1
    assert checked >= 5 * len(document["cases"])


# definitions.md, toy values
@pytest.mark.parametrize(
    ("masses", "expected"),
    [
        ([3, 4], [0.729844, 0.952381, 0.969551, 0.966064, 0.706387, 0.642859]),
        ([3, 3, 1], [0.644441, 0.902116, 0.942922, 0.939754, 0.536025, 0.565987]),
        ([3, 1, 3], [0.314214, 0.321138, 0.564482, 0.564776, 0.197957, 2.176952]),
        ([2, 5], [-0.171573, -0.333333, -0.675220, -0.675615, 0.483627, 1.258361]),
        ([1] * 7, [-0.201817, -0.493368, -0.519602, -0.507191, 0, 10]),
    ],
)
def test_toy_table(masses, expected):
    names = ["arp_std:p=1", "arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"]
    scores = score_document(TOY, [masses], names)
    assert_allclose([scores[name].item() for name in names], expected, atol=1e-6)


def test_one_unit_segments_as_the_paper_prints_them():
    """By hand: segments of units 1-3, 4 and 5-7 of the toy; the second has one unit."""
    names = ["arp_std:rule=paper", "segrefree:rule=paper"]
    raw = score_documents([TOY], [[[3, 1, 3], [1] * 7]], parse_metrics(names), keep_segments=True)
    variance = TOY[1:3].var(axis=0).sum()  # cut = 2: of the last two units of the first segment
    across = TOY[2:4].var(axis=0).sum()
    first = (across - variance) / (across + variance)
    found = raw[names[0]][0].segments[0, :2].tolist()
    assert found == pytest.approx([first, variance / 2])  # the second's own variance is 0
    of_pairs = np.mean([TOY[i : i + 2].var(axis=0).sum() for i in range(6)])
    assert raw[names[0]][0].documents[1].item() == pytest.approx(of_pairs)
    centres = [TOY[:3].mean(0), TOY[3], TOY[4:].mean(0)]
    spread = [
        np.linalg.norm(TOY[part] - centres[at], axis=1).mean() / (1 - 1 / math.sqrt(3))
        for part, at in ((slice(0, 3), 0), (slice(4, 7), 2))
    ]
    ends = [s / np.linalg.norm(centres[at] - TOY[3]) for s, at in zip(spread, (0, 2), strict=True)]
    found = raw[names[1]][0].segments[0, :3].tolist()
    assert found == pytest.approx([ends[0], sum(ends) / 2, ends[1]])
    assert raw[names[1]][0].documents[1].item() == 10


@pytest.mark.parametrize(
    ("policy", "similarity", "segrefree"),
    [("neutral", 0.0, None), ("skip", None, None), ("worst", -1.0, 10.0)],
)
def test_unsegmented_documents_follow_the_policy(policy, similarity, segrefree):
    scores = score_document(TOY, [[7], [3, 4]], unsegmented=policy)
    for name, values in scores.items():
        want = segrefree if name == "segrefree" else similarity
        assert math.isnan(values[0]) if want is None else values[0] == want
        assert math.isfinite(values[1])


def test_a_single_unit_is_unsegmented():
    scores = score_document([[1.0, 2.0]], [[1]], unsegmented="skip")
    assert all(math.isnan(values.item()) for values in scores.values())


def test_identical_units_say_nothing():
    """Repeated utterances once gave RP = -1e13 through a tiny negative dispersion."""
    x = np.tile([0.1, 0.7, -0.3], (9, 1))
    scores = score_document(x, [[3, 2, 1, 3], [4, 5], [1] * 9])
    for name in ("arp_std", "arp_cos", "arp_pair", "silhouette"):
        assert scores[name].tolist() == [0, 0, 0]
    assert scores["segrefree"].isnan().tolist() == [True, True, False]
    left_out = score_documents([x], [[[3, 2, 1, 3]]], parse_metrics(["segrefree"]))
    assert left_out["segrefree"][0].left_out.tolist() == [3]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_scale_changes_nothing(scale):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 5))
    masses = [random_masses(rng, 20, k) for k in (2, 5, 9)]
    for name, values in score_document(x * scale, masses, SPELLINGS).items():
        assert_allclose(values, score_document(x, masses, [name])[name], rtol=1e-9, err_msg=name)


def test_rotation_changes_nothing_and_shift_leaves_the_euclidean_ones():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 6))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    masses = [random_masses(rng, 30, k) for k in (2, 6, 12)]
    base = score_document(x, masses)
    for name, values in score_document(x @ rotation, masses).items():
        assert_allclose(values, base[name], atol=1e-9, err_msg=name)
    shifted = score_document(x + 1e3, masses)
    for name in ("arp_std", "silhouette", "segrefree"):
        assert_allclose(shifted[name], base[name], atol=1e-8, err_msg=name)
    assert not np.allclose(shifted["arp_cos"], base["arp_cos"], atol=1e-3)


def test_many_documents_equal_each_alone_in_any_order():
    rng = np.random.default_rng(3)
    lengths = [1, 2, 3, 7, 7, 30, 90, 4]
    xs = [rng.normal(size=(n, 8)).astype(np.float32) for n in lengths]
    hyps = [[random_masses(rng, n, int(rng.integers(1, n + 1))) for _ in range(5)] for n in lengths]
    metrics = parse_metrics(SPELLINGS)
    together = score_documents(xs, hyps, metrics)
    order = rng.permutation(len(xs))
    permuted = score_documents([xs[i] for i in order], [hyps[i] for i in order], metrics)
    for i, (x, h) in enumerate(zip(xs, hyps, strict=True)):
        alone = score_document(x, h, SPELLINGS)
        position = int(np.flatnonzero(order == i)[0])
        for name in SPELLINGS:
            assert_allclose(together[name][i].documents, alone[name], atol=1e-12)
            assert_allclose(permuted[name][position].documents, alone[name], atol=1e-12)
        single = score_document(x, [h[3]], SPELLINGS)
        for name in SPELLINGS:
            assert_allclose(single[name][0], alone[name][3], atol=1e-12)


def test_inputs_are_not_changed():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 3))
    masses = [[4, 8], [12]]
    before, given_masses = x.copy(), json.dumps(masses)
    tensor = torch.tensor(x, requires_grad=True)
    score_document(x, masses)
    scores = score_document(tensor, masses)
    assert_array_equal(x, before)
    assert_array_equal(tensor.detach().numpy(), before)
    assert json.dumps(masses) == given_masses
    assert not scores["arp_std"].requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_every_dtype_scores_as_its_exact_values(dtype):
    x = (torch.randn(15, 4, generator=torch.Generator().manual_seed(5)) * 3).to(dtype)
    for name, values in score_document(x, [[4, 11], [5, 5, 5]]).items():
        exact = [oracle(x.double().numpy(), m, name) for m in ([4, 11], [5, 5, 5])]
        assert_allclose(values, exact, atol=1e-6, err_msg=name)


def test_silhouette_agrees_with_scikit_learn_on_two_segments():
    rng = np.random.default_rng(6)
    for n in (4, 9, 40):
        x = rng.normal(size=(n, 5))
        for first in (2, n // 2, n - 1):
            labels = np.repeat([0, 1], [first, n - first])
            expected = silhouette_samples(x, labels).mean()
            got = score_document(x, [[first, n - first]], ["silhouette:average=units"])
            assert got["silhouette:average=units"].item() == pytest.approx(expected, abs=1e-9)


def test_fifty_thousand_units_equal_their_parts():
    """Segments see only their neighbours, so a long document's middle scores as it does alone."""
    rng = np.random.default_rng(8)
    n = 50_000
    x = rng.normal(size=(n, 4)).astype(np.float32)
    masses = [50] * (n // 50)
    raw = score_documents([x], [[masses]], parse_metrics(WITHOUT_SEARCH), keep_segments=True)
    part = score_documents(
        [x[:5000]], [[[50] * 100]], parse_metrics(WITHOUT_SEARCH), keep_segments=True
    )
    for name in ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"):
        long, short = raw[name][0].segments[0], part[name][0].segments[0]
        assert_allclose(long[:99], short[:99], atol=1e-6, err_msg=name)
        assert math.isfinite(raw[name][0].documents[0])


@pytest.mark.parametrize(
    ("embeddings", "masses", "message"),
    [
        (np.zeros((3, 2)), [[2, 2]], "hypothesis 1 with masses that sum to 4"),
        (np.zeros((3, 2)), [[3], [3, 0]], "hypothesis 2 with a mass below 1"),
        (np.zeros((3, 2)), [[]], "hypothesis 1 with a mass below 1 or none at all"),
        (np.zeros(3), [[3]], "embeddings of shape (3,)"),
        (np.zeros((0, 2)), [[1]], "embeddings of shape (0, 2)"),
        (np.array([[1.0], [math.nan]]), [[2]], "NaN or infinity in the vector of unit 2"),
        (np.array([[1.0], [math.inf]]), [[2]], "NaN or infinity in the vector of unit 2"),
        (np.zeros((2, 2), dtype=complex), [[2]], "embeddings of type complex128"),
    ],
)
def test_bad_input_gets_a_sentence(embeddings, masses, message):
    with pytest.raises(InputError) as error:
        score_document(embeddings, masses)
    assert message in str(error.value)
    assert "expected" in str(error.value)


def test_no_hypotheses_score_nothing():
    assert all(len(values) == 0 for values in score_document(TOY, []).values())


def test_metric_names():
    assert [spelling(m) for m in parse_metrics(["arp_std:p=2", "arp_std", "arp_std:p=1"])] == [
        "arp_std",
        "arp_std:p=1",
    ]
    with pytest.raises(UnknownNameError, match="did you mean 'arp_pair'"):
        parse_metric("arp_pairs")
    with pytest.raises(InputError, match="p=1 or p=2"):
        parse_metric("arp_std:p=3")
    with pytest.raises(InputError, match="rule=released or rule=paper"):
        parse_metric("segrefree:p=1")


@pytest.mark.parametrize(
    ("name", "losses", "neutral", "worst"),
    [
        *((name, {-1: 1, 0: 0.5, 1: 0}, 0, -1) for name in ("arp_std", "arp_pair", "arp_cos")),
        ("silhouette", {-1: 1, 0: 0.5, 1: 0}, 0, -1),
        ("segrefree", {0: 0, 0.7: 0.7, 3: 3}, None, 10),
    ],
)
def test_losses_of_raw_scores(name, losses, neutral, worst):
    orientation = parse_metric(name).orientation
    assert {raw: orientation.loss(raw) for raw in losses} == pytest.approx(losses)
    assert (orientation.neutral, orientation.worst) == (neutral, worst)


def test_metrics_have_the_seed_0_unless_told():
    names = ["expected_pk"]
    assert parse_metrics(names) == parse_metrics(names, 0) != parse_metrics(names, 1)
    assert parse_metrics(None) == parse_metrics(None, 0)


@pytest.mark.parametrize(
    "names", [["expected_pk"], ["arp_pair"], ["arp_pair", "expected_pk", "arp_cos:rule=paper"]]
)
@pytest.mark.parametrize("path", [nullcontext, by_torch])
def test_every_hypothesis_is_told_of_once(names, path):
    rng, told = np.random.default_rng(2), []
    xs = [rng.normal(size=(n, 3)) for n in (6, 9, 6)]
    masses = [[[3, 3], [2, 4]], [[4, 5]], [[1, 5], [5, 1], [6]]]
    with path():
        scores = score_documents(xs, masses, parse_metrics(names), progress=told.append)
    assert sum(told) == 6
    assert [[len(raw.documents) for raw in found] for found in scores.values()] == [
        [2, 1, 3] for _ in names
    ]


def test_scores_of_numpy_vectors_on_a_cpu_need_no_torch():
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from reffree.metrics.free.engine import score_documents\n"
        "from reffree.metrics.registry import parse_metrics\n"
        "x = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)\n"
        "metrics = parse_metrics(['all', 'arp_cos:rule=paper', 'silhouette:pool_n=median'])\n"
        "found = score_documents([x], [[[3, 9], [4, 4, 4]]], metrics, device='cpu')\n"
        "assert all(np.isfinite(raw.documents).all() for (raw,) in found.values())\n"
        "print(sorted({'torch', 'pandas', 'pydantic'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"
