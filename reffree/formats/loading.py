"""What is read: files of any format into one corpus; for a corpus, one more system, or gap scores.

The text of formats that hold none comes from ``--text``. A corpus file (JSONL, or JSON) gives units
by id, and its own gold and systems stay; so do subtitles and transcripts. A plain text file has one
unit per line and a blank line between documents, in the order of the labels, or is all one
document (``lines:documents=one``). A folder has one ``<id>.txt`` per document, one unit per line;
blank lines inside count as units without text.

A system's usual file is JSONL, ``{"id": "m1", "segmentation": [2, 5]}`` a line, in any order and
every document once; the segmentation may be a 0/1 string too, or stand under ``boundaries`` or
``labels`` (see `labels`). Every other format is read as well, for its segmentations only: of
several coders the one with the system's name, of a corpus its gold or its only system.

Gap scores of any scorer are JSONL, ``{"id": "m1", "scores": [0.1, 0.9]}`` a line: one number for
every gap between units, higher = more of a boundary; documents in any order, every one once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from reffree.data.corpus import Corpus, Document, Segments
from reffree.data.segmentation import Convention
from reffree.formats import jsonl
from reffree.formats.format import Format, detect, parse_format, read, suggest_format
from reffree.formats.labels import OTHER_FORMS, Label, Starts, attach, numbered, without_text
from reffree.formats.shards import shard_files
from reffree.formats.source import LINE_SUFFIXES, STDIN, Source, Used, unpacked_name, without_suffix
from reffree.formats.strict_json import Record, listed
from reffree.util.errors import OptionError, Place, counted, mistake, shorten

_HUB = "hf://"
_CORPUS_SUFFIXES = (*LINE_SUFFIXES, ".json", ".csv", ".tsv", ".parquet", ".srt", ".vtt")
_TEXTS = (
    "a corpus JSONL, a text file with one unit per line and a blank line between documents, or a "
    "folder of <id>.txt files"
)
_KEYS = ("id", "segmentation")
_SEGMENTATION = "segment lengths such as [3, 4] or a 0/1 string"
_NAMED_BY_FILE = ("choi", "segeval-tsv", "qmsum")
_KINDS = {list: "a list", tuple: "a tuple", set: "a set", type(None): "None"}


def load(
    *sources: str | Path | Any,  # noqa: ANN401  (a frame of any library)
    format: str | None = None,
    text: str | Path | Literal[False] | None = None,
) -> Corpus:
    """Read files, folders and values into one corpus; ``-`` is stdin.

    A folder of nothing but corpus JSONL and Parquet files stands for them, in the order of names.
    ``hf://owner/name`` is a data set of the Hugging Face hub or of its cache (`hub`). Values are a
    corpus, a pandas or polars frame (`tables`), a list of documents (`Document`, or as corpus JSONL
    has them), of lists of sentences, or of the sentences of one document.

    Args:
        sources: What to read, in order; the format of each is told by its extension and content.
        format: For all files, where it cannot or should not be told, or has options: ``choi``,
            ``table:text=utterance,document=call``, ``segeval:coders=golds``. Beside ``text``, a
            format that holds text is that of the text.
        text: The text for formats that hold none (segeval, nltk, chapters); False gives units
            numbers for text, for what needs none.

    Raises:
        InputError: If anything cannot be read, with its place and what to do.
    """
    given = None if format is None else parse_format(format)
    _check_paths(sources, text)
    is_of_text = bool(text) and given is not None and given.has_text
    of_files = None if is_of_text else given
    used = Used(text_needed=text is not False)
    parts: list[Corpus] = []
    labels: list[Label] = []  # of all files: they become one corpus, where the first of them is
    notes: list[str] = []
    slot = 0
    for each in sources:
        if not _is_path(each) or str(each).startswith(_HUB):
            from reffree.formats import values

            make = values.read_data_set if _is_path(each) else values.corpus_of
            parts.append(make(cast(Any, each), of_files))
            continue
        for path in shard_files(each):
            source = Source(path, used)
            documents, found = read(source, of_files)
            if documents:
                parts.append(Corpus(tuple(documents), tuple(source.notes)))
                continue
            slot = slot if labels else len(parts)
            labels += found
            notes += source.notes
    if labels:
        texts, named = _find_text(text, labels, given if is_of_text else None, used, notes)
        parts.insert(slot, Corpus(tuple(attach(texts, named)), tuple(notes)))
    elif text:
        found_text = f"--text {shorten(str(text))}, but no file that needs it"
        expected = "text only with segeval, nltk or chapter files"
        raise mistake(None, found_text, expected, "leave out --text")
    return Corpus.merge(parts)


def _is_path(given: object) -> bool:
    return isinstance(given, (str, os.PathLike))


def corpus_names(paths: Sequence[str]) -> dict[str, str]:
    """Name corpora that are read apart: name → path, in order.

    A file's name without its extension; the paths as they were given where two files share it.

    >>> corpus_names(["a/talks.jsonl", "b/meetings.jsonl"])
    {'talks': 'a/talks.jsonl', 'meetings': 'b/meetings.jsonl'}
    >>> list(corpus_names(["a/talks.jsonl", "b/talks.jsonl"]))
    ['a/talks.jsonl', 'b/talks.jsonl']
    """
    names = ["stdin" if path == "-" else unpacked_name(Path(path)).stem for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    for name in names:
        if names.count(name) > 1:
            found, expected = f"the corpus {shorten(name)!r} twice", "files that differ"
            raise OptionError(found, expected=expected, remedy="name every corpus once")
    return dict(zip(names, paths, strict=True))


def _check_paths(paths: Sequence[object], text: object) -> None:
    one_by_one = 'pass the paths one by one, such as load("a.jsonl", "b.jsonl")'
    if not paths:
        raise mistake(None, "no paths", "at least one", f"{one_by_one}, or - for standard input")
    for path in itertools.filterfalse(_is_path, paths):
        from reffree.formats.values import is_value

        if not is_value(path):
            kind = _KINDS.get(type(path), type(path).__name__)
            raise mistake(Place(), f"{kind} as a path", "a string or a Path", one_by_one)
    if [str(path) for path in (*paths, text) if _is_path(path)].count("-") > 1:
        expected = "it once, since standard input can be read only once"
        raise mistake(Place(file=STDIN), "- twice", expected, "give the other input as a file")


def _find_text(
    text: str | Path | Literal[False] | None,
    labels: Sequence[Label],
    format: Format | None,
    used: Used,
    notes: list[str],
) -> tuple[list[Document], list[Label]]:
    """Read the documents that the labels speak of, and give labels without ids theirs."""
    if text is False:
        named = numbered(labels)
        return without_text(named, used), named
    if text is None:
        place = Place(file=labels[0].place.file)
        remedy = f"give it with --text: {_TEXTS}"
        raise mistake(place, "segmentations without text", "the text they belong to", remedy)
    source = Source(text, used)
    has_times = any(isinstance(label.value, Starts) for label in labels)
    is_corpus = source.suffix in _CORPUS_SUFFIXES or (has_times and not source.is_stdin)
    is_corpus = is_corpus if format is None else format.name != "lines"
    if is_corpus and not source.is_folder:
        documents, _ = read(source, format)
        if not documents:
            expected = "a corpus, or plain text with one unit per line"
            remedy = "give the text with --text"
            raise mistake(source.place(), "a file without text", expected, remedy)
        named = numbered(labels, [document.id for document in documents])
    else:
        named = numbered(labels)
        ids = list(dict.fromkeys(str(label.document) for label in named))
        if source.is_folder:
            documents = _folder_text(source, ids)
        else:
            documents = _number_blocks(source, ids, format or parse_format("lines"))
    notes += source.notes
    return documents, named


def _number_blocks(source: Source, ids: Sequence[str], format: Format) -> list[Document]:
    blocks = cast(list[Document], format.read(source))
    if len(blocks) != len(ids):
        found = f"{counted(len(blocks), 'block')} of text"
        expected = f"{len(ids)}, one for every document, separated by blank lines"
        remedy = (
            "check that text and segmentations belong together, or give a folder of <id>.txt files"
        )
        remedy += ", or write --format lines:documents=one" if len(ids) == 1 < len(blocks) else ""
        raise mistake(source.place(), found, expected, remedy)
    return [
        Document.build(id, each.units, place=replace(each.place, document=None))
        for id, each in zip(ids, blocks, strict=True)
    ]


def _folder_text(source: Source, ids: Sequence[str]) -> list[Document]:
    texts = [name for name in source.files if name.endswith(".txt")]
    files = {without_suffix(name, (".txt",)): source.files[name] for name in texts}
    for id in ids:
        if id not in files:
            found = f"no file {id + '.txt'!r} in the folder"
            remedy = "add it, one unit per line"
            raise mistake(Place(source.name, document=id), found, "one for every document", remedy)
    documents = []
    for id, file in source.opened((id, files[id]) for id in ids):
        units = [text for _, text in file.lines()]
        while units and not units[-1].strip():
            units.pop()
        documents.append(Document.build(id, units, place=file.place()))
    expected = "one .txt file for every document"
    source.note_unread(len(source.files) - len(ids), expected, "that no segmentation belongs to")
    return documents


# What belongs to a corpus already read


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
    if corpus_format and "convention=" in corpus_format and hasattr(chosen, "convention"):
        said = cast(Any, parse_format(corpus_format)).convention
        chosen = replace(cast(Any, chosen), convention=said)
    if isinstance(chosen, jsonl.Jsonl):
        with suggest_format(source, chosen.name):
            labels = list(_jsonl_labels(source, name, chosen.convention))
    else:
        documents, labels = read(source, chosen)
        labels = [_label(document, name) for document in documents] + _one_coder(labels, name)
    known = {document.id: document for document in corpus.documents}
    if chosen.name in _NAMED_BY_FILE and len(labels) == len(known) == 1:
        labels = [replace(labels[0], document=corpus.documents[0].id)]
    segmentations: dict[str, Segments] = {}
    places: dict[str, Place] = {}
    for label in numbered(labels, list(known)):
        id = str(label.document)
        jsonl.refuse_second(id, replace(label.place, system=name), places)
        # `Corpus.with_system` refuses unknown ids and wrong lengths.
        segmentations[id] = replace(label, name=name).read(known[id]) if id in known else ()
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
        yield Label(id, name, table.need("segmentation", _SEGMENTATION), table.place, convention)


def _refuse_unknown(table: Record) -> None:
    """Refuse a key that system files do not have; one that holds what is missing is renamed."""

    def may_be_masses(value: object) -> bool:
        if isinstance(value, str):
            return bool(value) and not set(value) - {"0", "1"}
        return isinstance(value, list) and not any(isinstance(item, str) for item in value)

    others = [key for key in table if key not in _KEYS]
    if not others:
        return
    key, remedy = others[0], "remove it"
    if "segmentation" not in table:
        meant = [key for key in others if may_be_masses(table[key])]
        if not meant:
            table.need("segmentation", _SEGMENTATION)
        key, remedy = meant[0], f"rename it 'segmentation' if it holds {_SEGMENTATION}"
    elif "id" not in table:
        meant = [key for key in others if isinstance(table[key], (str, int))]
        key, remedy = (meant[0], "rename it 'id'") if meant else (key, remedy)
    raise mistake(table.place, f"the unknown key {shorten(key)!r}", f"only {listed(_KEYS)}", remedy)


def _label(document: Document, name: str) -> Label:
    """Take the one segmentation a document has, over its units with text."""
    choices = document.segmentations
    choices = {name: choices[name]} if name in document.systems else choices
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
        values = table.need("scores", "a list of numbers, one for every gap between units")
        table.refuse_others(("id", "scores"))
        scores[jsonl.record_id(table, table.place, places)] = values
    found = corpus.align_scores(name, scores, places, source.place())
    return {document.id: each for document, each in zip(corpus, found, strict=True)}
