"""The layout is the architecture: arrows point one way, imports stay cheap, the API is pinned."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import reffree
from reffree.cli import COMMANDS
from reffree.studies import STUDIES

PACKAGE = Path(reffree.__file__).parent
ROOMS = {
    "util": set(),
    "statistics": {"util"},
    "data": {"util"},
    "formats": {"util", "data"},
    "encoders": {"util", "data"},
    "metrics": {"util", "data", "statistics"},
    "chunkers": {"util", "data"},
    "segmenters": {"util", "data", "statistics", "encoders", "metrics"},
    "evaluate": {"util", "data", "statistics", "formats", "encoders", "metrics", "segmenters"},
    "studies": {
        *("util", "data", "statistics", "formats", "encoders", "metrics", "segmenters"),
        *("chunkers", "evaluate"),
    },
    "report": {"util", "data", "statistics", "evaluate", "studies"},
    "cli": {
        *("util", "data", "formats", "encoders", "metrics", "segmenters", "chunkers"),
        *("evaluate", "studies", "report"),
    },
}
"""What each room may import."""

TOP = {"__init__", "__main__", "reference"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_modules(source: str, *, at_start: bool = False) -> set[str]:
    """Modules of the package that a source imports; ``at_start`` only those that run at once."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    if at_start:
        nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (below & MODULES.keys()) or {node.module}
    return {name for name in found if name.split(".")[0] == "reffree"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import reffree.metrics.free.engine", {"reffree.metrics.free.engine"}),
        ("from reffree import evaluate", {"reffree.evaluate"}),
        ("from reffree.studies import run", {"reffree.studies.run"}),
        ("def f():\n    from reffree.cli.score import score", {"reffree.cli.score"}),
        ("from reffree import score", {"reffree"}),
        ("import torch", set()),
    ],
)
def test_every_way_to_import_is_seen(source, found):
    assert imported_modules(source) == found


@pytest.mark.parametrize("name", MODULES)
def test_no_arrow_points_back(name):
    room = room_of(MODULES[name])
    if room in TOP:
        return
    imported = imported_modules(MODULES[name].read_text())
    assert "reffree" not in imported, "the front door is for those outside"
    wrong = {module.split(".")[1] for module in imported} - ROOMS[room] - {room}
    assert not wrong, f"{name} imports {sorted(wrong)}"


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") > 2])
def test_studies_do_not_lean_on_each_other(name):
    _, room, study, *_ = name.split(".")
    if room != "studies":
        return
    parts = [module.split(".") for module in imported_modules(MODULES[name].read_text())]
    others = {part[2] for part in parts if part[1] == "studies" and len(part) > 3} - {study}
    assert not others, "studies in folders stand alone, on what is directly in `studies`"


def test_imports_go_in_no_circle():
    """Whatever is imported first, all of it is there when it is needed."""
    arrows = {
        name: imported_modules(path.read_text(), at_start=True) & MODULES.keys()
        for name, path in MODULES.items()
    }
    while leaves := [name for name, found in arrows.items() if not found & arrows.keys()]:
        for name in leaves:
            del arrows[name]
    assert not arrows, f"in or before a circle: {sorted(arrows)}"


def test_every_module_is_in_a_room():
    assert {room_of(path) for path in MODULES.values()} == {*ROOMS, *TOP}


def test_public_names():
    """What users import is a promise: a name more or less is a change they must be told of."""
    assert reffree.__all__ == [
        *("Corpus", "Document", "ReffreeError", "ScoreTable", "Segmentation", "chunks"),
        *("compare", "embed", "load", "register_metric", "save", "score", "score_document"),
        *("segment", "study"),
    ]
    assert reffree.study.correlate.__module__ == "reffree.studies.correlate"
    for name in set(reffree.__all__) - {"study"}:
        assert getattr(reffree, name).__module__.startswith("reffree.")
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        _ = reffree.scores


HEAVY = (
    *("torch", "numpy", "sentence_transformers", "transformers", "scipy", "rich", "pandas"),
    *("faiss", "altair", "pydantic", "yaml"),
)


HELP = (
    *("", "study", "train", "cache", *COMMANDS.keys() - {"study", "train", "cache"}),
    *(f"study {name}" for name in STUDIES),
    *("train scorer", "train csm", "train segmenter"),
    *("cache ls", "cache verify", "cache rm", "cache fill"),
)


def test_what_is_public_completes_and_nothing_heavy_is_imported_for_it():
    """Type checkers read the imports that do not run; a study is known by its name, too."""
    tree = ast.parse(Path(reffree.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {alias.asname or alias.name for node in typed.body for alias in node.names}
    assert names == set(reffree.__all__)
    code = (
        "import sys, reffree\nreffree.study\nassert 'correlate' in dir(reffree.study)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    typed_studies = (PACKAGE / "studies" / "__init__.py").read_text(encoding="utf-8")
    assert all(f"import {name} as {name}\n" in typed_studies for name in STUDIES)


@pytest.mark.parametrize("words", sorted(HELP))
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom reffree.cli import main\n"
        f"try:\n    main({[*words.split(), '-h']!r})\nexcept SystemExit: pass\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("metric", ["pk", "windowdiff", "boundary_similarity"])
def test_scores_against_gold_need_no_torch(metric):
    code = (
        "import sys\nfrom reffree.cli import main\n"
        f"main(['score', {str(PACKAGE / 'resources' / 'demo.jsonl')!r}, '-m', {metric!r}])\n"
        "print('HEAVY', [m for m in ('torch', 'transformers', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert "near_miss" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_encoder_options_have_one_list_of_names():
    """Functions take them as keywords; a misspelt one is refused at once."""
    from reffree.encoders.options import EncoderOptions, Encoding

    assert list(Encoding.__annotations__) == [field.name for field in fields(EncoderOptions)]
    with pytest.raises(TypeError, match="devise"):
        reffree.score(reffree.load(PACKAGE / "resources" / "demo.jsonl"), devise="cpu")
