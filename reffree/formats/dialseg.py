"""Dialogues as SuperDialseg publishes them (also DialSeg711, Doc2Dial and others in that form).

``{"dial_data": {"<dataset>": [{"dial_id": "…", "turns": [{"role": "user", "utterance": "…",
"segmentation_label": 0, "topic_id": 3}, …]}, …]}}``. A label 1 marks the last utterance of a topic
(convention end); the final label is 0 in the published files and does not matter. Without labels, a
change of ``topic_id`` starts a segment. Where both are there the labels count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.dialogues import dialogue_id, spoken_document
from reffree.formats.format import JSON, Format
from reffree.formats.jsonl import dumps
from reffree.formats.source import Source
from reffree.formats.strict_json import as_list, as_object, as_objects, require_field
from reffree.util.errors import InputError, Place, counted, shorten

DATA, LABEL, TOPIC, ROLE = "dial_data", "segmentation_label", "topic_id", "role"


@dataclass(frozen=True)
class Dialseg(Format):
    """SuperDialseg's files; ``convention`` is what a label 1 means."""

    convention: Literal["end", "start"] = "end"
    name = "dialseg"
    keys = (DATA,)
    suffixes = JSON
    written_as = ()
    keeps = frozenset({"text", "speakers"})

    def read(self, source: Source) -> list[Document]:
        """Read the dialogues of every dataset in the file."""
        place = source.place()
        datasets = as_object(
            require_field(as_object(source.json, "the content", place), DATA, place), DATA, place
        )
        documents, disagreeing = [], 0
        for dataset, dialogues in datasets.items():
            for i, value in enumerate(as_list(dialogues, f"the dataset {dataset!r}", place)):
                table = as_object(value, f"dialogue {i + 1} of {dataset!r}", place)
                id = dialogue_id(table, "dial_id", f"{dataset}/{i + 1}", place)
                at = replace(place, document=id)
                turns = as_objects(require_field(table, "turns", at), "turn", at)
                labels = _column(turns, LABEL, at)
                topics = _column(turns, TOPIC, at)
                gold = _from_labels(labels, self.convention, at) if labels else None
                if topics:
                    by_topic = Segmentation.from_segment_ids(topics)
                    disagreeing += gold is not None and gold != by_topic
                    gold = gold or by_topic
                documents.append(spoken_document(id, turns, "utterance", ROLE, gold, at))
        if disagreeing:
            source.note(
                f"{disagreeing} of {counted(len(documents), 'dialogue')} whose topic ids and "
                "labels disagree",
                expected="boundaries in the same places",
                remedy=f"the {LABEL} was used",
            )
        return documents

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write one dataset called corpus, with labels, topic ids and roles where known."""
        dialogues = []
        for document, segmentation in zip(corpus.documents, chosen, strict=True):
            labels, topics = segmentation.to_labels("end"), segmentation.to_segment_ids()
            turns = []
            for i, unit in enumerate(document.units):
                turn: dict[str, object] = {"turn_id": i, "utterance": unit}
                if document.speakers is not None:
                    turn[ROLE] = document.speakers[i]
                turns.append({**turn, LABEL: labels[i], TOPIC: topics[i]})
            dialogues.append({"dial_id": document.id, "turns": turns})
        yield dumps({DATA: {"corpus": dialogues}}, corpus.documents[0].place) + "\n"


def _column(turns: Sequence[dict[str, object]], key: str, place: Place) -> list[object]:
    """Collect a field that all turns have or none has."""
    missing = [i for i, turn in enumerate(turns) if turn.get(key) is None]
    if len(missing) == len(turns):
        return []
    if missing:
        raise InputError(
            f"no {key!r} in turn {missing[0] + 1} of {len(turns)}",
            expected="one in every turn or in none",
            remedy="add the missing ones",
            place=place,
        )
    return [turn[key] for turn in turns]


def _from_labels(labels: Sequence[object], convention: Convention, place: Place) -> Segmentation:
    for i, label in enumerate(labels):
        if isinstance(label, bool) or label not in (0, 1, "0", "1"):
            raise InputError(
                f"the {LABEL} {shorten(label)} in turn {i + 1}",
                expected="0 or 1",
                remedy="correct the label",
                place=place,
            )
    return Segmentation.from_labels([int(cast(Any, label)) for label in labels], convention)
