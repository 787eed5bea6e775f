"""Studies as commands: options derived from their functions, results in every format."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from reffree.cli.derive import study_command
from reffree.evaluate.result import Result
from reffree.report.render import render
from reffree.studies import HOMES, STUDIES, find_study
from reffree.util.declare import options_of
from reffree.util.errors import UnknownNameError

UNITS = ["bees fly", "bees hum", "bees dance", "honey", "routers", "cables", "cables", "light"]
GOLDS = [[4, 4], [3, 5], [4, 1, 3], [5, 3], [4, 4]]
OWN = ("correlate", "density", "diagnose", "encoders", "granularity", "perturb")
SHORT = {
    "correlate": ["-m", "arp_pair", "-m", "pk", "--resamples", "100"],
    "density": ["--method", "depth", "--gap", "2", "-m", "arp_pair"],
    "diagnose": ["-m", "arp_pair", "--seeds", "2"],
    "granularity": [],
    "perturb": ["--kind", "removal", "--strengths", "1,2", "--seeds", "2", "-m", "arp_pair"],
}
BEGINS = {
    "correlate": "corpus,encoder,",
    "density": "corpus,method,matching,threshold,bor,density,measure,value,low,high,signature",
    "diagnose": "corpus,metric,kind,strength,share,ci_low,ci_high",
    "granularity": "corpus,metric,",
    "perturb": "corpus,kind,strength,metric,value,low,high,scaled,scaled_low,scaled_high",
}


@pytest.fixture
def files(write_corpus, tmp_path):
    made = [{"id": f"m{i}", "units": UNITS, "gold": gold} for i, gold in enumerate(GOLDS)]
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "v.npz", **{f"m{i}": rng.normal(size=(8, 4)) for i in range(5)})
    return write_corpus(made), tmp_path / "v.npz"


def run(name, *arguments):
    command = study_command(STUDIES[name], name)
    return CliRunner().invoke(command, list(map(str, arguments)))


@pytest.mark.parametrize("name", SHORT)
def test_results_are_written_in_every_format(files, name):
    corpus, vectors = files
    done = run(name, corpus, "--embeddings", vectors, *SHORT[name], "-f", "json")
    assert done.exit_code == 0, done.output
    result = Result.from_dict(json.loads(done.stdout))
    assert result.command == name
    assert [each["name"] for each in result.corpora] == ["corpus"]
    again = run(name, corpus, "--embeddings", vectors, *SHORT[name], "-f", "json")
    assert again.stdout == done.stdout
    assert render(result, "json").strip() == done.stdout.strip()
    known = {option.name for option in options_of(find_study(name))}
    assert known <= result.settings.keys()
    title = next(table.title for table in result.tables if table.shown)
    for format, part in (("table", title), ("md", title), ("latex", "% metrics:")):
        text = render(result, format)
        assert part in text.replace("\\", "")
        assert "nan" not in text.lower()
    assert BEGINS[name] in render(result, "csv")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("perturb", ["--strengths", "1;2"], "expected numbers with commas between them"),
        ("density", ["--gap", "0"], "0 is not in the range"),
        ("correlate", ["--pool", "every"], "'every' is not one of"),
        ("granularity", ["--length", "x"], "'x' is not a valid float"),
    ],
)
def test_values_of_options_are_refused(files, name, options, message):
    done = run(name, files[0], *options)
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("name", OWN)
def test_a_command_has_at_most_seven_options_of_its_own(name):
    shared = {"encoder", "encoders", "device", "drop", "offline", "cache", "seed"}
    own = {each.name for each in options_of(find_study(name)) if each.option.cli} - shared
    assert len(own) <= 7


def test_a_study_is_its_function_though_its_module_is_imported():
    import reffree.studies.perturb

    for name in HOMES:
        found = getattr(reffree.studies, name)
        assert callable(found)
        assert found.__name__ == name
    assert set(OWN) <= STUDIES.keys()
    with pytest.raises(UnknownNameError, match="unknown study 'compare'"):
        find_study("compare")
    with pytest.raises(AttributeError, match="no attribute 'corelate'"):
        _ = reffree.studies.corelate


def test_options_of_both_correlation_studies_have_the_defaults_of_their_settings():
    from reffree.studies.correlate_pool import CaseSettings

    settings = CaseSettings(metrics=())
    for option in options_of(find_study("correlate")):
        if hasattr(settings, option.name) and option.default is not None:
            assert getattr(settings, option.name) == option.default, option.name
