"""Documents, their gold and their systems' segmentations, checked once and then trusted.

`Document.build` checks a document and `Corpus` that documents go together. What is made from a
corpus (`Corpus.part`, `Corpus.with_system`, …) is not checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reffree.document import GOLD, Document, check_system_name, is_name
from reffree.errors import InputError, Place, counted
from reffree.segmentation import Segmentation

__all__ = ["GOLD", "Corpus", "Document", "is_name"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in file order, every system present in every one of them."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse no documents, repeated ids and systems that miss documents."""
        if not self.documents:
            raise InputError(
                "no documents", expected="at least one", remedy="check that the file is not empty"
            )
        first: dict[str, Place] = {}
        for document in self.documents:
            if document.id in first:
                earlier = replace(first[document.id], document=None)
                where = f", first at {earlier}" if str(earlier) else ""
                raise InputError(
                    f"the id a second time{where}",
                    expected="every document once",
                    remedy="rename or remove one of the two",
                    place=document.place,
                )
            first[document.id] = document.place
        self._check_systems_complete()

    def _check_systems_complete(self) -> None:
        names = dict.fromkeys(name for doc in self.documents for name in doc.systems)
        for name in names:
            missing = [doc for doc in self.documents if name not in doc.systems]
            if missing:
                raise InputError(
                    f"no segmentation ({len(missing)} of {len(self.documents)} documents lack it)",
                    expected="one for every document of the corpus",
                    remedy="add the missing ones, so that systems are compared on the same text",
                    place=replace(missing[0].place, system=name),
                )

    @classmethod
    def of_checked(cls, documents: Iterable[Document], notes: tuple[str, ...] = ()) -> Corpus:
        """Make a corpus of documents that are known to go together; nothing is checked again."""
        corpus = object.__new__(cls)
        object.__setattr__(corpus, "documents", tuple(documents))
        object.__setattr__(corpus, "notes", notes)
        return corpus

    def part(self, start: int, stop: int) -> Corpus:
        """Return the documents from position ``start`` up to ``stop``, without the notes."""
        return Corpus.of_checked(self.documents[start:stop])

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        """Go through the documents in order."""
        return iter(self.documents)

    def __getitem__(self, index: int) -> Document:
        """Return the document at a position."""
        return self.documents[index]

    @property
    def n_units(self) -> int:
        """Units kept over all documents."""
        return sum(len(document.units) for document in self.documents)

    @property
    def n_dropped(self) -> int:
        """Units that take no part: without text, or left out by an option."""
        return sum(document.n_dropped for document in self.documents)

    @property
    def n_without_text(self) -> int:
        """Units that were dropped because they have no text."""
        return self.n_dropped - sum(document.n_left_out for document in self.documents)

    @property
    def has_gold(self) -> bool:
        """Whether every document has a gold segmentation."""
        return all(document.gold is not None for document in self.documents)

    @property
    def hypotheses(self) -> dict[str, tuple[Segmentation, ...]]:
        """System name → one segmentation per document; gold is the first where it is complete."""
        table: dict[str, tuple[Segmentation, ...]] = {}
        if self.has_gold:
            table[GOLD] = tuple(doc.gold for doc in self.documents if doc.gold is not None)
        for name in self.documents[0].systems:
            table[name] = tuple(document.systems[name] for document in self.documents)
        return table

    def with_system(
        self,
        name: str,
        segmentations: Mapping[str, Segmentation | Sequence[int]],
        places: Mapping[str, Place] | None = None,
        place: Place | None = None,
    ) -> Corpus:
        """Add a system from document id → segmentation; every document once, none unknown.

        Under the name ``gold`` it becomes the documents' gold.
        """
        place = replace(place or Place(), system=name)
        known = {document.id for document in self.documents}
        check_system_name(name, place)
        for id in segmentations:
            if id not in known:
                raise InputError(
                    "a document that the corpus does not have",
                    expected=f"one of its {counted(len(known), 'id')}, "
                    f"such as {self.documents[0].id!r}",
                    remedy="check that system file and corpus belong together",
                    place=replace((places or {}).get(id, place), system=name, document=id),
                )
        documents = []
        for document in self.documents:
            if name in document.systems or (name == GOLD and document.gold is not None):
                raise InputError(
                    "the system a second time",
                    expected="every system name once",
                    remedy="give the other segmentation another name",
                    place=place,
                )
            if document.id not in segmentations:
                absent = len(known) - len(segmentations)
                raise InputError(
                    f"no segmentation ({absent} of {len(known)} documents lack it)",
                    expected="one for every document of the corpus",
                    remedy="add the missing ones, so that systems are compared on the same text",
                    place=replace(place, document=document.id),
                )
            at = replace((places or {}).get(document.id, place), system=name)
            aligned = document.align(segmentations[document.id], at)
            if name == GOLD:
                documents.append(replace(document, gold=aligned))
            else:
                documents.append(replace(document, systems={**document.systems, name: aligned}))
        return Corpus.of_checked(documents, self.notes)

    def only_systems(self, names: Iterable[str]) -> Corpus:
        """Return the corpus with these of its systems; gold stays."""
        kept = set(names)
        documents = [
            replace(d, systems={name: s for name, s in d.systems.items() if name in kept})
            for d in self.documents
        ]
        return Corpus.of_checked(documents, self.notes)

    @classmethod
    def merge(cls, corpora: Iterable[Corpus]) -> Corpus:
        """Put the documents of several corpora behind one another."""
        parts = list(corpora)
        documents = tuple(document for part in parts for document in part.documents)
        notes = tuple(note for part in parts for note in part.notes)
        has_repeats = len({document.id for document in documents}) < len(documents)
        if has_repeats or len({frozenset(part[0].systems) for part in parts}) != 1:
            return cls(documents, notes)  # which says what is wrong
        return cls.of_checked(documents, notes)
