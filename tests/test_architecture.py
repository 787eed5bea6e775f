"""The layout is the architecture: arrows point one way, imports stay cheap, the API is pinned."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import reffree

PACKAGE = Path(reffree.__file__).parent
EVERYWHERE = {"errors", "bounds", "limits", "visible"}
"""Sentences for mistakes, bounds of numbers, limits of sizes, text made fit to be shown."""

ROOMS = {
    "errors": set(),
    "bounds": set(),
    "folders": set(),
    "visible": set(),
    "limits": set(),
    "compiling": set(),
    "words": set(),
    "atomic": set(),
    "segmentation": set(),
    "masses": {"segmentation"},
    "naming": set(),
    "parallel": set(),
    "progress": set(),
    "seeds": set(),
    "selection": {"naming", "segmentation", "masses", "corpus"},
    "perturbation": {"seeds", "naming", "segmentation", "masses", "corpus"},
    "document": {"segmentation"},
    "corpus": {"segmentation", "document"},
    "formats": {"atomic", "segmentation", "corpus"},
    "encoders": {"folders", "segmentation", "corpus", "progress"},
    "reference": {
        "statistics",
        "compiling",
        "parallel",
        "naming",
        "segmentation",
        "masses",
        "corpus",
    },
    "scoring": {
        *("compiling", "parallel", "seeds", "naming", "segmentation", "masses", "words"),
        *("statistics", "corpus", "reference"),  # whose expectation over a posterior is a score
    },
    "chunkers": {"naming", "segmentation", "corpus"},
    "segmenters": {
        *("compiling", "parallel", "seeds", "naming", "segmentation", "masses", "words"),
        *("corpus", "encoders", "scoring", "selection", "progress"),
    },
    "statistics": {"seeds", "evaluate"},
    "evaluate": {
        *("atomic", "seeds", "naming", "segmentation", "masses", "corpus", "formats", "progress"),
        *("encoders", "scoring", "reference", "segmenters", "statistics"),
    },
    "studies": {
        *("atomic", "seeds", "naming", "segmentation", "masses", "corpus", "formats", "progress"),
        *("encoders", "scoring", "reference", "segmenters", "selection", "perturbation"),
        *("statistics", "evaluate"),
    },
    "report": {"segmentation", "corpus", "evaluate", "studies", "progress", "statistics"},
    "cli": {
        *("atomic", "naming", "segmentation", "masses", "corpus", "formats", "progress"),
        *("encoders", "scoring", "reference", "segmenters", "selection", "perturbation"),
        *("chunkers", "evaluate", "studies", "report"),
    },
}
TOP = {"__init__", "__main__"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("reffree.")}
    return rooms


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_no_arrow_points_back(path):
    room = room_of(path)
    if room in TOP:
        return
    wrong = imported_rooms(path) - ROOMS[room] - EVERYWHERE - {room}
    assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_every_module_is_in_a_room():
    assert {room_of(path) for path in PACKAGE.rglob("*.py")} == {*ROOMS, *TOP}


def test_public_names():
    assert reffree.__all__ == sorted(reffree.__all__)
    assert len(reffree.__all__) <= 12
    for name in reffree.__all__:
        assert getattr(reffree, name).__module__.startswith("reffree.")
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        _ = reffree.scores


HEAVY = (
    *("torch", "numpy", "sentence_transformers", "transformers", "scipy", "rich", "pandas"),
    *("faiss", "altair", "pydantic", "yaml"),
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["score", "--help"],
        ["demo", "-h"],
        ["cache", "ls", "--help"],
        ["boundaries", "-h"],
        ["compare", "-h"],
        ["chunkers", "-h"],
        ["correlate", "-h"],
        ["encoders", "-h"],
        ["perturb", "-h"],
        ["density", "-h"],
        ["granularity", "-h"],
        ["diagnose", "-h"],
        ["run", "-h"],
        ["report", "-h"],
        ["models", "-h"],
        ["embed", "-h"],
    ],
)
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\nfrom reffree.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit: pass\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_encoder_options_have_one_list_of_names():
    """Functions take them as keywords; a misspelt one is refused at once."""
    from reffree.encoders.options import EncoderOptions, Encoding

    assert list(Encoding.__annotations__) == [field.name for field in fields(EncoderOptions)]
    with pytest.raises(TypeError, match="devise"):
        reffree.score(reffree.load(PACKAGE / "data" / "demo.jsonl"), devise="cpu")
