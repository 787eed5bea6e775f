"""Results of every study, made up from seeded noise: their figures mean nothing."""

from __future__ import annotations

import math
import random
from itertools import combinations, product

from reffree.evaluate.result import DocumentText, Field, Result, Table, columns

FREE = ("arp_std", "arp_cos", "arp_pair", "silhouette", "expected_pk", "segrefree")
GOLD = ("pk", "windowdiff", "boundary_similarity")
SENTINELS = ("n_segments", "random")
POOLS = {"independent": 6, "cohesion": 4}
HOLE = "segrefree"  # the metric without a loss for one system
NASTY = "</script><img src=x onerror=alert(1)>\"'`&𝕊 🙂 שלום ]];--> \u2028"


def crossed(**values):
    """A row for every combination of the values of its columns."""
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def table(name, kinds, rows, *, shown=False, title=None):
    """A table whose columns are those of a kind: names that are texts, ``number="a b"``."""
    fields = [Field(each, each.replace("_", " "), kind) for each, kind in kinds.items()]
    return Table.of(name, title or f"Made-up {name}", fields, rows, shown=shown)


def kinds(text, **others):
    """Kinds by column, from the names of the columns of each kind."""
    return {
        name: kind for kind, names in {"text": text, **others}.items() for name in names.split()
    }


def systems(nasty=""):
    names = [(f"{pool}:system={i}", pool) for pool, n in POOLS.items() for i in range(n)]
    names[1] = (f"greedy:metric=arp_pair,k=gold{nasty}", "independent")
    return [("gold", "independent"), *names[1:]]


def correlations(corpora, encoders, rng, nasty=""):
    of = {"corpus": corpora, "encoder": encoders, "pool": (*POOLS, f"all{nasty}")}
    metrics = {"free": (*FREE, *SENTINELS), "gold": GOLD}
    rows = crossed(**of, coefficient=("pearson", "kendall"), **metrics)
    for row in rows:
        value = rng.uniform(-0.9, 0.99)
        is_defined = (row["free"], row["gold"]) != ("random", "pk")
        row |= {"level": "corpus", "n_systems": 11, "undefined": 0}
        row |= {"value": value if is_defined else None}
        row |= {"ci": [value - 0.1, min(1.0, value + 0.1)] if is_defined else None}
        row |= {"is_sentinel": "yes" if row["free"] in SENTINELS else "no"}
    names = "corpus encoder pool level free gold coefficient is_sentinel"
    of = kinds(names, number="value", interval="ci", count="n_systems undefined")
    return table("correlations", of, rows)


def scores(corpora, encoders, rng, nasty=""):
    rows = []
    metric_kinds = dict.fromkeys(FREE, "free") | dict.fromkeys(GOLD, "gold")
    metric_kinds |= dict.fromkeys(SENTINELS, "sentinel")
    of = {"corpus": corpora, "encoder": encoders}
    for row in crossed(**of, s=enumerate(systems(nasty)), metric=metric_kinds):
        i, (system, pool) = row.pop("s")
        loss = 0.2 + 0.05 * i + rng.uniform(0, 0.1)
        row |= {"system": system, "pool": pool, "kind": "given", "value": loss}
        row |= {"metric_kind": metric_kinds[row["metric"]]}
        rows.append(row | {"loss": None if i == 3 and row["metric"] == HOLE else loss})
    names = "corpus encoder system pool kind metric metric_kind"
    return table("scores", kinds(names, number="value loss"), rows)


def documents(corpora, encoders, rng, n_documents, nasty=""):
    of = {"corpus": corpora, "encoder": encoders, "document": range(n_documents)}
    rows = crossed(**of, s=enumerate(systems(nasty)), metric=(*FREE, "pk"))
    for row in rows:
        i, (system, _) = row.pop("s")
        row |= {"document": f"{row['corpus']}-d{row['document']}", "system": system}
        row |= {"value": rng.gauss(0.3 + 0.03 * i, 0.08)}
    return table("documents", kinds("corpus encoder document system metric", number="value"), rows)


def texts(corpora, rng, nasty=""):
    words = ("we should book the room", "before lunch", "as budgets", "are late", "and the")
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
        *columns("text", "system", "pool"),
        Field("loss", "loss", "number", interval="ci", best="low"),
        *columns("interval", ci="95 %"),
        *columns("share", share="noticed"),
        *columns("p", "p"),
        *columns("count", "segments"),
    ]
    rows = []
    for i, (system, pool) in enumerate(systems(nasty)):
        loss = 0.02 * (i * 7 % 11)
        row = {"system": system, "pool": pool, "loss": None if i == 2 else 0.4 - loss}
        row |= {"ci": None if i == 2 else [0.3 - loss, 0.5], "share": 0.1 * (i % 10)}
        rows.append(row | {"p": 0.001 * i, "segments": 9 + 333 * i})
    return Table.of("ranking", f"Systems by loss{nasty}", fields, rows)


def result(study, tables, *, nasty="", with_texts=()):
    return Result(
        command=study,
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
    damage = ("removal", "insertion", "transposition", f"mixture{nasty}")
    metrics = enumerate((*FREE[:3], "pk", "n_segments"))
    rows = crossed(corpus=("alpha", "beta"), kind=damage, m=metrics, step=range(7))
    for row in rows:
        (i, metric), step = row.pop("m"), row.pop("step")
        scaled = None if metric == "n_segments" else (step / 6) ** (1 + i / 4)
        value = None if scaled is None else 0.2 + 0.3 * scaled * (1 + i)
        strength = step if row["kind"] == "transposition" else step / 6
        row |= {"metric": metric, "strength": strength}
        for name, centre in (("", value), ("scaled_", scaled)):
            for end, sign in (("low", -1), ("high", 1)):
                row[name + end] = None if centre is None else centre + sign * 0.03 * step / 6
        row |= {"value": value, "scaled": scaled}
    of = kinds("corpus kind metric", number="strength value low high scaled scaled_low scaled_high")
    return result("perturb", [ranking(nasty), table("curves", of, rows)], nasty=nasty)


def density(nasty="", n_thresholds=15):
    rows, points = [], []
    places = {"alpha": 0.08, "beta": 0.2}  # boundaries of gold per gap
    methods = ("depth", f"changepoint{nasty}", "gold")
    for (corpus, gold_density), (shift, method) in product(places.items(), enumerate(methods)):
        is_gold = method == "gold"
        for row in crossed(
            matching=("many_to_one", "one_to_one"),
            measure=("w_f1", "coverage", "purity", "bor", "arp_cos"),
            t=[n_thresholds // 4] if is_gold else range(1, n_thresholds + 1),
        ):
            t = row.pop("t")
            bor = 4 * t / n_thresholds
            value = math.exp(-((bor - 1.2 - 0.3 * shift) ** 2)) * 0.8
            value = bor if row["measure"] == "bor" else value
            row |= {"corpus": corpus, "method": method, "bor": bor, "density": bor * gold_density}
            row |= {"threshold": None if is_gold else 1 - t / n_thresholds}
            rows.append(row | {"value": value, "low": value - 0.05, "high": value + 0.05})
        own = {"corpus": corpus, "method": method, "point": "own", "threshold": None}
        own |= {"bor": 1.7, "density": 1.7 * gold_density, "w_f1": 0.5, "coverage": 0.7}
        points.append({**own, "w_f1_one_to_one": 0.4, "purity": 0.9})
    of = kinds("corpus method matching measure", number="threshold bor density value low high")
    names = " ".join(name for name in points[0] if name not in ("corpus", "method", "point"))
    of_points = kinds("corpus method point", number=names)
    tables = [table("curves", of, rows), table("points", of_points, points)]
    return result("density", tables, nasty=nasty)


def selection(nasty=""):
    of = {"corpus": ("alpha", "beta"), "method": ("depth", f"mine{nasty}")}
    of |= {"rule": ("static", "adaptive"), "thinned": ("73.5% candidates", "57.7% candidates")}
    rows = crossed(**of, unit=[2.0 * i for i in range(5)])
    rows = [row | {"value": 0.1 + 0.005 * row["unit"]} for row in rows]
    of = kinds("corpus method rule thinned", number="unit value")
    return result("selection", [table("places", of, rows)], nasty=nasty)


def chunks(nasty=""):
    rows = crossed(splitter=("recursive", f"token{nasty}"), size=(200.0, 400.0, 800.0))
    for row in rows:
        row |= {"corpus": "texts", "setting": f"{row['splitter']}:{row['size']}"}
        row |= {"value": 0.3 + abs(row["size"] - 400) / 4000}
        row |= {"value_ci": [0.2, 0.6] if row["size"] < 500 else None}
    of = kinds("corpus splitter setting", number="size value", interval="value_ci")
    return result("chunks", [table("curve", of, rows)], nasty=nasty)


def granularity(nasty="", n_numbers=12):
    rows, marks = [], []
    golds, metrics = {"alpha": 4.5, "beta": 12.0}, ("expected_pk", "expected_w_f1")
    for (corpus, gold), metric in product(golds.items(), metrics):
        place = {"corpus": corpus, "metric": metric}
        for s, system in enumerate(("gold", "depth", f"changepoint{nasty}")):
            for i, segments in enumerate([*(2 * 1.3**i for i in range(n_numbers)), gold + s]):
                value = 0.3 + 0.1 * abs(math.log(segments / (gold + 2 * s)))
                point = "grid" if i < n_numbers else "own"
                row = {**place, "system": system, "point": point, "segments": segments}
                row |= {"low": value - 0.03, "value": value, "high": value + 0.04}
                rows.append(row | {"real": 0.1 * s})
        marks.append({**place, "point": "assumed", "low": 2.2, "segments": 5.0, "high": 9.0})
        marks.append({**place, "point": "gold", "low": None, "segments": gold, "high": None})
    of = kinds("corpus metric system point", number="segments value low high real")
    of_marks = kinds("corpus metric point", number="low segments high")
    tables = [table("curves", of, rows), table("marks", of_marks, marks)]
    return result("granularity", tables, nasty=nasty)


def encoders(nasty=""):
    rng = random.Random(1)
    names = ("minilm", "mpnet", f"falcon-7b{nasty}")
    two = [{"encoder_a": a, "encoder_b": b} for a, b in combinations(names, 2)]
    agreement = [row | {"metric": m, "kendall": rng.uniform(0, 1)} for row in two for m in FREE]
    cross = crossed(made_with=names, scored_with=names, metric=FREE)
    cross = [row | {"value": rng.uniform(-0.3, 0.9)} for row in cross]
    about = [(name, "alpha", rng.random(), 30.0 * 12**i) for i, name in enumerate(names)]
    found = crossed(metric=FREE, gold=GOLD, difference=[0.1], p=[0.03])
    differences = [row | other for row in two for other in found]
    of = kinds("encoder corpus", number="anisotropy", count="units_per_second")
    apart = kinds("encoder_a encoder_b metric gold", number="difference", p="p")
    tables = [
        table("encoders", of, about, shown=True),
        table("differences", apart, differences, shown=True),
        correlations(("alpha",), names, rng),
        table("agreement", kinds("encoder_a encoder_b metric", number="kendall"), agreement),
        table("cross", kinds("made_with scored_with metric", number="value"), cross),
    ]
    return result("encoders", tables, nasty=nasty)


def diagnose(nasty=""):
    checks = [(f"near-duplicates{nasty}", "warn", "Merge them.", 0.12)]
    checks += [("anisotropy", "ok", None, 0.4)]
    damage = enumerate(("removal", "insertion"))
    damage = crossed(corpus=("alpha", "beta"), m=enumerate(FREE), k=damage, turned=[0.5])
    for row in damage:
        (i, metric), (j, kind) = row.pop("m"), row.pop("k")
        row |= {"metric": metric, "kind": kind, "share": (i + j) % 7 / 7}
    of_checks = kinds("check verdict advice", number="value")
    tables = [
        table("checks", of_checks, checks, shown=True),
        table("kinds", kinds("corpus metric kind", share="share turned"), damage),
    ]
    return result("diagnose", tables, nasty=nasty)


def score(nasty=""):
    names = ("gold", f"mine{nasty}", "other", "evening", "even:every=8", "random-3", "none")
    rows = crossed(s=enumerate(names), metric=("expected_pk", "placement"))
    for row in rows:
        i, row["system"] = row.pop("s")
        row |= {"segments": 12 if row["system"] == "none" else (60, 60, 61, 120)[i % 4]}
        row["value"] = None if row["system"] == "none" else 0.6 - 0.1 * i
        row["ci"] = row["value"] and [row["value"] - 0.2, row["value"] + 0.1]
    of = kinds("system metric", number="value", interval="ci", count="segments")
    return result("score", [table("systems", of, rows, shown=True)], nasty=nasty)


def transfer(nasty=""):
    rows = crossed(
        trained_on=("alpha",), corpus=("beta", "delta", f"gamma{nasty}"), system=("scorer", "x")
    )
    rows = [row | {"bor": 0.5 + 0.2 * i, "w_f1": 0.4 + 0.1 * i} for i, row in enumerate(rows)]
    of = kinds("trained_on corpus system", number="bor w_f1")
    return result("transfer", [table("transfer", of, rows)], nasty=nasty)


def unknown():
    """A study that no chart knows, with a table under a known name and other columns."""
    other = table("curves", {"angle": "number"}, [{"angle": 1.0}])
    return result("somersault", [ranking(), other])


ALL = {
    f.__name__: f
    for f in (
        *(score, correlate, perturb, density, selection, chunks, granularity, encoders, diagnose),
        transfer,
    )
}
