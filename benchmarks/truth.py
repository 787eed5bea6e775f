"""How far can each score be trusted? Every reference-free metric against gold-based ones.

Corpora are files of the user's own, each with ``gold`` or several annotators' ``golds``; none comes
with reffree. Those with gold and few systems get the pool of ``reffree study correlate``; those
with systems of their own are judged on these. Writes ``benchmarks/results/truth.json`` and a chart
beside it; ``--table`` prints that file as markdown.

    python benchmarks/truth.py wiki50.jsonl choi.jsonl qmsum.jsonl --encoder wordllama
    python benchmarks/truth.py --table
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import reffree
from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import corpus_vectors
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import Inputs
from reffree.segmenters.naive import Even, Random
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.studies.correlate_pool import (
    SENTINELS,
    Case,
    CaseSettings,
    Member,
    make_cases,
    score_case,
)
from reffree.studies.study import corpus_parts
from reffree.util.progress import no_progress
from reffree.util.seeds import rng_for

RESULTS = Path(__file__).parent / "results" / "truth.json"
CHART = RESULTS.with_suffix(".svg")
GOLD_BASED = ("pk", "windowdiff", "boundary_similarity")
FREE = ("expected_pk", "arp_cos", "arp_pair", "silhouette", "segrefree")
MEASURES = ("pearson", "kendall", "spa")
POOLS = ("independent", "cohesion", "all")
MINIMISER = "posterior"
"""The segmenter that minimises expected_pk itself: pools are shown without it and with it."""

DENSITIES = (2, 3, 4, 6, 8, 12, 16, 24)
EVERY = (3, 5, 8, 12, 20, 40)
DRAWS = 40
"""Of one random boundary in every document, the blind cut that comes nearest to gold."""


def cases(path: str, encoder: str, *, with_length: bool) -> tuple[Case, float]:
    """Score all systems of a corpus; also return its mean gold segment."""
    corpus = reffree.load(path)
    golds = [g for d in corpus for g in d.references]
    length = sum(g.n_units for g in golds) / sum(map(len, golds))
    known = (f"expected_pk:length={length:.3g}",) if with_length else ()
    settings = CaseSettings(
        metrics=(*FREE[:1], *known, *FREE[1:], *GOLD_BASED), resamples=1000, encoder=encoder
    )
    if GOLD in corpus.hypotheses:
        (part,) = corpus_parts({Path(path).stem: corpus}, None, settings)
        return make_cases([(part, settings)])[0], length
    members = [Member(name, "given", "independent") for name in corpus.hypotheses]
    embedded = corpus_vectors(corpus, None, settings, no_progress)
    return score_case(Path(path).stem, corpus, members, embedded, settings), length


def pools(case: Case) -> dict[str, MetaEvaluation]:
    """Systems in pools, without and with the minimiser of expected_pk; or all that were given."""
    place = {system: i for i, system in enumerate(case.corpus.hypotheses)}
    members = {"given": list(case.members)}
    if any(member.kind != "given" for member in case.members):
        members = {}
        for pool in POOLS:
            every = [member for member in case.members if member.is_in(pool)]
            without = [member for member in every if member.system != MINIMISER]
            members[pool] = without
            if len(without) < len(every):
                members[f"{pool} + {MINIMISER}"] = every
    whole = MetaEvaluation(case.losses, rng=partial(rng_for, 0))
    return {
        pool: whole.among(np.sort([place[member.system] for member in systems]))
        for pool, systems in members.items()
    }


def agreement(case: Case, length: float) -> list[dict[str, Any]]:
    """Every metric and sentinel against every gold-based metric, in every pool.

    A row's ``agreement`` has, for each gold-based metric and measure, the value and its interval.
    """
    rows = []
    for pool, found in pools(case).items():
        for metric in case.judged:
            estimates = {
                gold: {
                    measure: found.corpus(metric, gold, measure)  # type: ignore[arg-type]
                    for measure in MEASURES
                }
                for gold in GOLD_BASED
            }
            rows.append(
                {
                    "corpus": case.name,
                    "encoder": case.encoder,
                    "pool": pool,
                    "metric": "expected_pk:length" if ":length" in metric else metric,
                    "is_sentinel": metric in SENTINELS,
                    "systems": estimates["pk"]["pearson"].systems,
                    "length": round(length, 2),
                    "agreement": {
                        gold: {
                            measure: [_rounded(each.value), *map(_rounded, each.ci or (None, None))]
                            for measure, each in by_measure.items()
                        }
                        for gold, by_measure in estimates.items()
                    },
                }
            )
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def blind_cuts(case: Case) -> dict[str, Any]:
    """Whether even or random cuts of any density beat gold or the best segmenter."""
    corpus = Corpus(case.corpus.documents)
    systems = {m.system: m for m in case.members}
    reads = [s for s, m in systems.items() if m.kind in ("lexical", "cohesion")]
    pk = case.losses["pk"].values.mean(1)
    order = list(case.corpus.hypotheses)
    best = min(reads, key=lambda s: pk[order.index(s)])
    blind = {
        **{f"even:k={k}": Even(k=k)(Inputs(corpus)) for k in DENSITIES},
        **{f"even:every={e}": Even(every=e)(Inputs(corpus)) for e in EVERY},
        **{f"random:p=1/{e}": Random(p=1 / e)(Inputs(corpus)) for e in EVERY},
    }
    drawn = {
        f"one boundary, draw {i}": tuple(_one_boundary(len(d.units), d.id, i) for d in corpus)
        for i in range(DRAWS)
    }
    hypotheses = {GOLD: corpus.hypotheses[GOLD], best: corpus.hypotheses[best], **blind, **drawn}
    totals = dict.fromkeys(hypotheses, 0.0)
    n = 0
    for d, document in enumerate(corpus):
        posterior = Posterior(case.embedded.vectors[d], Reading(document.units))
        if posterior.is_defined:
            n += 1
            for name, segmentations in hypotheses.items():
                masses = np.array([segmentations[d].masses])
                totals[name] += float(posterior.expected_pk(masses)[0])
    means = {name: total / n for name, total in totals.items()}
    lowest = min(blind, key=lambda name: means[name])
    return {
        "corpus": case.name,
        "encoder": case.encoder,
        "gold": means[GOLD],
        "segmenter": best,
        "best": means[best],
        "blind": lowest,
        "blind_value": means[lowest],
        "draws": DRAWS,
        "draws_below_gold": sum(means[name] < means[GOLD] for name in drawn),
    }


def _one_boundary(n_units: int, document: str, draw: int) -> Segmentation:
    at = int(rng_for(draw, "one boundary", document).integers(1, max(2, n_units)))
    return Segmentation.from_boundaries([at] if n_units > 1 else [], n_units)


def table(results: dict[str, Any]) -> str:
    """Markdown of a results file."""
    lines = []
    for gold, title in (("pk", "Pk"), ("windowdiff", "WindowDiff"), ("boundary_similarity", "B")):
        lines += [f"Agreement with {title}, Pearson / Kendall / soft pairwise accuracy:", ""]
        lines += _matrix(results["rows"], gold)
    lines += ["95 % intervals of Pearson with Pk over resampled documents:", ""]
    lines += _matrix(results["rows"], "pk", intervals=True)
    lines += [
        "Expected Pk of gold, of the segmenter with the lowest Pk, and of the best even or random "
        "cut of any density; and how many of 40 draws of one random boundary a document are lower "
        "than gold:",
        "",
        "| corpus | encoder | gold | best segmenter | | best blind cut | | below gold |",
        "|:--|:--|--:|:--|--:|:--|--:|--:|",
    ]
    lines += [
        f"| {r['corpus']} | {_short(r['encoder'])} | {r['gold']:.3f} | `{r['segmenter']}` "
        f"| {r['best']:.3f} | `{r['blind']}` | {r['blind_value']:.3f} "
        f"| {r['draws_below_gold']} of {r['draws']} |"
        for r in results["blind"]
    ]
    lines += ["", "![Pearson correlation with Pk](results/truth.svg)"]
    return "\n".join(lines)


def summary(results: dict[str, Any]) -> str:
    """Markdown of Pearson with Pk: of expected Pk by pool, of others over all systems."""
    pearson = {
        (r["corpus"], _short(r["encoder"]), r["pool"], r["metric"]): r["agreement"]["pk"][
            "pearson"
        ][0]
        for r in results["rows"]
    }
    others = ("expected_pk:length", "arp_cos", "arp_pair", "silhouette", "segrefree", "n_segments")
    lines = [
        "Pearson with Pk; of `expected_pk` over independent, cohesion-seeking and all systems, of "
        "the others over all:",
        "",
        f"| corpus | encoder | expected_pk | {' | '.join(others)} |",
        "|:--|:--|--:|" + "--:|" * len(others),
    ]
    for corpus, encoder in dict.fromkeys((corpus, encoder) for corpus, encoder, *_ in pearson):
        every = "given" if (corpus, encoder, "given", "expected_pk") in pearson else "all"
        pools = POOLS if every == "all" else (every,)
        own = " / ".join(_number(pearson[corpus, encoder, p, "expected_pk"]) for p in pools)
        cells = [_number(pearson.get((corpus, encoder, every, name))) for name in others]
        lines.append(f"| {corpus} | {encoder} | {own} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", "![Pearson correlation with Pk](results/truth.svg)"])


def _matrix(rows: list[dict[str, Any]], gold: str, *, intervals: bool = False) -> list[str]:
    """Corpora and pools down, metrics across."""
    places = list(dict.fromkeys((r["corpus"], _short(r["encoder"]), r["pool"]) for r in rows))
    metrics = dict.fromkeys((r["metric"], r["is_sentinel"]) for r in rows)
    cells = {(r["corpus"], _short(r["encoder"]), r["pool"], r["metric"]): r for r in rows}
    titles = [f"{metric} (sentinel)" if is_sentinel else metric for metric, is_sentinel in metrics]
    lines = [f"| corpus | encoder | pool | {' | '.join(titles)} |"]
    lines.append("|:--|:--|:--|" + "--:|" * len(titles))
    for place in places:
        texts = []
        for metric, _ in metrics:
            found = cells.get((*place, metric))
            measured = found["agreement"][gold] if found else dict.fromkeys(MEASURES, [None] * 3)
            if intervals:
                _, low, high = measured["pearson"]
                texts.append("–" if low is None else f"{low:.2f} to {high:.2f}")
            else:
                texts.append(" / ".join(_number(measured[measure][0]) for measure in MEASURES))
        lines.append(f"| {' | '.join([*place, *texts])} |")
    return [*lines, ""]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _short(encoder: str) -> str:
    return encoder.rsplit("/", 1)[-1]


def draw(results: dict[str, Any]) -> None:
    """Pearson correlation with Pk: a row of dots per metric, a panel per corpus and pool."""
    import altair as alt

    rows = [
        {
            **{name: r[name] for name in ("corpus", "metric")},
            "value": r["agreement"]["pk"]["pearson"][0],
            "encoder": _short(r["encoder"]),
            "pool": "all" if r["pool"] == "given" else r["pool"],
        }
        for r in results["rows"]
        if r["metric"] != "random_score" and MINIMISER not in r["pool"]
    ]
    order = list(dict.fromkeys(r["metric"] for r in rows))
    corpora = list(dict.fromkeys(r["corpus"] for r in rows))
    # Panels without a dot have to be there, or others take their places.
    nothing = {"metric": order[0], "encoder": rows[0]["encoder"], "value": None}
    rows = [
        *({"corpus": corpus, "pool": pool, **nothing} for corpus in corpora for pool in POOLS),
        *rows,
    ]
    base = alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
    dots = base.mark_point(filled=True, size=60).encode(
        x=alt.X("value:Q", title="Pearson with Pk", scale=alt.Scale(domain=[-1, 1])),
        y=alt.Y("metric:N", sort=order, title=None, axis=alt.Axis(labelLimit=200)),
        color=alt.Color("encoder:N", title=None, legend=alt.Legend(orient="top", labelLimit=200)),
    )
    rule = base.mark_rule(color="#999").encode(x=alt.datum(0))
    chart = alt.layer(rule, dots).properties(width=230, height=140)
    grid = chart.facet(
        row=alt.Row("corpus:N", title=None, sort=corpora),
        column=alt.Column("pool:N", title=None, sort=list(POOLS)),
    )
    grid.properties(padding=10).save(str(CHART))


def save(results: dict[str, Any]) -> None:
    """Write the results, one row a line."""

    def lines(rows: list[dict[str, Any]]) -> str:
        return ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)

    RESULTS.write_text(
        f'{{"version": {json.dumps(results["version"])},\n'
        f' "rows": [\n  {lines(results["rows"])}\n ],\n'
        f' "blind": [\n  {lines(results["blind"])}\n ]}}\n',
        encoding="utf-8",
    )


def main() -> None:
    """Run the study, or print the table of the last run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", help="corpus files with gold or golds")
    parser.add_argument("--encoder", action="append", help="may be repeated; wordllama and minilm")
    parser.add_argument("--table", action="store_true", help="print the last results")
    arguments = parser.parse_args()
    if arguments.table:
        results = json.loads(RESULTS.read_text())
        draw(results)
        print(table(results))
        return
    if not arguments.corpora:
        parser.error("name at least one corpus")
    results = {"version": reffree.__version__, "rows": [], "blind": []}
    for path in arguments.corpora:
        for encoder in arguments.encoder or ["wordllama", "minilm"]:
            start = time.perf_counter()
            case, length = cases(path, encoder, with_length=True)
            results["rows"] += agreement(case, length)
            if GOLD in case.corpus.hypotheses:
                results["blind"].append(blind_cuts(case))
            print(f"{path} {encoder}: {time.perf_counter() - start:.0f} s", flush=True)
            save(results)
    draw(results)
    print(table(results))


if __name__ == "__main__":
    main()
