"""What the tests of several rooms share."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import fields
from unittest.mock import patch

import numpy as np
import pytest

from reffree.data.corpus import Corpus, Document
from reffree.util.errors import InputError


def refusal(call, *args, **keywords) -> str:
    """The sentence with which a call refuses its input."""
    with pytest.raises(InputError) as error:
        call(*args, **keywords)
    return str(error.value)


def corpus_of(*golds, systems=None) -> Corpus:
    """A document for every gold, d0, d1, …, and with a system's segmentations where given."""
    return Corpus(
        tuple(
            Document.build(f"d{i}", ["x"] * sum(gold), gold=gold, systems=systems and systems[i])
            for i, gold in enumerate(golds)
        )
    )


def topical_corpus(golds, seed=0, spread=0.4, has_gold=True, **systems):
    """Documents whose units lie about a direction of their gold segment's own, and the vectors.

    Systems are functions from a document's number of units to masses.
    """
    rng = np.random.default_rng(seed)
    documents, vectors = [], []
    for i, gold in enumerate(golds):
        n = sum(gold)
        made = {name: cut(n) for name, cut in systems.items()}
        units = [f"word{j % 5} unit {j // 3}" for j in range(n)]
        documents.append(
            Document.build(f"d{i}", units, gold=gold if has_gold else None, systems=made)
        )
        centres = np.repeat(np.eye(len(gold), 8), gold, axis=0)
        vectors.append(centres + spread * rng.normal(size=centres.shape))
    return Corpus(tuple(documents)), vectors


def halves(n):
    return [n // 2, n - n // 2]


def rows(result, table, **wanted):
    """Rows of a study's table that have these values."""
    return [
        row
        for row in result.table(table).records()
        if all(row[key] == value for key, value in wanted.items())
    ]


def run_main(arguments, folder, stdin=b""):
    """Run the command in this process and a folder: its exit code, and what it wrote."""
    from reffree.cli import main

    # As Python has standard output and standard error.
    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace")
    )
    given, code = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), 0
    streams = patch.multiple(sys, stdin=given, stdout=out, stderr=err)
    with contextlib.chdir(folder), streams:
        try:
            main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
    for stream in (out, err):
        stream.flush()
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))


def invoke(*arguments, stdin=None):
    """Run a command in this process."""
    from click.testing import CliRunner

    from reffree.cli import cli

    return CliRunner().invoke(cli, list(map(str, arguments)), input=stdin)


def invoke_study(name, *arguments):
    """Run the command of one of the papers' studies in this process."""
    from click.testing import CliRunner

    from reffree.cli.derive import study_command

    command = study_command(f"reffree.studies.papers.{name}", name)
    return CliRunner().invoke(command, list(map(str, arguments)))


def keywords(settings):
    """The settings of a training that are not the defaults, as keywords of what trains."""
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {k: v for k, v in values.items() if v != getattr(type(settings)(), k)}


def check_formats(result, said, heading):
    """Hold a study's chart and every format of its result: to be drawn, and read back alike."""
    from reffree.evaluate.result import Result
    from reffree.report.charts import charts_of
    from reffree.report.charts.drawing import vega_for_page
    from reffree.report.render import render

    (chart,) = charts_of(result)
    assert chart.rows
    assert vega_for_page(chart)["data"]
    assert Result.from_dict(json.loads(render(result, "json"))) == result
    for format in ("table", "md", "latex"):
        assert said in render(result, format).replace("\\_", "_")
    assert render(result, "csv").startswith(heading)
