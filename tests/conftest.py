"""Shared pieces: the real command, in this process or its own, and one cache for the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.properties import register_profiles

register_profiles()

# Several libraries here bring threads of their own; on two cores those that spin starve the others.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# The hub's library reads this when it is first imported.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

Run = Callable[..., subprocess.CompletedProcess[str]]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a shell's background jobs: processes that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a card where there is none: ``pytest -m gpu`` may be run anywhere."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory) -> Path:
    """Embeddings made once are reused by every test that runs the command."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def environment(cache_dir) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "REFFREE_CACHE_DIR": str(cache_dir), "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def run_process(environment, tmp_path) -> Run:
    """Run ``reffree`` as a user does, in a process of its own and an empty folder."""

    def run_command(*args: str, stdin: str | bytes | None = None, **more: str):
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "reffree", *map(str, args)],
            input=data,
            capture_output=True,
            cwd=tmp_path,
            env={**environment, **more},
            timeout=300,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run_command


@pytest.fixture
def run(environment, tmp_path, monkeypatch) -> Run:
    """Run ``reffree`` in this process, which has loaded its libraries; otherwise alike."""
    from tests.helpers import run_main

    def run_command(*args: str, stdin: str | bytes | None = None, **more: str):
        data = stdin.encode() if isinstance(stdin, str) else stdin
        arguments = list(map(str, args))
        with monkeypatch.context() as patch:
            for name, value in {**environment, **more}.items():
                patch.setenv(name, value)
            done = run_main(arguments, tmp_path, data or b"")
        return subprocess.CompletedProcess(arguments, *done)

    return run_command


@pytest.fixture
def write_corpus(tmp_path):
    """Write documents as corpus JSONL and return the path."""

    def write(documents: list[dict], name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return path

    return write
