"""Which setting of a splitter is best, without gold: the one with the least expected error.

A corpus has a system for every setting; expected Pk, the score to judge by, is followed over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import score
from reffree.evaluate.table import ScoreTable
from reffree.studies.study import StudyKeywords
from reffree.util.errors import InputError, listed

METRIC = "expected_pk"
NEAR = 0.01
"""Settings whose score is this near to the best are named beside it."""

CURVE = (
    *columns("text", "corpus", "splitter", "setting"),
    *columns("number", size="characters a chunk"),
    *columns("count", "segments"),
    *estimate("value", METRIC),
)


def tune(
    corpus: Corpus,
    settings: Mapping[str, tuple[str, float]],
    *,
    name: str = "texts",
    length: float | None = None,
    embeddings: Vectors | None = None,
    notes: Sequence[str] = (),
    versions: str = "",
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score a system for every setting of a splitter, and name the best.

    Args:
        corpus: with a system for every setting, as `reffree.chunkers.chunked.chunked` makes it.
        settings: by system, its splitter's name and the characters a chunk that it has.
        name: of the corpus.
        length: units that a segment is expected to have, where that is known.
        embeddings: arrays of every document, instead of an encoder.
        notes: what is to be said of the texts.
        versions: of what split the text, for the signature.
        **keywords: how to encode and run: see `StudySettings`.
    """
    missing = [system for system in settings if system not in corpus.hypotheses]
    if not settings or missing:
        raise InputError(
            f"no system {missing[0]!r}" if missing else "no settings",
            expected="a system of the corpus for every setting",
            remedy="make the corpus with chunked",
        )
    metric = METRIC if length is None else f"{METRIC}:length={length:g}"
    table = score(
        corpus.only_systems(settings), metrics=[metric], embeddings=embeddings, **keywords
    )
    rows = _rows(table, settings, name)
    best = min(rows, key=lambda row: row["value"])
    return Result(
        command="tune",
        question="Which setting of the splitter has the least expected error?",
        verdict=tuple(_answer(rows, best, table.notes)),
        signature="|".join(filter(None, [table.signature, versions])),
        settings={
            "metric": metric,
            "best": best["setting"],
            "systems": list(settings),
            "seed": keywords.get("seed", 0),
        },
        corpora=({"name": name, **table.corpus},),
        tables=(Table.of("curve", "Expected error of every setting", CURVE, rows),),
        notes=(*notes, *table.notes),
        reading={
            "value": "Expected Pk: the error that annotators' segmentations, as the text makes "
            "them likely, would count; lower is better. The interval is over documents.",
            "size": "Characters of the texts by the number of chunks.",
        },
    )


def _rows(
    table: ScoreTable, settings: Mapping[str, tuple[str, float]], name: str
) -> list[dict[str, Any]]:
    rows = []
    for row in table.systems:
        if row.system in settings:
            splitter, size = settings[row.system]
            found = next(iter(row.metrics.values()))
            rows.append(
                {
                    "corpus": name,
                    "splitter": splitter,
                    "setting": row.system,
                    "size": size,
                    "segments": row.segments,
                    "value": found.value,
                    "value_ci": None if found.ci is None else list(found.ci),
                }
            )
    defined = [row for row in rows if row["value"] is not None]
    if not defined:
        raise InputError(
            f"no setting with a defined {METRIC}",
            expected="a text of three sentences or more",
            remedy="tune on longer texts",
        )
    return defined


def _answer(
    rows: Sequence[dict[str, Any]], best: dict[str, Any], notes: Sequence[str]
) -> Iterator[str]:
    worst = max(rows, key=lambda row: row["value"])
    yield (
        f"{best['setting']} has the lowest {METRIC}, {best['value']:.3f}, of {len(rows)} settings; "
        f"the highest is {worst['value']:.3f} ({worst['setting']}). It was chosen on these texts, "
        "so its score flatters."
    )
    near = [r["setting"] for r in rows if r is not best and r["value"] - best["value"] <= NEAR]
    if near:
        yield f"Within {NEAR:g} of it: {listed(near)}."
    of_splitter = sorted(r["size"] for r in rows if r["splitter"] == best["splitter"])
    if len(of_splitter) > 2 and best["size"] in (of_splitter[0], of_splitter[-1]):
        end = "finest" if best["size"] == of_splitter[0] else "coarsest"
        yield f"It is the {end} that was tried: what lies beyond may be better."
    if any("rests on the prior" in note for note in notes):
        yield "The texts say too little to choose: what is assumed of segments' lengths chose."
