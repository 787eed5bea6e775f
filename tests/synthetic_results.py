"""Results of every study, made up from seeded noise: their figures mean nothing."""

from __future__ import annotations

import math
import random
from itertools import combinations, product

from reffree.evaluate.result import DocumentText, Field, Result, Table

FREE = ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree", "sag")
GOLD = ("pk", "windowdiff", "boundary_similarity")
SENTINELS = ("n_segments", "random")
POOLS = {"independent": 6, "cohesion": 4}
NASTY = "</script><img src=x onerror=alert(1)>\"'`&𝕊 🙂 שלום ]];--> \u2028"


def table(name, kinds, rows, *, shown=False, title=None):
    fields = [Field(each, each.replace("_", " "), kind) for each, kind in kinds.items()]
    return Table.of(name, title or f"Made-up {name}", fields, rows, shown=shown)


def systems(nasty=""):
    names = [(f"{pool}:system={i}", pool) for pool, n in POOLS.items() for i in range(n)]
    names[1] = (f"greedy:metric=arp_pair,k=gold{nasty}", "independent")
    return [("gold", "independent"), *names[1:]]


def correlation_rows(corpora, encoders, rng, nasty=""):
    for corpus in corpora:
        for encoder in encoders:
            for pool in (*POOLS, f"all{nasty}"):
                for coefficient in ("pearson", "kendall"):
                    for i, free in enumerate((*FREE, *SENTINELS)):
                        for gold in GOLD:
                            value = rng.uniform(-0.9, 0.99)
                            defined = not (free == "random" and gold == "pk")
                            yield {
                                "corpus": corpus,
                                "encoder": encoder,
                                "pool": pool,
                                "level": "corpus",
                                "free": free,
                                "gold": gold,
                                "coefficient": coefficient,
                                "value": value if defined else None,
                                "ci": [value - 0.1, min(1.0, value + 0.1)] if defined else None,
                                "n_systems": 11,
                                "undefined": 0,
                                "is_sentinel": "yes" if i >= len(FREE) else "no",
                            }


def correlations(corpora, encoders, rng, nasty=""):
    names = ("corpus", "encoder", "pool", "level", "free", "gold", "coefficient")
    kinds = {**dict.fromkeys(names, "text"), "value": "number", "ci": "interval"}
    kinds |= {"n_systems": "count", "undefined": "count", "is_sentinel": "text"}
    rows = list(correlation_rows(corpora, encoders, rng, nasty))
    return table("correlations", kinds, rows)


def scores(corpora, encoders, rng, nasty=""):
    rows = []
    for corpus in corpora:
        for encoder in encoders:
            for i, (system, pool) in enumerate(systems(nasty)):
                for metric in (*FREE, *GOLD, *SENTINELS):
                    kinds = {**dict.fromkeys(GOLD, "gold"), **dict.fromkeys(SENTINELS, "sentinel")}
                    loss = 0.2 + 0.05 * i + rng.uniform(0, 0.1)
                    rows.append(
                        {
                            "corpus": corpus,
                            "encoder": encoder,
                            "system": system,
                            "pool": pool,
                            "kind": "given",
                            "metric": metric,
                            "metric_kind": kinds.get(metric, "free"),
                            "value": loss,
                            "loss": None if i == 3 and metric == "sag" else loss,
                        }
                    )
    names = ("corpus", "encoder", "system", "pool", "kind", "metric", "metric_kind")
    return table(
        "scores", {**dict.fromkeys(names, "text"), "value": "number", "loss": "number"}, rows
    )


def documents(corpora, encoders, rng, n_documents, nasty=""):
    rows = [
        {
            "corpus": corpus,
            "encoder": encoder,
            "document": f"{corpus}-d{d}",
            "system": system,
            "metric": metric,
            "value": rng.gauss(0.3 + 0.03 * i, 0.08),
        }
        for corpus in corpora
        for encoder in encoders
        for d in range(n_documents)
        for i, (system, _) in enumerate(systems(nasty))
        for metric in (*FREE, "pk")
    ]
    names = ("corpus", "encoder", "document", "system", "metric")
    return table("documents", {**dict.fromkeys(names, "text"), "value": "number"}, rows)


def texts(corpora, rng, nasty=""):
    words = (
        "we",
        "should",
        "book",
        "the",
        "room",
        "before",
        "lunch",
        "as",
        "budgets",
        "are",
        "late",
    )
    made = []
    for corpus in corpora:
        for d in range(3):
            n = 14 + 6 * d
            units = [
                " ".join(rng.choices(words, k=rng.randint(3, 18))).capitalize() + "."
                for _ in range(n)
            ]
            units[2] = f"{nasty} שלום לכולם" if nasty else "Next, the holidays."
            marked = {"late": (5, n - 5), "gold": (4, 6, n - 10), "none": (n,), "every": (1,) * n}
            for name, _ in systems(nasty)[1:6]:
                cut = rng.randint(2, n - 2)
                marked[name] = (cut, n - cut)
            made.append(DocumentText(corpus, f"{corpus}-d{d}{nasty}", tuple(units), marked))
    return tuple(made)


def ranking(nasty=""):
    fields = [
        Field("system", "system", "text"),
        Field("pool", "pool", "text"),
        Field("loss", "loss", "number", interval="ci", best="low"),
        Field("ci", "95 %", "interval"),
        Field("share", "noticed", "share"),
        Field("p", "p", "p"),
        Field("segments", "segments", "count"),
    ]
    rows = [
        {
            "system": system,
            "pool": pool,
            "loss": None if i == 2 else 0.4 - 0.02 * (i * 7 % 11),
            "ci": None if i == 2 else [0.3 - 0.02 * (i * 7 % 11), 0.5],
            "share": 0.1 * (i % 10),
            "p": 0.001 * i,
            "segments": 9 + 333 * i,
        }
        for i, (system, pool) in enumerate(systems(nasty))
    ]
    return Table.of("ranking", f"Systems by loss{nasty}", fields, rows)


def result(study, tables, *, nasty="", with_texts=()):
    return Result(
        study=study,
        question=f"Which made-up metric follows gold?{nasty}",
        verdict=(
            f"Nothing here was measured: the figures are seeded noise.{nasty}",
            "Over 11 made-up systems, arp_cos agrees with pk at Kendall .61 (95 % .42 to .77).",
            "The sentinels reach .20, which every metric should beat.",
        ),
        tables=tuple(tables),
        signature=f"metrics:arp_std(p=2)+arp_cos|encoder:made-up@0000{nasty}|seed:0|reffree:0.1.0",
        settings={"pool": "auto", "seed": 0, "resamples": 1000, "nested": {"a": [1, 2, nasty]}},
        corpora=(
            {"name": f"alpha{nasty}", "documents": 12, "units": 324, "dropped_units": 0},
            {"name": "beta", "documents": 5, "units": 77, "dropped_units": 2},
        ),
        notes=(f"2 units of beta were dropped.{nasty}",),
        reading={
            f"arp_cos{nasty}": "A loss: how much neighbouring segments differ; lower is better.",
            "pk": "Share of windows on which hypothesis and gold disagree; lower is better.",
        },
        texts=with_texts,
    )


def correlate(*, n_documents=8, nasty="", corpora=("alpha", "beta"), encoders=("minilm", "mpnet")):
    rng = random.Random(0)
    corpora = tuple(f"{name}{nasty}" for name in corpora)
    tables = [
        ranking(nasty),
        correlations(corpora, encoders, rng, nasty),
        scores(corpora, encoders, rng, nasty),
        documents(corpora, encoders, rng, n_documents, nasty),
    ]
    return result("correlate", tables, nasty=nasty, with_texts=texts(corpora, rng, nasty))


def perturb(nasty=""):
    rows = []
    kinds = ("removal", "insertion", "transposition", f"mixture{nasty}")
    for corpus in ("alpha", "beta"):
        for kind in kinds:
            for i, metric in enumerate((*FREE[:3], "pk", "n_segments")):
                for step in range(7):
                    scaled = (step / 6) ** (1 + i / 4) if metric != "n_segments" else None
                    value = None if scaled is None else 0.2 + 0.3 * scaled * (1 + i)
                    band = 0.03 * step / 6
                    rows.append(
                        {
                            "corpus": corpus,
                            "kind": kind,
                            "strength": step if kind == "transposition" else step / 6,
                            "metric": metric,
                            "value": value,
                            "low": None if value is None else value - band,
                            "high": None if value is None else value + band,
                            "scaled": scaled,
                            "scaled_low": None if scaled is None else scaled - band,
                            "scaled_high": None if scaled is None else scaled + band,
                        }
                    )
    numbers = ("value", "low", "high", "scaled", "scaled_low", "scaled_high")
    kinds_of = {"corpus": "text", "kind": "text", "strength": "number", "metric": "text"}
    return result(
        "perturb",
        [ranking(nasty), table("curves", kinds_of | dict.fromkeys(numbers, "number"), rows)],
        nasty=nasty,
    )


def density(nasty="", n_thresholds=15):
    rows, points = [], []
    places = {"alpha": 0.08, "beta": 0.2}  # boundaries of gold per gap
    for corpus, gold_density in places.items():
        for shift, method in enumerate(("depth", f"changepoint{nasty}", "gold")):
            sweep = range(1, n_thresholds + 1) if method != "gold" else [n_thresholds // 4]
            for matching in ("many_to_one", "one_to_one"):
                for measure in ("w_f1", "coverage", "purity", "bor", "arp_cos"):
                    for t in sweep:
                        bor = 4 * t / n_thresholds
                        value = math.exp(-((bor - 1.2 - 0.3 * shift) ** 2)) * 0.8
                        value = bor if measure == "bor" else value
                        rows.append(
                            {
                                "corpus": corpus,
                                "method": method,
                                "matching": matching,
                                "threshold": None if method == "gold" else 1 - t / n_thresholds,
                                "bor": bor,
                                "density": bor * gold_density,
                                "measure": measure,
                                "value": value,
                                "low": value - 0.05,
                                "high": value + 0.05,
                            }
                        )
            own = {"corpus": corpus, "method": method, "point": "own", "threshold": None}
            own |= {"bor": 1.7, "density": 1.7 * gold_density, "w_f1": 0.5, "coverage": 0.7}
            points.append({**own, "w_f1_one_to_one": 0.4, "purity": 0.9})
    texts = ("corpus", "method", "matching", "measure")
    numbers = ("threshold", "bor", "density", "value", "low", "high")
    kinds = dict.fromkeys(texts, "text") | dict.fromkeys(numbers, "number")
    of_points = dict.fromkeys(("corpus", "method", "point"), "text")
    of_points |= dict.fromkeys([name for name in points[0] if name not in of_points], "number")
    tables = [table("curves", kinds, rows), table("points", of_points, points)]
    return result("density", tables, nasty=nasty)


def selection(nasty=""):
    rows = [
        {
            "corpus": corpus,
            "method": method,
            "rule": rule,
            "thinned": thinned,
            "unit": 2.0 * i,
            "value": 0.1 + 0.01 * i,
        }
        for corpus in ("alpha", "beta")
        for method in ("depth", f"mine{nasty}")
        for rule in ("static", "adaptive")
        for thinned in ("73.5% candidates", "57.7% candidates")
        for i in range(5)
    ]
    kinds = dict.fromkeys(("corpus", "method", "rule", "thinned"), "text")
    tables = [table("places", kinds | dict.fromkeys(("unit", "value"), "number"), rows)]
    return result("selection", tables, nasty=nasty)


def tune(nasty=""):
    rows = [
        {
            "corpus": "texts",
            "splitter": splitter,
            "setting": f"{splitter}:{size}",
            "size": 1.0 * size,
            "value": 0.3 + abs(size - 400) / 4000,
            "value_ci": [0.2, 0.6] if size < 500 else None,
        }
        for splitter in ("recursive", f"token{nasty}")
        for size in (200, 400, 800)
    ]
    kinds = dict.fromkeys(("corpus", "splitter", "setting"), "text")
    kinds |= {"size": "number", "value": "number", "value_ci": "interval"}
    return result("tune", [table("curve", kinds, rows)], nasty=nasty)


def granularity(nasty="", n_numbers=12):
    rows, marks = [], []
    systems = ("gold", "depth", f"changepoint{nasty}")
    for corpus, gold in {"alpha": 4.5, "beta": 12.0}.items():
        for metric in ("expected_pk", "expected_w_f1"):
            place = {"corpus": corpus, "metric": metric}
            for s, system in enumerate(systems):
                numbers = [2 * 1.3**i for i in range(n_numbers)]
                for i, segments in enumerate([*numbers, gold + s]):
                    value = 0.3 + 0.1 * abs(math.log(segments / (gold + 2 * s)))
                    point = "grid" if i < n_numbers else "own"
                    row = {**place, "system": system, "point": point, "segments": segments}
                    span = {"low": value - 0.03, "high": value + 0.04}
                    rows.append({**row, "value": value, **span, "real": 0.1 * s})
            marks.append({**place, "point": "assumed", "low": 2.2, "segments": 5.0, "high": 9.0})
            marks.append({**place, "point": "gold", "low": None, "segments": gold, "high": None})
    kinds = dict.fromkeys(("corpus", "metric", "system", "point"), "text")
    numbers_of = dict.fromkeys(("segments", "value", "low", "high", "real"), "number")
    of_marks = {name: "text" if isinstance(v, str) else "number" for name, v in marks[0].items()}
    tables = [table("curves", kinds | numbers_of, rows), table("marks", of_marks, marks)]
    return result("granularity", tables, nasty=nasty)


def encoders(nasty=""):
    rng = random.Random(1)
    names = ("minilm", "mpnet", f"falcon-7b{nasty}")
    agreement = [
        {"encoder_a": a, "encoder_b": b, "metric": m, "kendall": rng.uniform(0, 1)}
        for a, b in combinations(names, 2)
        for m in FREE
    ]
    cross = [
        {"made_with": a, "scored_with": b, "metric": m, "value": rng.uniform(-0.3, 0.9)}
        for a, b in product(names, names)
        for m in FREE
    ]
    of = [{"encoder": name, "corpus": "alpha", "anisotropy": rng.random()} for name in names]
    of = [row | {"units_per_second": 30.0 * 12**i} for i, row in enumerate(of)]
    differences = [
        {"encoder_a": a, "encoder_b": b, "metric": m, "gold": g, "difference": 0.1, "p": 0.03}
        for a, b in combinations(names, 2)
        for m in FREE
        for g in GOLD
    ]
    text = {"encoder_a": "text", "encoder_b": "text", "metric": "text", "kendall": "number"}
    made = {"made_with": "text", "scored_with": "text", "metric": "text", "value": "number"}
    about = {"encoder": "text", "corpus": "text", "anisotropy": "number"}
    about |= {"units_per_second": "count"}
    apart = {**dict.fromkeys(("encoder_a", "encoder_b", "metric", "gold"), "text")}
    apart |= {"difference": "number", "p": "p"}
    tables = [
        table("encoders", about, of, shown=True),
        table("differences", apart, differences, shown=True),
        correlations(("alpha",), names, rng),
        table("agreement", text, agreement),
        table("cross", made, cross),
    ]
    return result("encoders", tables, nasty=nasty)


def diagnose(nasty=""):
    checks = [
        {
            "check": f"near-duplicates{nasty}",
            "value": 0.12,
            "verdict": "warn",
            "advice": "Merge them.",
        },
        {"check": "anisotropy", "value": 0.4, "verdict": "ok", "advice": None},
    ]
    kinds = [
        {"corpus": corpus, "metric": metric, "kind": kind, "share": (i + j) % 7 / 7, "turned": 0.5}
        for corpus in ("alpha", "beta")
        for i, metric in enumerate(FREE)
        for j, kind in enumerate(("removal", "insertion"))
    ]
    of_checks = {"check": "text", "value": "number", "verdict": "text", "advice": "text"}
    of_kinds = dict.fromkeys(("corpus", "metric", "kind"), "text")
    of_kinds |= {"share": "share", "turned": "share"}
    tables = [table("checks", of_checks, checks, shown=True), table("kinds", of_kinds, kinds)]
    return result("diagnose", tables, nasty=nasty)


def unknown():
    """A study that no chart knows, with a table under a known name and other columns."""
    other = table("curves", {"angle": "number"}, [{"angle": 1.0}])
    return result("somersault", [ranking(), other])


ALL = {
    f.__name__: f
    for f in (correlate, perturb, density, selection, tune, granularity, encoders, diagnose)
}
