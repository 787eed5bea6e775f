"""The page of a study: safe, self-contained, and working in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import reffree
from reffree.cli import main
from reffree.data.corpus import Corpus, Document
from reffree.evaluate.result import DocumentText, Field, Result, Table, columns, load_result
from reffree.report.page import render_index, render_page
from reffree.report.render import render
from reffree.studies import boundaries, compare
from reffree.util.errors import InputError
from tests import synthetic_results as synthetic
from tests.helpers import halves, topical_corpus
from tests.synthetic_results import NASTY

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)"
)


@cache
def nasty_page(study):
    return render_page(synthetic.ALL[study](nasty=NASTY))


# --- the page as text -------------------------------------------------------------------------


def body_of(page):
    """Return what a parser sees outside scripts and style."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("study", synthetic.ALL)
def test_names_and_texts_cannot_become_markup(study):
    page = nasty_page(study)
    assert "<img src=x" not in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "&lt;/script&gt;&lt;img src=x" in body_of(page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 3
    assert not re.search(r'\b(?:src|href|action)="(?!#|data:,)', body_of(page))


def test_page_says_question_answer_reading_and_settings():
    result = synthetic.unknown()
    text = body_of(render_page(result))
    for said in (result.question, *result.verdict, *result.notes, *result.reading.values()):
        assert said in text
    for part in result.signature.split("|"):
        assert part in text
    assert '>resamples</th><td data-label="value" dir="auto">1,000</td>' in text
    assert ">nested.a</th>" in text
    assert "<code>curves</code>" in text


def test_long_notes_are_folded_so_that_the_picture_follows_the_answer():
    result = synthetic.unknown()
    assert '<details class="notes" open>' in render_page(result)
    long = render_page(replace(result, notes=("what a system was scored on, " * 40,)))
    assert '<details class="notes">' in long


def test_results_read_back_make_the_same_page(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(render(synthetic.diagnose(nasty=NASTY), "json"), encoding="utf-8")
    assert render_page(load_result(path)) == nasty_page("diagnose")


def test_settings_survive_as_json():
    settings = {"k": (1, 2), "folder": Path("a"), "nested": {"x": (Path("b"), None)}}
    written = render(replace(synthetic.unknown(), settings=settings), "json")
    expected = {"k": [1, 2], "folder": "a", "nested": {"x": ["b", None]}}
    assert Result.from_dict(json.loads(written)).settings == expected


def test_without_charts_the_page_is_small_and_needs_no_library_of_charts():
    code = (
        "import sys\nfrom reffree.report.page import render_page\n"
        "from tests import synthetic_results\n"
        "print(render_page(synthetic_results.unknown()))\n"
        "assert not {'altair', 'vl_convert'} & sys.modules.keys()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    page = done.stdout
    assert "<figure" not in page
    assert 'href="#charts"' not in page
    assert "Systems by loss" in page
    assert len(page) < 100_000  # no drawing library for nothing to draw


def test_result_without_anything_still_makes_a_page():
    bare = replace(synthetic.unknown(), tables=(), reading={}, notes=(), corpora=(), settings={})
    page = render_page(bare)
    for said in (bare.question, *bare.verdict, "Signature and settings"):
        assert said in page
    assert page.rstrip().endswith("</html>")
    assert "<table" not in page
    with pytest.raises(InputError, match="found results without tables"):
        render(bare, "csv")


def test_wide_tables_sort_and_keep_their_small_parts():
    fields = (
        *columns("text", "system", "metric"),
        Field("value", "value", interval="ci", best="first", beside="letters", below="p"),
        *columns("interval", "ci"),
        *columns("count", "first"),
        *columns("text", "letters", "p"),
    )
    rows = [
        ("a_b", "pk", 0.25, [0.1, 0.4], 1, "ab", "p .5"),
        ("c", "pk", 0.5, None, 0, "", None),
        ("c", "long_name", None, None, 0, "", None),
    ]
    table = Table.of("systems", "A <title>", fields, rows, wide="metric")
    grid = table.grid()
    assert grid.header == ("system", "pk", "long_name")
    assert [[cell.text for cell in row] for row in grid.rows] == [
        ["a_b", "0.250", "–"],
        ["c", "0.500", "–"],
    ]
    page = render_page(replace(synthetic.unknown(), tables=(table,)))
    assert "A &lt;title&gt;" in page
    assert "long_<wbr>name" in page  # breaks where it may
    assert (
        '<td class="n" data-v="0.25" data-label="pk"><b>0.250</b> <small>ab</small> '
        "<small>[0.100, 0.400]</small> <small>p .5</small></td>"
    ) in page
    for format, part in {
        "table": "*0.250 ab",
        "md": "| a_b | **0.250** ab [0.100, 0.400] p .5 | – |",
        "latex": r"a\_b & \textbf{0.250} {\small ab {[}0.100, 0.400] p .5} & –",
        "csv": "a_b,pk,0.25,0.1,0.4,1,ab,p .5,",
    }.items():
        assert part in render(replace(synthetic.unknown(), tables=(table,)), format)
    data = json.loads(render(replace(synthetic.unknown(), tables=(table,)), "json"))
    assert Result.from_dict(data).table("systems") == table
    for damage in ({"wide": "value"}, {"wide": "system"}, {"wide": "no"}):
        damaged = {**data, "tables": [data["tables"][0] | damage]}
        with pytest.raises(InputError, match=r"damaged results \(the header of table 'systems'\)"):
            Result.from_dict(damaged)


def test_results_of_the_first_form_are_read():
    new = synthetic.diagnose()
    old = json.loads(render(new, "json"))
    old |= {"reffree_study": 1, "study": old.pop("command"), "answer": old.pop("verdict")}
    del old["reffree"], old["legend"]
    for table in old["tables"]:
        del table["wide"]
    assert Result.from_dict(old) == new
    with pytest.raises(InputError, match=r"found results of another form \(2\)"):
        Result.from_dict(old | {"reffree_study": 2})


@pytest.mark.parametrize("command", ["score", "compare", "study agreement"])
def test_pages_of_commands_ask_nothing_of_anyone(command, run, tmp_path):
    name = "<script>alert(1)</script>"
    coders = {"ann": [3, 6], "bob": [4, 5]} if command == "study agreement" else {}
    units, systems = [f"u{j}" for j in range(9)], {name: [4, 5], "b": [1] * 9}
    documents = [
        Document.build(f"d{i}", units, gold=[3, 6], golds=coders, systems=systems) for i in range(6)
    ]
    reffree.save(Corpus(tuple(documents)), tmp_path / "c.jsonl")
    options = [] if command == "study agreement" else ["-m", "pk", "-m", "windowdiff"]
    done = run(*command.split(), "c.jsonl", *options, "-o", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert name not in page
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r'\b(?:src|href|action)="(?!#|data:,)', body_of(page))
    if command != "study agreement":
        shown = "&lt;script&gt;alert(1)&lt;/script&gt;"
        assert f'<p class="answer" dir="auto">{shown} is best of 2 systems by pk: ' in page
        assert f"reffree: wrote page.html. {name} is best of 2" in done.stderr
    assert run(*command.split(), "c.jsonl", *options, "-f", "html").stdout == page


def test_an_index_leads_to_what_is_there():
    page = render_index("my & run", [("one two", "Why?", ["So."]), ("b", NASTY, [])], {"one two"})
    assert re.findall(r'href="([^"]*)"', page)[1:] == [
        *("one%20two.html", "one%20two.md", "one%20two.json", "b.md", "b.json")
    ]
    assert "<script" not in page
    assert all(said in page for said in ('<h1 dir="auto">my &amp; run</h1>', "Why?", "So."))


def test_notebooks_show_sentences_and_tables():
    corpus, vectors = topical_corpus([[6] * 4] * 8, halves=halves, ones=lambda n: [1] * n)
    table = reffree.score(corpus, metrics=["arp_pair", "pk"], embeddings=vectors)
    shown = table._repr_html_()
    assert shown.count("<tr>") == 4
    assert shown.startswith(f"<p>{table.verdict[0]}")
    assert table.plot().to_dict()["datasets"]["rows"]
    result = compare(corpus, metrics=["arp_pair", "pk"], embeddings=vectors)
    shown = result._repr_html_()
    assert shown.startswith(f"<p>{result.verdict[0]}")
    assert shown.count("<table") == 2
    value = result.table("systems").records(system="gold", metric="pk")[0]
    assert f"<b>{value['value']:.3f}</b> <small>{value['letters']}</small>" in shown
    assert result.table("pairs")._repr_html_().count("<table") == 1
    long = replace(result.table("systems"), rows=result.table("systems").rows * 100, wide=None)
    shown = long._repr_html_()
    assert shown.count("<tr>") == 61
    assert "540 more rows: see to_pandas()." in shown


def test_names_in_notebooks_are_no_markup():
    shown = synthetic.score(nasty=NASTY)._repr_html_()
    assert "<img" not in shown
    assert "&lt;/script&gt;&lt;img src=x" in shown


def test_a_large_result_makes_a_page_of_bounded_size():
    """20,000 rows of documents, long tables, much text: cut down, and said so."""
    result = synthetic.correlate(n_documents=143, corpora=("alpha",))
    assert sum(len(table.rows) for table in result.tables) > 20_000
    long = replace(synthetic.ranking(), rows=synthetic.ranking().rows * 200)
    texts = tuple(
        DocumentText(c, f"{c}{i}", ("word " * 20,) * 3000, {"gold": (1500, 1500)})
        for c in "ab"
        for i in range(4)
    )
    page = render_page(replace(result, tables=(*result.tables, long), texts=texts))
    assert len(page.encode()) < 2_500_000
    text = body_of(page)
    assert "Shown: the first 500 of 2,000 rows" in text
    assert "-f csv --table ranking" in text
    assert "Shown: 3 of 8 documents." in text
    assert "a0: the first 2,000 of 3,000 units are shown." in text
    assert "b0: the first 2,000 of 3,000 units are shown." in text


def test_masses_that_do_not_fit_are_refused():
    text = DocumentText("alpha", "d1", ("one", "two"), {"gold": (1, 1), "mine": (3,)})
    with pytest.raises(
        InputError, match=r"system 'mine', document 'd1': found masses that sum to 3"
    ):
        render_page(replace(synthetic.unknown(), texts=(text,)))


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(render(synthetic.encoders(), "json"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("report.html", "<!doctype html>"),
        ("report.md", "**Made-up encoders**"),
        ("report.tex", "\\begin{tabular}"),
        ("report.csv", "corpus,encoder,pool,"),
        ("report.json", '{"reffree": 2'),
        ("report.txt", "─────"),
    ],
)
def test_command_writes_by_ending(results, name, part, capfd):
    target = results.with_name(name)
    main(["report", str(results), "-o", str(target)])
    assert part in target.read_text(encoding="utf-8")
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"reffree: wrote {target}. Nothing here was measured")


def test_command_writes_one_table_as_csv(results, capfdbinary):
    main(["report", str(results), "-f", "csv", "--table", "agreement"])
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0] == "encoder_a,encoder_b,metric,kendall,signature"
    assert len(lines) == 1 + 3 * 6


def test_command_writes_charts(results, capfd):
    folder = results.with_name("charts")
    main(["report", str(results), "--charts", str(folder), "--choose", "metric=segrefree"])
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"{folder}: 4 charts\n"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        *("agreement-segrefree.svg", "correlations-independent-pearson.svg", "cross-segrefree.svg"),
        "speed-segrefree-pk.svg",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--choose", "metric=segrefree"], 2, "--choose is for charts"),
        (["--charts", "x", "--choose", "metric"], 2, "expected NAME=VALUE"),
        (["--charts", "x", "--choose", "metric=no"], 2, "unknown metric 'no'"),
        (["-f", "html", "--table", "cross"], 2, "--table is for"),
        (["-f", "csv", "--table", "crosss"], 2, "did you mean 'cross'?"),
        (["-o", "results.json"], 2, "this is an input"),
        (["scores.json"], 1, "found no results of a study; expected JSON written by a study"),
        (["--charts", "results.json/x"], 1, "x: found a file in its way; expected folders"),
    ],
)
def test_command_refuses_with_a_sentence(results, arguments, code, message, capfd, monkeypatch):
    monkeypatch.chdir(results.parent)
    results.with_name("scores.json").write_text('{"signature": "x", "systems": []}')
    file = [] if arguments[0] == "scores.json" else ["results.json"]
    with pytest.raises(SystemExit) as stop:
        main(["report", *file, *arguments])
    assert stop.value.code == code
    assert message in capfd.readouterr().err


# --- the page in a browser --------------------------------------------------------------------

DRAWN = "() => [...document.querySelectorAll('figure')].every(f => f.hasAttribute('data-drawn'))"
FITS = """() => [...document.querySelectorAll('.plot')].every(plot => {
  const svg = plot.querySelector('svg');
  return svg && svg.getAttribute('width') <= plot.clientWidth + 4;
})"""
MARKS = """() => Object.fromEntries([...document.querySelectorAll('figure')].map(figure => {
  const frame = figure.querySelector('.plot').getBoundingClientRect();
  const marks = [...figure.querySelectorAll('.role-mark path, .role-mark line')].filter(mark => {
    const box = mark.getBoundingClientRect();
    return box.width + box.height > 0 && box.left >= frame.left - 8 && box.right <= frame.right + 8;
  });
  return [figure.id, marks.length];
}))"""


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        # Chromium's own sandbox needs privileges that containers do not have.
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a result's page; whatever it asks for, complains of or pops up is kept."""
    contexts = []

    def open_page(html):
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []

        def intercept(route):
            page.asked.append(route.request.url)
            is_local = route.request.url.startswith(("file://", "data:"))
            route.continue_() if is_local else route.abort()

        page.route("**/*", intercept)
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.goto(path.as_uri())
        page.wait_for_function(DRAWN)
        page.own_url = path.as_uri()
        return page

    yield open_page
    for context in contexts:
        context.close()


def assert_quiet(page):
    assert page.asked == [page.own_url]
    assert page.complaints == []


@needs_chromium
@pytest.mark.parametrize("study", synthetic.ALL)
def test_every_chart_has_drawn_marks_and_nothing_is_asked_for(study, visit, tmp_path):
    """Wide and light, then narrow and dark, with names that try to break out."""
    page = visit(nasty_page(study))
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS)
        page.wait_for_function(DRAWN)
        marks = page.evaluate(MARKS)
        assert marks
        assert min(marks.values()) > 5, marks
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture = tmp_path / f"{scheme}.png"
        page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 20_000
    assert_quiet(page)


@needs_chromium
def test_the_policy_stops_what_the_test_would_not_see(visit):
    """Requests and scripts put into the page by force are refused by the page itself."""
    page = visit(nasty_page("diagnose"))
    page.evaluate("new Image().src = 'https://example.org/pixel.png'")
    page.evaluate("fetch('https://example.org/').catch(() => 0)")
    page.evaluate(
        "const s = document.createElement('script'); s.text = 'alert(1)'; document.body.append(s)"
    )
    assert page.asked == [page.own_url]
    assert len(page.complaints) >= 3
    assert all("Content Security Policy" in said for said in page.complaints if "fetch" not in said)


@needs_chromium
def test_tables_sort_by_mouse_and_keyboard(visit):
    page = visit(render_page(synthetic.unknown()))
    column = """nth => [...document.querySelectorAll('[data-table=ranking] tbody tr')]
        .map(row => row.cells[nth].innerText.split(/\\s/)[0].trim())"""
    heads = page.locator("[data-table=ranking] thead th")

    heads.nth(2).locator("button").click()
    values = page.evaluate(column, 2)
    assert values[-1] == "–"
    assert values[:-1] == sorted(values[:-1], key=float)
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"

    page.keyboard.press("Enter")  # the button has the focus
    assert page.evaluate(column, 2) == [*values[-2::-1], "–"]
    assert heads.nth(2).get_attribute("aria-sort") == "descending"

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    counts = [int(text.replace(",", "")) for text in page.evaluate(column, 5)]
    assert counts == sorted(counts)
    assert heads.nth(2).get_attribute("aria-sort") is None

    heads.nth(0).locator("button").click()
    names = page.evaluate(column, 0)
    assert names == sorted(names)
    assert_quiet(page)


CUT = """() => [...document.querySelectorAll('#tables .scroll')].map(box => {
  const frame = box.getBoundingClientRect();
  const rows = [...box.querySelectorAll('tbody tr')].map(row => row.getBoundingClientRect());
  return rows.filter(row => row.height && (row.bottom > frame.bottom + 1 || row.top < frame.top));
}).flat().length"""
SHOWN = """() => [...document.querySelectorAll('[data-table=ranking] tbody tr')]
  .filter(row => row.getBoundingClientRect().height > 0).length"""


def long_page(n):
    table = synthetic.ranking()
    rows = (table.rows * n)[:n]
    return render_page(replace(synthetic.unknown(), tables=(replace(table, rows=rows),)))


@needs_chromium
def test_tables_end_on_whole_rows_and_keep_their_titles_in_sight(visit):
    page = visit(long_page(30))
    assert (page.evaluate(SHOWN), page.evaluate(CUT)) == (30, 0)
    assert page.locator("button.more").count() == 0
    page = visit(long_page(71))
    more = page.locator("button.more")
    assert (page.evaluate(SHOWN), page.evaluate(CUT)) == (30, 0)
    assert more.inner_text() == "Show all 71 rows"
    page.locator("[data-table=ranking] thead button").nth(2).click()
    assert page.evaluate(SHOWN) == 30  # the first of the new order
    more.click()
    assert (page.evaluate(SHOWN), page.evaluate(CUT)) == (71, 0)
    assert more.get_attribute("aria-expanded") == "true"
    page.evaluate("document.querySelectorAll('[data-table] tbody tr')[50].scrollIntoView()")
    page.wait_for_function(
        "document.querySelector('[data-table] thead th').getBoundingClientRect().top >= -1"
    )
    more.click()
    assert page.evaluate(SHOWN) == 30
    page.emulate_media(media="print")
    assert page.evaluate(SHOWN) == 71
    assert not more.is_visible()
    assert_quiet(page)


@needs_chromium
@pytest.mark.parametrize("long", ["", NASTY], ids=["short", "long"])
def test_no_value_of_a_table_is_hidden_on_a_phone(long, visit):
    """Each row is a block of its own there, every value with the title of its column."""
    page = visit(render_page(replace(synthetic.encoders(long), texts=())))
    page.set_viewport_size({"width": 390, "height": 900})
    rows = "tr:not(:nth-child(n + 31)) > *"
    cells = f".sortable {rows}, .records tbody {rows}"
    hidden = """cells => [...document.querySelectorAll(cells)]
      .filter(cell => {
        const box = cell.getBoundingClientRect();
        return !box.width || box.right > innerWidth || cell.scrollWidth > cell.clientWidth + 1;
      }).length"""
    assert page.evaluate(hidden, cells) == 0
    label = "getComputedStyle(document.querySelector('.records td:last-child'), '::before').content"
    assert "units per second" in page.evaluate(label)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate(label) == "none"
    assert_quiet(page)


@needs_chromium
def test_choices_redraw_a_chart(visit):
    page = visit(render_page(synthetic.correlate(n_documents=1, corpora=("alpha",))))
    figure = page.locator("#chart-scatter")
    assert "arp_std (loss, lower is better)" in figure.inner_text()
    before = page.evaluate(MARKS)["chart-scatter"]
    figure.locator("select[data-field=x]").select_option("segrefree")
    page.wait_for_function(DRAWN)
    assert "segrefree (loss, lower is better)" in figure.inner_text()
    assert "arp_std (loss, lower is better)" not in figure.locator("svg").text_content()
    assert page.evaluate(MARKS)["chart-scatter"] == before - 1
    assert "Not drawn, because undefined: 1 of 10 values." in figure.inner_text()
    assert_quiet(page)


@needs_chromium
def test_documents_are_chosen_and_systems_ticked(visit):
    result = replace(synthetic.correlate(n_documents=1), tables=())
    page = visit(render_page(result))
    ends = """nth => [...document.querySelectorAll('#document tbody tr')].flatMap((row, i) =>
        row.cells[nth].classList.contains('end') ? [i + 1] : [])"""
    names = "[...document.querySelectorAll('#document thead th')].map(h => h.innerText)"
    assert page.evaluate(names)[:3] == ["unit", "gold", "late"]
    assert page.evaluate(ends, 1) == [4, 10]
    page.locator("#text-corpus").select_option("beta")
    page.locator("#text-document").select_option(label="beta-d2")
    text = next(t for t in result.texts if t.id == "beta-d2")
    shown = page.locator("#document tbody td.unit").all_inner_texts()
    assert shown == list(text.units)
    page.get_by_label("late").uncheck()
    assert page.evaluate(names)[:3] == ["unit", "gold", "none"]
    assert page.evaluate(ends, 2) == []
    page.get_by_role("button", name="all", exact=True).click()
    assert len(page.evaluate(names)) == 2 + len(text.systems)
    page.get_by_role("button", name="none", exact=True).click()
    assert page.evaluate(names) == ["unit", "text"]
    assert_quiet(page)


@needs_chromium
def test_dark_and_print_colours_reach_the_charts(visit):
    """Labels take the page's ink: light on dark, black on paper."""
    page = visit(nasty_page("diagnose"))
    page.emulate_media(color_scheme="dark")
    ink = "getComputedStyle(document.querySelector('.plot .role-axis-label text')).fill"
    assert page.evaluate(ink) == "rgb(233, 234, 236)"
    page.emulate_media(media="print")
    assert page.evaluate(ink) == "rgb(0, 0, 0)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert_quiet(page)


@needs_chromium
@pytest.mark.parametrize("width", [390, 1400])
def test_a_map_of_many_systems_fits_a_phone(width, visit):
    """Sixteen columns, names that try to break out, and nothing to be scrolled sideways."""
    corpus, vectors = topical_corpus([[6] * 4] * 3, halves=halves)
    for i in range(16):
        cuts = {d.id: (i + 1, len(d.units) - i - 1) for d in corpus}
        name = NASTY.replace("\u2028", "")  # which is in no system's name
        corpus = corpus.with_system(f"{'long ' * i}{name}{i}", cuts)
    page = visit(render_page(boundaries(corpus, embeddings=vectors)))
    page.set_viewport_size({"width": width, "height": 900})
    for each in page.locator("#documents summary").all()[1:]:
        each.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = "box => box.scrollWidth > box.clientWidth + 1"
    boxes = page.locator(".document").all()
    assert len(boxes) == 3
    assert not any(box.evaluate(wide) for box in boxes)
    assert_quiet(page)
