"""Property tests: new examples in every run, and many more when exploring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = "from tests.properties import register_profiles\nregister_profiles()\n"
COUNTED = """
from pathlib import Path
from hypothesis import given, strategies as st
from tests.properties import examples

seen = []

@given(st.integers())
@examples(10)
def test_some(number):
    seen.append(number)

@given(st.integers())
def test_usual(number):
    seen.append(number)

def test_last():
    Path("seen.txt").write_text(str(len(seen)))
"""


def run_properties(folder, text, *options):
    """Run a file of properties in a process of its own, with this suite's profiles."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_made.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [*command, "--rootdir", str(folder), str(folder / "test_made.py")],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(("profile", "number"), [("usual", 110), ("explore", 2200)])
def test_a_profile_multiplies_every_number_of_examples(tmp_path, profile, number):
    done = run_properties(tmp_path, COUNTED, f"--hypothesis-profile={profile}")
    assert done.returncode == 0, done.stdout
    assert int((tmp_path / "seen.txt").read_text()) == number
