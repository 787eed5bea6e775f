"""What is read for a corpus already read: one more system (`read_system`), or scores of gaps.

The usual file is JSONL, ``{"id": "m1", "segmentation": [2, 5]}`` a line, in any order and every
document once; the segmentation may be a 0/1 string too, or stand under ``boundaries`` or ``labels``
(see `labels`). Every other format is read as well, for its segmentations only: of several coders
the one with the system's name, of a corpus its gold or its only system.

Gap scores of any scorer are JSONL, ``{"id": "m1", "scores": [0.1, 0.9]}`` a line: one number for
every gap between units, higher = more of a boundary; documents in any order, every one once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats import jsonl
from reffree.formats.format import detect, parse_format, read, suggest_format
from reffree.formats.labels import OTHER_FORMS, Label, numbered
from reffree.formats.source import Source
from reffree.formats.strict_json import Record, listed
from reffree.util.atomic import write_file
from reffree.util.errors import Place, mistake, shorten

_KEYS = ("id", "segmentation")
_WHAT = "segment lengths such as [3, 4] or a 0/1 string"
_SCORE_KEYS = ("id", "scores")
_SCORES = "a list of numbers, one for every gap between units"
_NAMED_BY_FILE = ("choi", "segeval-tsv", "qmsum")


def read_system(
    path: str | Path,
    name: str,
    corpus: Corpus,
    *,
    format: str | None = None,
    corpus_format: str | None = None,
) -> Corpus:
    """Return the corpus with one more system, read from a file that covers every document once.

    ``corpus_format`` is how the corpus was read: a convention that it names holds here as well.
    """
    source = Source(path)
    chosen = parse_format(detect(source) if format is None else format)
    if "convention=" in (corpus_format or "") and hasattr(chosen, "convention"):
        said = cast(Any, parse_format(corpus_format or "")).convention
        chosen = replace(cast(Any, chosen), convention=said)
    if isinstance(chosen, jsonl.Jsonl):
        with suggest_format(source, chosen.name):
            labels = list(_jsonl_labels(source, name, chosen.convention))
    else:
        items = read(source, chosen)
        documents = [item for item in items if isinstance(item, Document)]
        labels = [_label(document, name) for document in documents]
        labels += _one_coder([item for item in items if isinstance(item, Label)], name)
    known = {document.id: document for document in corpus.documents}
    if chosen.name in _NAMED_BY_FILE and len(labels) == len(known) == 1:
        labels = [replace(labels[0], document=corpus.documents[0].id)]
    segmentations: dict[str, Segmentation | Sequence[int]] = {}
    places: dict[str, Place] = {}
    for label in numbered(labels, list(known)):
        id = str(label.document)
        jsonl.refuse_second(id, replace(label.place, system=name), places)
        # `Corpus.with_system` refuses unknown ids and wrong lengths.
        named = replace(label, name=name, document=id)
        segmentations[id] = named.read(known[id]) if id in known else ()
    made = corpus.with_system(name, segmentations, places, source.place())
    return Corpus.of_checked(made.documents, (*made.notes, *source.notes))


def _jsonl_labels(source: Source, name: str, convention: Convention | None) -> Iterator[Label]:
    for table in jsonl.tables(source):
        if "units" in table:
            yield _label(jsonl.document(table, table.place, convention), name)
            continue
        given = [key for key in OTHER_FORMS if key in table]
        if given and "segmentation" not in table:
            table["segmentation"] = {given[0]: table.pop(given[0])}
        _refuse_unknown(table)
        id = jsonl.record_id(table, table.place, {})
        yield Label(id, name, table.need("segmentation", _WHAT), table.place, convention)


def _refuse_unknown(table: Record) -> None:
    """Refuse a key that system files do not have; one that holds what is missing is renamed."""
    others = [key for key in table if key not in _KEYS]
    if not others:
        return
    key, remedy = others[0], "remove it"
    if "segmentation" not in table:
        meant = [key for key in others if _may_be_masses(table[key])]
        if not meant:
            table.need("segmentation", _WHAT)
        key, remedy = meant[0], f"rename it 'segmentation' if it holds {_WHAT}"
    elif "id" not in table:
        meant = [key for key in others if isinstance(table[key], (str, int))]
        key, remedy = (meant[0], "rename it 'id'") if meant else (key, remedy)
    raise mistake(table.place, f"the unknown key {shorten(key)!r}", f"only {listed(_KEYS)}", remedy)


def _may_be_masses(value: object) -> bool:
    if isinstance(value, str):
        return bool(value) and not set(value) - {"0", "1"}
    return isinstance(value, list) and not any(isinstance(item, str) for item in value)


def _label(document: Document, name: str) -> Label:
    """Take the one segmentation a document has, over its units with text."""
    choices = document.segmentations
    if name in document.systems:
        choices = {name: document.systems[name]}
    if len(choices) != 1:
        found = f"the segmentations {', '.join(choices)}" if choices else "no segmentation"
        remedy = "keep the one that is meant, or name the system after it"
        raise mistake(document.place, found, f"only one, or one called {name!r}", remedy)
    (value,) = choices.values()
    return Label(document.id, name, value, replace(document.place, document=None))


def _one_coder(labels: Sequence[Label], name: str) -> list[Label]:
    coders = list(dict.fromkeys(label.name for label in labels))
    if name not in coders and len(coders) > 1:
        found = f"the coders {', '.join(coders)}"
        expected = f"one called {name!r}, or a single one"
        remedy = "name the system after the coder that is meant"
        raise mistake(replace(labels[0].place, line=None), found, expected, remedy)
    return [label for label in labels if label.name == name or len(coders) == 1]


# Scores of gaps


def read_scores(path: str | Path, corpus: Corpus, name: str = "scores") -> dict[str, list[float]]:
    """Read a scorer's score of every gap, by document id, in corpus order.

    ``name`` is what messages call the scorer. Where units without text were dropped, scores of
    all units' gaps are carried over to those that were kept.
    """
    source = Source(path)
    scores: dict[str, Sequence[float]] = {}
    places: dict[str, Place] = {}
    for table in jsonl.tables(source):
        table.place = replace(table.place, system=name)
        values = table.need("scores", _SCORES)
        table.refuse_others(_SCORE_KEYS)
        scores[jsonl.record_id(table, table.place, places)] = values
    found = corpus.align_scores(name, scores, places, source.place())
    return {document.id: each for document, each in zip(corpus, found, strict=True)}


def write_scores(path: str | Path, scores: Mapping[str, Sequence[float]]) -> None:
    """Write a scorer's score of every gap by document id; ``-`` is standard output."""
    target = Path(path)
    lines = (
        jsonl.dumps({"id": id, "scores": [float(each) for each in values]}, Place(document=id))
        + "\n"
        for id, values in scores.items()
    )
    write_file(target, lines)
