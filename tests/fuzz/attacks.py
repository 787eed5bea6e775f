"""What happens to a process from outside: Ctrl-C, a full disk, a server that is not to be trusted.

``python -m tests.fuzz --door interrupt --cases 200`` tries many moments. Killed writers of the
cache are ``python -m tests.encoders.cache.test_kill kill FOLDER 500``.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import yaml

from reffree.encoders import endpoint as endpoints
from reffree.encoders.address import parse_address
from reffree.encoders.base import encode_texts
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_files, cache_path
from reffree.encoders.endpoint import EndpointEncoder
from reffree.formats import load
from reffree.util.errors import EncoderError
from tests.encoders.embedding_server import entries, gives, says, serving, vector_of, works

UNITS = ("Bees fly out.", "They bring nectar.", "Honey is made.", "A router fails.", "It blinks.")
STUDY = {
    "name": "small",
    "corpora": ["c.jsonl"],
    "studies": [
        {"study": "density", "methods": ["texttiling"], "metrics": ["pk"]},
        {"study": "density", "methods": ["texttiling"], "metrics": ["windowdiff"], "name": "b"},
    ],
}
SCORED = ("score", "c.jsonl", "-m", "arp_pair", "-m", "silhouette", "--embeddings", "v.npz")
COMMANDS = (
    ("score", "c.jsonl", "-m", "pk", "-f", "json", "-o", "out/o.json"),
    (*SCORED, "--null", "200", "-f", "json", "-o", "out/o.json"),
    ("segment", "c.jsonl", "--method", "texttiling", "--method", "even:k=3", "-o", "out/o.jsonl"),
    ("convert", "c.jsonl", "out/o.json", "--to", "segeval"),
    ("cache", "fill", "c.jsonl", "--encoder", "wordllama", "--cache", "out/cache"),
    ("run", "s.yaml", "-o", "out/run"),
)


def prepare(folder: Path) -> None:
    """Write a corpus of 20 documents, its vectors, a study file and a folder for what is made."""
    rng = np.random.default_rng(0)
    documents, vectors = [], {}
    for i in range(20):
        units = [f"{UNITS[j % 5]} {i} {j}" for j in range(30)]
        systems = {"late": [20, 10], "early": [5, 5, 20]}
        documents.append({"id": f"d{i}", "units": units, "gold": [10, 20], "systems": systems})
        vectors[f"d{i}"] = rng.normal(size=(30, 8))
    (folder / "c.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in documents))
    (folder / "s.yaml").write_text(yaml.safe_dump(STUDY))
    np.savez(folder / "v.npz", **vectors)
    (folder / "out").mkdir(exist_ok=True)


def start(command: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [Path.cwd(), *sys.path]))}
    process = [sys.executable, "-m", "reffree", *command]
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(process, cwd=folder, env=environment, **how)


def check_whole(folder: Path) -> None:
    """Hold everything in a folder to be complete: results, corpora, cached vectors."""
    for path in (each for each in folder.rglob("*") if each.is_file()):
        assert not path.name.startswith(".reffree-"), f"{path} was left"
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".jsonl":
            assert len(load(path)) == 20
    for path in cache_files(folder / "cache"):
        with EmbeddingCache(path) as opened:
            list(opened.verify())


@cache
def duration(command: tuple[str, ...]) -> float:
    """Seconds of a command that nobody disturbs."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        prepare(Path(folder))
        begun = time.monotonic()
        process = start(command, Path(folder))
        _, told = process.communicate()
        assert process.returncode == 0, told
        check_whole(Path(folder) / "out")
        return time.monotonic() - begun


def interrupt(rng: Random, folder: Path) -> None:
    """Press Ctrl-C at a random moment: the command ends with 130, or with a whole result."""
    prepare(folder)
    command = rng.choice(COMMANDS)
    moment = rng.uniform(0.1, 1.1) * duration(command)
    process = start(command, folder)
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    about = f"{' '.join(command)} after {moment:.2f} s: {process.returncode}\n{told}"
    is_early = "Traceback" in told and f"{os.sep}cli{os.sep}" not in told
    if process.returncode == -signal.SIGINT and (is_early or not told):
        assert not any((folder / "out").iterdir()), about
        return  # Python had not come to the command
    assert process.returncode in (0, 130), about
    assert process.returncode or any((folder / "out").iterdir()), about
    assert "Traceback" not in told, about
    check_whole(folder / "out")


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """Mount a disk of so many kilobytes; OSError where that is not allowed."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode:
        raise OSError(mounted.stderr.decode().strip())
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def full_disk(rng: Random, folder: Path) -> None:
    """Give results too little room, or just enough: a whole result, or a sentence and nothing."""
    prepare(folder)
    command = rng.choice(COMMANDS)
    with small_disk(folder / "out", rng.choice((4, 8, 12, 16, 32, 64, 128, 256))):
        process = start(command, folder)
        _, told = process.communicate(timeout=120)
        about = f"{' '.join(command)}: {process.returncode}\n{told}"
        assert process.returncode in (0, 1), about
        assert "Traceback" not in told, about
        sentences = (
            "No space left",
            "disk is full",
            "disk I/O error; expected a local disk with room",
        )
        assert process.returncode == 0 or any(each in told for each in sentences), about
        check_whole(folder / "out")


KEY = "sk-live-5up3r-53cr3t"


def endpoint(rng: Random, folder: Path) -> None:
    """Ask a server that answers anything: right vectors, or a sentence; the key stays its own."""
    texts = [f"text {i}" for i in range(12)]
    with serving() as server, serving() as other:
        leak = {"error": {"message": f"Bearer {KEY}", "code": KEY}, "detail": KEY}
        away = f"http://127.0.0.1:{other.port}/{KEY}"
        answers: tuple[Callable[..., None], ...] = (
            works,
            works,
            *(says(status, leak, Location=away) for status in (301, 302, 303, 307, 308)),
            *(says(status, leak, Retry_After="0") for status in (400, 401, 404, 413, 429, 500)),
            says(200, b'{"data": ['),
            says(200, gzip.compress(b" " * 10**7), Content_Encoding="gzip"),
            says(200, b"no gzip", Content_Encoding="gzip"),
            says(200, b"{}", Refresh=f"0; {away}", Set_Cookie=f"key={KEY}"),
            gives(lambda data: [{**each, "embedding": [float("nan")] * 8} for each in data]),
            gives(lambda data: [{**each, "embedding": [1e39] * 8} for each in data]),
            gives(lambda data: data[1:]),
            lambda request: request.hang_up(),
            lambda request: time.sleep(0.3),
            _cut_off,
        )
        server.script = [rng.choice(answers) for _ in range(rng.randrange(1, 6))]
        told = ""
        asking = EndpointEncoder(parse_address(server.encoder), kept=folder)
        asking.timeout = 0.1
        with patch.dict(os.environ, REFFREE_API_KEY=KEY), patch.object(endpoints, "sleep"):
            try:
                opened = EmbeddingCache(cache_path(folder, asking.spec), asking.spec)
                found, _ = encode_texts(CachedEncoder(lambda: asking, opened, asking.spec), texts)
                right = np.float32([vector_of(each) for each in texts])
                np.testing.assert_array_equal(found, right)
            except EncoderError as error:
                told = str(error)
        assert not other.requests, "the key went to another host"
        assert {headers["Authorization"] for _, headers, _ in server.requests} == {f"Bearer {KEY}"}
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert KEY.encode() not in told.encode() + written
    assert "\n" not in told


def _cut_off(request) -> None:
    """Promise more than is sent."""
    request.send_response(200)
    request.send_header("Content-Length", "1000000")
    request.end_headers()
    request.wfile.write(json.dumps({"data": entries(request.texts)}).encode())
    request.hang_up()


ATTACKS = {"interrupt": interrupt, "full-disk": full_disk, "endpoint": endpoint}
