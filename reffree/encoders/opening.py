"""From what a user says to an encoder that encodes: found, checked, and opened when it is needed.

What a model is can be read from its files, so torch and the libraries that load models are imported
only for the first text that is not cached. One device encodes, or several side by side, or actors
of a Ray cluster, over which there is a plain map: one that dies is started again by Ray and its
item is worked on anew, and results come back in the order of the items.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from reffree.encoders.address import is_endpoint, refuse_endpoint
from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path, fact_path, recall
from reffree.encoders.device import RayCluster, device_names, parse_ray
from reffree.encoders.models import find_model
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.util.atomic import cache_folder, user_path
from reffree.util.errors import EncoderError, OptionError, ReffreeError, first_line
from reffree.util.optional import require

if TYPE_CHECKING:
    from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

MOST_TEXTS = 4096
"""That a device takes at a time."""

TURNS = 4
"""How often a device takes texts, at least, so that a slower one ends with the others."""

LOCAL_ACTORS = 2
TEXTS_PER_ITEM = 4096
"""Texts that an actor encodes in one go; what an interrupted run may lose per actor."""

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else it reports to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_py_gcs_connect_timeout_s": "5",  # at a wrong address
}
ATTEMPTS = "RAY_gcs_server_port_wait_time_s"
"""How long an address is tried: by itself Ray goes on for a quarter of an hour."""

Work = Callable[[Any], Any]


def open_encoder(options: EncoderOptions, *, is_remote: bool = False) -> Encoder:
    """Find the model (alias, folder, hub id or endpoint) and put the cache around it.

    With ``is_remote`` others encode, on devices of their own, such as Ray's actors: nothing is
    chosen that suits the devices here.
    """
    kept = None
    if options.is_cached:
        kept = Path(options.cache) if options.cache else cache_folder()
    cluster = parse_ray(options.device)
    if is_endpoint(options.model):
        if cluster:
            refuse_endpoint(options.model, "Ray's actors")
        missing = "expected it; run python -m pip install 'reffree[endpoint]'"
        require("httpx", lambda name: EncoderError(f"an endpoint: found no {name}; {missing}"))
        from reffree.encoders.endpoint import open_endpoint

        server = open_endpoint(options, kept)
        if kept is None:
            return server
        cache = EmbeddingCache(cache_path(kept, server.spec), server.spec)
        return CachedEncoder(lambda: server, cache, server.spec, rows_per_commit=1)
    settings, devices = options.model_settings, device_names(options.device)
    folder = find_model(
        options.model, offline=options.offline, settings=settings, check_weights=False
    )
    if devices != ["cpu"] and not is_remote:
        import torch

        from reffree.encoders.precision import abilities_of, suit_devices

        can = abilities_of([torch.device(name) for name in devices], settings.backend)
        folder = suit_devices(folder, settings, can)
    spec = folder.spec
    check_backend(settings, spec, devices)

    def open_model() -> Encoder:
        if cluster is not None:
            return RayEncoder(options, cluster, spec)
        import torch

        from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

        how = {"is_replica": len(devices) > 1}
        on = [torch.device(name) for name in devices]
        replicas = [SentenceTransformerEncoder(folder, d, settings, kept, **how) for d in on]
        return ReplicatedEncoder(replicas) if len(replicas) > 1 else replicas[0]

    if kept is None:
        return open_model()
    cache = EmbeddingCache(cache_path(kept, spec), spec)
    path = fact_path(kept, "deviation", spec.fingerprint)
    known = recall(path, "cosine_deviation", float, 2)
    return CachedEncoder(open_model, cache, replace(spec, deviation=known))


def check_backend(settings: ModelSettings, spec: EncoderSpec, devices: Sequence[str]) -> None:
    """Refuse what compiled code and copies on several devices cannot do."""
    is_compiled, is_spread = settings.backend == "compile", settings.device_map is not None
    if len(devices) > 1 and (is_spread or is_compiled):
        raise OptionError(
            f"several devices with {'device_map' if is_spread else 'backend compile'}",
            expected="a copy of the model on each, run by torch",
            remedy="name one device, or leave the other setting out",
        )
    obstacles = {
        "static vectors": spec.backend.startswith("static"),
        "weights spread by device_map": is_spread,
        f"quantisation {spec.quantisation}": spec.quantisation != "none",
        f"dtype {spec.dtype}": spec.dtype != "float32",
    }
    if is_compiled and (found := [what for what, is_so in obstacles.items() if is_so]):
        raise OptionError(
            f"backend compile with {found[0]}",
            expected="a transformer in float32",
            remedy="leave out backend",
        )


class ReplicatedEncoder:
    """Every device takes a part of the texts, the longest first, until none are left."""

    def __init__(self, replicas: Sequence[SentenceTransformerEncoder]) -> None:
        """Take the same encoder on each device."""
        self._replicas = replicas

    @property
    def spec(self) -> EncoderSpec:
        """Return what all have: the first one's, which measures for all."""
        return self._replicas[0].spec

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, special ones and those of the prompt included."""
        return self._replicas[0].count_tokens(texts)

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield what comes from any device; what fails on one ends all.

        Closing this, or an interrupt, has every device end its batch and none begin another.
        """
        free: SimpleQueue[SentenceTransformerEncoder] = SimpleQueue()
        done: SimpleQueue[EncodedTexts | BaseException | None] = SimpleQueue()
        must_end = threading.Event()
        for replica in self._replicas:
            free.put(replica)

        def encode(part: Sequence[int]) -> None:
            replica = free.get()
            try:
                with closing(replica.stream([texts[i] for i in part])) as stream:
                    for each in stream:
                        at = [part[i] for i in each.positions]
                        done.put(EncodedTexts(at, each.vectors, each.tokens))
                        if must_end.is_set():
                            break
            except BaseException as error:  # raised where it is waited for
                done.put(error)
            finally:
                free.put(replica)
                done.put(None)

        parts = shares(texts, len(self._replicas))
        with ThreadPoolExecutor(len(self._replicas), "reffree-device") as threads:
            try:
                threads.map(encode, parts)
                n_ended = 0
                while n_ended < len(parts):
                    found = done.get()
                    if isinstance(found, BaseException):
                        raise found
                    if found is None:
                        n_ended += 1
                    else:
                        yield found
            finally:
                must_end.set()
                threads.shutdown(cancel_futures=True)


def shares(texts: Sequence[str], n_devices: int) -> list[list[int]]:
    """Cut positions into parts, from the longest text to the shortest.

    >>> shares(["aa", "b", "cccc", "ddd"], 2)
    [[2], [3], [0], [1]]
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    size = min(MOST_TEXTS, max(1, len(texts) // (TURNS * n_devices)))
    return [order[i : i + size] for i in range(0, len(order), size)]


class _Actor:
    """Makes its work once, and gives results, or sentences: errors with arguments do not travel."""

    def __init__(self, make: Callable[..., Work], arguments: tuple[Any, ...]) -> None:
        self._make, self._arguments = make, arguments
        self._work: Work | None = None

    def run(self, item: Any) -> tuple[bool, Any]:  # noqa: ANN401
        try:
            self._work = self._work or self._make(*self._arguments)
            return True, self._work(item)
        except ReffreeError as error:
            return False, str(error)


@dataclass(frozen=True, slots=True)
class Actors:
    """Actors on a cluster that is there; make it with `ray_actors`."""

    n: int
    gpus: int  # of each

    def map(
        self, make: Callable[..., Work], arguments: tuple[Any, ...], items: Sequence[Any]
    ) -> Iterator[Any]:
        """Yield ``make(*arguments)(item)`` for every item, in order; an actor makes its work once.

        All of it is picklable.
        """
        import ray
        from ray.util import ActorPool

        how = {"num_cpus": 1, "num_gpus": self.gpus, "max_restarts": -1, "max_task_retries": -1}
        kind = ray.remote(_Actor).options(**how)
        actors = [kind.remote(make, arguments) for _ in range(min(self.n, len(items)))]
        try:
            results = ActorPool(actors).map(lambda actor, item: actor.run.remote(item), items)
            for is_done, result in results if actors else ():
                if not is_done:
                    raise ReffreeError(result)
                yield result
        except ray.exceptions.RayError as error:
            raise EncoderError(
                f"device 'ray': {first_line(error)}; expected the actors to finish; see Ray's "
                "logs, and run it again to go on from what the cache holds"
            ) from error
        finally:
            for actor in actors:
                ray.kill(actor)


@contextmanager
def ray_actors(cluster: RayCluster) -> Iterator[Actors]:
    """Meet a running cluster, or start one on this host and end it again.

    By default 2 actors here, and one per GPU or else per CPU of a running cluster; where it has
    GPUs, each actor has one of its own.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    sentence = "found no ray; expected it installed; run python -m pip install 'reffree[ray]'"
    ray = require("ray", lambda name: EncoderError(f"device 'ray': {sentence}"))
    is_ours = not ray.is_initialized()
    # Ray tells of actors that died on standard output, which is for results.
    with redirect_stdout(sys.stderr):
        if is_ours:
            how: dict[str, Any] = {"address": cluster.address}
            hurry = cluster.address is not None and ATTEMPTS not in os.environ
            if hurry:
                os.environ[ATTEMPTS] = "1"
            if cluster.address is None:
                n = cluster.actors or LOCAL_ACTORS
                how = {"address": "local", "num_cpus": n, "include_dashboard": False}
            try:
                ray.init(**how, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
                raise EncoderError(
                    f"device 'ray' at {cluster.address or 'this host'}: {first_line(error)}; "
                    "expected a running cluster, and its token in RAY_AUTH_TOKEN where it asks for "
                    "one; check the address, or leave it out to start one here"
                ) from error
            finally:
                if hurry:  # a cluster that is started here may take its time
                    del os.environ[ATTEMPTS]
        try:
            there = ray.cluster_resources()
            gpus = int(there.get("GPU", 0) >= 1)
            is_here = cluster.address is None and not gpus
            every = LOCAL_ACTORS if is_here else int(there.get("GPU" if gpus else "CPU", 1))
            yield Actors(max(1, cluster.actors or every), gpus)
        finally:
            if is_ours:
                ray.shutdown()


@dataclass(frozen=True, slots=True)
class RayEncoder:
    """Has actors encode, on hosts that all have the model; what comes back is cached here."""

    options: EncoderOptions
    cluster: RayCluster
    spec: EncoderSpec

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Yield the vectors of one part of the texts after the other."""
        starts = range(0, len(texts), TEXTS_PER_ITEM)
        items = [list(texts[start : start + TEXTS_PER_ITEM]) for start in starts]
        with ray_actors(self.cluster) as actors:
            arguments = remote_options(self.options), self.spec
            for start, parts in zip(
                starts, actors.map(encode_items, arguments, items), strict=True
            ):
                for part in parts:
                    at = [start + i for i in part.positions]
                    yield EncodedTexts(at, part.vectors, part.tokens)


def remote_options(options: EncoderOptions) -> EncoderOptions:
    """Return the options for a worker: its own device, no cache, folders by their whole path."""
    encoder, folder = options.encoder, user_path(options.model)
    if encoder is not None and folder.is_dir():
        encoder = str(folder.resolve()) + encoder[len(options.model) :]
    return EncoderOptions(
        encoder=encoder, drop=options.drop, device="auto", offline=options.offline, cache=False
    )


def encode_items(options: EncoderOptions, spec: EncoderSpec) -> Work:
    """Open the encoder in a worker; refuse another than the one that is expected."""
    encoder = open_encoder(options, is_remote=True)
    if encoder.spec != spec:
        raise EncoderError(
            f"device 'ray': found the encoder {encoder.spec.name!r} at {encoder.spec.revision} on "
            f"an actor's host; expected {spec.name!r} at {spec.revision}, as on the driver's; "
            "install the same model on every host"
        )
    return lambda texts: list(encoder.stream(texts))
