"""`save`: a corpus into a file or folder of any format with a writer, saying what did not fit."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.formats import choi, dialseg, jsonl, nltk, segeval
from reffree.formats.readers import check_names
from reffree.formats.source import is_folder, unpacked_name
from reffree.util.atomic import check_writable, encoded, write_file, write_folder
from reffree.util.errors import InputError, Place, counted

WRITABLE = ("jsonl", "choi", "segeval", "segeval-tsv", "nltk", "dialseg")
_IN_PYTHON = "(from Python: format=)"
_BY_SUFFIX = {".jsonl": "jsonl", ".tsv": "segeval-tsv", ".ref": "choi", "": "choi", ".txt": "nltk"}


def save(corpus: Corpus, path: str | Path, *, format: str | None = None) -> list[str]:
    """Write a corpus and return a sentence for everything the format could not hold.

    The format is told by the extension (.jsonl, .tsv, .ref, .txt; none is a folder of Choi files)
    unless it is named; a .gz behind it packs the file; ``-`` is stdout, jsonl unless named. Where
    there is room for one segmentation per document it is gold or, without gold, the only system.
    """
    check_names(format, None)
    target = Path(path)
    format = format or _format_of(unpacked_name(target))
    match format:
        case "jsonl":
            _write(target, jsonl.write(corpus))
            lost = []
        case "segeval":
            _write(target, segeval.write(corpus))
            lost = _without_text(corpus, format)
        case "segeval-tsv":
            document = _only_document(corpus, target, "write segeval JSON instead")
            _write(target, segeval.write_table(document))
            lost = _without_text(corpus, format) + _renamed(
                [(document.id, unpacked_name(target).stem)], format
            )
        case "nltk":
            chosen, lost = _one_each(corpus, format, target)
            _write(target, nltk.write(corpus, chosen))
            lost += _without_text(corpus, format)
        case "dialseg":
            chosen, lost = _one_each(corpus, format, target)
            _write(target, dialseg.write(corpus, chosen))
            lost += _extras(corpus, format, speakers=False)
        case "choi":
            lost = _save_choi(corpus, target)
        case _:
            raise InputError(
                f"the format {format}, which is only read",
                expected=f"one of {', '.join(WRITABLE)}",
                remedy=f"choose one of them with --to {_IN_PYTHON}",
                place=Place(file=str(path)),
            )
    if corpus.n_dropped:
        lost.append(
            f"{counted(corpus.n_dropped, 'unit')} without text {_left_out(corpus.n_dropped)}"
        )
    return lost


def check_target(path: str | Path) -> None:
    """Refuse what `save` could not write, before there is anything to save."""
    target = Path(path)
    _format_of(unpacked_name(target))
    if str(target) != "-" and not target.is_dir():
        check_writable(target)


def _write(target: Path, text: Iterable[str]) -> None:
    """Write a file, packed if its name says so."""
    is_packed = unpacked_name(target) != target
    write_file(target, _packed(text, target) if is_packed else text)


def _packed(text: Iterable[str], target: Path) -> Iterator[bytes]:
    """Pack as gzip does, without a time, so that the same text gives the same bytes."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    for part in text:
        yield packer.compress(encoded(part, target))
    yield packer.flush()


def _format_of(target: Path) -> str:
    if str(target) == "-":
        return "jsonl"
    suffix = target.suffix.lower()
    if is_folder(target):
        return "choi"
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    raise InputError(
        f"the extension {suffix}, which does not tell the format",
        expected=f"one of {', '.join(filter(None, _BY_SUFFIX))}, or a format by name",
        remedy=f"add --to dialseg or --to segeval {_IN_PYTHON}"
        if suffix == ".json"
        else f"add --to with one of {', '.join(WRITABLE)} {_IN_PYTHON}",
        place=Place(file=str(target)),
    )


def _save_choi(corpus: Corpus, target: Path) -> list[str]:
    chosen, lost = _one_each(corpus, "choi", target)
    documents = corpus.documents
    if str(target) == "-" or (target.suffix and not is_folder(target)):
        document = _only_document(corpus, target, "name a folder, without an extension")
        _write(target, choi.write(document, chosen[0]))
        stems = [choi.id_of(unpacked_name(target).name)]
    else:
        names = choi.file_names([document.id for document in documents])
        contents = map(choi.write, documents, chosen)
        write_folder(target, zip(names, contents, strict=True))
        stems = [choi.id_of(name) for name in names]
    lost += _renamed(zip([document.id for document in documents], stems, strict=True), "choi")
    broken = sum(choi.has_line_break(unit) for document in documents for unit in document.units)
    if broken:
        inside = counted(broken, "unit")
        lost.append(f"choi files hold one unit per line: line breaks in {inside} became spaces")
    return lost + _extras(corpus, "choi")


def _only_document(corpus: Corpus, target: Path, remedy: str) -> Document:
    if len(corpus) == 1:
        return corpus.documents[0]
    raise InputError(
        f"{len(corpus)} documents",
        expected="one, since such a file holds a single document",
        remedy=remedy,
        place=Place(file=str(target)),
    )


def _one_each(corpus: Corpus, format: str, target: Path) -> tuple[list[Segmentation], list[str]]:
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
    raise InputError(
        f"{counted(len(corpus) - len(golds), 'document')} without gold, and {len(names)} systems",
        expected=f"gold everywhere or a single system, since {room}",
        remedy="leave one system, or write jsonl",
        place=Place(file=str(target)),
    )


def _without_text(corpus: Corpus, format: str) -> list[str]:
    return [f"{format} files hold no text: the units were left out", *_extras(corpus, format)]


def _extras(corpus: Corpus, format: str, *, speakers: bool = True) -> list[str]:
    documents = corpus.documents
    has_speakers = speakers and any(document.speakers is not None for document in documents)
    found = ["annotators' golds"] * any(document.golds for document in documents)
    found += ["speakers"] * has_speakers + ["meta"] * any(document.meta for document in documents)
    return [f"{format} files hold no {name}: they were left out" for name in found]


def _renamed(pairs: Iterable[tuple[str, str]], format: str) -> list[str]:
    changed = [(old, new) for old, new in pairs if old != new]
    if not changed:
        return []
    old, new = changed[0]
    what = "1 id changes" if len(changed) == 1 else f"{len(changed)} ids change"
    return [f"{format} files are named by their document: {what}, such as {old!r} to {new!r}"]


def _left_out(n: int) -> str:
    return "was left out" if n == 1 else "were left out"
