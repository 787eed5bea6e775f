"""A model whose transformer another backend runs: built once, kept on disk, held against torch."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.backends.onnx import (
    OUTPUT,
    Run,
    load_onnx,
    load_openvino,
    quantise_graph,
    write_graph,
)
from reffree.encoders.backends.probe import (
    PROBE,
    TOLERANCE,
    cosine_deviation,
    rounded_up,
    vector_deviation,
)
from reffree.encoders.base import EncoderSpec
from reffree.encoders.batching import batch_of, share_threads, side_by_side
from reffree.encoders.cache.errors import cache_errors
from reffree.encoders.cache.files import GRAPHS, MAKING, MEASURED, digest_of
from reffree.encoders.device import recall, remember
from reffree.encoders.options import APPROXIMATE, BACKENDS
from reffree.encoders.tokenising import Features, Tokeniser
from reffree.errors import CacheError, EncoderError, OptionError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGES = {
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "onnx-int8": ("onnx", "onnxscript", "onnxruntime"),
    "openvino": ("onnx", "onnxscript", "openvino"),
}
EXTRAS = {"onnx": "onnx", "onnx-int8": "onnx", "openvino": "openvino"}


def check_backend(name: str, spec: EncoderSpec, device: torch.device, *, is_spread: bool) -> None:
    """Refuse what a backend cannot run, or what is not installed."""
    if name not in BACKENDS:
        raise OptionError(
            f"backend = {name!r}", expected=" or ".join(BACKENDS), remedy="choose one of these"
        )
    if name == "torch":
        return
    obstacles = {
        "static vectors": spec.backend == "static",
        "weights spread by device_map": is_spread,
        f"quantisation {spec.quantisation}": spec.quantisation != "none",
        f"dtype {spec.dtype}": spec.dtype != "float32",
        f"device {device}": device.type != "cpu" and name != "compile",
    }
    found = [what for what, is_so in obstacles.items() if is_so]
    if found:
        raise OptionError(
            f"backend {name} with {found[0]}",
            expected="a transformer in float32 on the CPU (compile: on any device)",
            remedy="leave out --backend",
        )
    missing = missing_packages(name)
    if missing:
        raise EncoderError(
            f"backend {name}: found no installed package {' and '.join(missing)}; expected all of "
            f"{', '.join(PACKAGES[name])}; run python -m pip install 'reffree[{EXTRAS[name]}]', or "
            "leave out --backend"
        )


def missing_packages(name: str) -> list[str]:
    """List what a backend needs and is not installed."""
    return [one for one in PACKAGES.get(name, ()) if importlib.util.find_spec(one) is None]


Vectors = NDArray[np.float32]
Compute = Callable[[Features], Vectors]

LOADERS = {"onnx": load_onnx, "onnx-int8": load_onnx, "openvino": load_openvino}
DEVIATIONS = {"vector_deviation", "cosine_deviation"}
EXPORTING_ERRORS = (RuntimeError, ValueError, TypeError, KeyError, NotImplementedError, OSError)
"""Of what the exporters raise, what `torch.onnx.OnnxExporterError` and the runtimes derive from."""


class Accelerated:
    """One backend for one model.

    Graphs are kept in ``kept / "graphs"``, by the model's fingerprint and the versions of the
    libraries; without ``kept`` in a folder that is gone with this object.
    """

    def __init__(
        self,
        name: str,
        spec: EncoderSpec,
        kept: Path | None,
        load: Callable[[], tuple[SentenceTransformer, Tokeniser]],
    ) -> None:
        """Remember what to run; ``spec`` is torch's, ``load`` is called when it is needed."""
        self.name = name
        self.plain = spec
        self._load = load
        self._given_folder = kept
        self._is_checked = False

    @property
    def label(self) -> str:
        """How the spec names the backend; the deviation of an approximate one is part of it."""
        if self.name == "torch":
            return self.plain.backend
        label = f"{self.plain.backend}+{self.name}"
        if self.name in APPROXIMATE:
            moved = rounded_up(self._measured["cosine_deviation"])
            label += f"(cosine deviation<={moved} on {len(PROBE)} texts)"
        return label

    def compute(self, features: Features) -> Vectors:
        """Return the vectors of a batch, held against torch's at first."""
        if self.name == "torch":
            return self._torch(features)
        vectors = self._run(dict(features))
        if not self._is_checked and self.name not in APPROXIMATE:
            self._refuse_beyond(vector_deviation(vectors, self._torch(features)), "a first batch")
            self._is_checked = True
        return vectors

    @cached_property
    def _loaded(self) -> tuple[SentenceTransformer, Tokeniser]:
        return self._load()

    def _torch(self, features: Features) -> Vectors:
        model, _ = self._loaded
        return _finish(model, self._on_device(features), 0)

    def _on_device(self, features: Features) -> Features:
        device = self._loaded[0].device
        return {
            name: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }

    @cached_property
    def _run(self) -> Compute:
        model, _ = self._loaded
        if self.name == "compile":
            return self._compiled()
        assert self._measured is not None  # the graph is there
        if recall(self._folder / MEASURED).get("digest") != digest_of(self._folder):
            raise self._damaged("files that are not those it was measured with")
        return _run_by(self._opened(self._folder), model)

    def _opened(self, folder: Path) -> Run:
        try:
            return LOADERS[self.name](folder)
        except EXPORTING_ERRORS as error:
            raise self._unable(error, "an architecture that torch exports to ONNX") from error

    def _compiled(self) -> Compute:
        from torch._dynamo.exc import TorchDynamoException

        model, _ = self._loaded
        compiled: Callable[[Features], Features] = torch.compile(model[0], dynamic=True)

        def run(features: Features) -> Vectors:
            try:
                with torch.inference_mode():
                    made = compiled(self._on_device(features))
            except TorchDynamoException as error:
                raise self._unable(error, "a C++ compiler, and code that it takes") from error
            return _finish(model, made, 1)

        return run

    @cached_property
    def _kept(self) -> Path:
        if self._given_folder is not None:
            return self._given_folder
        made = Path(tempfile.mkdtemp(prefix="reffree-graphs-"))
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return made

    @cached_property
    def _folder(self) -> Path:
        """Where the graph is, named by everything that shapes it."""
        versions = [
            f"{one}={version(one)}" for one in ("torch", "transformers", *PACKAGES[self.name])
        ]
        key = "\n".join((self.plain.fingerprint, self.name, *versions))
        digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
        return self._kept / GRAPHS / f"{self.name}-{digest}"

    @cached_property
    def _measured(self) -> dict[str, float]:
        """Read how far the graph is from torch, or make it and measure."""
        if self._folder.exists():
            found = recall(self._folder / MEASURED)
            measured = {name: found[name] for name in DEVIATIONS if _is_deviation(found.get(name))}
            if DEVIATIONS - measured.keys():
                raise self._damaged("no measurement")
            return measured
        model, tokeniser = self._loaded
        with cache_errors(self._folder.parent):
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(".tmp", MAKING, self._folder.parent))
        try:
            measured = self._build(model, tokeniser, made)
            facts = {"encoder": self.plain.name, "digest": digest_of(made), **measured}
            remember(made / MEASURED, facts)
            with cache_errors(self._folder):
                _settle(made, self._folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return measured

    def _build(
        self, model: SentenceTransformer, tokeniser: Tokeniser, folder: Path
    ) -> dict[str, float]:
        texts = PROBE[::24]  # of three lengths
        example = batch_of(tokeniser.read(range(len(texts)), texts), tokeniser).features
        try:
            write_graph(model, example, folder)
            if self.name in APPROXIMATE:
                quantise_graph(folder)
        except EXPORTING_ERRORS as error:
            raise self._unable(error, "an architecture that torch exports to ONNX") from error
        run = _run_by(self._opened(folder), model)
        found = encode_probe(run, tokeniser, PROBE)
        expected = encode_probe(self._torch, tokeniser, PROBE)
        measured = {
            "vector_deviation": vector_deviation(found, expected),
            "cosine_deviation": cosine_deviation(found, expected),
        }
        if self.name not in APPROXIMATE:
            self._refuse_beyond(measured["vector_deviation"], f"{len(PROBE)} texts")
        return measured

    def _unable(self, error: Exception, expected: str) -> EncoderError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return EncoderError(
            f"encoder {self.plain.name!r}: backend {self.name} cannot run it ({reason}); "
            f"expected {expected}; leave out --backend"
        )

    def _damaged(self, found: str) -> CacheError:
        return CacheError(
            f"{self._folder}: found {found}; expected a graph as reffree wrote it; remove it with "
            "reffree cache rm --graphs, and it is made again"
        )

    def _refuse_beyond(self, deviation: float, where: str) -> None:
        if not deviation <= TOLERANCE:
            raise EncoderError(
                f"encoder {self.plain.name!r}: backend {self.name} deviates from torch by "
                f"{deviation:.1e} on {where}; expected at most {TOLERANCE:.0e}; leave out --backend"
            )


def _is_deviation(value: object) -> bool:
    return isinstance(value, float) and 0 <= value < float("inf")


def _settle(made: Path, folder: Path) -> None:
    """Give a graph its name; where another process was faster, theirs stays."""
    try:
        made.replace(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _run_by(run: Run, model: SentenceTransformer) -> Compute:
    """Put the model's other modules after another's transformer."""

    def compute(features: Features) -> Vectors:
        arrays = {k: v.numpy() for k, v in features.items() if isinstance(v, torch.Tensor)}
        made = torch.from_numpy(np.array(run(arrays)))
        return _finish(model, {**features, OUTPUT: made}, 1)

    return compute


def _finish(model: SentenceTransformer, features: Features, first: int) -> Vectors:
    """Run the modules from ``first`` on; with 0 all of them."""
    with torch.inference_mode():
        if first == 0:
            features = model(features)
        else:
            for module in list(model)[first:]:
                features = module(features)
        vectors: Vectors = features["sentence_embedding"].float().cpu().numpy()
    return vectors


def encode_probe(compute: Compute, tokeniser: Tokeniser, texts: Sequence[str]) -> Vectors:
    """Encode in batches of eight, side by side, in order: short texts and long ones."""
    reads = tokeniser.read(range(len(texts)), texts)
    parts = (batch_of(reads[i : i + 8], tokeniser).features for i in range(0, len(reads), 8))
    return np.concatenate([made() for _, made in side_by_side(parts, compute, share_threads())])


TIMED_ROUNDS = 3
TIMED_TEXTS = 32


def chosen_backend(
    spec: EncoderSpec,
    kept: Path | None,
    load: Callable[[], tuple[SentenceTransformer, Tokeniser]],
) -> str:
    """Return the fastest of the exact backends that are installed, timed once and remembered.

    Interleaved, the best of three rounds each. ``compile`` is not among them: it takes a minute
    before the first vector.
    """
    candidates = ["torch", *(n for n in ("onnx", "openvino") if not missing_packages(n))]
    contestants = {name: Accelerated(name, spec, kept, load) for name in candidates}
    key = "\n".join([spec.fingerprint, str(torch.get_num_threads()), *candidates])
    digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    path = None if kept is None else kept / GRAPHS / f"fastest-{digest}.json"
    remembered = None if path is None else recall(path).get("backend")
    if remembered in candidates:
        return str(remembered)
    _, tokeniser = load()
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(TIMED_ROUNDS + 1):  # the first warms up and is beaten by the others
        for name, contestant in contestants.items():
            start = time.perf_counter()
            encode_probe(contestant.compute, tokeniser, PROBE[:TIMED_TEXTS])
            best[name] = min(best[name], time.perf_counter() - start)
    fastest = min(best, key=lambda name: best[name])
    if path is not None:
        remember(path, {"backend": fastest, "seconds": best})
    return fastest
