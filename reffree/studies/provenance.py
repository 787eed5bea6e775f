"""What a study of several corpora was made from: its corpora, its notes, its one signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings, distinct_texts
from reffree.errors import InputError, UnknownNameError, counted
from reffree.evaluate.signature import Signature


def described(name: str, corpus: Corpus, embedded: Embeddings | None) -> dict[str, Any]:
    """Return the size of a corpus, as results of studies list it."""
    return {
        "name": name,
        "documents": len(corpus),
        "units": corpus.n_units,
        "dropped_units": corpus.n_dropped,
        "distinct_units": len(distinct_texts(corpus)),
        "truncated_units": 0 if embedded is None else embedded.n_truncated,
    }


def reading_notes(name: str, corpus: Corpus, embedded: Embeddings | None) -> list[str]:
    """Say what was dropped, cut off or remarked on while a corpus was read and encoded."""
    notes = [f"{name}: {note}" for note in corpus.notes]
    if corpus.n_without_text:
        dropped = counted(corpus.n_without_text, "unit")
        notes.append(f"{name}: {dropped} without text dropped, the boundaries reindexed.")
    if embedded is not None and embedded.n_truncated:
        notes.append(
            f"{name}: {embedded.n_truncated:,} of {counted(corpus.n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    return notes


def joint_signature(parts: Sequence[Signature], settings: Mapping[str, str], *, short: bool) -> str:
    """Return the fields of all corpora's signatures, with a study's own ones before the seed.

    A field on which corpora differ has every value once, joined by ``+``.
    """
    names = dict.fromkeys(name for part in parts for name in part.fields)
    joined = {
        name: "+".join(dict.fromkeys(part.fields[name] for part in parts if name in part.fields))
        for name in names
    }
    own = [f"{key}:{value}" for key, value in settings.items()]
    spelt = Signature(joined).short() if short else str(Signature(joined))
    seed = "|s:" if short else "|seed:"
    before, after = spelt.rsplit(seed, 1)
    return "|".join([before, *own]) + seed + after


def check_study(corpora: Mapping[str, Corpus], vectors: Mapping[str, object] | None) -> None:
    """Refuse no corpora, and vectors of corpora that are not there."""
    if not isinstance(corpora, Mapping) or not corpora:
        found = "no corpora" if isinstance(corpora, Mapping) else type(corpora).__name__
        raise InputError(
            f"{found} to study",
            expected="corpora by name",
            remedy='write {"mine": reffree.load("mine.jsonl")}',
        )
    if vectors is not None and not isinstance(vectors, Mapping):
        raise InputError(
            f"embeddings as {type(vectors).__name__}",
            expected="arrays of every corpus, by the corpus's name",
            remedy='write embeddings={"mine": [array, …]}',
        )
    for name in vectors or ():
        if name not in corpora:
            raise UnknownNameError("corpus", name, corpora)
