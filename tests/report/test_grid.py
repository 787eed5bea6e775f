"""Tables on narrow terminals and in markdown."""

from __future__ import annotations

import pytest

from reffree.report.grid import markdown_table, render_terminal
from reffree.util.grid import Grid

HEADER = ("corpus", "kind", "metric", *(f"number {i}" for i in range(6)))


def grid(labels=("wiki", "removal", "sag"), n_labels=3, header=HEADER):
    cells = [*labels, *(f"0.{i}{i}{i}" for i in range(6))]
    return Grid.of(header, [cells], n_labels)


def lines(made, width):
    return render_terminal([made], ["signature"], color=False, width=width).splitlines()


@pytest.mark.parametrize("width", [60, 50])
def test_every_part_of_a_wide_table_names_its_rows(width):
    rows = [line for line in lines(grid(), width) if "0." in line]
    assert len(rows) > 1
    assert all(row.startswith(" wiki    removal  sag  ") for row in rows)
    assert max(map(len, rows)) <= width
    values = [cell for row in rows for cell in row.split()[3:]]
    assert values == [f"0.{i}{i}{i}" for i in range(6)]


def test_names_that_take_the_whole_width_are_repeated_in_part():
    rows = [line for line in lines(grid(("w" * 20, "r" * 20, "s" * 20)), 80) if "w" * 20 in line]
    assert len(rows) > 2
    assert sum("s" * 20 in row for row in rows) == 1


def test_a_table_of_names_only_is_drawn_once():
    made = Grid.of(("a", "b"), [("x" * 50, "y" * 50)], 2)
    assert sum("x" * 50 in line for line in lines(made, 40)) == 1


def test_pipes_in_headers_do_not_make_columns():
    header = ("its |Pearson|", *HEADER[1:])
    assert markdown_table(grid(header=header)).startswith("| its \\|Pearson\\| | kind |")
