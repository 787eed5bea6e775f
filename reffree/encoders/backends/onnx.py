"""A model's transformer as an ONNX graph on disk, in full precision or with int8 weights."""

from __future__ import annotations

import importlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from reffree.encoders.batching import share_threads
from reffree.encoders.tokenising import IDS, MASK, Features

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Run = Callable[[dict[str, Any]], Any]
"""From arrays by name to the array of the tokens' vectors."""

GRAPH = "model.onnx"
OUTPUT = "token_embeddings"


class Transformer(torch.nn.Module):
    """The first module of a model, from tensors to a tensor."""

    def __init__(self, model: SentenceTransformer, features: Features) -> None:
        """Take the inputs' names from the features of a batch."""
        super().__init__()
        self.module = model[0]
        self.names = input_names(features)
        self.others = {k: v for k, v in features.items() if not isinstance(v, torch.Tensor)}

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Return the tokens' vectors."""
        features = {**self.others, **dict(zip(self.names, tensors, strict=True))}
        output: torch.Tensor = self.module(features)[OUTPUT]
        return output


def input_names(features: Features) -> list[str]:
    """Name the tensors of a batch in a fixed order, ids and mask first."""
    found = [name for name, value in features.items() if isinstance(value, torch.Tensor)]
    return [IDS, MASK, *sorted(set(found) - {IDS, MASK})]


def write_graph(model: SentenceTransformer, example: Features, folder: Path) -> None:
    """Export the transformer for any number of texts of any length."""
    transformer = Transformer(model, example).eval()
    tensors = tuple(example[name] for name in transformer.names)
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quietly(), torch.no_grad():
        program = torch.export.export(
            transformer, tensors, dynamic_shapes={"tensors": tuple(free for _ in tensors)}
        )
        torch.onnx.export(
            program,
            (),
            str(folder / GRAPH),
            dynamo=True,
            external_data=True,
            verbose=False,
            input_names=transformer.names,
            output_names=[OUTPUT],
        )


def quantise_graph(folder: Path) -> None:
    """Turn the matrices into int8; activations are quantised as they come (dynamically)."""
    tools: Any = importlib.import_module("onnxruntime.quantization")
    whole, small = folder / GRAPH, folder / "int8.onnx"
    with _quietly():
        tools.quantize_dynamic(whole, small, weight_type=tools.QuantType.QInt8, per_channel=True)
    for path in folder.iterdir():
        if path != small:
            path.unlink()
    small.replace(whole)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep back the exporters' warnings and log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def load_onnx(folder: Path) -> Run:
    """Open the graph in ONNX Runtime, for batches side by side."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = share_threads().threads
    # Threads that spin between batches take the cores from the tokenizer and from torch.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.log_severity_level = 3
    with _runtime_errors():
        session = onnxruntime.InferenceSession(
            str(folder / GRAPH), settings, providers=["CPUExecutionProvider"]
        )
    names = {one.name for one in session.get_inputs()}

    def run(given: dict[str, Any]) -> Any:  # noqa: ANN401
        with _runtime_errors():
            return session.run(None, {k: v for k, v in given.items() if k in names})[0]

    return run


@contextmanager
def _runtime_errors() -> Iterator[None]:
    """ONNX Runtime's errors have nothing in common that a caller could name."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(str(error)) from error


def load_openvino(folder: Path) -> Run:
    """Open the graph in OpenVINO, in full precision: by itself it takes bfloat16 where it can.

    Read by its core, not by its converter, which reports its use over the network.
    """
    openvino: Any = importlib.import_module("openvino")
    core = openvino.Core()
    share = share_threads()
    how = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": share.workers * share.threads,
        "NUM_STREAMS": share.workers,
    }
    compiled = core.compile_model(core.read_model(str(folder / GRAPH)), "CPU", how)
    names = {name for one in compiled.inputs for name in one.get_names()}
    own = threading.local()  # a request serves one batch at a time

    def run(given: dict[str, Any]) -> Any:  # noqa: ANN401
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        return own.request.infer({k: v for k, v in given.items() if k in names})[0]

    return run
