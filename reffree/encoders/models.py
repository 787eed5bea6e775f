"""From a model's name to a folder of files on this disk, checked and described.

The folder comes from an installed package, from the user, or from the model hub (its local cache is
asked first, and nothing else when offline). What the files say (pooling, maximum length, their
hashes) is read without loading the model, so that a run whose vectors are all cached loads none.
"""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, replace
from importlib.resources import files
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from reffree.encoders.address import refuse_endpoint
from reffree.encoders.aliases import (
    ALIASES,
    DEFAULT_ENCODER,
    PACKAGED,
    Loader,
    is_installed,
    packaged_folder,
)
from reffree.encoders.base import EncoderSpec
from reffree.encoders.model_files import (
    check_folder,
    check_max_length,
    hash_folder,
    is_decoder,
    own_pooling,
    own_prompt,
    read_max_length,
    read_modules,
    read_object,
    resolve_dtype,
    resolve_layer,
)
from reffree.encoders.options import ModelSettings
from reffree.util.atomic import user_path
from reffree.util.errors import EncoderError, OptionError, UnknownNameError, first_line

__all__ = ["DEFAULT_ENCODER", "ModelFolder", "catalogue", "describe", "find_model"]

RUN_BY: dict[Loader, str] = {
    "sentence-transformers": "sentence-transformers",
    "encoder": "transformers-encoder",
    "decoder": "transformers-decoder",
    "static": "static",
}
SMOLLM2_POSITIONS = 8192
SMOLLM2_LAYERS = 30
MEANINGLESS: dict[Loader, tuple[str, ...]] = {
    "static": ("pooling", "layer", "dtype", "attention", "max_length", "quantisation"),
    "decoder": ("quantisation",),  # of weights that are stored quantised
}
DEFAULTS = ModelSettings()
NEVER_DOWNLOADED = (
    *("*.h5", "*.msgpack", "*.ot", "*.onnx", "*.gguf", "*.pt", "*.pth", "*.ckpt", "*.pkl"),
    *("onnx/*", "openvino/*"),
)
PICKLES = ("*.bin",)
CODE = ("*.py",)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files, what loads them, and what they say about its vectors."""

    path: Path
    spec: EncoderSpec
    loader: Loader
    stored: str = "float32"  # type of the weights in their files
    architecture: str = ""  # as transformers names it


def find_model(
    name: str, *, offline: bool = False, settings: ModelSettings = DEFAULTS
) -> ModelFolder:
    """Resolve an alias, a folder or a hub id; says where it looked when there is nothing."""
    refuse_endpoint(name, "what needs a model's own files")
    if name in PACKAGED:
        path = packaged_folder(name)
        model, revision = ALIASES[name].model, PACKAGED[name].revision
        if PACKAGED[name].is_whole_folder:
            return describe(path, model, revision, settings)
        return _describe_files(path, name, settings)
    folder = user_path(name)
    if name.strip() and name not in ALIASES and os.path.isdir(folder):  # noqa: PTH112  (also for names too long)
        check_folder(folder, settings)
        return describe(folder, folder.resolve().name, hash_folder(folder), settings)
    if not name.strip() or folder.is_absolute() or name.startswith((".", "~")):
        raise EncoderError(
            f"encoder {name!r}: found no folder of that name; expected a model folder, a hub id or "
            f"one of {', '.join(ALIASES)}; check the path"
        )
    path = hub_folder(name, offline=offline, settings=settings)
    alias = ALIASES.get(name)
    if alias is None:
        return describe(path, name, path.name, settings)
    if settings.prompt is None and alias.prompt is not None:
        settings = replace(settings, prompt=alias.prompt)
    return describe(path, alias.model, path.name, settings, alias.dtype)


def describe(
    folder: Path,
    name: str,
    revision: str,
    settings: ModelSettings = DEFAULTS,
    dtype: str = "float32",
) -> ModelFolder:
    """Read loader, pooling, normalisation and maximum length from the model's files."""
    check_folder(folder, settings)
    modules = read_modules(folder)
    first = folder / modules[0]["path"] if modules else folder
    config = read_object(first / "config.json")
    is_plain = not modules or settings.pooling is not None or settings.layer is not None
    pooling: str
    if is_plain:
        loader: Loader = "decoder" if is_decoder(config) else "encoder"
        pooling, normalisation = settings.pooling or "mean", "none"
        _check_pooling(pooling, loader)
    else:
        loader = "sentence-transformers"
        pooling, normalisation = _own_head(folder, modules)
    has_safetensors = any(first.glob("*.safetensors"))
    spec = EncoderSpec(
        name=name,
        revision=revision,
        pooling=pooling,
        normalisation=normalisation,
        dtype=resolve_dtype(settings.dtype or dtype, config),
        max_length=read_max_length(first, settings.max_length),
        backend=RUN_BY[loader],
        layer=resolve_layer(settings.layer, config),
        attention=settings.attention or "auto",
        prompt=own_prompt(folder) if settings.prompt is None else settings.prompt,
        quantisation=settings.quantisation or "none",
        weights="safetensors" if has_safetensors or not settings.allow_pickle else "bin",
        code="trusted" if settings.trust_remote_code else "none",
    )
    stored, kind = resolve_dtype("auto", config), str(config.get("model_type", ""))
    return ModelFolder(first if is_plain else folder, spec, loader, stored, kind)


def _own_head(folder: Path, modules: list[dict[str, str]]) -> tuple[str, str]:
    """Return pooling and normalisation of a sentence-transformers model."""
    pooling = "mean"
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    for module, kind in zip(modules, kinds, strict=True):
        if kind == "Pooling":
            pooling = own_pooling(read_object(folder / module["path"] / "config.json"))
        elif kind not in ("Transformer", "Normalize"):
            pooling += f"+{kind.lower()}"
    return pooling, "l2" if "Normalize" in kinds else "none"


def _describe_files(folder: Path, alias: str, settings: ModelSettings) -> ModelFolder:
    """Describe the packaged models that are single files: static vectors, and a GGUF."""
    known = ALIASES[alias]
    for option in MEANINGLESS[known.loader]:
        if getattr(settings, option) is not None:
            raise OptionError(
                f"{option} = {getattr(settings, option)} for {alias}",
                expected=f"none: it has no meaning for its {PACKAGED[alias].weights}",
                remedy="leave it out, or choose another encoder",
            )
    max_length = None if known.loader == "static" else settings.max_length or SMOLLM2_POSITIONS
    if max_length is not None:
        check_max_length(max_length, SMOLLM2_POSITIONS)
    pooling = settings.pooling or "mean"
    _check_pooling(pooling, known.loader)
    spec = EncoderSpec(
        name=known.model,
        revision=PACKAGED[alias].revision,
        pooling=pooling,
        normalisation="none",
        dtype=resolve_dtype(settings.dtype or known.dtype, {}),
        max_length=max_length,
        backend=RUN_BY[known.loader],
        layer=resolve_layer(settings.layer, {"num_hidden_layers": SMOLLM2_LAYERS}),
        attention=settings.attention or "auto",
        prompt=settings.prompt or "",
        quantisation=settings.quantisation or "none",
        weights=Path(PACKAGED[alias].weights).suffix.removeprefix("."),
    )
    return ModelFolder(folder, spec, known.loader)


def _check_pooling(pooling: str, loader: Loader) -> None:
    if pooling == "cls" and loader == "decoder":
        raise OptionError(
            "pooling = cls for a decoder, whose first token sees no other",
            expected="mean or lasttoken",
            remedy="leave it out for the mean",
        )


def hub_folder(name: str, *, offline: bool, settings: ModelSettings) -> Path:
    """Take a model from the hub's local cache, or download it unless offline."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    model, revision = _on_the_hub(name)
    unread = [
        *NEVER_DOWNLOADED,
        *(() if settings.allow_pickle else PICKLES),
        *(() if settings.trust_remote_code else CODE),
    ]
    # Its retries are told of in the sentence that follows if they are in vain.
    getLogger("huggingface_hub").setLevel(ERROR)
    try:
        path = snapshot_download(
            model, revision=revision, local_files_only=offline, ignore_patterns=unread
        )
    except HFValidationError:
        raise UnknownNameError("encoder", name, ALIASES) from None
    except LocalEntryNotFoundError:
        at = "" if revision is None else f" --revision {revision}"
        remedy = (
            f"download it on a machine with network access (hf download {model}{at}), or give a "
            "folder"
            if offline
            else "check the network, or give the path of a downloaded folder"
        )
        ready = ", ".join(alias for alias in PACKAGED if is_installed(alias))
        near = difflib.get_close_matches(name, ALIASES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near and name not in ALIASES else ""
        raise EncoderError(
            f"encoder {name!r}: found neither a folder of that name nor {model!r} in "
            f"{constants.HF_HUB_CACHE}"
            f"{' (offline)' if offline else ', and the model hub does not answer'}; "
            f"expected a downloaded model; {remedy}. Names that need no download: {ready}.{hint}"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        raise EncoderError(
            f"encoder {name!r}: the model hub refused {model!r} ({first_line(error)}); expected a "
            f"public model id or a folder; check the spelling, or use one of {', '.join(ALIASES)}"
        ) from None
    return Path(path)


def is_downloaded(name: str) -> bool:
    """Whether a hub model's weights are on this disk; connects to nothing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    model, revision = _on_the_hub(name)
    try:
        path = Path(snapshot_download(model, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return False
    return any(path.rglob("*.safetensors"))


def _on_the_hub(name: str) -> tuple[str, str | None]:
    alias = ALIASES.get(name)
    return (name, None) if alias is None else (alias.model, alias.revision)


def catalogue() -> list[dict[str, Any]]:
    """Describe every alias in plain values, as ``reffree models`` lists them; reads the disk only.

    ``offline`` is whether it is on this disk, ``get`` how to get it where it is not. ``speed`` is
    what ``benchmarks/encoding.py`` measured: ``{"units_per_second": number, "on": text}``, or None.
    """
    measured = (files("reffree") / "resources" / "encoder_speeds.json").read_text(encoding="utf-8")
    speeds = json.loads(measured)
    listed = []
    for alias, known in ALIASES.items():
        if package := PACKAGED.get(alias):
            revision, is_here, get = package.revision, is_installed(alias), package.install
        else:
            revision, is_here = known.revision or "", is_downloaded(alias)
            get = f"hf download {known.model} --revision {known.revision}"
        listed.append(
            {
                "alias": alias,
                "model": known.model,
                "revision": revision,
                "loader": known.loader,
                "dimension": known.dimension,
                "parameters": known.parameters,
                "bytes": known.size,
                "dtype": known.dtype,
                "licence": known.licence,
                "languages": sorted({code for codes in known.languages.values() for code in codes}),
                "offline": is_here,
                "get": get,
                "speed": speeds.get(alias),
            }
        )
    return listed
