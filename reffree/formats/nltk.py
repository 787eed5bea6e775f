"""nltk boundary strings: one string of 0 and 1 per line and document, optionally ``id<TAB>string``.

nltk writes one character per gap between units; one per unit is read as well (see
`Segmentation.from_string`). The file has no text, and its strings are the corpus's gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Convention, Segmentation
from reffree.formats.format import TEXT, Format, Sample
from reffree.formats.labels import Label
from reffree.formats.source import Source
from reffree.util.errors import InputError, shorten


def is_line(line: str) -> bool:
    """Whether a line may come from such a file."""
    id, _, string = line.rpartition("\t")
    return not string.strip().strip("01") and "\t" not in id.strip()


@dataclass(frozen=True)
class Nltk(Format):
    """nltk's strings; ``convention`` says what a 1 is where a string leaves it open."""

    convention: Convention | None = None
    name = "nltk"
    suffixes = TEXT
    rank = 3
    has_text = False
    written_as = (".txt",)

    @classmethod
    def matches(cls, sample: Sample) -> bool:
        """Whether there is nothing but 0 and 1, and one of them at the end of some line."""
        has_string = False
        for line in sample.lines():
            if not is_line(line):
                return False
            has_string = has_string or line.rstrip().endswith(("0", "1"))
        return has_string

    def read(self, source: Source) -> list[Label]:
        """Read one gold segmentation per line that is not blank; ids on all lines or on none."""
        labels: list[Label] = []
        for number, line in source.lines():
            if not line.strip():
                continue
            id, tab, string = line.rpartition("\t")
            place = source.place(number)
            if labels and bool(tab) != (labels[0].document is not None):
                raise InputError(
                    "a line with an id" if tab else "a line without an id",
                    expected="ids on all lines or on none",
                    remedy="write id, tab, string on every line",
                    place=place,
                )
            if tab and not id.strip():
                raise InputError(
                    "a tab without an id before it",
                    expected="id, tab, string",
                    remedy="write the document's id first",
                    place=place,
                )
            value = string.strip()
            labels.append(Label(id.strip() if tab else None, GOLD, value, place, self.convention))
        return labels

    def write(self, corpus: Corpus, chosen: Sequence[Segmentation]) -> Iterator[str]:
        """Write ``id<TAB>gap string`` lines."""
        for document, segmentation in zip(corpus.documents, chosen, strict=True):
            id = document.id
            if re.search(r"[\t\r\n]", id) or id != id.strip() or id.startswith("\ufeff"):
                raise InputError(
                    f"the id {shorten(ascii(id))}",
                    expected="an id without tabs, line breaks or spaces around it",
                    remedy="rename the document, or write another format",
                    place=document.place,
                )
            yield f"{id}\t{segmentation.to_string('gap')}\n"
