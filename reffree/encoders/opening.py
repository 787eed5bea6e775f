"""From what a user says to an encoder that encodes: found, checked, and opened when it is needed.

What a model is can be read from its files, so torch and the libraries that load models are imported
only for the first text that is not cached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from reffree.encoders.address import is_endpoint, refuse_endpoint
from reffree.encoders.base import EncodedTexts, Encoder, EncoderSpec
from reffree.encoders.cache import CachedEncoder, EmbeddingCache, cache_path, fact_path, recall
from reffree.encoders.device import device_names, parse_ray
from reffree.encoders.models import find_model
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.util.atomic import cache_folder
from reffree.util.errors import EncoderError, OptionError
from reffree.util.optional import require

if TYPE_CHECKING:
    from reffree.encoders.sentence_transformer import SentenceTransformerEncoder

MOST_TEXTS = 4096
"""That a device takes at a time."""

TURNS = 4
"""How often a device takes texts, at least, so that a slower one ends with the others."""


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
            from reffree.encoders.ray_actors import RayEncoder

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
