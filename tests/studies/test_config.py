"""Studies from files: strict reading, resolved settings, and going on after a stop."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

import reffree.studies
from reffree.studies import STUDIES, find_study
from reffree.studies.config import find_config, load_config
from reffree.studies.keywords import StudyKeywords
from reffree.studies.study import StudySettings
from reffree.util.declare import options_of
from reffree.util.errors import InputError, OptionError, UnknownNameError

CONFIGS = Path(__file__).parents[2] / "configs"
PACKAGE = Path(reffree.studies.__file__).parents[1]
SMALL = {
    "name": "small",
    "corpora": ["demo"],
    "studies": [{"study": "correlate", "metrics": ["arp_pair", "pk"], "resamples": 100}],
}


@pytest.fixture
def write(tmp_path):
    def write_config(data) -> Path:
        path = tmp_path / "c.yaml"
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
        return path

    return write_config


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda p: p.stem)
def test_shipped_files_are_valid_and_resolve_to_themselves(path, write):
    config = load_config(path)
    assert config.name == path.stem
    again = load_config(write(yaml.safe_dump(config.to_dict(), sort_keys=False)))
    assert again == config


def test_files_are_run_by_name_without_a_checkout(tmp_path, environment):
    """The package alone, as a wheel holds it."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "reffree", symlinks=False)
    (tmp_path / "work").mkdir()

    def reffree(*args: str) -> subprocess.CompletedProcess[str]:
        env = {**environment, "PYTHONPATH": str(tmp_path / "site")}
        command = [sys.executable, "-m", "reffree", *args]
        return subprocess.run(
            command, cwd=tmp_path / "work", env=env, capture_output=True, text=True, timeout=300
        )

    listed = reffree("run", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == sorted(p.stem for p in CONFIGS.glob("*.yaml"))
    assert all(line.endswith(".") for line in listed)
    assert reffree("run", "transfer").stderr.startswith("reffree: error: meetings.jsonl: found no")


def test_a_file_goes_before_what_ships_and_a_misspelt_name_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_config("density").parent != Path()
    Path("density").write_text("name: mine")
    assert find_config("density") == Path("density")
    with pytest.raises(UnknownNameError, match="'arp-table'; did you mean 'arp-tables'"):
        find_config("arp-table")
    assert find_config("arp-table.yaml") == Path("arp-table.yaml")  # which is not there


def test_the_smoke_study_has_every_study_that_needs_one_encoder_and_one_corpus():
    steps = {step.study for step in load_config(CONFIGS / "smoke.yaml").steps}
    assert steps == set(STUDIES) - {"agreement", "encoders", "transfer"}


@pytest.mark.parametrize("study", STUDIES)
def test_what_is_no_option_of_a_study_is_no_field(study, write):
    known = {option.name for option in options_of(find_study(study))}
    assert {"metrics", "methods", "systems"} & known
    for name in ("progress", "embeddings"):
        assert name not in known
        with pytest.raises(InputError, match="unknown field"):
            load_config(write({**SMALL, "studies": [{"study": study, name: 1}]}))


def test_what_every_study_takes_has_a_default():
    assert list(StudyKeywords.__annotations__) == [each.name for each in fields(StudySettings)]
    with pytest.raises(OptionError, match="seed = -1; expected a whole number, 0 or more"):
        reffree.studies.correlate({}, seed=-1)


def changed(**fields):
    return {**SMALL, **fields}


def step(**fields):
    return changed(studies=[{"study": "correlate", **fields}])


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (changed(seeds=1), ["unknown field 'seeds'", "did you mean 'seed'?"]),
        (step(metric=["pk"]), ["'studies.0.metric'", "did you mean 'metrics'?"]),
        (step(metrics="pk"), ["studies.0.metrics", "'pk'"]),
        (step(resamples="100"), ["studies.0.resamples", "'100'", "a whole number"]),
        (step(pool="every"), ["studies.0.pool", "'every'", "or given"]),
        (
            changed(studies=[{"study": "corelate"}]),
            ["studies.0.study", "did you mean 'correlate'?"],
        ),
        (changed(studies=[{}]), ["studies.0.study: nothing"]),
        (changed(studies=[]), ["studies: []"]),
        (changed(encoding={"devise": "cpu"}), ["'encoding.devise'", "did you mean 'device'?"]),
        (changed(corpora={}), ["no corpora", "--corpus NAME=FILE"]),
        (changed(name="a/b"), ["name: 'a/b'"]),
        (changed(seed=-1), ["seed: -1"]),
        ({"name": "x", "studies": SMALL["studies"]}, ["no field 'corpora'"]),
        ("name: a\nname: b\n", ["line 2", "the key 'name' a second time"]),
        ("name: [\n", ["no YAML"]),
        ("- 1\n", ["list at the top"]),
        (
            changed(studies=[SMALL["studies"][0], SMALL["studies"][0]]),
            ["studies.1: the name 'correlate' a second time"],
        ),
    ],
)
def test_errors_name_the_field(write, data, parts):
    path = write(data)
    with pytest.raises(InputError) as error:
        load_config(path)
    message = str(error.value)
    assert message.startswith(str(path))
    for part in parts:
        assert part in message


def test_code_in_yaml_is_not_run(write):
    with pytest.raises(InputError, match="no YAML"):
        load_config(write("name: !!python/object/apply:os.getcwd []\n"))


def test_a_step_overrides_what_all_share(write):
    data = changed(seed=3, encoding={"device": "cpu"})
    data["studies"] = [{"study": "correlate"}, {"study": "density", "seed": 5}]
    first, second = load_config(write(data)).steps
    assert (first.settings["seed"], second.settings["seed"]) == (3, 5)
    assert first.settings["device"] == second.settings["device"] == "cpu"


def test_run_writes_results_and_goes_on(run, write, tmp_path):
    data = changed(studies=[*SMALL["studies"], {"study": "diagnose", "metrics": ["arp_pair"]}])
    path = write(data)
    first = run("run", path, "-o", "out")
    assert first.returncode == 0, first.stderr
    out = tmp_path / "out"
    resolved = yaml.safe_load((out / "config.yaml").read_text())
    assert resolved["studies"][0]["resamples"] == 100
    assert resolved["studies"][0]["pool"] == "auto"
    text = (out / "correlate.json").read_text()
    assert json.loads(text)["command"] == "correlate"
    assert "**Pearson correlation" in (out / "correlate.md").read_text()
    # A step that is finished stays as it is; one whose settings change is run again.
    (out / "diagnose.json").unlink()
    again = run("run", path, "-o", "out")
    assert "out/correlate.json: already there" in again.stderr
    assert "out/diagnose.json: already there" not in again.stderr
    assert (out / "diagnose.json").is_file()
    data["studies"][0]["seed"] = 1
    other = run("run", write(data), "-o", "out")
    assert "out/correlate.json: already there" not in other.stderr
    assert "out/diagnose.json: already there" in other.stderr
    assert (out / "correlate.json").read_text() != text
    fresh = run("run", write(data), "-o", "out", "--fresh")
    assert "already there" not in fresh.stderr


def test_corpora_of_the_command_line_take_the_files_place(run, write, write_corpus, tmp_path):
    documents = [
        {"id": f"d{i}", "units": [f"bees {i}", "honey", "servers", "queues"], "gold": [2, 2]}
        for i in range(6)
    ]
    corpus = write_corpus(documents, "mine.jsonl")
    data = changed(studies=[{"study": "diagnose", "metrics": ["arp_pair"]}])
    done = run("run", write(data), "-o", "out", "--corpus", f"mine={corpus}")
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "out" / "diagnose.json").read_text())
    assert [c["name"] for c in written["corpora"]] == ["mine"]
    missing = run("run", write(data), "--corpus", "mine=nowhere.jsonl")
    assert missing.returncode == 1
    assert "nowhere.jsonl" in missing.stderr
    assert "Traceback" not in missing.stderr
