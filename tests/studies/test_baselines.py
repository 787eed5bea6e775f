"""Systems that read no text beside others: values by hand and by the definitions."""

from __future__ import annotations

import json
from statistics import fmean

import pytest

from reffree.formats import load
from reffree.studies import baselines
from reffree.studies.config import load_config
from reffree.util.errors import InputError, OptionError, UnknownNameError
from tests.helpers import check_formats, invoke_study, topical_corpus
from tests.oracles import reference_based

GOLDS = [[4, 4, 4], [6, 6], [3, 5, 4], [4, 8], [2, 4, 6]]


@pytest.fixture(scope="module")
def small():
    corpus, _ = topical_corpus(GOLDS, late=lambda n: [n - 1, 1])
    return corpus, baselines({"small": corpus})


def test_every_value_is_the_mean_of_the_definition(small):
    corpus, result = small
    rows = result.table("values").records()
    assert {row["system"] for row in rows} == {
        *("late", "none", "all", "random_known", "random_unknown"),
        *("texttiling", "c99", "textseg"),
    }
    from reffree.segmenters.segment import segment

    made = segment(corpus, ["none", "all", "random_known", "random_unknown"]).hypotheses
    p_seg = reference_based.share_of_windows(GOLDS)
    for row in rows:
        if row["system"] in made:
            metric = getattr(reference_based, row["metric"])
            corpus_own = {"p_seg": p_seg} if row["metric"] == "pk_prime" else {}
            values = [
                metric(list(h.masses), gold, **corpus_own)
                for h, gold in zip(made[row["system"]], GOLDS, strict=True)
            ]
            assert row["value"] == pytest.approx(float(fmean(values)), abs=1e-9)
            assert row["low"] <= row["value"] <= row["high"]


def test_the_size_of_windows_is_said(small):
    """Half the mean gold segment: 12/3/2 = 2, 6/2 = 3, 2, 3, 2."""
    corpus, result = small
    every = "pk, pk_prime, windowdiff and pr_error"
    assert result.notes == (f"small: windows of 2 to 3 units, 2 in the middle: {every}.",)
    settled = baselines({"c": corpus}, metrics=["pk:k=corpus", "pr_error:k=4"], methods=["none"])
    assert settled.notes == (
        "c: windows of 2 units: pk:k=corpus.",
        "c: windows of 4 units: pr_error:k=4.",
    )


def test_chart_and_every_format(small):
    check_formats(small[1], "random_known", "corpus,system,reads,segments,metric,value,low,high")


def test_misses_cost_windowdiff_less_than_false_alarms_and_pr_error_as_much():
    """Gold [4, 4] with k = 2: of six windows two hold the boundary, so none at all errs in two."""
    corpus, _ = topical_corpus([[4, 4]] * 5)
    result = baselines({"a": corpus}, methods=["none", "all"], metrics=["windowdiff", "pr_error"])
    found = {(r["system"], r["metric"]): r["value"] for r in result.table("values").records()}
    expected = {("none", "windowdiff"): 2 / 6, ("all", "windowdiff"): 1}
    expected |= {("none", "pr_error"): 0.5, ("all", "pr_error"): 0.5}
    assert found == pytest.approx(expected)
    assert result.verdict == (
        "a: boundaries everywhere cost, against none at all, 3.00 times as much by windowdiff and "
        "1.00 times as much by pr_error.",
    )


def test_who_does_no_better_than_without_reading(small):
    """A last unit cut off finds nothing: by Pk it is worse than no boundary, or as bad."""
    _, result = small
    said = " ".join(result.verdict)
    assert "no better than none, which reads no text: late" in said.replace("late,", "late")
    reads = {row["system"]: row["reads"] for row in result.table("systems").records()}
    assert reads["late"] == reads["c99"] == "text"
    assert reads["none"] == reads["random_known"] == "no text"


def test_vectors_where_a_method_looks_at_them():
    corpus, vectors = topical_corpus(GOLDS)
    result = baselines({"a": corpus}, methods=["none", "depth"], embeddings={"a": vectors})
    assert "made-with:" in result.signature
    assert result.table("systems").records(system="depth")[0]["reads"] == "text"


def test_what_is_refused(small):
    corpus, _ = small
    with pytest.raises(UnknownNameError, match="unknown method 'nothing'"):
        baselines({"a": corpus}, methods=["nothing"])
    bare = corpus.only_systems(())
    with pytest.raises(OptionError, match="no method and no system"):
        baselines({"a": bare}, methods=[])


def test_command_and_file(write_corpus, tmp_path):
    documents = [
        {"id": f"m{i}", "units": [f"word{j} here" for j in range(sum(g))], "gold": g}
        for i, g in enumerate(GOLDS)
    ]
    path = write_corpus(documents)
    methods = ("--method", "none", "--method")
    done = invoke_study("baselines", path, *methods, "all", "-m", "pk", "-f", "csv")
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 3
    config = tmp_path / "c.yaml"
    config.write_text(
        f"name: a\ncorpora: [{json.dumps(str(path))}]\n"
        "studies: [{study: baselines, methods: [even]}]\n"
    )
    with pytest.raises(InputError, match=r"methods\.0: 'even'.*neither k nor every"):
        load_config(config)
    without = write_corpus([{key: d[key] for key in ("id", "units")} for d in documents])
    done = invoke_study("baselines", without, *methods, "depth", "--encoder", "no")
    assert done.exit_code == 1
    assert "no gold to compare with" in str(done.exception)


def test_several_annotators(write_corpus):
    """A value is the mean over annotators; random_known takes their mean number of boundaries."""
    golds = {"ann": [4, 4], "bob": [2, 6]}
    path = write_corpus([{"id": "a", "units": list("abcdefgh"), "golds": golds}])
    result = baselines({"a": load(path)}, methods=["none", "random_known"], metrics=["pk"])
    row = result.table("systems").records(system="none")[0]
    expected = fmean(float(reference_based.pk([8], gold)) for gold in golds.values())
    assert row["pk"] == pytest.approx(expected)
    assert result.table("systems").records(system="random_known")[0]["segments"] == 2
