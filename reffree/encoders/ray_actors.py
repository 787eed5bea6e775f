"""Ray Data actors that work through a list of items, for what one machine cannot do alone.

An actor that dies is started again by Ray and its items are worked on anew; results come back in
the order of the items. Actors encode and the driver alone writes the cache. Ray is imported only
here, and only when it is asked for.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.encoders.cache import EmbeddingCache
from reffree.encoders.cache.rows import Row, make_rows
from reffree.encoders.options import EncoderOptions
from reffree.util.atomic import user_path
from reffree.util.errors import EncoderError, OptionError, ReffreeError, first_line
from reffree.util.optional import require

LOCAL_ACTORS = 2
DEVICES = ("auto", "cpu", "cuda")

Work = Callable[[Any], Any]
"""From an item to its result, both picklable."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A sentence from an actor; exceptions with arguments of their own do not travel."""

    sentence: str


class Actors:
    """Actors on a cluster that is there; make it with `ray_actors`."""

    def __init__(self, n: int, gpus: int) -> None:
        """Take ``n`` actors with ``gpus`` GPUs each."""
        self.n = n
        self.gpus = gpus

    def map(
        self, make: Callable[..., Work], arguments: tuple[Any, ...], items: Sequence[Any]
    ) -> Iterator[Any]:
        """Yield ``make(*arguments)(item)`` for every item, in order.

        Each actor makes its own work, once. Only the items that are being worked on have results
        in memory, besides those that wait for an earlier one.
        """
        import ray

        if not items:
            return
        rows = [{"item": pickle.dumps(item)} for item in items]
        size = min(self.n, len(rows))
        # One block an item: an actor that dies loses one item's work.
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _Actor,
            fn_constructor_args=(make, arguments),
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
            num_cpus=1,
            num_gpus=self.gpus,
        )
        for row in _one_sentence(dataset.iter_rows()):
            result = pickle.loads(row["item"])
            if isinstance(result, Failure):
                raise ReffreeError(result.sentence)
            yield result

    def beside_driver(self, kept: type, *arguments: Any) -> Any:  # noqa: ANN401  (an actor's handle)
        """Start an actor on the driver's own host, such as one that reads the driver's files."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        how = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
        return ray.remote(kept).options(**how, scheduling_strategy=here).remote(*arguments)


class _Actor:
    """What Ray Data runs: items in, results or the sentence of a failure out."""

    def __init__(self, make: Callable[..., Work], arguments: tuple[Any, ...]) -> None:
        self._make = make
        self._arguments = arguments
        self._work: Work | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = np.empty(len(batch["item"]), dtype=object)
        for i, item in enumerate(batch["item"]):
            results[i] = pickle.dumps(self._result(item))
        return {"item": results}

    def _result(self, item: bytes) -> Any:  # noqa: ANN401
        try:
            if self._work is None:
                self._work = self._make(*self._arguments)
            return self._work(pickle.loads(item))
        except ReffreeError as error:
            return Failure(str(error))


@contextmanager
def ray_actors(
    address: str | None = None, n: int | None = None, *, device: str = "auto"
) -> Iterator[Actors]:
    """Meet a running cluster, or start one on this host and end it again.

    Args:
        address: of a running cluster, ``auto`` or ``host:port``; None starts one here.
        n: actors; by default 2 here, and one per GPU or else per CPU of a cluster.
        device: of every actor; with ``cuda`` each has a GPU of its own, with ``auto`` where the
            cluster has any.
    """
    if device not in DEVICES:
        raise OptionError(
            f"the device {device!r} for Ray's actors",
            expected=" or ".join(DEVICES),
            remedy="leave it out: Ray gives every actor a GPU of its own where there are any",
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else it reports to Ray's makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_py_gcs_connect_timeout_s", "5")  # at a wrong address
    require(
        "ray.data",
        lambda name: EncoderError(
            "engine 'ray': found no installed package ray; expected ray[data]; run python -m pip "
            "install 'reffree[ray]'"
        ),
        ("ray", "fsspec", "pandas", "pyarrow"),
    )
    import ray

    is_ours = not ray.is_initialized()
    # Ray tells of actors that died on standard output, which is for results.
    with redirect_stdout(sys.stderr):
        if is_ours:
            _start(ray, address, n or LOCAL_ACTORS)
        try:
            _quieten(ray)
            there = ray.cluster_resources()
            gpus = int(device == "cuda" or (device == "auto" and there.get("GPU", 0) >= 1))
            if n is None and (gpus or address is not None):
                n = int(there.get("GPU" if gpus else "CPU", 1))
            yield Actors(max(1, n or LOCAL_ACTORS), gpus)
        finally:
            if is_ours:
                ray.shutdown()


def _start(ray: Any, address: str | None, n: int) -> None:  # noqa: ANN401
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    patience: AbstractContextManager[None] = nullcontext()
    if address in (None, "local"):
        how |= {"address": "local", "num_cpus": n, "include_dashboard": False}
    else:
        how |= {"address": address}
        patience = _one_attempt()
    try:
        with _stderr_closed(), patience:
            ray.init(**how)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        where = f"engine 'ray' at {address or 'this host'}"
        if any("AuthenticationError" in repr(one) for one in (error, error.__cause__)):
            raise EncoderError(
                f"{where}: found a cluster that asks for another token; expected its own; set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as it has them"
            ) from error
        raise EncoderError(
            f"{where}: {first_line(error)}; expected a running cluster; check --ray-address, or "
            "leave it out to start one here"
        ) from error


@contextmanager
def _one_attempt() -> Iterator[None]:
    """Have Ray try an address once; by itself it goes on for a quarter of an hour."""
    attempts = "RAY_gcs_server_port_wait_time_s"
    is_set = attempts in os.environ
    os.environ.setdefault(attempts, "1")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[attempts]


@contextmanager
def _stderr_closed() -> Iterator[None]:
    """Keep away what Ray's own processes say of their logs; errors are raised all the same."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def _quieten(ray: Any) -> None:  # noqa: ANN401
    """Progress is ours to show, and results are to come in order."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _one_sentence(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Turn what Ray raises into a sentence."""
    import ray

    try:
        yield from rows
    except ray.exceptions.RayError as error:
        raise EncoderError(
            f"engine 'ray': {first_line(error)}; expected the actors to finish; see Ray's logs, "
            "and run it again to go on from what the cache holds"
        ) from error


class TextWork:
    """An actor's encoder, without a cache: texts in, rows for the driver's cache out."""

    def __init__(self, options: EncoderOptions, spec: EncoderSpec) -> None:
        """Open the encoder; it must be the driver's."""
        self._encoder = same_encoder(options, spec)

    def __call__(self, texts: list[str]) -> list[Row]:
        """Return the rows of some texts."""
        rows: list[Row] = []
        for encoded in self._encoder.stream(texts):
            done = [texts[i] for i in encoded.positions]
            fingerprint = self._encoder.spec.fingerprint
            rows += make_rows(fingerprint, done, encoded.vectors, encoded.tokens)
        return rows


def same_encoder(options: EncoderOptions, spec: EncoderSpec) -> Encoder:
    """Open the encoder without its cache, and refuse another than the driver's."""
    from reffree.encoders.sentence_transformer import open_encoder

    encoder = open_encoder(replace(options, cache=False), is_elsewhere=True)
    if encoder.spec != spec:
        raise EncoderError(
            f"engine 'ray': found the encoder {encoder.spec.name!r} at {encoder.spec.revision} on "
            f"an actor's host; expected {spec.name!r} at {spec.revision}, as on the driver's; "
            "install the same model on every host"
        )
    return encoder


def for_actors(options: EncoderOptions) -> EncoderOptions:
    """Name folders as every process of this host finds them."""
    name = options.encoder
    if name is not None and user_path(name).is_dir():
        options = replace(options, encoder=str(user_path(name).resolve()))
    return options


class CacheReader:
    """Runs beside the driver and reads its cache for actors, wherever they are."""

    def __init__(self, path: Path, spec: EncoderSpec) -> None:
        """Open the cache file of an encoder."""
        self._cache = EmbeddingCache(path, spec)

    def find(self, texts: list[str]) -> tuple[list[int], NDArray[np.float32], list[int]]:
        """Return positions of the texts that are there, their vectors and tokens."""
        parts = list(self._cache.get(texts))
        return (
            [position for part in parts for position in part.positions],
            np.concatenate([part.vectors for part in parts]) if parts else np.empty((0, 0), "f4"),
            [count for part in parts for count in part.tokens],
        )


class RemotelyCached:
    """An encoder that asks the driver's cache first; what it must encode, it does not keep."""

    def __init__(self, inner: Encoder, reader: Any) -> None:  # noqa: ANN401
        """Wrap an encoder; ``reader`` is the handle of a `CacheReader`."""
        self.inner = inner
        self._reader = reader

    @property
    def spec(self) -> EncoderSpec:
        """Return the inner encoder's spec."""
        return self.inner.spec

    def stream(self, texts: Sequence[str]) -> Iterator[EncodedTexts]:
        """Cached vectors first, then those that were evicted since."""
        import ray

        found: tuple[list[int], NDArray[np.float32], list[int]]
        found = ray.get(self._reader.find.remote(list(texts)))
        if found[0]:
            yield EncodedTexts(*found)
        rest = sorted(set(range(len(texts))) - set(found[0]))
        for encoded in self.inner.stream([texts[i] for i in rest]) if rest else ():
            at = [rest[i] for i in encoded.positions]
            yield EncodedTexts(at, encoded.vectors, encoded.tokens)
