"""Everything a user can say about the encoder.

One text says which model and how it encodes, ``NAME:key=value,key=value``; beside it stand what is
encoded, where, and what is kept. NAME is an alias, a folder, a hub id or the address of an endpoint
(``http://host/v1#model``), any of which may hold colons: the settings begin at the first colon
before a known key and ``=``. A prompt may hold commas: one divides only before a known key.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, get_args

from reffree.encoders.address import is_endpoint, parse_address
from reffree.encoders.device import check_device
from reffree.util.declare import Option
from reffree.util.errors import OptionError, shorten

DEFAULT_ENCODER = "minilm"

Pooling = Literal["mean", "cls", "lasttoken"]
Dtype = Literal["float32", "tf32", "float16", "bfloat16", "auto"]
Attention = Literal["eager", "sdpa", "flash_attention_2"]
Quantisation = Literal["8bit", "4bit"]
Backend = Literal["torch", "compile"]
Dropped = Literal["backchannels", "repeats"]

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")

Kind = tuple[str, ...] | type[str] | type[bool] | int | None
"""Of a setting: its choices, a type, or the least whole number (None: any)."""

SETTINGS: dict[str, tuple[Kind, str]] = {
    "pooling": (
        get_args(Pooling),
        "of the tokens' vectors, over a model's bare transformer; by default the model's own, else "
        "mean",
    ),
    "layer": (None, "whose output is pooled: 0 embeddings, -1 last (default)"),
    "dtype": (
        get_args(Dtype),
        "of the computation; auto is the weights' own, and TF32 for float32 on cards that have it; "
        "by default auto on such cards, else float32",
    ),
    "attention": (
        get_args(Attention),
        "implementation; by default the best the architecture has",
    ),
    "prompt": (str, "put before every text; empty for none where a model has its own"),
    "max_length": (1, "tokens read of a text, special ones included"),
    "quantisation": (get_args(Quantisation), "of the weights, by bitsandbytes"),
    "device_map": (
        str,
        "spread the model over devices, memory and disk: auto, balanced, or JSON by module",
    ),
    "backend": (get_args(Backend), "torch, or code that torch compiles for this machine first"),
    "context": (0, "units before and after each that it is encoded with"),
    "batch_tokens": (1, "tokens per batch, padding included"),
    "trust_remote_code": (bool, "run code that comes with the model"),
    "allow_pickle": (
        bool,
        "read .bin weights where there are no safetensors (torch's restricted reader)",
    ),
}
"""What values a setting takes, and what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model makes a vector, and what it runs on (`SETTINGS`); None leaves it to the model."""

    pooling: Pooling | None = None
    layer: int | None = None
    dtype: Dtype | None = None
    attention: Attention | None = None
    prompt: str | None = None
    max_length: int | None = None
    quantisation: Quantisation | None = None
    device_map: str | None = None
    backend: Backend = "torch"
    context: int = 0
    batch_tokens: int | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False

    def __post_init__(self) -> None:
        """Refuse values that do not exist."""
        for name, (kind, _) in SETTINGS.items():
            value = getattr(self, name)
            if isinstance(kind, tuple):
                is_right, expected = value in kind, " or ".join(kind)
            elif isinstance(kind, type):
                is_right = isinstance(value, kind)
                expected = "true or false" if kind is bool else "text"
            else:
                is_right = type(value) is int and (kind is None or value >= kind)
                expected = "a whole number" if kind is None else f"a whole number, {kind} or more"
            if value is not None and not is_right:
                found, remedy = f"{name} = {shorten(value)!r}", "leave it out for its default"
                raise OptionError(found, expected=expected, remedy=remedy)
        given = self.device_map
        if given is not None and given not in DEVICE_MAPS and not _is_json_object(given):
            raise OptionError(
                f"device_map = {shorten(given)!r}",
                expected=f"{' or '.join(DEVICE_MAPS)}, or a JSON object from module to device",
                remedy="leave it out for a model that fits onto one device",
            )


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


_START = re.compile(f":(?=(?:{'|'.join(SETTINGS)})=)")
_NEXT = re.compile(f",(?=(?:{'|'.join(SETTINGS)})=)")
_MISSPELT = re.compile(r":([A-Za-z_-]+)=")


def parse_encoder(text: str | None) -> tuple[str, ModelSettings]:
    """Return the name and the settings of an encoder; the default for None.

    An address that may hold a secret is refused, and not repeated.

    >>> name, settings = parse_encoder("e5:prompt=query: , or so,layer=-2")
    >>> name, settings.prompt, settings.layer
    ('e5', 'query: , or so', -2)
    """
    if text is None:
        return DEFAULT_ENCODER, ModelSettings()
    name = _START.split(text, maxsplit=1)[0]
    if is_endpoint(name):
        parse_address(name)
    return _parse(text)


@lru_cache(maxsize=256)
def _parse(text: str) -> tuple[str, ModelSettings]:
    name, *rest = _START.split(text, maxsplit=1)
    if misspelt := _MISSPELT.search(name):
        near = difflib.get_close_matches(misspelt[1], SETTINGS, n=1)
        raise OptionError(
            f"the encoder setting {shorten(misspelt[1])!r}",
            expected=", ".join(SETTINGS),
            remedy=f"write {near[0]}=…" if near else "see reffree models --help",
        )
    values: dict[str, Any] = {}
    for part in _NEXT.split(rest[0]) if rest else ():
        key, _, value = part.partition("=")
        if key in values:
            raise OptionError(
                f"the encoder setting {key} twice", expected="it once", remedy="leave one out"
            )
        kind = SETTINGS[key][0]
        if kind is bool and value in ("true", "false"):
            values[key] = value == "true"
        elif (kind is None or type(kind) is int) and re.fullmatch(r"[+-]?\d{1,9}", value):
            values[key] = int(value)
        else:
            values[key] = value  # text, or refused
    return name, ModelSettings(**values)


class Encoding(TypedDict, total=False):
    """Keywords of every function that encodes; `EncoderOptions` has them, too."""

    encoder: Annotated[
        str | None,
        Option(
            "Alias (reffree models), folder, hub id or http://host/v1#model, with settings as in "
            "mpnet:pooling=cls,layer=-2.",
            metavar="NAME",
            default="minilm",
            names="encoders",
            check=parse_encoder,
        ),
    ]
    drop: Annotated[
        Sequence[Dropped],
        Option(
            'Leave out units such as "yeah" (backchannels), or all but the first of equal units of '
            "a document (repeats); may be repeated.",
            initial=(),
        ),
    ]
    device: Annotated[
        str,
        Option(
            "auto, cpu, mps, cuda:0,cuda:1, all, or ray:address=auto,actors=4.",
            metavar="DEVICE",
            check=check_device,
            initial="auto",
        ),
    ]
    offline: Annotated[bool, Option("Never connect to a model hub or an endpoint.", initial=False)]
    cache: Annotated[
        Path | str | Literal[False] | None,
        Option(
            "Folder of cached vectors, or off.", metavar="DIR", default="the user's cache folder"
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderOptions:
    """How texts become vectors: the options of `Encoding`, which functions have checked."""

    encoder: str | None = None
    drop: Sequence[Dropped] = ()
    device: str = "auto"
    offline: bool = False
    cache: Path | str | Literal[False] | None = None

    def __post_init__(self) -> None:
        """Refuse a device that does not exist, and an address that may hold a secret."""
        parse_encoder(self.encoder)
        check_device(self.device)
        object.__setattr__(self, "drop", tuple(k for k in get_args(Dropped) if k in self.drop))

    @property
    def model(self) -> str:
        """The encoder's name, without its settings."""
        return parse_encoder(self.encoder)[0]

    @property
    def model_settings(self) -> ModelSettings:
        """The settings behind the encoder's name."""
        return parse_encoder(self.encoder)[1]

    @property
    def context(self) -> int:
        """Units before and after each that it is encoded with."""
        return self.model_settings.context

    @property
    def dropped(self) -> str:
        """Kinds of units that are left out, as spec and signature have them."""
        return "+".join(self.drop) or "none"

    @property
    def is_cached(self) -> bool:
        """Whether vectors are kept on disk."""
        return self.cache is not False and self.cache != "off"
