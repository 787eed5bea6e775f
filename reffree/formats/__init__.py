"""Files in, files out: every format becomes a `Corpus`, and a corpus can be written back.

`load` reads corpora, `read_system` adds one system's segmentations to a corpus, `save` writes;
`read_scores` and `write_scores` are for scores of gaps.
Each family of formats has a module: jsonl, parquet, tables, values and hub are the user's own;
choi, segeval, nltk, dialseg, tiage, qmsum, dialogues and meetings published corpora; headings is
prose, subtitles is text with times. `readers` tells which one a file needs.
"""

from reffree.formats.gap_scores import read_scores, write_scores
from reffree.formats.loading import corpus_names, load
from reffree.formats.readers import FORMATS
from reffree.formats.saving import save
from reffree.formats.system import read_system

__all__ = ["FORMATS", "corpus_names", "load", "read_scores", "read_system", "save", "write_scores"]
