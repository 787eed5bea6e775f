"""Web pages, Word and PDF files: what is kept of their structure, and what is refused."""

from __future__ import annotations

import sys
import zipfile

import pytest

import reffree
from reffree.chunkers.blocks import blocks_of
from reffree.formats.documents import read_as_markdown
from reffree.formats.source import Source
from reffree.studies.chunks_texts import read_texts
from reffree.util.bounds import LIMITS
from tests.helpers import refusal

PAGE = """<!doctype html><html><head><title>T</title><style>p {}</style></head><body>
<nav><a href="/">Home</a></nav><main><h1>Bees &amp; honey</h1>
<p>Bees make <b>honey</b> in_summer. See <a href="x">more*</a>.</p>
<ul><li>one</li><li>two</li></ul>
<pre><code>def f():
    return 1
</code></pre><script>alert(1)</script>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<h2>Winter</h2><p>They sleep.</p></main><footer>©</footer></body></html>"""

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = "http://schemas.openxmlformats.org"


def word(text, style=None):
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{styled}<w:r><w:t>{text}</w:t></w:r></w:p>"


def make_docx(path, *paragraphs):
    """Write the least that is a Word file."""
    cell = "<w:tc>{}</w:tc>".format
    table = f"<w:tbl><w:tr>{cell(word('a'))}{cell(word('b'))}</w:tr></w:tbl>"
    body = "".join(paragraphs) + table
    files = {
        "[Content_Types].xml": f'<Types xmlns="{REL}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.'
        'openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{REL}/package/2006/relationships"><Relationship '
        f'Id="r1" Type="{REL}/officeDocument/2006/relationships/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f'<w:styles {W}><w:style w:type="paragraph" w:styleId="H1"><w:name '
        'w:val="heading 1"/></w:style></w:styles>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{REL}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{REL}/officeDocument/2006/relationships/styles" '
        'Target="styles.xml"/></Relationships>',
    }
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)


def make_pdf(path, *pages):
    """Write a PDF of lines: (size, font, distance from the line above, text)."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    fonts = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> /F2 << /Type /Font "
    fonts += "/Subtype /Type1 /BaseFont /Courier >> >>"
    for lines in pages:
        height, drawn = 800, []
        for size, font, distance, text in lines:
            height -= distance
            shown = text.replace("(", r"\(").replace(")", r"\)")
            drawn.append(f"BT /{font} {size} Tf 1 0 0 1 50 {height} Tm ({shown}) Tj ET")
        stream = "\n".join(drawn)
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 850] /Contents {len(objects)} 0 R "
            f"/Resources << /Font {fonts} >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    content, offsets = b"%PDF-1.4\n", []
    for i, each in enumerate(objects, 1):
        offsets.append(len(content))
        content += f"{i} 0 obj\n{each}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    end += f"<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    path.write_bytes(content + end.encode())


def markdown(path):
    return read_as_markdown(Source(path))


def test_a_web_page(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(PAGE)
    text = markdown(path)
    assert "Bees make honey in_summer. See more*." in text
    for absent in ("Home", "alert", "©", "<", "p {}", "(x)"):
        assert absent not in text
    kinds = [(b.kind, text[b.start : b.end].split("\n")[0]) for b in blocks_of(text)]
    assert kinds == [
        ("headings", "# Bees & honey"),
        ("prose", "Bees make honey in_summer. See more*."),
        ("lists", "- one"),
        ("code", "```"),
        ("tables", "| a | b |"),
        ("headings", "## Winter"),
        ("prose", "They sleep."),
    ]
    assert "```\ndef f():\n    return 1\n```" in text


@pytest.mark.parametrize(
    "content",
    [
        '<meta charset="latin-1"><p>caf\xe9</p>'.encode("latin-1"),
        "<p>caf\xe9</p>".encode(),
        "<p>caf\xe9</p>".encode("utf-8-sig"),
        "<p>caf\xe9</p>".encode("utf-16"),
    ],
)
def test_a_page_is_in_the_encoding_that_it_names(tmp_path, content):
    path = tmp_path / "a.htm"
    path.write_bytes(content)
    assert markdown(path) == "caf\xe9"


def test_a_word_file(tmp_path):
    path = tmp_path / "a.docx"
    make_docx(path, word("Bees", "H1"), word("They sleep."), word("In winter."))
    assert markdown(path) == "# Bees\n\nThey sleep.\n\nIn winter.\n\n| a | b |\n| --- | --- |"


def test_a_pdf_file(tmp_path):
    path = tmp_path / "a.pdf"
    text = (10, "F1", 12)
    pages = [
        [
            (8, "F1", 12, f"Guide of bees, page {i}"),
            (16, "F1", 30, f"{i} Bees"),
            (*text, "They sleep in winter"),
            (*text, "and make honey."),
            (10, "F1", 24, "Another paragraph."),
            (10, "F2", 12, "hive.open()"),
            (10, "F2", 12, "hive.close()"),
            (*text, f"\\267 {last}"),
        ]
        for i, last in enumerate(("one", "two", "three"), 1)
    ]
    make_pdf(path, *pages)
    found = markdown(path)
    assert "page" not in found
    one = "They sleep in winter\nand make honey.\n\nAnother paragraph."
    assert f"# 1 Bees\n\n{one}" in found
    assert "```\nhive.open()\nhive.close()\n```\n\n- one" in found
    assert [b.kind for b in blocks_of(found)] == ["headings", "prose", "prose", "code", "lists"] * 3


def test_headings_are_gold(tmp_path):
    (tmp_path / "a.html").write_text(PAGE)
    (document,) = reffree.load(tmp_path / "a.html")
    assert document.gold.masses == (7, 1)
    assert document.units[0] == "Bees make honey in_summer."


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.pdf", b"%PDF-1.4 nothing", "found a .pdf file that cannot be read"),
        ("a.docx", b"PK\x03\x04 nothing", "found a .docx file that cannot be read"),
        (
            "b.html",
            b"<meta charset=utf-8><p>caf\xe9 \x81\xff</p>",
            "bytes that are not utf-8, its encoding",
        ),
        ("a.html", b"<nav>Home</nav>", "found a .html file without text"),
        (
            "a.txt",
            b"%PDF-1.4",
            "found what looks like a PDF file; expected text in UTF-8; give it as",
        ),
    ],
)
def test_what_cannot_be_read_is_a_sentence(tmp_path, name, content, part):
    (tmp_path / name).write_bytes(content)
    assert part in refusal(read_texts, [tmp_path / name])


def test_a_scanned_file_says_what_to_do(tmp_path):
    make_pdf(tmp_path / "a.pdf", [])
    assert "recognise its text first (OCR)" in refusal(markdown, tmp_path / "a.pdf")


def test_a_word_file_that_unpacks_to_more_than_is_read(tmp_path, monkeypatch):
    make_docx(tmp_path / "a.docx", word("x" * 90_000))
    monkeypatch.setitem(LIMITS, "input_bytes", 50_000)
    assert "bytes of input" in refusal(markdown, tmp_path / "a.docx")


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdf"), ("a.docx", "mammoth")])
def test_without_its_library_a_sentence_before_anything_is_read(
    tmp_path, monkeypatch, name, package
):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "first.txt").write_bytes(b"\xff")  # which would be refused when it is read
    (tmp_path / name).write_bytes(b"")
    said = refusal(read_texts, [tmp_path / "first.txt", tmp_path / name])
    assert f"no installed {package}" in said
    assert "pip install 'reffree[documents]'" in said
