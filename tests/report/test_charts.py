"""Charts of a study: made from its tables, drawn as files, readable by everyone."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reffree.evaluate.result import Result
from reffree.report.charts import charts_of
from reffree.report.charts.chart import MARK, PALETTE, thinned
from reffree.report.charts.drawing import CHARACTER, LIMIT, LINE, draw_files, placements
from reffree.util.errors import InputError, UnknownNameError
from tests import synthetic_results as synthetic

SVG = "{http://www.w3.org/2000/svg}"
EXPECTED = {
    "score": ["systems"],
    "transfer": ["transfer"],
    "correlate": ["correlations", "scatter", "documents"],
    "perturb": ["perturbation-scaled", "perturbation-values"],
    "density": ["density"],
    "selection": ["selection"],
    "chunks": ["tuned"],
    "granularity": ["granularity"],
    "encoders": ["speed", "correlations", "agreement", "cross"],
    "diagnose": ["noticed"],
}


def chart_of(result, name):
    return next(chart for chart in charts_of(result) if chart.name == name)


def with_column(table, name, value):
    at = [field.name for field in table.fields].index(name)
    return replace(table, rows=tuple((*row[:at], value, *row[at + 1 :]) for row in table.rows))


def test_a_coefficient_is_chosen_without_its_level():
    result = synthetic.correlate(corpora=("alpha",), encoders=("minilm",))
    table = result.table("correlations")
    both = replace(table, rows=table.rows + with_column(table, "level", "document").rows)
    chart = chart_of(replace(result, tables=(both,)), "correlations")
    assert {c.field: c.values for c in chart.choices}["coefficient"] == (
        *("pearson (corpus)", "kendall (corpus)", "pearson (document)", "kendall (document)"),
    )
    files = {"kendall": "kendall_corpus", "kendall (document)": "kendall_document"}
    for picked, drawn in files.items():
        ((name, _),) = draw_files([chart], "svg", {"coefficient": picked})
        assert name.endswith(f"{drawn}.svg")
    with pytest.raises(UnknownNameError, match="unknown coefficient 'kend'"):
        list(draw_files([chart], "svg", {"coefficient": "kend"}))


@pytest.mark.parametrize("study", EXPECTED)
def test_every_study_has_its_charts(study):
    assert [chart.name for chart in charts_of(synthetic.ALL[study]())] == EXPECTED[study]


def test_no_chart_without_its_table():
    assert charts_of(synthetic.unknown()) == []
    result = synthetic.correlate(n_documents=2)
    for table in ("correlations", "scores", "documents"):
        left = replace(result, tables=tuple(t for t in result.tables if t.name != table))
        assert len(charts_of(left)) == 2


def test_no_chart_of_undefined_values():
    result = synthetic.perturb()
    undefined = replace(result, tables=(with_column(result.table("curves"), "scaled", None),))
    assert [chart.name for chart in charts_of(undefined)] == ["perturbation-values"]


def test_correlations_are_those_of_the_table():
    result = synthetic.correlate(n_documents=2)
    chart = chart_of(result, "correlations")
    picks = {"corpus": "beta", "encoder": "mpnet", "coefficient": "kendall"}
    drawn = {(row["facet"], row["row"], row["column"]): row["value"] for row in chart.drawn(picks)}
    expected = {}
    for row in result.table("correlations").records():
        if all(row[name] == value for name, value in picks.items()):
            name = f"{row['free']} (sentinel)" if row["is_sentinel"] == "yes" else row["free"]
            expected[row["pool"], name, row["gold"]] = row["value"]
    assert drawn == expected
    assert drawn["independent", "random (sentinel)", "pk"] is None
    assert [row["row"] for row in chart.rows][-1] == "random (sentinel)"


def test_scatter_pairs_the_losses_of_a_system():
    result = synthetic.correlate(n_documents=2)
    chart = chart_of(result, "scatter")
    picks = {"corpus": "alpha", "encoder": "minilm", "x": "segrefree", "y": "windowdiff"}
    drawn = {row["system"]: (row["x"], row["y"]) for row in chart.drawn(picks)}
    losses = {
        (row["system"], row["metric"]): row["loss"]
        for row in result.table("scores").records()
        if row["corpus"] == "alpha" and row["encoder"] == "minilm"
    }
    expected = {
        s: (losses[s, "segrefree"], losses[s, "windowdiff"]) for s, _ in synthetic.systems()
    }
    without = [system for system, (x, _) in expected.items() if x is None]
    assert len(without) == 1
    assert drawn == {k: v for k, v in expected.items() if k not in without}


def test_means_of_the_strip_are_those_of_all_documents():
    result = synthetic.correlate(n_documents=450, corpora=("alpha",), encoders=("minilm",))
    chart = chart_of(result, "documents")
    rows = chart.drawn({"metric": "arp_cos"})
    assert len(chart.rows) <= 20_000
    assert "of 450, evenly spaced" in chart.notes[0]
    (score,) = [
        row["value"]
        for row in result.table("scores").records()
        if row["system"] == "gold" and row["metric"] == "arp_cos"
    ]
    shown = [row for row in rows if row["system"] == "gold"]
    assert 100 < len(shown) < 450
    assert {row["mean"] for row in shown} == {score}  # the study may keep fewer documents


def test_gold_density_is_marked_where_bor_is_one():
    chart = chart_of(synthetic.density(), "density")
    picks = {"corpus": "beta", "matching": "one_to_one", "x": "boundary density"}
    rows = chart.drawn(picks)
    assert [row["gold"] for row in rows] == pytest.approx([0.2] * len(rows))
    assert {row["gold"] for row in chart.drawn({**picks, "x": "BOR"})} == {1}
    assert {row["kind"] for row in rows} == {"sweep", "system", "own"}
    own = [row["y"] for row in rows if row["kind"] == "own" and row["facet"] == "w_f1"]
    assert own == [0.4] * 3
    regimes = {row["regime"]: row["bor"] for row in rows}
    assert regimes["conservative"] < 0.9 < regimes["balanced"] < 1.5 < regimes["aggressive"]


def test_lines_marks_and_gold_of_granularity():
    chart = chart_of(synthetic.granularity(), "granularity")
    rows = chart.drawn({"corpus": "beta", "metric": "expected_pk"})
    kinds = ("grid", "own", "real", "assumed", "gold")
    drawn = {kind: [row for row in rows if row["kind"] == kind] for kind in kinds}
    assert [len(drawn[kind]) for kind in kinds] == [36, 3, 4, 1, 1]
    assert [row["x"] for row in drawn["own"]] == [12.0, 13.0, 14.0]
    assert {row["line"]: row["y"] for row in drawn["real"]} == {"depth": 0.1, "changepoint": 0.2}
    assert drawn["gold"][0]["x"] == 12.0
    assert (drawn["assumed"][0]["low"], drawn["assumed"][0]["high"]) == (2.2, 9.0)
    result = synthetic.granularity()
    none = with_column(result.table("curves"), "segments", 0)  # has no logarithm
    assert charts_of(replace(result, tables=(none,))) == []


def test_agreement_is_mirrored_in_one_order():
    chart = chart_of(synthetic.encoders(), "agreement")
    rows = chart.drawn({choice.field: choice.values[0] for choice in chart.choices})
    drawn = {(row["row"], row["column"]): row["value"] for row in rows}
    assert len(drawn) == 9
    assert all(drawn[a, b] == drawn[b, a] for a, b in drawn)
    assert all(value == 1.0 for (a, b), value in drawn.items() if a == b)
    orders = [{row[axis]: row[f"{axis}_order"] for row in rows} for axis in ("row", "column")]
    assert orders[0] == orders[1] == {"minilm": 0, "mpnet": 1, "falcon-7b": 2}


def test_speed_is_drawn_against_the_correlations_of_the_table():
    result = synthetic.encoders()
    chart = chart_of(result, "speed")
    picks = {"metric": "segrefree", "gold": "windowdiff"}
    assert [c.field for c in chart.choices] == ["metric", "gold"]  # one corpus is no choice
    drawn = {row["encoder"]: (row["y"], [row["low"], row["high"]]) for row in chart.drawn(picks)}
    of = {"free": "segrefree", "gold": "windowdiff", "coefficient": "pearson"}
    records = result.table("correlations").records(**of, pool="independent")
    assert drawn == {row["encoder"]: (row["value"], row["ci"]) for row in records}
    assert {row["encoder"]: row["x"] for row in chart.rows} == {
        row["encoder"]: row["units_per_second"] for row in result.table("encoders").records()
    }
    assert not {"random", "n_segments"} & {row["metric"] for row in chart.rows}


def test_encoders_without_speed_or_interval():
    """An endpoint has no speed, few documents give no interval, and none may be measured."""
    result = synthetic.encoders()
    table, correlations = result.table("encoders"), result.table("correlations")
    endpoint = replace(table, rows=((*table.rows[0][:-1], None), *table.rows[1:]))
    tables = (endpoint, with_column(correlations, "ci", None))
    chart = chart_of(replace(result, tables=tables), "speed")
    assert {row["encoder"] for row in chart.rows} == {"mpnet", "falcon-7b"}
    assert {row["low"] for row in chart.rows} == {None}
    ((_, content),) = draw_files([chart], "svg", {})
    assert b"NaN" not in content
    unmeasured = replace(
        table, fields=table.fields[:-1], rows=tuple(row[:-1] for row in table.rows)
    )
    names = [c.name for c in charts_of(replace(result, tables=(unmeasured, correlations)))]
    assert names == ["correlations"]


def test_systems_stand_by_placement_and_number_of_segments():
    chart = chart_of(synthetic.score(), "systems")
    assert [choice.values for choice in chart.choices] == [("placement", "expected_pk")]
    rows = {row["system"]: row for row in chart.drawn({"metric": "placement"})}
    kinds = {system: row["kind"] for system, row in rows.items()}
    assert kinds.pop("gold") == "gold"
    assert {system for system, kind in kinds.items() if kind != "system"} == {
        *("even:every=8", "random-3")
    }
    assert "none" not in rows  # undefined
    # Those with as many segments, or nearly, stand side by side, near where they belong.
    places = sorted(row["x"] for row in rows.values())
    assert all(a < b for a, b in pairwise(places))
    assert all(abs(row["x"] / row["size"] - 1) < 0.1 for row in rows.values())
    assert rows["gold"]["size"] == 5


@pytest.mark.parametrize(("study", "label"), [("transfer", "beta"), ("score", "even:every=8")])
def test_labels_are_those_of_the_chart(study, label):
    (_, drawn), *_ = draw_files(charts_of(synthetic.ALL[study]()), "svg", {})
    texts = [each.text for each in ET.fromstring(drawn.decode()).iter(f"{SVG}text")]
    assert label in texts


@pytest.mark.parametrize("study", EXPECTED)
def test_results_plot_themselves(study):
    result = synthetic.ALL[study]()
    drawn = result.plot()
    first = charts_of(result)[0]
    rows = first.drawn({choice.field: choice.values[0] for choice in first.choices})
    spec = drawn.to_dict()  # validated
    assert spec["datasets"]["rows"] == rows
    assert MARK not in json.dumps(spec, ensure_ascii=False)
    assert result.plot(first.name).to_dict() == spec


def test_what_is_plotted_is_chosen():
    result = synthetic.score()
    values = [
        {row["y"] for row in result.plot("systems", metric=metric).to_dict()["datasets"]["rows"]}
        for metric in ("placement", "expected_pk")
    ]
    table = result.table("systems")
    assert values == [
        {row["value"] for row in table.records(metric=metric)} - {None}
        for metric in ("placement", "expected_pk")
    ]
    with pytest.raises(UnknownNameError, match="unknown chart 'system'; did you mean 'systems'"):
        result.plot("system")
    with pytest.raises(UnknownNameError, match="unknown metric 'no'"):
        result.plot(metric="no")
    with pytest.raises(InputError, match="nothing to draw in the result of somersault"):
        synthetic.unknown().plot()


def test_without_the_libraries_plots_and_pages_say_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith(("altair", "reffree.report.charts."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)
    for show in (Result.plot, charts_of):
        with pytest.raises(InputError, match=r"no installed altair; .*'reffree\[report\]'"):
            show(synthetic.score())


@pytest.mark.parametrize("study", EXPECTED)
def test_files_hold_drawn_marks_whatever_the_names(study):
    names = []
    charts = charts_of(synthetic.ALL[study](nasty=synthetic.NASTY))
    picks = {"encoder": "minilm"} if study == "correlate" else {}
    for name, content in draw_files(charts, "svg", picks):
        tree = ET.fromstring(content)
        groups = [g for g in tree.iter(f"{SVG}g") if "role-mark" in g.get("class", "")]
        marks = [mark for g in groups for tag in ("path", "line") for mark in g.iter(SVG + tag)]
        assert len(marks) > 5, name
        assert b"NaN" not in content
        assert name.endswith(".svg")
        assert "/" not in name
        names.append(name)
    assert len(set(names)) == len(names) >= len(EXPECTED[study])


def test_files_for_print_have_their_format_and_the_same_bytes():
    charts, picks = [chart_of(synthetic.encoders(), "agreement")], {"metric": "segrefree"}
    for format, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        first, second = (list(draw_files(charts, format, picks)) for _ in range(2))
        assert [name for name, _ in first] == [f"agreement-segrefree.{format}"]
        assert first[0][1].startswith(start)
        # vl-convert numbers the parts of a PDF in no fixed order.
        assert first == second or format == "pdf"


def test_same_names_of_files_are_numbered():
    result = synthetic.correlate(n_documents=1, corpora=("a/b", "a b"), encoders=("minilm",))
    files = draw_files([chart_of(result, "scatter")], "svg", {"x": "segrefree"})
    expected = ["scatter-a_b-segrefree-pk.svg", "scatter-a_b-segrefree-pk-2.svg"]
    assert [name for name, _ in files] == expected


@pytest.mark.parametrize(
    ("picks", "message"),
    [
        ({"metrik": "segrefree"}, "unknown choice 'metrik'; did you mean 'metric'?"),
        ({"metric": "segrefre"}, "unknown metric 'segrefre'; did you mean 'segrefree'?"),
    ],
)
def test_unknown_picks(picks, message):
    with pytest.raises(UnknownNameError) as caught:
        list(draw_files(charts_of(synthetic.encoders()), "svg", picks))
    assert message in str(caught.value)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colour", PALETTE)
@pytest.mark.parametrize("ground", ["#ffffff", "#16181c"])
def test_colours_stand_out_on_light_and_dark(colour, ground):
    """WCAG 2.2, 1.4.11: graphics need 3 : 1."""
    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


@given(st.integers(1, 40), st.integers(1, 40), st.integers(4, 200))
def test_thinning_keeps_every_series(n_series, length, limit):
    rows = [{"s": s, "x": x} for s in range(n_series) for x in range(length)]
    kept, notes = thinned(rows, ["s"], limit)
    assert len(kept) <= max(limit, 2 * n_series)
    assert {row["s"] for row in kept} == set(range(n_series))
    assert {0, length - 1} <= {row["x"] for row in kept}
    assert bool(notes) == (len(kept) < len(rows))


POINTS = st.tuples(st.floats(0, 400), st.floats(0, 300), st.text("abc", max_size=40))


@given(st.lists(POINTS, max_size=25))
def test_labels_never_overlap(given):
    points, texts = [(x, y) for x, y, _ in given], [text for *_, text in given]
    boxes = []
    placed = placements(points, texts, (400, 300))
    for (x, y), text, where in zip(points, texts, placed, strict=True):
        if not where["label_opacity"]:
            continue
        wide = min(LIMIT, CHARACTER * len(text))
        left = x + where["label_dx"] - {"left": 0, "right": wide}[where["label_align"]]
        assert -1e-9 <= left <= 400 - wide + 1e-9
        assert LINE / 2 - 1e-9 <= y <= 300 - LINE / 2 + 1e-9
        for start, width, height in boxes:
            apart = left + wide <= start or start + width <= left
            assert apart or abs(y - height) >= LINE - 1e-9
        boxes.append((left, wide, y))
