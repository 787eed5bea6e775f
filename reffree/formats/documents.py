"""Web pages, Word and PDF files, read as Markdown: headings, lists, tables and code stay so.

* ``document``: ``.html``, ``.docx`` and ``.pdf``; headings open segments, as in ``markdown``.

Of a web page its main part counts, without what leads to other pages; links and emphasis leave
their words. A Word file is read by its styles. A PDF has lines alone: what is set larger than most
of the text is a heading, what is set in a typewriter's letters is code, a wider gap between lines
ends a paragraph, and lines that stand at the top or foot of many pages are left out.
"""

from __future__ import annotations

import logging
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby, pairwise
from typing import Any, ClassVar, NamedTuple

from reffree.formats.headings import Markdown
from reffree.formats.source import Source
from reffree.util.bounds import check_limit
from reffree.util.errors import InputError, Place, mistake, shorten
from reffree.util.optional import require

_HTML = ("markdownify",)
PACKAGES = {".html": _HTML, ".htm": _HTML, ".docx": ("mammoth", *_HTML), ".pdf": ("pypdf",)}
"""By ending: the libraries that read such files."""

_MAGIC = ((b"%PDF-", ".pdf"), (b"PK", ".docx"))
_ASIDE = ["script", "style", "noscript", "template", "nav", "footer", "aside", "form", "button"]
_ASIDE += ["svg", "iframe"]
_LATIN = ("iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii")
_UNMARKED = ["a", "img", "b", "strong", "i", "em", "u", "sup", "sub"]
LARGER = 1.12
"""Times the usual size, a line of a PDF is a heading."""

WIDER = 1.35
"""Times the usual distance, a gap between lines ends a paragraph."""

REPEATED = 3
"""Pages on which a first or last line must stand to belong to none of them."""

_BULLET = re.compile(r"[•◦▪‣·●○■]\s*")
_TYPEWRITER = re.compile("mono|courier|cmtt|typewriter|consol", re.IGNORECASE)


@dataclass(frozen=True)
class DocumentFile(Markdown):
    """A web page, a Word file or a PDF."""

    name = "document"
    owns: ClassVar[tuple[str, ...]] = tuple(PACKAGES)
    folders: ClassVar[tuple[str, ...]] = tuple(PACKAGES)
    kinds = "documents (.html, .docx, .pdf)"

    def text(self, file: Source) -> str:
        """Return the file as Markdown."""
        return read_as_markdown(file)


def check_packages(source: Source) -> None:
    """Refuse a file whose library is not installed, before others are read."""
    for package in PACKAGES.get(source.suffix, ()):
        _library(package, source.place())


def read_as_markdown(source: Source) -> str:
    """Read a web page, a Word file or a PDF as Markdown; there is text in it."""
    check_packages(source)
    place, kind = source.place(), source.suffix
    try:
        content = source.content()
        if kind not in PACKAGES:  # as where the format was named
            kind = next((k for magic, k in _MAGIC if content.startswith(magic)), ".html")
        if kind == ".pdf":
            text = _pdf_as_markdown(content, place)
        else:
            decode = _word_as_html if kind == ".docx" else _decode_page
            text = _html_as_markdown(decode(content, place), place)
    except InputError:
        raise
    except Exception as error:  # whatever a library raises on a damaged file
        found = f"a {kind} file that cannot be read ({shorten(str(error) or type(error).__name__)})"
        raise mistake(place, found, "a whole one", "save it again, or as text") from error
    if not text.strip():
        remedy = "recognise its text first (OCR)" if kind == ".pdf" else "leave it out"
        raise mistake(place, f"a {kind} file without text", "text", remedy)
    return text


def _library(name: str, place: Place) -> Any:  # noqa: ANN401  (a module)
    remedy = "install it with pip install 'reffree[documents]', or save the file as text"
    return require(name, lambda found: mistake(place, f"no installed {found}", "it here", remedy))


# Web pages and Word files


def _html_as_markdown(text: str, place: Place) -> str:
    markdownify = _library("markdownify", place)
    import bs4

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what looks like XML, or like a file's name
        page = bs4.BeautifulSoup(text, "html.parser")
    for aside in page.find_all(_ASIDE):
        aside.decompose()
    mains = page.find_all("main") or page.find_all("article")
    main = mains[0] if len(mains) == 1 else page.body or page
    converter = markdownify.MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=_UNMARKED,
        table_infer_header=True,
        **dict.fromkeys(("escape_asterisks", "escape_underscores", "escape_misc"), False),
    )
    found = re.sub(r"[ \t]+$", "", str(converter.convert_soup(main)), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", found).strip()


def _decode_page(content: bytes, place: Place) -> str:
    """Decode by the mark at the start, else by what the page says, else as UTF-8."""
    from bs4.dammit import EncodingDetector

    content, marked = EncodingDetector.strip_byte_order_mark(content)
    encoding = marked or EncodingDetector.find_declared_encoding(content, is_html=True) or "utf-8"
    if encoding.lower() in _LATIN:
        encoding = "windows-1252"  # as browsers read it
    try:
        return content.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        found = f"bytes that are not {shorten(encoding)}, its encoding"
        raise mistake(place, found, "a page in one encoding", "save it as UTF-8") from None


def _word_as_html(content: bytes, place: Place) -> str:
    mammoth = _library("mammoth", place)
    size = sum(part.file_size for part in zipfile.ZipFile(BytesIO(content)).infolist())
    check_limit("input_bytes", size, f"{size:,} bytes of input", place)
    no_image = mammoth.images.img_element(lambda image: {})
    return str(mammoth.convert_to_html(BytesIO(content), convert_image=no_image).value)


# PDF


class _Line(NamedTuple):
    text: str
    size: float
    height: float  # of the page's coordinates
    is_code: bool


def _pdf_as_markdown(content: bytes, place: Place) -> str:
    pypdf = _library("pypdf", place)
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it says of every odd object that it is odd
    try:
        reader = pypdf.PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise mistake(place, "a PDF file with a password", "none", "save it without")
        pages = [list(_pdf_lines(page)) for page in reader.pages]
    finally:
        logger.setLevel(level)
    return "\n".join(_markdown_lines(list(_without_heads(pages)))).strip()


def _pdf_lines(page: Any) -> Iterator[_Line]:  # noqa: ANN401  (pypdf's)
    """Yield the lines of a page, each with its largest letters' size."""
    parts: list[_Line] = []

    def visit(text: str, _: object, matrix: list[float], font: Any, size: float) -> None:  # noqa: ANN401
        name = str((font or {}).get("/BaseFont", ""))
        scale = abs(matrix[3]) or abs(matrix[1]) or 1.0
        parts.append(_Line(text, size * scale, matrix[5], bool(_TYPEWRITER.search(name))))

    page.extract_text(visitor_text=visit)
    line: list[_Line] = []
    for part in [*parts, _Line("\n", 0.0, 0.0, is_code=False)]:
        for i, text in enumerate(part.text.split("\n")):
            if i and (words := [each for each in line if each.text.strip()]):
                joined = "".join(each.text for each in line)
                is_code = all(each.is_code for each in words)
                size = round(max(each.size for each in words), 1)
                yield _Line(joined.rstrip(), size, words[0].height, is_code)
            line = [*([] if i else line), part._replace(text=text)]


def _without_heads(pages: Sequence[list[_Line]]) -> Iterator[list[_Line]]:
    """Leave out first and last lines that stand on many pages, whatever their numbers."""

    def shape(line: _Line) -> str:
        return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text.strip())

    pages = [page for page in pages if page]
    seen = Counter(shape(page[at]) for page in pages for at in {0, -1})
    for page in pages:
        ends = {0, len(page) - 1}
        yield [x for i, x in enumerate(page) if i not in ends or seen[shape(x)] < REPEATED]


def _markdown_lines(pages: list[list[_Line]]) -> Iterator[str]:
    lines = [line for page in pages for line in page]
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    usual = max(sizes, key=lambda size: sizes[size], default=1.0)
    gaps = [
        round(a.height - b.height, 1)
        for page in pages
        for a, b in pairwise(page)
        if a.size == b.size == usual and a.height > b.height
    ]
    gap = Counter(gaps).most_common(1)[0][0] if gaps else 0.0
    larger = sorted({line.size for line in lines if line.size > LARGER * usual}, reverse=True)

    def mark(line: _Line) -> str:
        """Return the marks of a heading, ``code``, or nothing for text."""
        if line.size in larger and len(line.text) < 150:
            return "#" * min(6, 1 + larger.index(line.size))
        return "code" if line.is_code else ""

    above: _Line | None = None
    for kind, run in groupby(lines, key=mark):
        block = list(run)
        if kind == "code":
            yield from ["", "```", *(line.text for line in block), "```", ""]
        elif kind:
            yield from ["", f"{kind} {' '.join(line.text.strip() for line in block)}", ""]
        else:
            for line in block:
                distance = above.height - line.height if above is not None else 0.0
                if gap and distance > WIDER * gap:
                    yield ""
                yield _BULLET.sub("- ", line.text.strip(), count=1)
                above = line
            continue
        above = None
