"""A plain map over a Ray cluster's actors, and an encoder that encodes in them.

An actor that dies is started again by Ray and its item is worked on anew; results come back in the
order of the items. Ray is imported only here, and only when it is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from reffree.encoders.base import EncodedTexts, EncoderSpec
from reffree.encoders.device import RayCluster
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.util.atomic import user_path
from reffree.util.errors import EncoderError, ReffreeError, first_line
from reffree.util.optional import require

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
