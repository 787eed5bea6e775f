"""What a backend needs: packages, and a model that it can run."""

from __future__ import annotations

import importlib.util

import torch

from reffree.encoders.base import EncoderSpec
from reffree.encoders.options import BACKENDS
from reffree.errors import EncoderError, OptionError

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
