"""Models behind an OpenAI-compatible endpoint: texts are posted, batch by batch, and come back.

One request at a time, each answered before the next is sent, so that what was paid for is cached.
A server that throttles, stumbles or is away for a moment is asked again, a little later each time;
one that refuses a batch for its size gets smaller ones. The key is read from the environment for
every request and kept nowhere.
"""

from __future__ import annotations

import json
import logging
import random
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from time import sleep
from typing import Any, NoReturn

import httpx
import numpy as np
from numpy.typing import NDArray

from reffree.encoders.address import (
    KEY_VARIABLE,
    OPENAI_HOST,
    OPENAI_VARIABLE,
    Address,
    api_key,
    parse_address,
    without_key,
)
from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.cache import fact_path, recall, remember
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.util.bounds import LIMITS
from reffree.util.errors import EncoderError, OptionError, first_line, shorten, visible

LOGGER = logging.getLogger(__name__)

TEXTS_PER_REQUEST = 128
TOKENS_PER_REQUEST = 32_768
BYTES_PER_TOKEN = 4
"""A guess, which the size of requests alone depends on."""

ATTEMPTS = 7
FIRST_WAIT = 0.5
LONGEST_WAIT = 300.0
"""Seconds; a server that asks for more patience is left for another time."""

TOLD_WAIT = 5.0
TIMEOUT = 120.0
LARGEST_ANSWER = 2**28
LARGEST = float(np.finfo(np.float32).max)
PROBE = "dimension"
"""Encoded once for every endpoint, to know how many numbers its vectors have."""

FOR_A_WHILE = {408, 409, 425, 429, 500, 502, 503, 504, 529}
TOO_LARGE = {400, 413, 422}
"""What servers say of a batch that is too large, or of a text they cannot take."""

OF_THE_CLIENT = ("prompt", "batch_tokens", "context")
"""Settings that are not the server's."""

ABSENT = "nobody who listens there"
WRONG = "check that the model is one for embeddings, or use another server"


class _Again(Exception):
    """The request may succeed a little later."""

    def __init__(self, found: str, after: float | None = None) -> None:
        super().__init__(found)
        self.after = after  # seconds, as the server says


class _Refused(Exception):
    """The server takes other texts, or fewer at once."""


class EndpointEncoder:
    """Asks a server for vectors."""

    def __init__(
        self,
        address: Address,
        *,
        prompt: str = "",
        batch_tokens: int | None = None,
        kept: Path | None = None,
        offline: bool = False,
    ) -> None:
        """Remember whom to ask; ``kept`` is the cache's folder, None without a cache."""
        self.address = address
        self.prompt = prompt
        self.offline = offline
        self.batch_tokens = batch_tokens or TOKENS_PER_REQUEST
        self.batch_texts = TEXTS_PER_REQUEST
        self.timeout = TIMEOUT
        self._facts = fact_path(kept, "endpoint", str(address), prompt)
        self._later = "run it again later"
        self._later += " to go on from what the cache holds" if self._facts else ""
        self._has_answered = self._has_warned = False

    @cached_property
    def spec(self) -> EncoderSpec:
        """What fixes the vectors, as far as one can know; the first time, the server is asked."""
        dimension = recall(self._facts, "dimension", int, LIMITS["dimension"])
        if not dimension:
            try:
                dimension = self._vectors([PROBE]).shape[1]
            except _Refused as refused:
                self._fail(str(refused), "a vector", "check that the model is one for embeddings")
            self._remember(dimension)
        return EncoderSpec(
            name=self.address.model,
            revision=self.address.url,
            pooling="given",
            normalisation="given",
            dtype="float32",
            max_length=None,
            backend="endpoint",
            prompt=self.prompt,
            dimension=dimension,
        )

    def _remember(self, dimension: int) -> None:
        remember(self._facts, {"endpoint": str(self.address), "dimension": dimension})

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Ask for the texts in their order, in batches; tokens are the server's to know."""
        dimension = self.spec.dimension
        todo = self._batches(texts)[::-1]
        while todo:
            positions = todo.pop()
            try:
                vectors = self._vectors([texts[i] for i in positions])
            except _Refused as refused:
                half = len(positions) // 2
                if not half:
                    text = shorten(texts[positions[0]])
                    remedy = "shorten or remove it, or choose another model"
                    expected = "one that the model takes"
                    self._fail(f"{refused} for the text {text!r}", expected, remedy)
                todo += [positions[half:], positions[:half]]
                continue
            if vectors.shape[1] != dimension:
                self._remember(vectors.shape[1])
                self._fail(
                    f"vectors of {vectors.shape[1]:,} numbers",
                    f"{dimension:,}, as it gave before",
                    "another model has taken the name: run it again, and all texts are encoded "
                    "anew, apart from the old vectors",
                )
            yield EncodedTexts(positions, vectors, [0] * len(positions))

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Group consecutive texts by their number and bytes; one that is too long goes alone."""
        batches: list[list[int]] = []
        held = 0
        for i, text in enumerate(texts):
            size = len(self.prompt) + len(text.encode(errors="replace"))
            is_full = held + size > self.batch_tokens * BYTES_PER_TOKEN
            if not batches or is_full or len(batches[-1]) >= self.batch_texts:
                batches.append([])
                held = 0
            batches[-1].append(i)
            held += size
        return batches

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Ask until there is an answer, a little later each time, and check it."""
        if self.offline:
            remedy = "leave out --offline to ask it"
            self._fail("texts that are not cached", "none when offline", remedy)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._read_vectors(self._ask(texts), texts)
            except _Again as again:
                found, after = str(again), again.after
            if after is not None and after > LONGEST_WAIT:
                found += f", to be asked again in {after:,.0f} s"
                self._fail(found, f"a wait of at most {LONGEST_WAIT:g} s", self._later)
            if attempt < ATTEMPTS:
                # The random part keeps clients out of step; it changes no number, so has no seed.
                doubled = FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
                seconds = doubled if after is None else after * random.uniform(1.0, 1.1)
                if seconds >= TOLD_WAIT:
                    LOGGER.warning(
                        "reffree: note: encoder %s: %s; asked again in %.0f s",
                        *(self.address.model, found, seconds),
                    )
                sleep(seconds)
        return self._fail(f"{found}, {ATTEMPTS} times", "an answer", self._later)

    def _ask(self, texts: Sequence[str]) -> Any:  # noqa: ANN401  (JSON is any)
        """Send one request; returns what its answer says."""
        headers = {"Accept": "application/json"}
        if key := api_key(self.address):
            headers["Authorization"] = f"Bearer {key}"
            is_plain = self.address.url.startswith("http:") and not self.address.is_loopback
            if is_plain and not self._has_warned:
                self._has_warned = True
                LOGGER.warning(
                    "reffree: note: encoder %s: the key goes to %s without encryption; use https "
                    "if others share the network",
                    *(self.address.model, self.address.host),
                )
        full = [self.prompt + text for text in texts]
        body = {"model": self.address.model, "input": full, "encoding_format": "float"}
        how: dict[str, Any] = {"json": body, "headers": headers, "timeout": self.timeout}
        content = bytearray()
        try:
            with self._client.stream("POST", f"{self.address.url}/embeddings", **how) as response:
                self._has_answered = True
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > LARGEST_ANSWER:
                        self._fail("an answer without an end", "vectors", "check the address")
        except (httpx.TransportError, httpx.DecodingError) as error:
            self._refuse_lost(error)
        if response.status_code != 200:
            self._refuse_status(response, bytes(content))
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            self._fail("an answer that is no JSON", "vectors", "check the address")

    @cached_property
    def _client(self) -> httpx.Client:
        """Take the environment's proxies, but none to this machine; follow to no other address."""
        for name in ("httpx", "httpcore"):  # which log what a server sends, a key it repeats too
            logging.getLogger(name).setLevel(logging.WARNING)
        return httpx.Client(
            follow_redirects=False,
            trust_env=not self.address.is_loopback,
            limits=httpx.Limits(max_keepalive_connections=0),  # none stays open after its answer
        )

    def _refuse_status(self, response: httpx.Response, content: bytes) -> NoReturn:
        """Say what an answer with another status than 200 means."""
        status, reason = response.status_code, _reason(content)
        found = f"status {status}{f' ({reason})' if reason else ''}"
        if status in (401, 403):
            openai = f" or {OPENAI_VARIABLE}" if self.address.host == OPENAI_HOST else ""
            given = "the key it was given" if api_key(self.address) else "no key"
            remedy = f"set {KEY_VARIABLE}{openai} in the environment"
            self._fail(f"status {status} with {given}", "a key that the server takes", remedy)
        if status == 429 and "insufficient_quota" in reason:
            self._fail(found, "an account with credit left", self._later)
        if status in FOR_A_WHILE:
            raise _Again(found, _retry_after(response.headers.get("Retry-After", "")))
        if status in TOO_LARGE:
            raise _Refused(found)
        if 300 <= status < 400:
            remedy = "give the address that it leads to, with https if that is it"
            self._fail(found, "vectors, not another address", remedy)
        remedy = "check the path, which mostly ends in /v1, and the model's name behind #"
        self._fail(found, "vectors", remedy)

    def _refuse_lost(self, error: httpx.HTTPError) -> NoReturn:
        """Say what an answer that did not come means."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            found = f"no trustworthy connection ({visible(first_line(cause))})"
            expected = "a certificate that this machine trusts"
            self._fail(found, expected, "check the address, or set SSL_CERT_FILE")
        if isinstance(error, httpx.TimeoutException):
            raise _Again(f"no answer within {self.timeout:g} s") from None
        if not isinstance(error, httpx.ConnectError):
            raise _Again("a connection that broke off") from None
        if self._has_answered:
            raise _Again(ABSENT) from None
        self._fail(ABSENT, "a server", "start the server, or check the address")

    def _read_vectors(self, answer: Any, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ANN401
        """Return the vectors in the order of the texts; refuse what are none."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            self._fail("no list of vectors in the answer", "data with a vector a text")
        if len(data) != (n := len(texts)):
            self._fail(f"{len(data):,} vectors", f"{n:,}, one for every text")
        indices = [each.get("index") for each in data]
        if any(type(i) is not int for i in indices) or sorted(indices) != list(range(n)):
            found = f"vectors whose index is {shorten(indices)}"
            self._fail(found, f"every number from 0 to {n - 1} once")
        vectors = [each.get("embedding") for each in sorted(data, key=lambda each: each["index"])]
        for vector, text in zip(vectors, texts, strict=True):
            if not isinstance(vector, list):
                what = "text (base64?)" if isinstance(vector, str) else type(vector).__name__
                self._fail(f"{what} for a vector", "a list of numbers")
            if not all(type(x) in (float, int) for x in vector):
                self._fail("a vector with something else than numbers", "numbers")
            if len(vector) != len(vectors[0]) or not 0 < len(vector) <= LIMITS["dimension"]:
                found = f"vectors of {len(vectors[0]):,} and of {len(vector):,} numbers"
                self._fail(found, f"the same number for all, from 1 to {LIMITS['dimension']:,}")
            if not all(abs(x) <= LARGEST for x in vector):
                found = f"NaN, infinity or a number too large in the vector of {shorten(text)!r}"
                self._fail(found, "finite numbers")
        return np.array(vectors, dtype=np.float32)

    def _fail(self, found: str, expected: str, remedy: str = WRONG) -> NoReturn:
        address = shorten(str(self.address), 200)
        sentence = f"encoder {address!r}: found {found}; expected {expected}; {remedy}"
        raise EncoderError(without_key(sentence)) from None


def open_endpoint(options: EncoderOptions, kept: Path | None) -> EndpointEncoder:
    """Make the encoder of an address; refuse settings that are the server's to choose."""
    address, settings, usual = parse_address(options.model), options.model_settings, ModelSettings()
    for name in ModelSettings.__slots__:
        value = getattr(settings, name)
        if name not in OF_THE_CLIENT and value != getattr(usual, name):
            raise OptionError(
                f"{name} = {value} for the endpoint {shorten(str(address), 200)}",
                expected="none: how a model makes its vectors is set where it runs",
                remedy="leave it out, or set it there",
            )
    prompt, offline = settings.prompt or "", options.offline
    tokens = settings.batch_tokens
    return EndpointEncoder(address, prompt=prompt, batch_tokens=tokens, kept=kept, offline=offline)


def _reason(content: bytes) -> str:
    """Return what the server says of a refusal, on one line, without the key."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return ""
    parts = [found.get(name) for name in ("error", "message", "detail")]
    if isinstance(inner := found.get("error"), dict):
        parts = [inner.get("code") or inner.get("type"), inner.get("message")]
    reason = ", ".join(without_key(part.strip()) for part in parts if isinstance(part, str))
    return shorten(visible(reason), 200)


def _retry_after(text: str) -> float | None:
    """Read how long to wait, in seconds or until a date; None where nothing readable says so."""
    with suppress(ValueError):
        return max(0.0, float(text)) if np.isfinite(float(text)) else None
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
