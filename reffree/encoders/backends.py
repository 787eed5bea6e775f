"""A transformer run by something else than torch's own loop: built once, held against torch.

sentence-transformers' own ``backend=`` needs optimum, whose releases exclude the transformers
installed here; so torch exports the transformer to ONNX, and ONNX Runtime or OpenVINO runs it. A
graph is kept below the cache folder, by the model's fingerprint and the libraries' versions.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.base import EncoderSpec
from reffree.encoders.batching import batch_of, run_side_by_side, share_threads
from reffree.encoders.cache import GRAPHS, cache_errors, fact_path, recall, remember
from reffree.encoders.loaders import silence_libraries
from reffree.encoders.options import APPROXIMATE, PACKAGES, backend_label
from reffree.encoders.probe import PROBE, TOLERANCE, cosine_deviation, vector_deviation
from reffree.encoders.tokenising import IDS, MASK, Features, Tokeniser
from reffree.util.atomic import replacing
from reffree.util.errors import CacheError, EncoderError, first_line
from reffree.util.optional import missing_packages

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Matrix = NDArray[np.float32]
Compute = Callable[[Features], Matrix]
Run = Callable[[dict[str, Any]], Any]

GRAPH, MEASURED, OUTPUT = "model.onnx", "measured.json", "token_embeddings"
ERRORS = (RuntimeError, ValueError, TypeError, KeyError, NotImplementedError, OSError)
"""Of what the exporters raise, what `torch.onnx.OnnxExporterError` and the runtimes derive from."""


class ModelBackend:
    """One backend for one model; ``load`` and ``run_torch`` are asked when they are needed."""

    def __init__(
        self,
        name: str,
        spec: EncoderSpec,
        kept: Path | None,
        load: Callable[[], tuple[SentenceTransformer, Tokeniser]],
        run_torch: Compute,
    ) -> None:
        """Remember what to run; graphs go below ``kept``, or a folder that is gone with this."""
        self.name, self.plain, self.label = name, spec, backend_label(spec, name)
        self._kept, self._load, self._run_torch = kept, load, run_torch
        self._is_checked = name == "torch" or name in APPROXIMATE

    def compute(self, features: Features) -> Matrix:
        """Return the vectors of a batch; those of an exact backend are first held against torch."""
        vectors = self._run(dict(features))
        if not self._is_checked:
            self._refuse_beyond(vector_deviation(vectors, self._run_torch(features)), "a batch")
            self._is_checked = True
        return vectors

    @property
    def deviation(self) -> float:
        """How far cosines of the probe are from torch's."""
        return float(self._measured["cosine_deviation"])

    @cached_property
    def _run(self) -> Compute:
        if self.name == "torch":
            return self._run_torch
        if self.name == "compile":
            return self._compile()
        if self._measured.get("digest") != _digest(self._folder):
            raise CacheError(
                f"{self._folder}: found files that are not those it was measured with; expected a "
                f"graph as reffree wrote it; remove it with reffree cache rm {self._folder.name}, "
                "and it is made again"
            )
        return self._open(self._folder)

    def _compile(self) -> Compute:
        from torch._dynamo.exc import TorchDynamoException

        model, _ = self._load()
        compiled: Callable[[Features], Features] = torch.compile(model[0], dynamic=True)

        def run(features: Features) -> Matrix:
            try:
                with torch.inference_mode():
                    return _after_transformer(model, compiled(features))
            except TorchDynamoException as error:
                raise self._unable(error, "a C++ compiler, and code that it compiles") from error

        return run

    def _open(self, folder: Path) -> Compute:
        model, _ = self._load()
        with self._runtime_errors():
            run = (load_openvino if self.name == "openvino" else load_onnx)(folder)

        def compute(features: Features) -> Matrix:
            arrays = {k: v.numpy() for k, v in features.items() if isinstance(v, torch.Tensor)}
            with self._runtime_errors():
                found = np.array(run(arrays))
            return _after_transformer(model, {**features, OUTPUT: torch.from_numpy(found)})

        return compute

    @contextmanager
    def _runtime_errors(self) -> Iterator[None]:
        """Refuse what a runtime refuses; its errors have nothing in common but their module."""
        try:
            yield
        except Exception as error:
            is_of_runtime = type(error).__module__.startswith(("onnxruntime", "open"))
            if not isinstance(error, ERRORS) and not is_of_runtime:
                raise
            raise self._unable(error, "a graph that its runtime runs") from error

    @cached_property
    def _folder(self) -> Path:
        """Where the graph is, by everything that it depends on."""
        packages = ("torch", "transformers", "sentence-transformers", *PACKAGES[self.name])
        key = [self.plain.fingerprint, *(f"{each} {version(each)}" for each in packages)]
        digest = hashlib.blake2b("\n".join(key).encode(), digest_size=12).hexdigest()
        if self._kept is None:
            above = Path(tempfile.mkdtemp(prefix="reffree-graph-"))
            weakref.finalize(self, shutil.rmtree, above, ignore_errors=True)
        else:
            above = self._kept / GRAPHS
        return above / f"{self.name}-{digest}"

    @cached_property
    def _measured(self) -> dict[str, Any]:
        """What is known of the graph, which is made where it is not there."""
        if not self._folder.exists():
            with cache_errors(self._folder):
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with replacing(self._folder) as made:
                        made.mkdir()
                        measured = self._build(made)
                        measured |= {"encoder": self.plain.name, "digest": _digest(made)}
                        remember(made / MEASURED, measured)
                except OSError:
                    if not self._folder.is_dir():  # another process was faster: its graph stays
                        raise
        found = recall(self._folder / MEASURED)
        if not isinstance(found.get("cosine_deviation"), float):
            found["digest"], found["cosine_deviation"] = None, 2.0
        return found

    def _build(self, folder: Path) -> dict[str, Any]:
        """Write the graph into a folder; returns how far it is from torch."""
        model, tokeniser = self._load()
        texts = PROBE[::24]  # of three lengths
        example = batch_of(tokeniser.read(range(len(texts)), texts), tokeniser).features
        try:
            write_graph(model, example, folder, is_small=self.name in APPROXIMATE)
        except ERRORS as error:
            raise self._unable(error, "an architecture that torch exports to ONNX") from error
        found = encode_probe(self._open(folder), tokeniser, PROBE)
        expected = encode_probe(self._run_torch, tokeniser, PROBE)
        if self.name not in APPROXIMATE:
            self._refuse_beyond(vector_deviation(found, expected), f"{len(PROBE)} texts")
        return {"cosine_deviation": cosine_deviation(found, expected)}

    def _unable(self, error: Exception, expected: str) -> EncoderError:
        return EncoderError(
            f"encoder {self.plain.name!r}: backend {self.name} cannot run it "
            f"({first_line(error)}); expected {expected}; leave out backend"
        )

    def _refuse_beyond(self, deviation: float, where: str) -> None:
        if not deviation <= TOLERANCE:
            raise EncoderError(
                f"encoder {self.plain.name!r}: backend {self.name} deviates from torch by "
                f"{deviation:.1e} on {where}; expected at most {TOLERANCE:.0e}; leave out backend"
            )


def fastest_backend(
    spec: EncoderSpec,
    kept: Path | None,
    load: Callable[[], tuple[SentenceTransformer, Tokeniser]],
    run_torch: Compute,
) -> str:
    """Return the fastest of the exact backends that are installed, timed once and remembered.

    Interleaved, the best of three rounds each. ``compile`` is not among them: it takes a minute
    before the first vector.
    """
    exact = [name for name in ("onnx", "openvino") if not missing_packages(PACKAGES[name])]
    names = ["torch", *exact]
    path = fact_path(kept, "fastest", spec.fingerprint, str(torch.get_num_threads()), *names)
    remembered = recall(path).get("backend")
    if remembered in names:
        return str(remembered)
    _, tokeniser = load()
    contestants = {name: ModelBackend(name, spec, kept, load, run_torch) for name in names}
    best = dict.fromkeys(names, float("inf"))
    for _ in range(4):  # the first warms up and is beaten by the others
        for name, contestant in contestants.items():
            start = time.perf_counter()
            encode_probe(contestant.compute, tokeniser, PROBE[:32])
            best[name] = min(best[name], time.perf_counter() - start)
    fastest = min(best, key=lambda name: best[name])
    remember(path, {"backend": fastest, "seconds": best})
    return fastest


def encode_probe(compute: Compute, tokeniser: Tokeniser, texts: Sequence[str]) -> Matrix:
    """Encode in batches of eight, side by side, in order: short texts and long ones."""
    reads = tokeniser.read(range(len(texts)), texts)
    parts = (batch_of(reads[i : i + 8], tokeniser).features for i in range(0, len(reads), 8))
    return np.concatenate([made() for _, made in run_side_by_side(parts, compute, share_threads())])


def _after_transformer(model: SentenceTransformer, features: Features) -> Matrix:
    """Run a model's other modules on what its transformer, the first one, has made."""
    with torch.inference_mode():
        for module in list(model)[1:]:
            features = module(features)
        vectors: Matrix = features["sentence_embedding"].float().cpu().numpy()
    return vectors


class _Transformer(torch.nn.Module):
    """The first module of a model, from tensors to a tensor."""

    def __init__(self, model: SentenceTransformer, names: Sequence[str], others: Features) -> None:
        super().__init__()
        self.module, self.names, self.others = model[0], names, others

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        features = {**self.others, **dict(zip(self.names, tensors, strict=True))}
        output: torch.Tensor = self.module(features)[OUTPUT]
        return output


def write_graph(
    model: SentenceTransformer, example: Features, folder: Path, *, is_small: bool
) -> None:
    """Export the transformer for any number of texts of any length; ``is_small``: int8 matrices."""
    given = {k: v for k, v in example.items() if isinstance(v, torch.Tensor)}
    names = [IDS, MASK, *sorted(given.keys() - {IDS, MASK})]
    others = {k: v for k, v in example.items() if k not in given}
    tensors = tuple(given[name] for name in names)
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with silence_libraries(), torch.no_grad():
        program = torch.export.export(
            _Transformer(model, names, others).eval(),
            tensors,
            dynamic_shapes={"tensors": tuple(free for _ in tensors)},
        )
        where = str(folder / GRAPH)
        how: dict[str, Any] = {"dynamo": True, "external_data": True, "verbose": False}
        torch.onnx.export(program, (), where, input_names=names, output_names=[OUTPUT], **how)
        if is_small:
            quantise_graph(folder)


def quantise_graph(folder: Path) -> None:
    """Turn a graph's matrices into int8; activations are quantised as they come (dynamically)."""
    tools: Any = importlib.import_module("onnxruntime.quantization")
    whole, small = folder / GRAPH, folder / "int8.onnx"
    tools.quantize_dynamic(whole, small, weight_type=tools.QuantType.QInt8, per_channel=True)
    for path in folder.iterdir():
        if path != small:
            path.unlink()
    small.replace(whole)


def load_onnx(folder: Path) -> Run:
    """Open the graph in ONNX Runtime, for batches side by side."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = share_threads().threads
    # Threads that spin between batches take the cores from the tokenizer and from torch.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(folder / GRAPH), settings, providers=["CPUExecutionProvider"]
    )
    names = {each.name for each in session.get_inputs()}
    return lambda given: session.run(None, {k: v for k, v in given.items() if k in names})[0]


def load_openvino(folder: Path) -> Run:
    """Open the graph in OpenVINO, in full precision: by itself it takes bfloat16 where it can.

    Read by its core, not by its converter, which reports its use over the network.
    """
    openvino: Any = importlib.import_module("openvino")
    core, share = openvino.Core(), share_threads()
    how = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": share.workers * share.threads,
        "NUM_STREAMS": share.workers,
    }
    compiled = core.compile_model(core.read_model(str(folder / GRAPH)), "CPU", how)
    names = {name for each in compiled.inputs for name in each.get_names()}
    own = threading.local()  # a request serves one batch at a time

    def run(given: dict[str, Any]) -> Any:  # noqa: ANN401
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        return own.request.infer({k: v for k, v in given.items() if k in names})[0]

    return run


def _digest(folder: Path) -> str:
    """Hash all files of a graph but the one that has this hash; none for what is no graph."""
    digest = hashlib.blake2b(digest_size=16)
    with cache_errors(folder):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name != MEASURED:
                digest.update(path.name.encode())
                digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
