"""Files in, files out: every format becomes a `Corpus`, and a corpus can be written back.

`load` reads corpora, `read_system` adds one system's segmentations to a corpus, `save` writes;
`read_scores` and `write_scores` are for scores of gaps.
Every format declares itself in a module of its own (see `format`).
"""

from reffree.formats.format import format_names
from reffree.formats.loading import corpus_names, load, read_scores, read_system
from reffree.formats.saving import save, write_scores

__all__ = [
    "corpus_names",
    "format_names",
    "load",
    "read_scores",
    "read_system",
    "save",
    "write_scores",
]
