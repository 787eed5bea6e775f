"""Which reader a file needs: by its extension, then by its content, unless the format is named."""

from __future__ import annotations

from reffree.corpus import Document
from reffree.errors import InputError, UnknownNameError
from reffree.formats import choi, dialseg, jsonl, nltk, qmsum, segeval, segeval_tsv, tiage
from reffree.formats.labels import Label
from reffree.formats.source import LINE_SUFFIXES, Source
from reffree.segmentation import CONVENTIONS, Convention

FORMATS: tuple[str, ...] = (
    "jsonl",
    "choi",
    "segeval",
    "segeval-tsv",
    "nltk",
    "dialseg",
    "tiage",
    "qmsum",
)
_FOLDERS = ("choi", "qmsum")


def read(
    source: Source, format: str | None, convention: Convention | None
) -> list[Document] | list[Label]:
    """Read one source: documents, or labels if the format holds no text; never nothing."""
    format = format or detect(source)
    if source.is_folder and format not in _FOLDERS:
        raise InputError(
            "a folder",
            expected=f"a file, since the format {format} has no folders",
            remedy="name its files one by one",
            place=source.place(),
        )
    found = _read(source, format, convention)
    if found:
        return found
    raise InputError(
        "no documents",
        expected="at least one",
        remedy="check that the file is not empty",
        place=source.place(),
    )


def _read(
    source: Source, format: str, convention: Convention | None
) -> list[Document] | list[Label]:
    match format:
        case "jsonl":
            return jsonl.read(source)
        case "choi":
            return choi.read(source)
        case "segeval":
            return segeval.read(source)
        case "segeval-tsv":
            return segeval_tsv.read(source)
        case "nltk":
            return nltk.read(source)
        case "dialseg":
            return dialseg.read(source, convention)
        case "tiage":
            return tiage.read(source, convention)
        case "qmsum":
            return qmsum.read(source)
        case _:
            raise UnknownNameError("format", format, FORMATS)


def check_names(format: str | None, convention: str | None) -> None:
    """Refuse a format or a convention that does not exist."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    if convention is not None and convention not in CONVENTIONS:
        raise UnknownNameError("convention", convention, CONVENTIONS)


def detect(source: Source) -> str:
    """Tell the format of a source; stdin is corpus JSONL unless said otherwise."""
    if source.is_stdin:
        return "jsonl"
    if source.is_folder:
        format = _folder_format(source)
    elif source.suffix in (*LINE_SUFFIXES, ".json"):
        format = _json_format(source)
    elif source.suffix in (".tsv", ".csv"):
        format = "segeval-tsv"
    elif source.suffix == ".ref":
        format = "choi"
    else:
        format = _text_format(source)
    if format is not None:
        return format
    raise InputError(
        "a folder of no known format" if source.is_folder else "a file of no known format",
        expected=f"one of {', '.join(FORMATS)}",
        remedy="name it with --format",
        place=source.place(),
    )


def _folder_format(source: Source) -> str | None:
    suffixes = {path.suffix.lower(): path for _, path in reversed(source.files())}
    if not suffixes.keys().isdisjoint(choi.SUFFIXES):
        return "choi"
    if ".json" in suffixes and _json_format(Source(suffixes[".json"])) == "qmsum":
        return "qmsum"
    return None


def _json_format(source: Source) -> str | None:
    if source.is_json_lines:
        _, value = next(source.json_lines(), (0, None))
        return "qmsum" if isinstance(value, dict) and qmsum.MEETING in value else "jsonl"
    value = source.json
    if isinstance(value, list):
        first = value[0] if value else None
        is_corpus = isinstance(first, dict) and not first.keys().isdisjoint(_CORPUS_KEYS)
        return "jsonl" if is_corpus else None
    if not isinstance(value, dict):
        return None
    for keys, format in _BY_KEY:
        if not value.keys().isdisjoint(keys):
            return format
    return "tiage" if tiage.looks_like(value) else None


_CORPUS_KEYS = ("units", "segmentation")
_BY_KEY = (
    ((dialseg.DATA,), "dialseg"),
    (("segmentation_type", "items"), "segeval"),
    ((qmsum.MEETING,), "qmsum"),
    (_CORPUS_KEYS, "jsonl"),
)


def _text_format(source: Source) -> str | None:
    """Look through all lines: a separator makes it choi, nothing but 0 and 1 nltk."""
    strings, only_strings = 0, True
    for _, line in source.lines():
        if choi.is_separator(line):
            return "choi"
        only_strings = only_strings and nltk.is_line(line)
        strings += line.rstrip().endswith(("0", "1"))
    return "nltk" if only_strings and strings else None
