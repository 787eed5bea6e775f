"""The correlation study: against plain scipy on plain scores, its pools, its sentinels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import corpus_vectors, distinct_texts
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.score import score
from reffree.metrics.registry import STUDIED
from reffree.report.render import render
from reffree.segmenters.segment import segment
from reffree.statistics.resampling import resampled_documents
from reffree.studies import correlate, encoders
from reffree.studies.correlate import case_settings, mean_and_sd
from reffree.studies.correlate_pool import (
    COHESION,
    LEXICAL,
    PERTURBED,
    CaseSettings,
    complete_pool,
    sentinel_scores,
)
from reffree.studies.encoders import measure_speed, recommend
from reffree.util.errors import EncoderError, InputError
from reffree.util.progress import no_progress
from reffree.util.seeds import rng_for
from tests.checkpoints import save_checkpoint
from tests.helpers import rows as rows_of
from tests.helpers import topical_corpus
from tests.oracles.statistics import correlation_difference
from tests.oracles.studies import quantile
from tests.properties import intervals_held

WORDS_OF = (["bees", "honey", "dance"], ["server", "queue", "login"])
FREE, GOLD = ("arp_pair", "silhouette"), ("pk", "boundary_similarity")


def planted(n_documents=8, seed=0):
    golds = np.random.default_rng(seed).integers(3, 8, size=(n_documents, 4)).tolist()
    return topical_corpus(golds, seed, spread=0.2)


CORPUS, VECTORS = planted()
PEARSON = {"level": "corpus", "coefficient": "pearson"}
ARGUMENTS = {"metrics": [*FREE, *GOLD], "resamples": 100, "embeddings": {"c": VECTORS}}
ENCODED = {"metrics": ["arp_pair", "pk"], "resamples": 100, "device": "cpu"}
ENCODED |= {"cache": False, "offline": True}


@pytest.fixture(scope="module")
def result():
    return correlate({"c": CORPUS}, **ARGUMENTS)


@pytest.fixture(scope="module")
def pooled():
    embedded = corpus_vectors(CORPUS, VECTORS, EncoderOptions(), no_progress)
    return complete_pool(CORPUS, embedded, CaseSettings(metrics=()), {})


@pytest.fixture(scope="module")
def systems(pooled):
    """Scores of all systems, by name."""
    table = score(pooled[0], metrics=[*FREE, *GOLD], embeddings=VECTORS)
    return {row.system: row.metrics for row in table.systems}


@pytest.mark.parametrize("pool", ["independent", "blind", "cohesion", "all"])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_corpus_level_is_the_correlation_of_the_score_table(
    result, pooled, systems, pool, coefficient
):
    names = [member.system for member in pooled[1] if member.is_in(pool)]
    for free in FREE:
        for gold in GOLD:
            x = [round(systems[name][free].value, 10) for name in names]  # equal systems tie
            sign = -1 if gold == "boundary_similarity" else 1
            y = [round(sign * systems[name][gold].value, 10) for name in names]
            of_scipy = "kendalltau" if coefficient == "kendall" else f"{coefficient}r"
            wanted = {"pool": pool, "level": "corpus", "coefficient": coefficient}
            (row,) = rows_of(result, "correlations", free=free, gold=gold, **wanted)
            assert row["value"] == pytest.approx(getattr(stats, of_scipy)(x, y).statistic, abs=1e-8)
            assert row["n_systems"] == len(names)
            low, high = row["ci"]
            assert -1 <= low <= high <= 1


def test_every_value_lies_in_its_interval(result):
    assert intervals_held(result) > 100
    rows = rows_of(result, "correlations", level="corpus", coefficient="pearson")
    assert all(row["noiseless"] is not None for row in rows if row["ci"] is not None)


def test_within_documents_is_the_mean_of_documents(result, pooled):
    corpus, members = pooled
    table = score(corpus, metrics=["silhouette", "pk"], embeddings=VECTORS, per_document=True)
    names = [member.system for member in members if member.is_in("independent")]
    found = []
    for document in corpus:
        rows = {r.system: r.metrics for r in table.documents if r.id == document.id}
        pairs = [(rows[n]["silhouette"].value, rows[n]["pk"].value) for n in names]
        found.append(stats.pearsonr(*zip(*pairs, strict=True)).statistic)
    wanted = {"pool": "independent", "level": "document", "coefficient": "pearson"}
    (row,) = rows_of(result, "correlations", free="silhouette", gold="pk", **wanted)
    assert row["value"] == pytest.approx(np.mean(found), abs=1e-8)


def test_pools_are_told_apart(pooled):
    corpus, members = pooled
    by_kind = {
        kind: {m.system for m in members if m.kind == kind}
        for kind in ("gold", "random", "perturbed", "lexical", "cohesion", "given")
    }
    assert by_kind["gold"] == {"gold"}
    assert by_kind["random"] == {"random_mean", *(f"random_{n}" for n in range(2, 10))}
    assert by_kind["lexical"] == set(LEXICAL)
    assert len(by_kind["perturbed"]) == len(PERTURBED)
    assert len(by_kind["cohesion"]) == len(COHESION)
    assert not by_kind["given"]
    assert {m.pool for m in members if m.kind == "cohesion"} == {"cohesion"}
    assert {m.pool for m in members if m.kind != "cohesion"} == {"independent"}
    assert set(corpus.hypotheses) == {m.system for m in members}
    assert {m.kind for m in members if m.is_in("blind")} == {"gold", "random", "perturbed"}


def with_systems(names):
    corpus = CORPUS
    for i, name in enumerate(names):
        made = {d.id: [1 + i, len(d.units) - 1 - i] for d in CORPUS}
        corpus = corpus.with_system(name, made)
    return corpus


def test_a_corpus_with_systems_enough_keeps_to_them():
    corpus = with_systems(["mine", "depth:window=2", *(f"s{i}" for i in range(6))])
    found = correlate({"c": corpus}, cohesion=["mine"], **ARGUMENTS)
    pools = {row["system"]: row["pool"] for row in rows_of(found, "scores", metric="pk")}
    assert set(pools) == set(corpus.hypotheses)
    seekers = {name for name, pool in pools.items() if pool == "cohesion"}
    assert seekers == {"mine", "depth:window=2"}
    # Two systems correlate perfectly or not at all: nothing is said of them.
    assert not rows_of(found, "correlations", pool="cohesion")
    assert any("too few cohesion ones to correlate" in note for note in found.notes)
    both = correlate({"c": corpus}, pool="both", **ARGUMENTS)
    n_made = 1 + 9 + 3 + len(COHESION) + len(PERTURBED)
    assert len(rows_of(both, "scores", metric="pk")) == 8 + n_made
    alone = correlate({"c": corpus}, pool="default", **ARGUMENTS)
    assert "mine" not in alone.table("scores").column("system")


def test_sentinels_read_no_text(result):
    scores = sentinel_scores(CORPUS, seed=0)
    assert scores["n_segments"].values.tolist() == [[4.0] * 8]
    lengths = [len(d.units) / 4 for d in CORPUS]
    assert scores["mean_length"].values.tolist() == [lengths]
    again = sentinel_scores(CORPUS, seed=1)["random_score"].values
    assert (again != scores["random_score"].values).all()
    named = {row["free"] for row in rows_of(result, "correlations", is_sentinel="yes")}
    assert named == {"n_segments", "mean_length", "random_score"}
    tests = result.table("beyond_sentinels").records()
    assert [row["metric"] for row in tests] == list(FREE)
    for row in tests:
        wanted = {"is_sentinel": "yes", "gold": "pk", "pool": "independent", **PEARSON}
        values = {r["free"]: abs(r["value"]) for r in rows_of(result, "correlations", **wanted)}
        assert row["sentinel_value"] == max(values.values()) == values[row["sentinel"]]
        assert row["difference"] <= row["value"] + 1
        assert 0 < row["p"] <= row["p_bh"] <= 1


def test_planted_topics_are_ranked_as_by_gold(result):
    for free in FREE:
        (row,) = rows_of(result, "correlations", free=free, pool="blind", gold="pk", **PEARSON)
        assert row["value"] > 0.8


def test_noise_is_not():
    """Vectors that know nothing of the segments: no metric agrees with gold."""
    rng = np.random.default_rng(5)
    noise = [rng.normal(size=x.shape) for x in VECTORS]
    found = correlate({"c": CORPUS}, **{**ARGUMENTS, "embeddings": {"c": noise}})
    wanted = {"free": "arp_pair", "gold": "pk", "pool": "blind", **PEARSON}
    (row,) = rows_of(found, "correlations", **wanted)
    assert row["value"] < 0.6
    assert all(row["p_bh"] > 0.05 for row in found.table("beyond_sentinels").records())
    assert "no metric does significantly better" in found.verdict[-1]


def test_another_seed_is_another_study(result):
    assert render(correlate({"c": CORPUS}, seed=1, **ARGUMENTS), "json") != render(result, "json")
    assert "seed:0" in result.signature
    assert "pool:auto" in result.signature


def test_several_corpora_are_aggregated():
    corpus, vectors = planted(seed=3, n_documents=6)
    both = {"a": CORPUS, "b": corpus}
    arguments = {**ARGUMENTS, "embeddings": {"a": VECTORS, "b": vectors}}
    found = correlate(both, pool="paper", supervised=[], **arguments)
    (row,) = rows_of(found, "aggregate", pool="independent", metric="arp_pair")
    cells = rows_of(found, "correlations", free="arp_pair", pool="independent", **PEARSON)
    pk = [cell["value"] for cell in cells if cell["gold"] == "pk"]
    every = [cell["value"] for cell in cells]
    assert row["pk"] == pytest.approx(np.mean(pk))
    assert row["pk_sd"] == pytest.approx(np.std(pk))
    assert (row["mean"], row["defined"]) == (pytest.approx(np.mean(every)), 4)
    assert [corpus["name"] for corpus in found.corpora] == ["a", "b"]
    shown = render(found, "table")
    assert "Mean and standard deviation of Pearson correlations over 2 cases" in shown


def test_texts_and_documents_are_there_for_the_report(result):
    assert [text.id for text in result.texts] == ["d0", "d1", "d2"]
    assert result.texts[0].units == CORPUS[0].units
    assert result.texts[0].systems["gold"] == CORPUS[0].gold.masses
    systems = set(result.table("scores").column("system"))
    assert set(result.texts[0].systems) == systems
    losses = {row["system"]: row["loss"] for row in rows_of(result, "scores", metric="arp_pair")}
    first, *others = result.texts[0].systems  # a page opens a document with the first three
    assert first == "gold"
    assert others == sorted(others, key=losses.__getitem__)
    assert len(result.table("documents").rows) == len(systems) * 8 * 4


def test_missing_kinds_of_metrics_are_filled_in():
    usual = ("pk", "windowdiff", "boundary_similarity")
    assert case_settings({"metrics": ["arp_pair"]}).metrics == ("arp_pair", *usual)
    assert case_settings({"metrics": ["pk"]}).metrics == (*STUDIED, "pk")
    assert case_settings({}).metrics == (*STUDIED, *usual)


# Encoders -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = [str(save_checkpoint(kind, folder / kind)) for kind in ("roberta", "mpnet")]
    # Words the tiny models know, so that their vectors tell topics apart.
    documents = [
        Document.build(
            f"d{d}",
            [f"{a} {b}" for a, b in product(WORDS_OF[d % 2], WORDS_OF[d % 2][::-1])]
            + [f"{a} {b}" for a, b in product(WORDS_OF[1 - d % 2], repeat=2)],
            gold=[9, 9],
        )
        for d in range(6)
    ]
    corpus = Corpus(tuple(documents))
    return corpus, made, encoders({"c": corpus}, encoders=made, measure=False, **ENCODED)


def test_a_corpus_without_vectors_of_its_own_is_encoded(compared):
    corpus, made, _ = compared
    how = {"encoders": made[:1], "device": "cpu", "cache": False, "offline": True}
    found = correlate({"c": CORPUS, "other": corpus}, **ARGUMENTS, **how)
    alone = correlate({"other": corpus}, **{**ARGUMENTS, "embeddings": None}, **how)
    mine = rows_of(found, "scores", corpus="other")
    assert mine
    assert mine == rows_of(alone, "scores", corpus="other")


def test_every_encoder_has_the_correlation_study(compared):
    corpus, made, found = compared
    for encoder in made:
        alone = correlate({"c": corpus}, encoders=[encoder], **ENCODED)
        mine = [{**row, "encoder": None} for row in rows_of(found, "correlations", encoder=encoder)]
        assert mine == [{**row, "encoder": None} for row in alone.table("correlations").records()]


def test_agreement_is_kendall_of_the_systems_both_have(compared):
    _, made, found = compared
    (row,) = found.table("agreement").records()
    losses = []
    for encoder in made:
        scores = rows_of(found, "scores", encoder=encoder, metric="arp_pair")
        losses.append({r["system"]: r["loss"] for r in scores if r["kind"] != "cohesion"})
    assert losses[0].keys() == losses[1].keys()
    pairs = [(losses[0][name], losses[1][name]) for name in losses[0]]
    assert row["kendall"] == pytest.approx(stats.kendalltau(*zip(*pairs, strict=True)).statistic)
    assert (row["encoder_a"], row["encoder_b"], row["n_systems"]) == (*made, len(pairs))


def by_system(found, encoder, metric):
    """Losses of the independent systems, a row each."""
    pools = {r["system"]: r["pool"] for r in rows_of(found, "scores", encoder=encoder)}
    losses = {name: [] for name, pool in pools.items() if pool == "independent"}
    for row in rows_of(found, "documents", encoder=encoder, metric=metric):
        if row["system"] in losses:
            losses[row["system"]].append(row["value"])
    return [losses[name] for name in sorted(losses)]


def test_differences_between_encoders_are_those_of_the_definition(compared):
    """Both encoders on the same resamples of documents, systems and gold in common."""
    corpus, made, found = compared
    (row,) = found.table("differences").records()
    names = ("encoder_a", "encoder_b", "metric", "gold")
    assert [row[name] for name in names] == [*made, "arp_pair", "pk"]
    wanted = {"pool": "independent", "free": "arp_pair", "gold": "pk", **PEARSON}
    cells = [rows_of(found, "correlations", encoder=each, **wanted)[0] for each in made]
    assert row["difference"] == pytest.approx(cells[0]["value"] - cells[1]["value"], abs=1e-9)
    a, b = (by_system(found, encoder, "arp_pair") for encoder in made)
    gold = by_system(found, made[0], "pk")
    assert gold == by_system(found, made[1], "pk")
    assert len(gold) == row["n_systems"]
    drawn = resampled_documents(len(corpus), rng_for(0, "resamples"), 100).tolist()
    resampled = [correlation_difference(a, b, gold, times) for times in drawn]
    value = correlation_difference(a, b, gold, [1] * len(corpus))
    assert row["difference"] == pytest.approx(value, abs=1e-9)
    low, high = (quantile(resampled, share) for share in (0.025, 0.975))
    reach = max(0, value - low, high - value)
    assert row["ci"] == pytest.approx([max(-2, value - reach), min(2, value + reach)], abs=1e-9)
    extreme = sum(abs(each - value) >= abs(value) for each in resampled)
    assert row["p"] == pytest.approx((1 + extreme) / 101, abs=1e-9)
    assert row["p_bh"] == row["p"]


def difference(a, b, value, p, metric="expected_pk"):
    ci = None if value is None else [value - 0.1, value + 0.2]
    return {"encoder_a": a, "encoder_b": b, "metric": metric, "gold": "pk", "difference": value} | {
        "ci": ci,
        "p_bh": p,
    }


def correlation(encoder, value, metric="expected_pk"):
    return {"encoder": encoder, "free": metric, "gold": "pk", "value": value}


BOTH = [correlation("a", 0.7), correlation("b", 0.8), correlation("a", 0.9, "silhouette")]
SAID = "expected_pk agrees with pk over independent systems with a Pearson of 0.80 under b and 0.70"


@pytest.mark.parametrize(
    ("differences", "speeds", "use", "said"),
    [
        (
            [difference("a", "b", -0.1, 0.2), difference("a", "b", 0.5, 0.001, "silhouette")],
            {},
            "b",
            "a cannot be told from b (best − other: 0.10, 95 % interval -0.10 to 0.20, p 0.2, ",
        ),
        (
            [difference("a", "b", -0.1, 0.2)],
            {"a": 90.0, "b": 10.0},
            "b",
            "corrected for all comparisons). a encodes 9 times as many units a second.",
        ),
        ([difference("a", "b", -0.1, 0.2)], {"a": 19.0, "b": 10.0}, "b", "a cannot be told from b"),
        ([difference("b", "a", 0.1, 0.01)], {"a": 90.0, "b": 10.0}, "b", "b is better than a ("),
        (
            [difference("b", "a", 0.1, 0.01), difference("a", "b", 0.1, 0.2)],
            {},
            "b",
            "b is better than a: better on 1 of 2 corpora, at p 0.05, corrected",
        ),
        (
            [difference("b", "a", -0.1, 0.01), difference("a", "b", 0.1, 0.2)],
            {},
            "b",
            "a cannot be told from b: better on 0 of 2 corpora, worse on 1, at p 0.05",
        ),
        ([difference("a", "b", 0.1, None)], {}, "b", "cannot be tested: too few documents"),
    ],
)
def test_an_encoder_is_recommended_by_the_metric_that_is(differences, speeds, use, said):
    measured = {encoder: {"units_per_second": speed} for encoder, speed in speeds.items()}
    first, second = recommend(BOTH, differences, measured)
    assert first.startswith(f"Use {use}: {SAID}")
    assert said in second


def test_without_the_recommended_metric_the_one_that_follows_gold_best_counts():
    rows = [correlation(e, v, m) for m, e, v in (("x", "a", 0.2), ("y", "a", 0.6), ("y", "b", 0.5))]
    first, _ = recommend(rows, [difference("a", "b", 0.1, 0.9, "y")], {})
    assert first.startswith("Use a: y agrees with pk")


def test_the_answer_recommends_an_encoder(compared):
    _, made, found = compared
    (row,) = found.table("differences").records()
    best = made[0] if row["difference"] > 0 else made[1]
    assert found.verdict[0].startswith(f"Use {best}: arp_pair agrees with pk")


def test_cross_judging_scores_systems_of_one_with_the_other(compared):
    _, made, found = compared
    rows = found.table("cross").records()
    assert {(r["made_with"], r["scored_with"]) for r in rows} == set(product(made, repeat=2))
    for encoder in made:
        own = rows_of(found, "scores", encoder=encoder, metric="arp_pair")
        losses = {row["system"]: row["loss"] for row in own}
        seekers = [row["loss"] for row in own if row["pool"] == "cohesion"]
        (row,) = [r for r in rows if r["made_with"] == r["scored_with"] == encoder]
        assert row["beyond_gold"] == pytest.approx(np.mean(seekers) - losses["gold"])
    assert len({r["beyond_gold"] for r in rows}) == 4


def test_speed_is_measured_only_when_asked_for(compared):
    corpus, made, found = compared
    assert "units_per_second" not in [f.name for f in found.table("encoders").fields]
    speed = measure_speed(
        EncoderOptions(encoder=made[0], device="cpu", offline=True), distinct_texts(corpus), seed=0
    )
    assert speed["texts"] == len(distinct_texts(corpus))
    assert speed["units_per_second"] > 0
    assert 0 < speed["slowest_round"] <= 1


# Ghinassi et al. (2024), Table 1, columns of Table 2 over its 12 cases: mean and deviation. The
# deviation of ARP_std with Pk (.08, printed .07) and the mean of SegReFree with WD (.05, printed
# .56) do not follow from Table 1.
PAPER = {
    "silhouette, Pk": (".13 .81 .36 .83 .85 .88 -.42 -.42 -.46 .97 .97 .98", 0.46, 0.57),
    "silhouette, WD": (".08 .79 .33 .75 .78 .83 -.5 -.5 -.53 .99 .98 .99", 0.42, 0.59),
    "silhouette, B": (".24 .87 .4 .82 .8 .84 .02 .03 -.01 .94 .93 .96", 0.57, 0.38),
    "arp_pair, Pk": (".93 .95 .96 .92 .9 .95 .64 .44 .38 .89 .75 .93", 0.80, 0.20),
    "arp_pair, WD": (".94 .97 .95 .91 .94 .94 .7 .52 .49 .93 .83 .92", 0.84, 0.16),
    "arp_pair, B": (".94 .93 .97 .83 .78 .88 .25 .25 -.04 .89 .7 .97", 0.70, 0.33),
    "segrefree, B": (".23 .29 .81 .28 .07 .72 .22 -.36 -.38 .24 .24 -.63", 0.14, 0.41),
}


@pytest.mark.parametrize("cells", PAPER)
def test_mean_and_deviation_are_those_of_the_papers_table_2(cells):
    values, mean, deviation = PAPER[cells]
    found = mean_and_sd([float(value) for value in values.split()])
    assert [round(x, 2) for x in found] == [mean, deviation]


def test_skipped_documents_are_left_out_of_all_scores():
    """Of a system that leaves a document whole, the other documents count, by every metric."""
    rng = np.random.default_rng(3)
    whole = [rng.random(len(CORPUS)) < 0.3 for _ in range(6)]
    documents = []
    for d, document in enumerate(CORPUS):
        n = len(document.units)
        cuts = [(n,) if is_whole[d] else (n // 2, n - n // 2) for is_whole in whole]
        systems = {f"s{i}": Segmentation(cut) for i, cut in enumerate(cuts)}
        documents.append(replace(document, systems=systems))
    corpus = Corpus(tuple(documents))
    given = {"unsegmented": "skip", "pool": "given", **ARGUMENTS}
    result = correlate({"c": corpus}, **given)
    for i, is_whole in enumerate(whole):
        kept = [d for d in range(len(CORPUS)) if not is_whole[d]]
        part = Corpus(tuple(documents[d] for d in kept)).only_systems([f"s{i}"])
        alone = score(part, metrics=[*FREE, *GOLD], embeddings=[VECTORS[d] for d in kept])
        own = next(row for row in alone.systems if row.system == f"s{i}")
        for metric in (*FREE, *GOLD):
            (row,) = rows_of(result, "scores", system=f"s{i}", metric=metric)
            assert row["value"] == pytest.approx(own.metrics[metric].value, abs=1e-9), metric
    n_out = sum(int(each.sum()) for each in whole)
    assert any(f"{n_out} of 56 documents of systems have no boundary" in n for n in result.notes)


def test_a_system_without_any_boundary_takes_no_part_where_such_documents_are_skipped():
    corpus = with_systems([*"abcd", *(f"depth:window={i}" for i in (2, 3, 4, 5))])
    given = {"unsegmented": "skip", "pool": "given", **ARGUMENTS}
    without = correlate({"c": corpus}, **given)
    corpus = corpus.with_system("whole", {d.id: [len(d.units)] for d in CORPUS})
    result = correlate({"c": corpus}, **given)
    for table in ("independent", "cohesion"):
        keep = lambda row: {k: v for k, v in row.items() if "ci" not in k}  # noqa: E731
        found = [*map(keep, rows_of(result, table))]
        assert found
        assert found == [*map(keep, rows_of(without, table))]


def test_encoders_that_are_not_there_are_left_out_where_there_is_a_fallback():
    small, _ = planted(5)
    given = {"metrics": ["arp_pair", "pk"], "resamples": 100, "offline": True}
    missing = ["no/such", "nor/this"]
    result = correlate({"c": small}, encoders=missing, fallback="minilm", **given)
    assert len(result.settings["encoders"]) == 1
    for name, note in zip(missing, result.notes, strict=False):
        assert note.startswith(f"left out: encoder {name!r}: found neither a folder")
    assert result.notes[2] == "none of the encoders is to be had: minilm was taken instead."
    with pytest.raises(EncoderError, match="no/such"):
        correlate({"c": small}, encoders=["no/such"], **given)


# Supervised systems, as in the pool of the ARP paper --------------------------------------------

RANDOM = {"random_mean", *(f"random_{n}" for n in range(2, 10))}


def unlearnable(n_documents):
    """Documents and a system of their own; with vectors that teach nothing, training is short."""
    golds = np.random.default_rng(0).integers(2, 5, size=(n_documents, 3)).tolist()
    return topical_corpus(golds, spread=9, mine=lambda n: [2, n - 2])


TRAINED_ON, NOISE = unlearnable(8)
TRAINED = {"metrics": ["arp_pair", "pk"], "resamples": 100, "folds": 2, "device": "cpu"}
TRAINED |= {"embeddings": {"c": NOISE}}


def systems_of(result):
    rows = rows_of(result, "scores", metric="pk")
    return {row["system"]: (row["kind"], row["pool"]) for row in rows}


@pytest.fixture(scope="module")
def supervised():
    return correlate({"c": TRAINED_ON}, pool="paper", **TRAINED)


def test_the_pool_is_gold_nine_random_and_the_three_supervised_systems(supervised):
    found = systems_of(supervised)
    names = {"bilstm", "sheikh-bilstm", "transformer"}
    assert set(found) == {"gold", *RANDOM, *names}
    assert {found[name] for name in names} == {("supervised", "independent")}
    assert "supervised:bilstm+sheikh-bilstm+transformer(folds=2)" in supervised.signature
    assert "c: 13 independent and 0 cohesion-seeking systems" in " ".join(supervised.notes)
    (row,) = rows_of(supervised, "independent", metric="arp_pair")
    assert row["n_systems"] == 13
    wanted = {"pool": "blind", "free": "arp_pair", "gold": "pk", **PEARSON}
    (blind,) = rows_of(supervised, "correlations", **wanted)
    assert blind["n_systems"] == 10


def test_a_supervised_system_is_that_of_the_method(supervised):
    method = "supervised:architecture=sheikh-bilstm,folds=2"
    made = segment(TRAINED_ON, {"s": method}, embeddings=NOISE, device="cpu")
    alone = correlate({"c": made}, pool="given", **TRAINED)
    for metric in ("pk", "arp_pair"):
        (ours,) = rows_of(supervised, "scores", metric=metric, system="sheikh-bilstm")
        (again,) = rows_of(alone, "scores", metric=metric, system="s")
        assert ours["value"] == pytest.approx(again["value"])


def test_one_architecture_beside_the_systems_of_the_corpus():
    chosen = {"pool": "given", "supervised": ["sheikh-bilstm"]}
    found = systems_of(correlate({"c": TRAINED_ON}, **chosen, **TRAINED))
    kinds = {"gold": "gold", "mine": "given", "sheikh-bilstm": "supervised"}
    assert found == {name: (kind, "independent") for name, kind in kinds.items()}


def test_none_are_trained_unless_asked_for():
    assert "supervised" not in correlate({"c": TRAINED_ON}, pool="given", **TRAINED).signature
    found = systems_of(correlate({"c": TRAINED_ON}, pool="paper", supervised=[], **TRAINED))
    assert set(found) == {"gold", *RANDOM}


def test_every_encoder_has_systems_and_judges_all_of_them(tmp_path):
    names = ["wordllama", "minilm"]
    given = {"metrics": ["arp_pair", "pk"], "resamples": 100, "pool": "paper", "folds": 2}
    given |= {"supervised": ["sheikh-bilstm"], "cache": tmp_path, "device": "cpu"}
    result = encoders({"c": TRAINED_ON}, encoders=names, measure=False, **given)
    for encoder in names:
        rows = rows_of(result, "scores", metric="pk", encoder=encoder, kind="supervised")
        assert {row["system"] for row in rows} == {f"sheikh-bilstm ({name})" for name in names}


def test_too_few_documents_are_refused_before_anything_is_encoded(monkeypatch):
    def encode(*args, **options):
        raise AssertionError("encoded all the same")

    monkeypatch.setattr("reffree.encoders.embed.encode_corpus", encode)
    with pytest.raises(InputError, match="documents to train on; expected four at least"):
        correlate({"c": unlearnable(4)[0]}, pool="paper", folds=2)
