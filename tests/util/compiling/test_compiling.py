"""Machine code of earlier runs is found again, and trusted only if this user's reffree wrote it."""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import reffree
from reffree.metrics.gold import windows
from reffree.util import compiling
from reffree.util.compiling import made_of, njit
from reffree.util.compiling.signed import SignedFolder

needs_rights = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")

PROGRAM = """
from reffree.util.compiling import njit

@njit(cache=True)
def inner(x):
    return x + 1

@njit(cache=True)
def outer(x):
    return 2 * inner(x)

assert outer(1.0) == 4.0
hits = sum(outer.stats.cache_hits.values())
"""


@pytest.fixture
def start(tmp_path, monkeypatch, caplog):
    """Define and call a compiled function as a new process would; return its hits and notes."""

    def run(program: str = PROGRAM) -> tuple[int, list[str]]:
        folder = SignedFolder(tmp_path / "cache" / "0", tmp_path / "state" / "key")
        monkeypatch.setattr(compiling, "kept_folder", lambda: folder)
        compiling._tell_once.cache_clear()
        caplog.clear()
        space = {"__name__": "program"}
        exec(program, space)
        return space["hits"], caplog.messages

    return run


@pytest.fixture
def code(tmp_path, start) -> list[Path]:
    """The files of code that was kept."""
    assert start() == (0, [])
    files = sorted((tmp_path / "cache" / "0").iterdir())
    assert len(files) == 2
    return files


def test_a_second_process_compiles_nothing(tmp_path, environment):
    file = tmp_path / "program.py"
    file.write_text(f"{PROGRAM}print(hits)\nprint(outer.stats.cache_path)")
    homes = {"XDG_CACHE_HOME": str(tmp_path / "a"), "XDG_STATE_HOME": str(tmp_path / "b")}
    elsewhere = {"NUMBA_CACHE_DIR": str(tmp_path / "n"), "REFFREE_CACHE_DIR": str(tmp_path / "r")}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, file],
            capture_output=True,
            text=True,
            env={**environment, **homes, **elsewhere},
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout.splitlines())
    assert [hits for hits, _ in said] == ["0", "1"]
    assert said[0][1] == said[1][1]
    assert version("reffree") in Path(said[0][1]).name
    assert not [path for path in elsewhere.values() if Path(path).exists()]


def test_the_second_start_compiles_nothing(start, code):
    assert start() == (1, [])


def test_a_change_in_what_is_called_is_seen(start, code):
    changed = PROGRAM.replace("x + 1", "x + 2").replace("== 4.0", "== 6.0")
    assert start(changed) == (0, [])


class Trap:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("has_code", [False, True])
def test_a_planted_pickle_does_not_run(start, code, tmp_path, has_code):
    for file in code:
        head = file.read_bytes()[:32] if has_code else b""
        file.write_bytes(head + pickle.dumps(Trap(tmp_path / "sprung")))
    assert start() == (0, [])
    assert not (tmp_path / "sprung").exists()
    assert start() == (1, [])


@pytest.mark.parametrize("length", [0, 16, 32, 1000])
def test_files_cut_short_are_made_again(start, code, length):
    for file in code:
        file.write_bytes(file.read_bytes()[:length])
    assert start() == (0, [])
    assert start() == (1, [])


def test_one_flipped_bit_is_seen(start, code):
    for file in code:
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    assert start() == (0, [])
    assert start() == (1, [])


def test_a_file_under_another_name_is_not_it(tmp_path):
    folder = SignedFolder(tmp_path / "folder", tmp_path / "keys" / "key")
    folder.write("a", b"of a")
    (tmp_path / "folder" / "a").rename(tmp_path / "folder" / "b")
    assert folder.read("b") is None


@needs_rights
def test_files_that_others_can_write_are_made_again(start, code):
    for file in code:
        file.chmod(0o666)
    assert start() == (0, [])
    assert start() == (1, [])
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in code)


@needs_rights
@pytest.mark.parametrize("which", ["compiled code", "key"])
def test_a_folder_that_others_can_write_is_not_used(start, code, tmp_path, which):
    key = tmp_path / "state"
    (key if which == "key" else code[0].parent).chmod(0o777)
    hits, (note,) = start()
    assert hits == 0
    assert "note: compiled code is not kept (others have rights on" in note


@needs_rights
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root can give away")
@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_belongs_to_another_user_is_not_used(start, code, which):
    for path in [code[0].parent] if which == "folder" else code:
        try:
            os.chown(path, 65534, 65534)
        except OSError:
            pytest.skip("no other user here to give it to")
    hits, notes = start()
    assert hits == 0
    assert len(notes) == (which == "folder")


def test_links_are_refused(start, code, tmp_path):
    for file in code:
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    assert start() == (0, [])
    assert not any(file.is_symlink() for file in code)
    folder = code[0].parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    hits, (note,) = start()
    assert hits == 0
    assert "is not a folder" in note


@needs_rights
@pytest.mark.parametrize("damage", ["short", "readable", "gone"])
def test_a_key_that_cannot_be_trusted_is_replaced(start, code, tmp_path, damage):
    key = tmp_path / "state" / "key"
    if damage == "short":
        key.write_bytes(b"")
    elif damage == "readable":
        key.chmod(0o644)
    else:
        key.unlink()
    assert start() == (0, [])
    assert start() == (1, [])
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_place_that_takes_nothing_costs_a_note(start, tmp_path):
    (tmp_path / "cache").write_text("in the way")
    hits, (note,) = start()
    assert hits == 0
    assert "compiled code is not kept" in note


def test_a_full_disk_costs_a_note(start, tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        hits, (note,) = start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert hits == 0
    assert "compiled code is not kept" in note
    assert not list((tmp_path / "cache" / "0").iterdir())
    assert start() == (0, [])
    assert start() == (1, [])


def test_only_the_newest_files_stay(tmp_path):
    folder = SignedFolder(tmp_path / "folder", tmp_path / "keys" / "key")
    for i in range(5):
        folder.write(f"f-{i}", b"")
        os.utime(tmp_path / "folder" / f"f-{i}", (i, i))
    folder.write("g-0", b"")
    folder.keep_newest("f-", 2)
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["f-3", "f-4", "g-0"]


def test_every_compiled_function_has_a_digest():
    found = set()
    for module in pkgutil.walk_packages(reffree.__path__, "reffree."):
        if any(f".{room}." in module.name for room in ("scoring", "reference", "segmenters")):
            for value in vars(importlib.import_module(module.name)).values():
                if hasattr(value, "py_func"):
                    found.add(made_of(value))
    assert len(found) > 50


def test_a_digest_is_of_constants_options_and_closures():
    def function(constant, shift):
        source = f"def f(x):\n    return x + C + {shift}\n"
        space = {"C": constant, "__name__": "m"}
        exec(source, space)
        return space["f"]

    def closed_over(y):
        return lambda x: x + y

    digests = [
        made_of(function(1, 2)),
        made_of(function(1, 3)),
        made_of(function(2, 2)),
        made_of(njit()(function(1, 2))),
        made_of(njit(fastmath=True)(function(1, 2))),
        made_of(closed_over(1)),
        made_of(closed_over(2)),
    ]
    assert len(set(digests)) == len(digests)
    assert made_of(function(1, 2)) == digests[0]
    with pytest.raises(TypeError, match="no digest of C, of type object"):
        made_of(function(object(), 2))


def test_a_digest_is_the_same_in_every_process():
    """Python puts the words of a set in another order in each: nothing would be found again."""
    code = (
        "from reffree.util.compiling import made_of, njit\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd'}\n"
        "print(made_of(njit(fastmath={'reassoc', 'contract', 'nsz', 'arcp'})(f)))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        ).stdout
        for seed in "1234"
    }
    assert len(digests) == 1


def test_machine_code_is_not_kept_beside_the_sources():
    package = Path(reffree.__file__).parent
    compiled = [value for value in vars(windows).values() if hasattr(value, "nopython_signatures")]
    assert compiled
    for function in compiled:
        assert not Path(function._cache.cache_path).is_relative_to(package)
