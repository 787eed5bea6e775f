"""Everything a user can say about the encoder, named once for functions, commands and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, get_args

from reffree.encoders.address import is_endpoint, parse_address
from reffree.util.bounds import Count, Positive
from reffree.util.errors import OptionError

Pooling = Literal["mean", "cls", "lasttoken"]
Dtype = Literal["float32", "tf32", "float16", "bfloat16", "auto"]
Attention = Literal["eager", "sdpa", "flash_attention_2"]
Quantisation = Literal["8bit", "4bit"]
Backend = Literal["torch", "auto", "compile", "onnx", "openvino", "onnx-int8"]

CHOICES: dict[str, tuple[str, ...]] = {
    "pooling": get_args(Pooling),
    "dtype": get_args(Dtype),
    "attention": get_args(Attention),
    "quantisation": get_args(Quantisation),
}
BACKENDS: tuple[str, ...] = get_args(Backend)
APPROXIMATE = ("onnx-int8",)
"""Backends whose numbers are not torch's."""


class Encoding(TypedDict, total=False):
    """Keywords of every function that encodes; `EncoderOptions` has their meaning and defaults."""

    pooling: Pooling | None
    layer: int | None
    dtype: Dtype | None
    attention: Attention | None
    prompt: str | None
    max_length: int | None
    quantisation: Quantisation | None
    trust_remote_code: bool
    allow_pickle: bool
    encoder: str | None
    context: Count
    drop_backchannels: bool
    drop_repeats: bool
    device: str
    device_map: str | Mapping[str, str | int] | None
    backend: Backend
    batch_tokens: Positive | None
    offline: bool
    cache: bool
    cache_dir: Path | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What may be said of how a model makes a vector; None leaves it to the model.

    Attributes:
        pooling: of the tokens' vectors: their ``mean``, the first's (``cls``) or the last's. Given,
            a sentence-transformers model is read as the plain transformer it is made from.
        layer: whose output is pooled, 0 for the embeddings, negative from the last (-1). Likewise.
        dtype: of the computation; ``auto`` is what the weights are stored in, and for float32 TF32
            on CUDA cards that have it. By default float32 on a CPU, and ``auto`` on such cards.
        attention: implementation; by default the best that the architecture has (MPNet: eager):
            SDPA, or flash attention in half precision on a card where flash-attn is installed.
        prompt: put before every text; ``""`` for none where a model brings one.
        max_length: tokens read of a text, special ones included.
        quantisation: of the weights, by bitsandbytes.
        trust_remote_code: run code that comes with the model.
        allow_pickle: read ``.bin`` weights where there are no safetensors (by torch's restricted
            unpickler).
    """

    pooling: Pooling | None = None
    layer: int | None = None
    dtype: Dtype | None = None
    attention: Attention | None = None
    prompt: str | None = None
    max_length: int | None = None
    quantisation: Quantisation | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False

    def __post_init__(self) -> None:
        """Refuse values that do not exist."""
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                raise OptionError(
                    f"{name} = {value!r}", expected=" or ".join(known), remedy="choose one of these"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderOptions(ModelSettings):
    """How texts become vectors: which model, and what to do with it.

    Attributes:
        encoder: alias, folder or hub id of a model, or ``http://host:port/v1#model``, behind an
            OpenAI-compatible endpoint, whose key is in the environment; the packaged MiniLM by
            default.
        context: units before and after each that are encoded with it, as one text.
        drop_backchannels: leave out units such as "yeah" or "mm-hmm", as if they had no text.
        drop_repeats: leave out every unit whose text stood before in its document.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``; several, as ``cuda:0,cuda:1``, or
            ``all`` cards encode side by side, and what is not encoding is done by the first.
        device_map: spread the model over devices, memory and disk: ``auto``, or module → device.
        backend: what runs the transformer: ``torch``; ``compile`` (torch.compile); ``onnx`` or
            ``openvino``, refused where they are more than 1e-5 from torch; ``auto``, the fastest of
            torch and these two, timed once; ``onnx-int8``, whose signature says how far off it is.
        batch_tokens: tokens per encoder batch; chosen by device if not given.
        offline: never connect to a model hub or an endpoint.
        cache: keep vectors on disk.
        cache_dir: where, if not in the user's cache folder.
    """

    encoder: str | None = None
    context: int = 0
    drop_backchannels: bool = False
    drop_repeats: bool = False
    device: str = "auto"
    device_map: str | Mapping[str, str | int] | None = None
    backend: Backend = "torch"
    batch_tokens: int | None = None
    offline: bool = False
    cache: bool = True
    cache_dir: Path | str | None = None

    def __post_init__(self) -> None:
        """Refuse values that do not exist, and an address that may hold a secret."""
        ModelSettings.__post_init__(self)
        if is_endpoint(self.encoder):
            parse_address(str(self.encoder))

    @property
    def dropped(self) -> str:
        """Kinds of units that are left out, as spec and signature have them."""
        kinds = {"backchannels": self.drop_backchannels, "repeats": self.drop_repeats}
        return "+".join(kind for kind, is_dropped in kinds.items() if is_dropped) or "none"
