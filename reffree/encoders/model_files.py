"""What a model's configuration files say, read without the libraries that load it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from reffree.encoders.aliases import UNREAD_FILES, sha256, short_hash
from reffree.encoders.options import ModelSettings
from reffree.util.errors import EncoderError, OptionError, shorten

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm")

# These architectures number positions from the padding index on, so two of them hold no token.
POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "mpnet", "camembert", "longformer"}
POSITIONS = ("max_position_embeddings", "n_positions")
FALLBACK_MAX_LENGTH = 512
LEAST_MAX_LENGTH = 4
"""Two special tokens, and two of the text."""


def check_folder(folder: Path, settings: ModelSettings) -> None:
    """Refuse a folder without weights or tokenizer, with pickles for weights, or with code.

    A folder that describes no model is not looked through: it may be the root of a disk.
    """
    allowed = ["*.safetensors", *(["*.bin"] if settings.allow_pickle else [])]
    described = ("config.json", "modules.json", "tokenizer.json")
    is_model = any((folder / name).is_file() for name in described)
    if not is_model or not any(found for name in allowed for found in folder.rglob(name)):
        raise EncoderError(
            f"{folder}: found no .safetensors weights with their config.json; expected a model "
            "folder as save_pretrained writes it; check the path, save the model again in that "
            "format, or pass --allow-pickle for .bin weights that you trust"
        )
    for name in () if settings.trust_remote_code else ("config.json", "tokenizer_config.json"):
        _check_code(folder / name)
    for path in sorted(folder.rglob("*.bin")):
        if not settings.allow_pickle and not any(path.parent.glob("*.safetensors")):
            raise EncoderError(
                f"{path}: found weights that may hold code; expected .safetensors; save the model "
                "again in that format, or pass --allow-pickle if you trust them"
            )
    if not any(found for pattern in TOKENIZER_FILES for found in folder.rglob(pattern)):
        raise EncoderError(
            f"{folder}: found no tokenizer; expected tokenizer.json or a vocabulary beside the "
            "weights; save the tokenizer into the same folder"
        )


def _check_code(path: Path) -> None:
    """Refuse code of the folder's own, unless transformers has the architecture itself."""
    config = read_object(path)
    if "auto_map" not in config:
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kind = read_object(path.parent / "config.json").get("model_type")
    kind = config.get("model_type", kind)
    if kind not in CONFIG_MAPPING_NAMES:
        raise EncoderError(
            f"{path}: found auto_map, which runs code from the model folder, for the architecture "
            f"{kind!r}; expected one that transformers knows; use another model, or pass "
            "--trust-remote-code if you have read that code"
        )


def is_decoder(config: dict[str, Any]) -> bool:
    """Whether an architecture predicts the next token only: no masked-language-model form of it."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = config.get("model_type")
    is_causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return is_causal and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def read_max_length(folder: Path, asked: int | None) -> int:
    """Tokens the model reads of a text, special tokens included."""
    config = read_object(folder / "config.json")
    tokenizer = read_object(folder / "tokenizer_config.json")
    positions = next((config[name] for name in POSITIONS if name in config), None)
    limits = [tokenizer.get("model_max_length"), positions]
    if config.get("model_type") in POSITIONS_AFTER_PADDING and isinstance(limits[1], int):
        limits[1] -= 2
    # Tokenizers without a limit state one of 1e30.
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    if asked is not None:
        check_max_length(asked, limits[1] if limits[1] in known else None)
        return asked
    stated = read_object(folder / "sentence_bert_config.json").get("max_seq_length")
    if isinstance(stated, int) and stated > 0:
        return stated
    return min(known, default=FALLBACK_MAX_LENGTH)


def check_max_length(asked: int, positions: int | None) -> None:
    """Refuse to read more tokens than the model has positions for, or next to none."""
    if asked < LEAST_MAX_LENGTH or (positions is not None and asked > positions):
        most = "" if positions is None else f" and at most {positions}, the model's positions"
        raise OptionError(
            f"max_length = {asked}",
            expected=f"at least {LEAST_MAX_LENGTH} tokens{most}",
            remedy="leave it out for the model's own",
        )


def resolve_layer(asked: int | None, config: dict[str, Any]) -> int | None:
    """Count layers from the first, so that one layer has one name; None is the last."""
    names = ("num_hidden_layers", "n_layer", "num_layers")
    n_layers = next((config[name] for name in names if isinstance(config.get(name), int)), None)
    if asked is None or n_layers is None:
        return asked
    layer = asked + n_layers + 1 if asked < 0 else asked
    if not 0 <= layer <= n_layers:
        raise OptionError(
            f"layer = {asked}",
            expected=f"0 (the embeddings) to {n_layers}, or -1 (the last) to {-n_layers - 1}",
            remedy="leave it out for the last",
        )
    return None if layer == n_layers else layer


def resolve_dtype(asked: str, config: dict[str, Any]) -> str:
    """Return the type of the computation; ``auto`` is the weights' own."""
    if asked != "auto":
        return asked
    stored = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    return stored.removeprefix("torch.")


def own_prompt(folder: Path) -> str:
    """Return what a sentence-transformers model puts before every text."""
    config = read_object(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts")
    chosen = config.get("default_prompt_name")
    text = prompts.get(chosen) if isinstance(prompts, dict) and chosen is not None else None
    return text if isinstance(text, str) else ""


def own_pooling(config: dict[str, Any]) -> str:
    """Name the pooling of a sentence-transformers model."""
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        return "+".join(mode) if isinstance(mode, list) else str(mode)
    prefix = "pooling_mode_"
    names = [k.removeprefix(prefix) for k, on in config.items() if k.startswith(prefix) and on]
    return "+".join(name.replace("_tokens", "").replace("_token", "") for name in names) or "mean"


def hash_folder(folder: Path) -> str:
    """Hash every file of a model by name and content, but for what describes it to people."""
    digest = hashlib.sha256()
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in UNREAD_FILES)
    try:
        for path in sorted(files):
            digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256(path)}\n".encode())
    except OSError as error:
        raise EncoderError(
            f"{folder}: found a file that cannot be read ({error.strerror}); expected a model "
            "folder as save_pretrained writes it; change its permissions"
        ) from None
    return short_hash(digest.hexdigest())


def read_modules(folder: Path) -> list[dict[str, str]]:
    """List the modules of a sentence-transformers model; none for others."""
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


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; a file that is not there is an empty one."""
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
    except (ValueError, RecursionError, OSError) as error:
        raise EncoderError(
            f"{path}: found broken JSON ({shorten(str(error), 120)}); expected a model's "
            "configuration; download or save the model again"
        ) from None
