"""Vectors from an endpoint: over loopback, from servers that work, fail, throttle and die."""

from __future__ import annotations

import base64
import json
import logging
import os
import sqlite3
import sys
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy as np
import pytest

import reffree
from reffree.encoders import endpoint
from reffree.encoders.address import Address, parse_address
from reffree.encoders.base import EncoderSpec, encode_texts
from reffree.encoders.endpoint import ATTEMPTS, PROBE, EndpointEncoder
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.studies import correlate, encoders
from reffree.util.errors import EncoderError, OptionError
from tests.encoders.embedding_server import (
    DIMENSION,
    MODEL,
    gives,
    reorders,
    says,
    serving,
    vector_of,
    works,
)

KEY = "sk-live-5up3r-53cr3t"
TEXTS = [f"sentence number {i} of them all" for i in range(40)]


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Nobody waits here; what the encoder would have waited is noted."""
    seconds: list[float] = []
    monkeypatch.setattr(endpoint, "sleep", seconds.append)
    monkeypatch.delenv("REFFREE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return seconds


@pytest.fixture
def server():
    with serving() as one:
        yield one


def encoder_of(server, **more) -> EndpointEncoder:
    made = EndpointEncoder(parse_address(server.encoder), **more)
    made.batch_texts = 16
    return made


def vectors_of(texts):
    return np.float32([vector_of(text) for text in texts])


def sentence_of(call, *args, **keywords) -> str:
    with pytest.raises(EncoderError) as error:
        call(*args, **keywords)
    assert str(error.value) in (shown := "".join(traceback.format_exception(error.value)))
    assert shown.count("Traceback") == 1, "one error, without what led to it"
    return str(error.value)


def corpus_file(folder, n=40) -> Path:
    lines = [
        {
            "id": f"d{i}",
            "units": TEXTS[: n // 2] if i == 0 else TEXTS[n // 2 : n],
            "gold": [n // 4] * 2,
            "systems": {f"s{k}": [k, n // 2 - k] for k in range(1, 9)},
        }
        for i in range(2)
    ]
    path = folder / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


# What is asked, and what comes back


def test_batches_come_back_as_vectors(server):
    vectors, tokens = encode_texts(encoder_of(server), TEXTS)
    np.testing.assert_array_equal(vectors, vectors_of(TEXTS))
    assert not tokens.any(), "which only the server knows"
    assert server.sizes == [1, 16, 16, 8]
    assert server.encoded == [PROBE, *TEXTS]
    path, headers, content = server.requests[1]
    assert path == "/v1/embeddings"
    assert content == {"model": MODEL, "input": TEXTS[:16], "encoding_format": "float"}
    assert "Authorization" not in headers


def test_batches_hold_so_many_bytes(server):
    long = ["ü" * 20, "a" * 300, "b", "c"]  # 40 bytes, 300, 1, 1
    encode_texts(encoder_of(server, batch_tokens=25), long)
    assert [content["input"] for _, _, content in server.requests[1:]] == [
        long[:1],
        long[1:2],
        long[2:],
    ]


def test_model_address_dimension_and_prompt_are_in_the_fingerprint(server):
    prompted, _ = encode_texts(encoder_of(server, prompt="query: "), TEXTS[:3])
    np.testing.assert_array_equal(prompted, vectors_of([f"query: {text}" for text in TEXTS[:3]]))
    spec = encoder_of(server).spec
    assert (spec.name, spec.revision) == (MODEL, f"http://127.0.0.1:{server.port}/v1")
    assert spec.dimension == DIMENSION
    other = {"name": "other", "revision": "http://h/v1", "dimension": 9, "prompt": "q: "}
    changed = [replace(spec, **{k: v}).fingerprint for k, v in other.items()]
    assert len({spec.fingerprint, *changed}) == 5


def test_fingerprints_of_other_encoders_are_what_they_were():
    """Vectors that were cached before there were endpoints are still found."""
    spec = EncoderSpec("m", "r", "mean", "l2", "float32", 256, "sentence-transformers")
    assert spec.fingerprint == "cb0453bcb0b4011b3095b405c30591f0"


# Servers that fail


def test_throttling_is_waited_out(server, waits, caplog):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    server.script = [
        works,
        says(429, {"error": {"message": "slow down"}}, Retry_After="7"),
        says(429, Retry_After=date),
        says(503, Retry_After="soon"),
        says(500),
    ]
    vectors, _ = encode_texts(encoder_of(server), TEXTS[:5])
    np.testing.assert_array_equal(vectors, vectors_of(TEXTS[:5]))
    assert server.encoded == [PROBE, *TEXTS[:5]]
    assert 7 <= waits[0] <= 7.8
    assert 90 <= waits[1] <= 111
    assert 1 <= waits[2] <= 3, "half a second, doubled twice, from half to one and a half of it"
    assert 2 <= waits[3] <= 6
    assert "status 429 (slow down); asked again in" in caplog.text


def test_patience_has_an_end(server, waits):
    encoder = encoder_of(server)
    assert encoder.spec
    server.always = says(500, {"error": {"message": "boom", "type": "server_error"}})
    assert sentence_of(encode_texts, encoder, TEXTS) == (
        f"encoder '{server.encoder}': found status 500 (server_error, boom), {ATTEMPTS} times; "
        "expected an answer; run it again later"
    )
    assert len(waits) == ATTEMPTS - 1
    server.always = says(429, Retry_After="4000")
    said = sentence_of(encode_texts, encoder, TEXTS)
    assert "found status 429, to be asked again in 4,000 s; expected a wait of at most 300" in said
    assert len(waits) == ATTEMPTS - 1


def test_connections_that_break_are_made_again(server):
    def breaks_off(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b'{"data": [')
        request.hang_up()

    server.script = [works, lambda request: request.hang_up(), breaks_off]
    encode_texts(encoder_of(server), TEXTS[:5])
    assert server.sizes == [1, 5, 5, 5]
    assert server.encoded == [PROBE, *TEXTS[:5]]


def test_a_server_that_hangs(server):
    encoder = encoder_of(server)
    assert encoder.spec
    encoder.timeout = 0.05
    server.always = lambda request: request.rfile.read(1)
    said = sentence_of(encode_texts, encoder, TEXTS)
    assert f"found no answer within 0.05 s, {ATTEMPTS} times; expected an answer" in said


def test_nobody_there(waits):
    with serving() as gone:
        address = parse_address(gone.encoder)
    said = sentence_of(encode_texts, EndpointEncoder(address), TEXTS)
    assert said == (
        f"encoder '{address}': found nobody who listens there; expected a server; start the "
        "server, or check the address"
    )
    assert not waits, "one who never answered is not waited for"


@pytest.mark.parametrize(
    ("behaviour", "found"),
    [
        (says(401, {"error": {"message": "bad key"}}), "status 401 with no key; expected a key"),
        (says(403), "status 403 with no key; expected a key that the server takes; set REFFREE_"),
        (says(404, {"error": "model 'x' not found"}), "status 404 (model 'x' not found); expected"),
        (says(405, b"<html>"), "status 405; expected vectors; check the path, which mostly ends"),
        (says(400, {"detail": "no such field"}), "status 400 (no such field)"),
        (says(302, Location="http://elsewhere/"), "status 302; expected vectors, not another"),
        (
            says(429, {"error": {"code": "insufficient_quota", "message": "pay"}}),
            "status 429 (insufficient_quota, pay); expected an account with credit left",
        ),
        (says(200, b"<html>"), "an answer that is no JSON"),
        (says(200, b"[" * 100_000), "an answer that is no JSON"),
        (says(200, []), "no list of vectors in the answer"),
        (says(200, {"data": [1, 2]}), "no list of vectors in the answer"),
        (gives(lambda data: data[1:]), "4 vectors; expected 5, one for every text"),
        (gives(lambda data: data + data), "10 vectors; expected 5"),
        (gives(lambda data: [data[0]] * 5), "vectors whose index is [0, 0, 0, 0, 0]; expected"),
        (gives(lambda data: [{**e, "index": True} for e in data]), "whose index is [True, True"),
        (gives(lambda data: [{"embedding": [1.0]} for _ in data]), "whose index is [None, None"),
        (gives(lambda data: _with(data, "AAAA")), "text (base64?) for a vector; expected a list"),
        (gives(lambda data: _with(data, None)), "NoneType for a vector; expected a list"),
        (gives(lambda data: _with(data, [[1.0]])), "a vector with something else than numbers"),
        (gives(lambda data: _with(data, [True])), "a vector with something else than numbers"),
        (gives(lambda data: _with(data, [0.5, 1])), "vectors of 8 and of 2 numbers; expected the"),
        (gives(lambda data: [{**e, "embedding": []} for e in data]), "of 0 and of 0 numbers"),
        (gives(lambda data: _with(data, [float("nan")] * 8)), "NaN, infinity or a number too"),
        (gives(lambda data: _with(data, [1e39] * 8)), "too large in the vector of 'sentence num"),
        (gives(lambda data: _with(data, [10**400] * 8)), "NaN, infinity or a number too large"),
    ],
)
def test_answers_that_are_none(server, waits, behaviour, found):
    encoder = encoder_of(server)
    assert encoder.spec
    server.always = behaviour
    said = sentence_of(encode_texts, encoder, TEXTS[:5])
    assert said.startswith(f"encoder '{server.encoder}': found ")
    assert found in said
    assert not waits
    assert server.encoded == [PROBE]


def _with(data, vector):
    return [*data[:-1], {**data[-1], "embedding": vector}]


def test_smaller_batches_where_the_server_asks_for_them(server):
    """text-embeddings-inference answers 422 to more than 32 texts, others 413 or 400."""

    def at_most_four(request):
        many = len(request.texts) > 4
        (says(422, {"error": "batch size > 4"}) if many else works)(request)

    server.always = at_most_four
    vectors, _ = encode_texts(encoder_of(server), TEXTS)
    np.testing.assert_array_equal(vectors, vectors_of(TEXTS))
    assert sorted(server.encoded[1:]) == sorted(TEXTS)


def test_the_text_that_is_refused_is_named_and_the_others_are_kept(server, tmp_path):
    def refuses(request):
        bad = TEXTS[21] in request.texts
        (says(413, {"message": "too long"}) if bad else works)(request)

    server.always = refuses
    encoder = open_encoder(EncoderOptions(encoder=server.encoder, cache=tmp_path))
    encoder.inner.batch_texts = 16
    said = sentence_of(encode_texts, encoder, TEXTS)
    assert f"found status 413 (too long) for the text '{TEXTS[21]}'; expected one that" in said
    assert encoder.missing(TEXTS) == list(range(21, 40))


# The cache: nothing is lost, and nothing encoded twice


def test_a_batch_is_cached_before_the_next_is_asked_for(server, tmp_path):
    encoder = open_encoder(EncoderOptions(encoder=server.encoder, cache=tmp_path))
    encoder.inner.batch_texts = 16
    seen = []

    def looks(request):
        with sqlite3.connect(encoder.cache.path) as database:
            seen.append(database.execute("SELECT count(*) FROM v").fetchone()[0])
        database.close()
        works(request)

    server.always = looks
    encode_texts(encoder, TEXTS)
    assert seen == [0, 16, 32]


def test_a_server_that_dies_in_the_middle(run, tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint, "TEXTS_PER_REQUEST", 8)
    path, cache = corpus_file(tmp_path), tmp_path / "cache"
    command = ("cache", "fill", path, "--cache", cache)
    with serving() as first:
        first.script = [works, works, works, first.die]
        failed = run(*command, "--encoder", first.encoder)
        port, before = first.port, first.encoded
    assert failed.returncode == 1
    told = "found nobody who listens there, 7 times; expected an answer; run it again later to go"
    assert told in failed.stderr
    assert len(before) == 17
    with serving(port) as second:
        done = run(*command, "--encoder", second.encoder)
        assert done.returncode == 0, done.stderr
        assert "40 distinct texts: 16 cached before, 24 encoded" in done.stdout
        both = sorted([*before, *second.encoded])
        assert both == sorted([PROBE, *TEXTS]), "nothing lost, nothing twice, the probe neither"
    # All is cached now: nobody needs to listen.
    scored = run("score", path, "--encoder", second.encoder, "--cache", cache, "-f", "json")
    assert scored.returncode == 0, scored.stderr
    signature = json.loads(scored.stdout)["signature"]
    assert f"encoder:{MODEL}@http://127.0.0.1:{port}/v1|backend:endpoint|" in signature
    assert f"|dimension:{DIMENSION}|" in signature


def test_scores_are_those_of_the_vectors(server, tmp_path):
    corpus = reffree.load(corpus_file(tmp_path))
    given = [np.float32([vector_of(text) for text in d.units]) for d in corpus]
    how = {"encoder": server.encoder, "cache": tmp_path / "cache"}
    server.always = reorders
    scored, expected = reffree.score(corpus, **how), reffree.score(corpus, embeddings=given)
    for row, other in zip(scored.systems, expected.systems, strict=True):
        assert row == other
    assert scored.signature.endswith(expected.signature[expected.signature.index("|seed:") :])
    assert server.encoded.count(TEXTS[0]) == 1
    uncached = reffree.embed(corpus, encoder=server.encoder, cache=False)
    np.testing.assert_array_equal(uncached.vectors[1], given[1])


def test_another_model_under_the_same_name_is_noticed(server, tmp_path):
    def shorter(request):
        data = [{"index": i, "embedding": vector_of(t)[:3]} for i, t in enumerate(request.texts)]
        request.answer(200, {"data": data})

    options = EncoderOptions(encoder=server.encoder, cache=tmp_path)
    encode_texts(open_encoder(options), TEXTS[:4])
    server.always = shorter
    said = sentence_of(encode_texts, open_encoder(options), TEXTS)
    assert "found vectors of 3 numbers; expected 8, as it gave before; another model has" in said
    vectors, _ = encode_texts(open_encoder(options), TEXTS)
    assert vectors.shape == (40, 3)
    assert len(list(tmp_path.glob("embeddings/*/*.sqlite"))) == 2


def test_offline_asks_nobody(server, tmp_path):
    options = {"encoder": server.encoder, "cache": tmp_path}
    said = sentence_of(open_encoder, EncoderOptions(**options, offline=True))
    assert "found texts that are not cached; expected none when offline; leave out" in said
    assert not server.requests
    encode_texts(open_encoder(EncoderOptions(**options)), TEXTS)
    there = len(server.requests)
    encode_texts(open_encoder(EncoderOptions(**options, offline=True)), TEXTS)
    assert len(server.requests) == there


def test_studies_compare_endpoints_with_models(server, tmp_path, waits):
    corpus = reffree.load(corpus_file(tmp_path))
    how = {"pool": "given", "resamples": 100, "metrics": ["arp_pair", "pk"]}
    how |= {"encoders": ["wordllama", server.encoder], "cache": tmp_path / "cache"}
    result = encoders({"mine": corpus}, **how)
    rows = {row["encoder"]: row for row in result.table("encoders").records()}
    assert rows[server.encoder]["dimension"] == DIMENSION
    assert rows[server.encoder]["units_per_second"] is None, "requests may cost"
    assert rows["wordllama"]["units_per_second"] > 0
    assert sorted(server.encoded) == sorted([PROBE, *TEXTS])


def test_all_encoders_are_found_before_the_first_is_run(server, tmp_path):
    corpus = reffree.load(corpus_file(tmp_path))
    with serving() as gone:
        absent = gone.encoder
    for study in (correlate, encoders):
        names = [server.encoder, absent]
        said = sentence_of(study, {"mine": corpus}, encoders=names, cache=tmp_path / "c")
        assert f"encoder '{absent}': found nobody who listens there" in said
    assert server.encoded == [PROBE]


# Secrets


def written_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def is_in(secret: str, content: bytes) -> bool:
    """In itself, or in base64 at any of its three offsets."""
    forms = [secret.encode()]
    for padding in range(3):
        form = base64.b64encode(b"\0" * padding + secret.encode())
        forms.append(form[4 : len(form) - 4])
    return any(form in content for form in forms)


def test_the_key_reaches_the_server_and_nothing_else(run, tmp_path, monkeypatch, caplog):
    """Every byte that is written or said is searched, in errors of all kinds, too."""
    caplog.set_level(logging.DEBUG)
    path, cache, said = corpus_file(tmp_path), tmp_path / "cache", b""
    leak = {"error": {"message": f"you sent Bearer {KEY}!", "code": KEY}, "detail": KEY}
    with serving() as server:
        for behaviour in (
            works,
            says(401, leak),
            says(404, leak),
            says(413, {"message": f"{'x' * 180} {KEY}"}),
            says(500, leak),
            says(200, {"data": KEY}),
            gives(lambda data: [{**e, "index": KEY} for e in data]),
            gives(lambda data: _with(data, KEY)),
            says(302, Location=f"http://127.0.0.1:1/{KEY}"),
        ):
            server.script = [works]
            server.always = behaviour
            how = ("--encoder", server.encoder, "--cache", cache / str(len(said)))
            for command in (["cache", "fill"], ["score", "-f", "json"]):
                done = run(*command, path, *how, REFFREE_API_KEY=KEY)
                assert done.returncode == (behaviour is not works), done.stderr
                said += (done.stdout + done.stderr).encode()
                with monkeypatch.context() as patch:
                    patch.setenv("REFFREE_API_KEY", KEY)
                    try:
                        reffree.embed(
                            reffree.load(path), encoder=server.encoder, cache=tmp_path / "py"
                        )
                    except EncoderError as error:
                        said += "".join(traceback.format_exception(error)).encode()
        sent = {headers.get("Authorization") for _, headers, _ in server.requests}
    assert sent == {f"Bearer {KEY}"}
    assert b"[key]" in said, "what the server repeats is blotted out"
    for part in (said, caplog.text.encode(), written_in(tmp_path)):
        assert len(part) > 0
        assert not is_in(KEY, part)
    assert is_in(KEY, f"as {KEY} is".encode())


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (f"http://me:{KEY}@127.0.0.1/v1#m", "at '127.0.0.1' with a user or a password in it"),
        (f"https://{KEY}@host.example/v1#m", "at 'host.example' with a user or a password"),
        (f"http://127.0.0.1/v1?key={KEY}#m", "a question mark, and what may be a key behind it"),
        (f"http://127.0.0.1/v1#m?key={KEY}", "a question mark, and what may be a key behind it"),
        (f"http://127.0.0.1/{KEY}/v1#m", "the environment's key in it"),
        (f"http://127.0.0.1/v1#{KEY}", "the environment's key in it"),
        (f"http://127.0.0.1:{KEY}/v1#m", "a host or a port that is none"),
        (f"http://[{KEY}/v1#m", "a host or a port that is none"),
        (f"http:///v1#{KEY[:4]}", "no host"),
        (f"http://127.0.0.1/v1#m key={KEY[:4]}", "no host, or with spaces"),
        ("http://127.0.0.1/v1", "no model behind #"),
        ("http://127.0.0.1/v1#", "no model behind #"),
        ("http://127.0.0.1/v1#a=b", "signs that no model's name has behind #"),
    ],
)
def test_addresses_that_may_hold_a_secret_are_refused(run, tmp_path, monkeypatch, address, found):
    """By functions, commands and studies, before anything is written; they are not repeated."""
    path = corpus_file(tmp_path)
    monkeypatch.setenv("REFFREE_API_KEY", KEY)
    with pytest.raises(OptionError) as error:
        EncoderOptions(encoder=address)
    assert "found an endpoint's address" in str(error.value)
    assert found in str(error.value)
    (tmp_path / "study.yaml").write_text(
        "name: mine\ncorpora: [mine.jsonl]\nstudies:\n"
        f"- {{study: encoders, encoders: ['{address}']}}\n"
    )
    secret_files = {path, tmp_path / "study.yaml"}
    for arguments in (
        ("score", path, "--encoder", address),
        ("cache", "fill", path, "--encoder", address),
        ("study", "encoders", path, "--encoder", address),
        ("study", "correlate", path, "--encoder", address, "--encoder", "minilm"),
        ("run", "study.yaml", "-o", "out"),
        ("segment", path, "--method", "depth", "-o", "x.jsonl", "--encoder", address),
    ):
        done = run(*arguments, REFFREE_API_KEY=KEY)
        assert done.returncode in (1, 2), arguments
        assert found in done.stderr, (arguments, done.stderr)
        assert KEY[:4] not in done.stderr + done.stdout
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == secret_files


def test_openai_s_key_goes_to_openai_alone(monkeypatch):
    from reffree.encoders.address import api_key

    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    assert api_key(Address("https://api.openai.com/v1", "m")) == "theirs"
    assert api_key(Address("https://api.openai.com.evil.example/v1", "m")) is None
    assert api_key(Address("http://localhost/v1", "m")) is None
    monkeypatch.setenv("REFFREE_API_KEY", " ours\n")
    assert api_key(Address("https://api.openai.com/v1", "m")) == "ours"
    monkeypatch.setenv("REFFREE_API_KEY", "two words")
    with pytest.raises(EncoderError, match="REFFREE_API_KEY: found spaces or other") as error:
        api_key(Address("http://localhost/v1", "m"))
    assert "two words" not in str(error.value)


def test_a_key_without_encryption_is_told(server, monkeypatch, caplog):
    monkeypatch.setenv("REFFREE_API_KEY", KEY)
    encoder = encoder_of(server)
    encode_texts(encoder, TEXTS)
    assert not caplog.text
    monkeypatch.setattr(Address, "is_loopback", False)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    encode_texts(encoder_of(server), TEXTS)
    assert caplog.text.count("the key goes to 127.0.0.1 without encryption") == 1


# Addresses and settings


@pytest.mark.parametrize(
    ("name", "url", "model"),
    [
        ("HTTP://LocalHost:80/v1/#M", "http://localhost:80/v1", "M"),
        ("https://h.example/v1/embeddings#a/b:c@d", "https://h.example/v1", "a/b:c@d"),
        ("http://[::1]:9/x#m", "http://[::1]:9/x", "m"),
        ("http://h#m", "http://h", "m"),
    ],
)
def test_addresses(name, url, model):
    assert parse_address(name) == Address(url, model)
    assert parse_address(name).is_loopback == ("local" in url or "::1" in url)


def test_settings_that_are_the_server_s(server, tmp_path):
    for setting in ("pooling=mean", "backend=compile", "trust_remote_code=true"):
        options = EncoderOptions(encoder=f"{server.encoder}:{setting}", cache=tmp_path)
        with pytest.raises(OptionError, match="how a model makes its vectors is set where it runs"):
            open_encoder(options)
    assert not server.requests
    named = f"{server.encoder}:prompt=query: ,batch_tokens=9"
    encoder = open_encoder(EncoderOptions(encoder=named, cache=tmp_path))
    assert (encoder.inner.prompt, encoder.inner.batch_tokens) == ("query: ", 9)


def test_what_asks_must_be_installed(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(EncoderError, match=r"found no httpx; .*\[endpoint\]"):
        open_encoder(EncoderOptions(encoder=server.encoder))


def test_where_a_model_s_files_are_needed(run, server, tmp_path):
    path = corpus_file(tmp_path)
    path.write_text(path.read_text() + path.read_text().replace('"d', '"e'))  # enough to train on
    for arguments in (
        ("score", path, "-m", f"sed:vectors={server.encoder}"),
        ("train", "scorer", path, "-o", "scorer", "--finetune", "--encoder", server.encoder),
        ("cache", "fill", path, "--device", "ray", "--encoder", server.encoder),
    ):
        done = run(*arguments)
        assert done.returncode in (1, 2)
        assert "found an endpoint for " in done.stderr, done.stderr
    assert not server.requests
