"""A model whose transformer another backend runs: built once, kept on disk, held against torch."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

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
from reffree.encoders.cache.files import GRAPHS, MEASURED, digest_of
from reffree.encoders.device import recall, remember
from reffree.encoders.forward import tf32
from reffree.encoders.options import APPROXIMATE, BACKENDS
from reffree.encoders.pipeline import Matrix
from reffree.encoders.tokenising import Features, Tokeniser
from reffree.util.atomic import replacing
from reffree.util.errors import CacheError, EncoderError, OptionError, first_line
from reffree.util.optional import missing_packages

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Compute = Callable[[Features], Matrix]
Load = Callable[[], "tuple[SentenceTransformer, Tokeniser]"]

PACKAGES = {
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "onnx-int8": ("onnx", "onnxscript", "onnxruntime"),
    "openvino": ("onnx", "onnxscript", "openvino"),
}
LOADERS = {"onnx": load_onnx, "onnx-int8": load_onnx, "openvino": load_openvino}
DEVIATIONS = {"vector_deviation": vector_deviation, "cosine_deviation": cosine_deviation}
EXPORTING_ERRORS = (RuntimeError, ValueError, TypeError, KeyError, NotImplementedError, OSError)
"""Of what the exporters raise, what `torch.onnx.OnnxExporterError` and the runtimes derive from."""

TIMED_ROUNDS = 3
TIMED_TEXTS = 32


class ModelBackend:
    """One backend for one model.

    Graphs are kept in ``kept / "graphs"``, by the model's fingerprint and the versions of the
    libraries; without ``kept`` in a folder that is gone with this object.
    """

    def __init__(self, name: str, spec: EncoderSpec, kept: Path | None, load: Load) -> None:
        """Remember what to run; ``spec`` is torch's, ``load`` is called when it is needed."""
        self.name = name
        self.plain = spec
        self._load = load
        self._kept = kept
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

    def compute(self, features: Features) -> Matrix:
        """Return the vectors of a batch, held against torch's at first."""
        if self.name == "torch":
            return self._torch(features)
        vectors = self._run(dict(features))
        if not self._is_checked and self.name not in APPROXIMATE:
            self._refuse_beyond(vector_deviation(vectors, self._torch(features)), "a first batch")
            self._is_checked = True
        return vectors

    def _torch(self, features: Features) -> Matrix:
        model, _ = self._load()
        with torch.inference_mode(), self._arithmetic():
            return _vectors(model(_to_device(features, model.device)))

    def _arithmetic(self) -> AbstractContextManager[None]:
        return tf32() if self.plain.dtype == "tf32" else nullcontext()

    @cached_property
    def _run(self) -> Compute:
        if self.name == "compile":
            return self._compiled()
        assert self._measured is not None  # the graph is there
        if recall(self._folder / MEASURED).get("digest") != digest_of(self._folder):
            raise self._damaged("files that are not those it was measured with")
        return self._opened(self._folder)

    def _compiled(self) -> Compute:
        from torch._dynamo.exc import TorchDynamoException

        model, _ = self._load()
        compiled: Callable[[Features], Features] = torch.compile(model[0], dynamic=True)

        def run(features: Features) -> Matrix:
            try:
                with torch.inference_mode(), self._arithmetic():
                    made = compiled(_to_device(features, model.device))
            except TorchDynamoException as error:
                raise self._unable(error, "a C++ compiler, and code that it takes") from error
            return _after_transformer(model, made)

        return run

    def _opened(self, folder: Path) -> Compute:
        """Open a graph, and put the model's other modules after it."""
        model, _ = self._load()
        try:
            transformer: Run = LOADERS[self.name](folder)
        except EXPORTING_ERRORS as error:
            raise self._unable(error, "an architecture that torch exports to ONNX") from error

        def run(features: Features) -> Matrix:
            arrays = {k: v.numpy() for k, v in features.items() if isinstance(v, torch.Tensor)}
            made = torch.from_numpy(np.array(transformer(arrays)))
            return _after_transformer(model, {**features, OUTPUT: made})

        return run

    @cached_property
    def _folder(self) -> Path:
        """Where the graph is, named by everything that shapes it."""
        kept = self._kept
        if kept is None:
            kept = Path(tempfile.mkdtemp(prefix="reffree-graphs-"))
            weakref.finalize(self, shutil.rmtree, kept, ignore_errors=True)
        packages = ("torch", "transformers", *PACKAGES[self.name])
        versions = [f"{package}={version(package)}" for package in packages]
        key = "\n".join((self.plain.fingerprint, self.name, *versions))
        digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
        return kept / GRAPHS / f"{self.name}-{digest}"

    @cached_property
    def _measured(self) -> dict[str, float]:
        """Read how far the graph is from torch, or make it and measure."""
        if self._folder.exists():
            found = recall(self._folder / MEASURED)
            measured = {name: found[name] for name in DEVIATIONS if _is_deviation(found.get(name))}
            if len(measured) < len(DEVIATIONS):
                raise self._damaged("no measurement")
            return measured
        with cache_errors(self._folder):
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                with replacing(self._folder) as made:
                    made.mkdir()
                    measured = self._build(made)
                    facts = {"encoder": self.plain.name, "digest": digest_of(made), **measured}
                    remember(made / MEASURED, facts)
            except OSError:
                if not self._folder.is_dir():  # where another process was faster, its graph stays
                    raise
        return measured

    def _build(self, folder: Path) -> dict[str, float]:
        """Write the graph into a folder; returns its deviations from torch."""
        model, tokeniser = self._load()
        texts = PROBE[::24]  # of three lengths
        example = batch_of(tokeniser.read(range(len(texts)), texts), tokeniser).features
        try:
            write_graph(model, example, folder)
            if self.name in APPROXIMATE:
                quantise_graph(folder)
        except EXPORTING_ERRORS as error:
            raise self._unable(error, "an architecture that torch exports to ONNX") from error
        found = encode_probe(self._opened(folder), tokeniser, PROBE)
        expected = encode_probe(self._torch, tokeniser, PROBE)
        measured = {name: deviation(found, expected) for name, deviation in DEVIATIONS.items()}
        if self.name not in APPROXIMATE:
            self._refuse_beyond(measured["vector_deviation"], f"{len(PROBE)} texts")
        return measured

    def _unable(self, error: Exception, expected: str) -> EncoderError:
        return EncoderError(
            f"encoder {self.plain.name!r}: backend {self.name} cannot run it "
            f"({first_line(error)}); expected {expected}; leave out --backend"
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
    packages = PACKAGES.get(name, ())
    if missing := missing_packages(packages):
        extra = name.removesuffix("-int8")
        raise EncoderError(
            f"backend {name}: found no installed package {' and '.join(missing)}; expected all of "
            f"{', '.join(packages)}; run python -m pip install 'reffree[{extra}]', or leave out "
            "--backend"
        )


def chosen_backend(spec: EncoderSpec, kept: Path | None, load: Load) -> str:
    """Return the fastest of the exact backends that are installed, timed once and remembered.

    Interleaved, the best of three rounds each. ``compile`` is not among them: it takes a minute
    before the first vector.
    """
    exact = [name for name in ("onnx", "openvino") if not missing_packages(PACKAGES[name])]
    contestants = {name: ModelBackend(name, spec, kept, load) for name in ("torch", *exact)}
    key = "\n".join([spec.fingerprint, str(torch.get_num_threads()), *contestants])
    digest = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    path = None if kept is None else kept / GRAPHS / f"fastest-{digest}.json"
    remembered = None if path is None else recall(path).get("backend")
    if remembered in contestants:
        return str(remembered)
    _, tokeniser = load()
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(TIMED_ROUNDS + 1):  # the first warms up and is beaten by the others
        for name, contestant in contestants.items():
            start = time.perf_counter()
            encode_probe(contestant.compute, tokeniser, PROBE[:TIMED_TEXTS])
            best[name] = min(best[name], time.perf_counter() - start)
    fastest = min(best, key=lambda name: best[name])
    if path is not None:
        remember(path, {"backend": fastest, "seconds": best})
    return fastest


def encode_probe(compute: Compute, tokeniser: Tokeniser, texts: Sequence[str]) -> Matrix:
    """Encode in batches of eight, side by side, in order: short texts and long ones."""
    reads = tokeniser.read(range(len(texts)), texts)
    parts = (batch_of(reads[i : i + 8], tokeniser).features for i in range(0, len(reads), 8))
    return np.concatenate([made() for _, made in side_by_side(parts, compute, share_threads())])


def _is_deviation(value: object) -> bool:
    return isinstance(value, float) and 0 <= value < float("inf")


def _to_device(features: Features, device: torch.device) -> Features:
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value
        for name, value in features.items()
    }


def _after_transformer(model: SentenceTransformer, features: Features) -> Matrix:
    """Run a model's other modules on what its transformer, the first one, has made."""
    with torch.inference_mode():
        for module in list(model)[1:]:
            features = module(features)
        return _vectors(features)


def _vectors(features: Features) -> Matrix:
    vectors: Matrix = features["sentence_embedding"].float().cpu().numpy()
    return vectors
