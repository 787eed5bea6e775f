"""A real HTTP server on this machine that speaks OpenAI's ``/v1/embeddings``, badly if told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

DIMENSION = 8
MODEL = "org/tiny:v1"


def vector_of(text: str) -> list[float]:
    """The vector that every server here has for a text."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32).tolist()


class Request(BaseHTTPRequestHandler):
    """What came, and ways to answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.texts = content["input"]
        kept: EmbeddingServer = self.server.kept
        with kept.lock:
            kept.requests.append((self.path, dict(self.headers), content))
            behave = kept.script.pop(0) if kept.script else kept.always
        behave(self)

    def answer(self, status: int, body: bytes | object, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True

    def log_message(self, *_):
        """Say nothing."""


Behaviour = Callable[[Request], None]


def entries(texts: list[str]) -> list[dict]:
    return [{"index": i, "embedding": vector_of(text)} for i, text in enumerate(texts)]


def works(request: Request) -> None:
    request.server.kept.encoded += request.texts
    request.answer(200, {"object": "list", "data": entries(request.texts), "model": MODEL})


def reorders(request: Request) -> None:
    request.server.kept.encoded += request.texts
    request.answer(200, {"data": entries(request.texts)[::-1]})


def says(status: int, body: object = b"", **headers: str) -> Behaviour:
    return lambda request: request.answer(status, body, **headers)


def gives(change: Callable[[list[dict]], object]) -> Behaviour:
    """Answer with entries that were tampered with."""
    return lambda request: request.answer(200, {"data": change(entries(request.texts))})


class EmbeddingServer:
    """Requests that came, texts that were encoded, and what to do with the next ones."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[tuple[str, dict[str, str], dict]] = []
        self.encoded: list[str] = []
        self.script: list[Behaviour] = []
        self.always: Behaviour = works
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Request)
        self._server.daemon_threads = True
        self._server.kept = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.is_up = True

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def encoder(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1#{MODEL}"

    @property
    def sizes(self) -> list[int]:
        return [len(content["input"]) for _, _, content in self.requests]

    def stop(self) -> None:
        if self.is_up:
            self.is_up = False
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def die(self, request: Request) -> None:
        """Be gone in the middle of a request."""
        threading.Thread(target=self.stop).start()
        request.hang_up()


@contextmanager
def serving(port: int = 0) -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(port)
    try:
        yield server
    finally:
        server.stop()
