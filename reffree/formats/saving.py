"""`save`: a corpus into a file or folder of any format with a writer, saying what did not fit."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.formats.format import Format, format_names, formats, parse_format
from reffree.formats.jsonl import dumps
from reffree.formats.source import is_folder, unpacked_name
from reffree.util.atomic import check_writable, encoded, write_file, write_folder
from reffree.util.errors import Place, counted, mistake

_IN_PYTHON = "(from Python: format=)"


def save(corpus: Corpus, path: str | Path, *, format: str | None = None) -> list[str]:
    """Write a corpus and return a sentence for everything the format could not hold.

    The format is told by the extension (.jsonl, .tsv, .ref, .txt; none is a folder of Choi files)
    unless it is named; a .gz behind it packs the file; ``-`` is stdout, jsonl unless named. Where
    there is room for one segmentation per document it is gold or, without gold, the only system.
    """
    target = Path(path)
    writer = parse_format(_format_of(unpacked_name(target)) if format is None else format)
    name, keeps = writer.name, writer.keeps
    if writer.written_as is None:
        found = f"the format {name}, which is only read"
        expected = f"one of {', '.join(format_names(writable=True))}"
        remedy = f"choose one of them with --to {_IN_PYTHON}"
        raise mistake(Place(file=str(path)), found, expected, remedy)
    chosen, lost = ([], []) if "systems" in keeps else _choose_one_each(corpus, name, target)
    files = _write(writer, corpus, chosen, target)
    lost += writer.describe_changes(corpus)
    if "text" not in keeps:
        lost.append(f"{name} files hold no text: the units were left out")
    extras = {"golds": "annotators' golds", "speakers": "speakers", "meta": "meta"}
    lost += [
        f"{name} files hold no {what}: they were left out"
        for key, what in extras.items()
        if key not in keeps and any(getattr(document, key) for document in corpus)
    ]
    ids = map(writer.document_id, files)
    changed = [(each.id, id) for each, id in zip(corpus, ids, strict=False) if each.id != id]
    for old, new in changed[:1]:
        what = "1 id changes" if len(changed) == 1 else f"{len(changed)} ids change"
        what += f", such as {old!r} to {new!r}"
        lost.append(f"{name} files are named by their document: {what}")
    if corpus.n_dropped:
        n = corpus.n_dropped
        lost.append(f"{counted(n, 'unit')} without text {_left_out(n)}")
    return lost


def check_target(path: str | Path) -> None:
    """Refuse what `save` could not write, before there is anything to save."""
    target = Path(path)
    _format_of(unpacked_name(target))
    if str(target) != "-" and not is_folder(target):
        check_writable(target)


def write_scores(path: str | Path, scores: Mapping[str, Sequence[float]]) -> None:
    """Write a scorer's score of every gap by document id; ``-`` is standard output."""
    lines = (
        dumps({"id": id, "scores": list(map(float, given))}, Place(document=id)) + "\n"
        for id, given in scores.items()
    )
    write_file(Path(path), lines)


def _format_of(target: Path) -> str:
    suffix = "" if is_folder(target) else target.suffix.lower()
    if str(target) == "-" or suffix == ".jsonl":
        return "jsonl"
    known = formats().values()
    by_suffix = {ending: each.name for each in known for ending in each.written_as or ()}
    if suffix in by_suffix:
        return by_suffix[suffix]
    names = f"one of {', '.join(format_names(writable=True))}"
    names = "dialseg or segeval" if suffix == ".json" else names
    found = f"the extension {suffix}, which does not tell the format"
    expected = f"one of {', '.join(sorted(filter(None, by_suffix)))}, or a format by name"
    remedy = f"add --to with {names} {_IN_PYTHON}"
    raise mistake(Place(file=str(target)), found, expected, remedy)


def _write(
    writer: Format, corpus: Corpus, chosen: Sequence[Segmentation], target: Path
) -> list[str]:
    """Write a file or a folder; return the names of files that have one document each."""
    is_one_file = str(target) == "-" or (target.suffix and not is_folder(target))
    if "" in (writer.written_as or ()) and not is_one_file:
        files = writer.write_folder(corpus, chosen)
        write_folder(target, files)
        return [name for name, _ in files]
    if writer.one_document and len(corpus) > 1:
        found = f"{len(corpus)} documents"
        expected = "one, since such a file holds a single document"
        raise mistake(Place(file=str(target)), found, expected, writer.one_document)
    text = writer.write(corpus, chosen)
    is_packed = unpacked_name(target) != target
    write_file(target, _packed(text, target) if is_packed else text)
    return [unpacked_name(target).name] if writer.one_document else []


def _packed(text: Iterable[str], target: Path) -> Iterator[bytes]:
    """Pack as gzip does, without a time, so that the same text gives the same bytes."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    for part in text:
        yield packer.compress(encoded(part, target))
    yield packer.flush()


def _choose_one_each(
    corpus: Corpus, format: str, target: Path
) -> tuple[list[Segmentation], list[str]]:
    """Choose the segmentation to write for formats with room for one, and say what is left."""
    names = list(corpus.documents[0].systems)
    golds = [document.gold for document in corpus.documents if document.gold is not None]
    room = f"{format} files hold one segmentation per document"
    if corpus.has_gold:
        kind = "system" if len(names) == 1 else "systems"
        sentence = f"{room}: the {kind} {', '.join(names)} {_left_out(len(names))}"
        return golds, [sentence] if names else []
    if len(names) == 1:
        lost = [f"{room}: the name of the system {names[0]} was left out"]
        if golds:
            lost.append(f"{room}: the gold of {counted(len(golds), 'document')} was left out")
        return list(corpus.hypotheses[names[0]]), lost
    without = counted(len(corpus) - len(golds), "document")
    found = f"{without} without gold, and {len(names)} systems"
    expected = f"gold everywhere or a single system, since {room}"
    raise mistake(Place(file=str(target)), found, expected, "leave one system, or write jsonl")


def _left_out(n: int) -> str:
    return "was left out" if n == 1 else "were left out"
