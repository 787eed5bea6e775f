"""Files in, files out: every format becomes a `Corpus`, and a corpus can be written back.

`load` reads corpora, `read_system` adds one system's segmentations to a corpus, `save` writes.
Each format has a module of its own: jsonl, choi, segeval, segeval_tsv, nltk, dialseg, tiage,
qmsum.
"""

from reffree.formats.loading import corpus_names, load
from reffree.formats.readers import FORMATS
from reffree.formats.saving import save
from reffree.formats.system import read_system

__all__ = ["FORMATS", "corpus_names", "load", "read_system", "save"]
