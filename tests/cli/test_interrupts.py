"""Ctrl-C at any moment: exit 130, one sentence, no traceback, no waiting for anything."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import pytest

from reffree.cli import main
from reffree.cli.interrupts import MESSAGE

AT_A_CALL = """
import os, signal, sys
from reffree.cli import main

function, file, *sys.argv[1:] = sys.argv[1:]

def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name == function and code.co_filename.endswith(file):
        sys.setprofile(None)
        print("reached", flush=True)
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(look)
main()
"""
"""The command, with a Ctrl-C from inside the first call of a function."""

WITHOUT_END = """
import os, signal, sys, threading, time
import click
from reffree.cli import cli, interrupts, main
from reffree.util.compiling import njit
from reffree.util.parallel import in_threads

interrupts.STUCK_SECONDS = interrupts.LEAVING_SECONDS = 0.2
where, sys.argv[1:] = sys.argv[1], ["run"]

@njit(nogil=True)
def count(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1000003
    return total

def count_on():
    started.set()
    count(1 << 60)

def press():
    started.wait()
    os.kill(os.getpid(), signal.SIGINT)

def wait():
    started.wait()
    time.sleep(600)

@click.command()
def command():
    threading.Thread(target=press).start()
    if where == "here":
        count_on()
    in_threads([wait, count_on])

started = threading.Event()
count(1)
cli.get_command = lambda context, name: command
main()
"""
"""A command in whose compiled code, in this thread or another, time stands still."""


@pytest.fixture
def interrupt(environment, tmp_path):
    """Run a script as ``python -m`` does, which ends otherwise than other scripts do."""
    return partial(run_interrupted, folder=tmp_path, environment=environment)


def run_interrupted(script, *arguments, folder, environment):
    (folder / "script.py").write_text(script)
    homes = {"XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "script", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment, **homes},
        timeout=300,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.split("\n", 1)[0] in (MESSAGE, "")  # click ends the line of the ^C
    assert done.stderr.strip() == MESSAGE
    return done.stdout


@pytest.mark.parametrize(
    ("function", "file", "method"),
    [
        ("get_command", "cli/__init__.py", "all"),
        ("<module>", "<string>", "all"),
        ("<module>", "numba/__init__.py", "texttiling"),
        ("_raw_object_cache_notify", "llvmlite/binding/executionengine.py", "texttiling"),
        ("write_file", "reffree/util/atomic.py", "all"),
    ],
)
def test_an_interrupt_at_any_moment(function, file, method, interrupt, write_corpus, tmp_path):
    units = [f"The {i} of the {i // 3}." for i in range(12)]
    corpus = write_corpus([{"id": "a", "units": units}])
    command = ["segment", corpus, "--method", method, "-o", tmp_path / "out.jsonl"]
    said = interrupt(AT_A_CALL, function, file, *command)
    assert said == "reached\n"
    if (tmp_path / "out.jsonl").exists():
        assert json.loads((tmp_path / "out.jsonl").read_text())["systems"]


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_compiled_code_does_not_keep_the_command_from_ending(where, interrupt):
    interrupt(WITHOUT_END, where)


def test_an_end_of_file_is_no_interrupt(monkeypatch):
    """Click takes it for one; it is a mistake of ours, and must be seen."""

    def command(ctx):
        raise EOFError("a file cut short")

    monkeypatch.setattr("reffree.cli.cli.invoke", command)
    with pytest.raises(EOFError, match="a file cut short"):
        main(["models"])
