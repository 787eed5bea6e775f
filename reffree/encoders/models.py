"""From a model's name to a folder of files on this disk, checked and described.

The folder comes from an installed package, from the user, or from the model hub (its local cache is
asked first, and nothing else when offline). What the files say (pooling, maximum length, their
hashes) is read without loading the model or the libraries that load it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from reffree.encoders.address import refuse_endpoint
from reffree.encoders.aliases import (
    ALIASES,
    PACKAGED,
    UNREAD_FILES,
    Loader,
    is_installed,
    packaged_folder,
    sha256,
)
from reffree.encoders.base import EncoderSpec
from reffree.encoders.options import ModelSettings
from reffree.util.atomic import user_path
from reffree.util.errors import EncoderError, OptionError, UnknownNameError, first_line, shorten

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm")

# These architectures number positions from the padding index on, so two of them hold no token.
POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "mpnet", "camembert", "longformer"}
POSITIONS = ("max_position_embeddings", "n_positions")
LEAST_MAX_LENGTH = 4
"""Two special tokens, and two of the text."""

ENCODERS = {
    *("albert", "bert", "big_bird", "camembert", "deberta", "deberta-v2", "distilbert", "electra"),
    *("longformer", "modernbert", "mpnet", "roberta", "xlm-roberta"),
}
DECODERS = {
    *("falcon", "gemma", "gemma2", "gpt2", "gpt_neo", "gpt_neox", "llama", "mistral", "mixtral"),
    *("olmo", "opt", "phi", "phi3", "qwen2", "qwen3", "stablelm", "starcoder2"),
}
"""Of transformers' architectures, those that read only to the left."""

SMOLLM2_POSITIONS = 8192
SMOLLM2_LAYERS = 30
DEFAULTS = ModelSettings()
NEVER_DOWNLOADED = (
    *("*.h5", "*.msgpack", "*.ot", "*.onnx", "*.gguf", "*.pt", "*.pth", "*.ckpt", "*.pkl"),
    *("onnx/*", "openvino/*"),
)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files, what loads them, and what they say about its vectors."""

    path: Path
    spec: EncoderSpec
    loader: Loader
    stored: str = "float32"  # type of the weights in their files
    architecture: str = ""  # as transformers names it
    packaged: str = ""  # alias, where the weights' hash is known


def find_model(
    name: str,
    *,
    offline: bool = False,
    settings: ModelSettings = DEFAULTS,
    check_weights: bool = True,
) -> ModelFolder:
    """Resolve an alias, a folder or a hub id; says where it looked when there is nothing.

    Without ``check_weights`` the hash of packaged weights is left to who loads them.
    """
    refuse_endpoint(name, "what needs a model's own files")
    if known := PACKAGED.get(name):
        path = packaged_folder(name, check_weights=check_weights)
        if known.is_whole_folder:
            found = describe(path, ALIASES[name].model, known.revision, settings)
        else:
            found = _describe_files(path, name, settings)
        return replace(found, packaged=name)
    folder, alias = user_path(name), ALIASES.get(name)
    if name.strip() and alias is None and os.path.isdir(folder):  # noqa: PTH112  (also for names too long)
        return describe(folder, folder.resolve().name, None, settings)
    if not name.strip() or folder.is_absolute() or name.startswith((".", "~")):
        raise EncoderError(
            f"encoder {name!r}: found no folder of that name; expected a model folder, a hub id or "
            f"one of {', '.join(ALIASES)}; check the path"
        )
    path = hub_folder(name, offline=offline, settings=settings)
    if alias is None:
        return describe(path, name, path.name, settings)
    if settings.prompt is None and alias.prompt is not None:
        settings = replace(settings, prompt=alias.prompt)
    return describe(path, alias.model, path.name, settings, alias.dtype)


def describe(
    folder: Path, name: str, revision: str | None, settings: ModelSettings, dtype: str = "float32"
) -> ModelFolder:
    """Read loader, pooling, normalisation and maximum length from the model's files.

    Without a revision the hash of the files stands for it.
    """
    check_folder(folder, settings)
    modules = read_json(folder / "modules.json", list)
    first = folder / modules[0]["path"] if modules else folder
    config = read_json(first / "config.json")
    is_plain = not modules or settings.pooling is not None or settings.layer is not None
    loader: Loader = "sentence-transformers"
    if is_plain:
        loader = "decoder" if is_decoder(config) else "encoder"
    has_safetensors = any(first.glob("*.safetensors"))
    prompt = settings.prompt
    if prompt is None:
        saved = read_json(folder / "config_sentence_transformers.json")
        prompts, chosen = saved.get("prompts"), saved.get("default_prompt_name")
        is_set = isinstance(prompts, dict) and chosen is not None
        own = prompts.get(chosen) if is_set else None
        prompt = own if isinstance(own, str) else ""
    spec = _spec_of(
        settings,
        loader,
        config,
        name=name,
        revision=hash_folder(folder) if revision is None else revision,
        dtype=dtype,
        max_length=read_max_length(first, config, settings.max_length),
        prompt=prompt,
        weights="safetensors" if has_safetensors or not settings.allow_pickle else "bin",
        code="trusted" if settings.trust_remote_code else "none",
    )
    if not is_plain:
        pooling, normalisation = _own_head(folder, modules)
        spec = replace(spec, pooling=pooling, normalisation=normalisation)
    stored, kind = resolve_dtype("auto", config), str(config.get("model_type", ""))
    return ModelFolder(first if is_plain else folder, spec, loader, stored, kind)


def _spec_of(
    settings: ModelSettings,
    loader: Loader,
    config: dict[str, Any],
    *,
    dtype: str,
    **known: Any,  # noqa: ANN401  (fields of a spec)
) -> EncoderSpec:
    """Say what fixes the vectors of a pooled layer; ``dtype`` is the model's, if none is asked."""
    if settings.pooling == "cls" and loader == "decoder":
        raise OptionError(
            "pooling = cls for a decoder, whose first token sees no other",
            expected="mean or lasttoken",
            remedy="leave it out for the mean",
        )
    run_by = f"transformers-{loader}" if loader in ("encoder", "decoder") else loader
    return EncoderSpec(
        pooling=settings.pooling or "mean",
        normalisation="none",
        dtype=resolve_dtype(settings.dtype or dtype, config),
        backend=run_by + "+compile" * (settings.backend == "compile"),
        layer=resolve_layer(settings.layer, config),
        attention=settings.attention or "auto",
        quantisation=settings.quantisation or "none",
        **known,
    )


def _own_head(folder: Path, modules: list[dict[str, str]]) -> tuple[str, str]:
    """Return pooling and normalisation of a sentence-transformers model."""
    pooling, prefix = "mean", "pooling_mode_"
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    for module, kind in zip(modules, kinds, strict=True):
        if kind == "Pooling":
            config = read_json(folder / module["path"] / "config.json")
            names = config.get("pooling_mode")
            if names is None:  # as older versions write it
                on = [name for name, is_on in config.items() if is_on and name.startswith(prefix)]
                chosen = [name.removeprefix(prefix) for name in on]
                names = [name.replace("_tokens", "").replace("_token", "") for name in chosen]
            pooling = ("+".join(names) if isinstance(names, list) else str(names)) or "mean"
        elif kind not in ("Transformer", "Normalize"):
            pooling += f"+{kind.lower()}"
    return pooling, "l2" if "Normalize" in kinds else "none"


def _describe_files(folder: Path, alias: str, settings: ModelSettings) -> ModelFolder:
    """Describe the packaged models that are single files: static vectors, and a GGUF."""
    known, is_static = ALIASES[alias], ALIASES[alias].loader == "static"
    shape = ("pooling", "layer", "dtype", "attention", "max_length")
    for option in (*(shape if is_static else ()), "quantisation"):  # a GGUF is quantised as it is
        if getattr(settings, option) is not None:
            raise OptionError(
                f"{option} = {getattr(settings, option)} for {alias}",
                expected=f"none: it has no meaning for its {PACKAGED[alias].weights}",
                remedy="leave it out, or choose another encoder",
            )
    max_length = None if is_static else settings.max_length or SMOLLM2_POSITIONS
    if max_length is not None:
        check_max_length(max_length, SMOLLM2_POSITIONS)
    spec = _spec_of(
        settings,
        known.loader,
        {"num_hidden_layers": SMOLLM2_LAYERS},
        name=known.model,
        revision=PACKAGED[alias].revision,
        dtype=known.dtype,
        max_length=max_length,
        prompt=settings.prompt or "",
        weights=Path(PACKAGED[alias].weights).suffix.removeprefix("."),
    )
    return ModelFolder(folder, spec, known.loader)


def hub_folder(name: str, *, offline: bool, settings: ModelSettings) -> Path:
    """Take a model from the hub's local cache, or download it unless offline."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    alias = ALIASES.get(name)
    model, revision = (alias.model, alias.revision) if alias else (name, None)
    unread = [*NEVER_DOWNLOADED, *([] if settings.allow_pickle else ["*.bin"])]
    unread += [] if settings.trust_remote_code else ["*.py"]
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
        said = " (offline)" if offline else ", and the model hub does not answer"
        remedy = "check the network, or give the path of a downloaded folder"
        if offline:
            how = f"hf download {model}{at}"
            remedy = f"download it on a machine with network access ({how}), or give a folder"
        ready = ", ".join(alias for alias in PACKAGED if is_installed(alias))
        near = [] if alias else difflib.get_close_matches(name, ALIASES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise EncoderError(
            f"encoder {name!r}: found neither a folder of that name nor {model!r} in "
            f"{constants.HF_HUB_CACHE}{said}; expected a downloaded model; {remedy}. Names that "
            f"need no download: {ready}.{hint}"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        raise EncoderError(
            f"encoder {name!r}: the model hub refused {model!r} ({first_line(error)}); expected a "
            f"public model id or a folder; check the spelling, or use one of {', '.join(ALIASES)}"
        ) from None
    return Path(path)


def catalogue() -> list[dict[str, Any]]:
    """Describe every alias in plain values, as ``reffree models`` lists them; reads the disk only.

    ``offline`` is whether it is on this disk, ``get`` how to get it where it is not. ``tried`` is
    what tests run everywhere, ``prove`` runs the same on its own weights. ``speed`` is what
    ``benchmarks/encoding.py`` measured: ``{"units_per_second": number, "on": text}``, or None.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    measured = (files("reffree") / "resources" / "encoder_speeds.json").read_text(encoding="utf-8")
    speeds, listed = json.loads(measured), []
    for alias, known in ALIASES.items():
        fields = asdict(known)
        del fields["prompt"], fields["tried"]
        fields["bytes"] = fields.pop("size")
        fields["languages"] = sorted({c for codes in known.languages.values() for c in codes})
        if package := PACKAGED.get(alias):
            fields |= {"revision": package.revision, "get": package.install}
            fields |= {"offline": is_installed(alias), "tried": "own weights"}
            fields["prove"] = "python -m pytest tests/encoders/test_models.py"
        else:
            fields["get"] = f"hf download {known.model} --revision {known.revision}"
            fields |= {"offline": False, "tried": f"a tiny {known.tried}"}
            with suppress(LocalEntryNotFoundError):
                path = snapshot_download(
                    known.model, revision=known.revision, local_files_only=True
                )
                fields["offline"] = any(Path(path).rglob("*.safetensors"))
            own = f"'tests/encoders/test_aliases.py::test_its_own_weights[{alias}]'"
            fields["prove"] = f"python -m pytest -m network {own}"
        listed.append({"alias": alias, **fields, "speed": speeds.get(alias)})
    return listed


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
            "format, or set allow_pickle=true for .bin weights that you trust"
        )
    for name in () if settings.trust_remote_code else ("config.json", "tokenizer_config.json"):
        config = read_json(folder / name)
        if "auto_map" not in config:
            continue
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

        kind = config.get("model_type", read_json(folder / "config.json").get("model_type"))
        if kind not in CONFIG_MAPPING_NAMES:
            raise EncoderError(
                f"{folder / name}: found auto_map, which runs code from the model folder, for the "
                f"architecture {kind!r}; expected one that transformers knows; use another model, "
                "or set trust_remote_code=true if you have read that code"
            )
    for path in sorted(folder.rglob("*.bin")):
        if not settings.allow_pickle and not any(path.parent.glob("*.safetensors")):
            raise EncoderError(
                f"{path}: found weights that may hold code; expected .safetensors; save the model "
                "again in that format, or set allow_pickle=true if you trust them"
            )
    if not any(found for pattern in TOKENIZER_FILES for found in folder.rglob(pattern)):
        raise EncoderError(
            f"{folder}: found no tokenizer; expected tokenizer.json or a vocabulary beside the "
            "weights; save the tokenizer into the same folder"
        )


def is_decoder(config: dict[str, Any]) -> bool:
    """Whether an architecture predicts the next token only: no masked-language-model form of it.

    transformers, which knows, is asked only for architectures that are not listed here.
    """
    kind = config.get("model_type")
    if kind in DECODERS or kind in ENCODERS:
        return kind in DECODERS
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    is_causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return is_causal and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def read_max_length(folder: Path, config: dict[str, Any], asked: int | None) -> int:
    """Tokens the model reads of a text, special tokens included."""
    stated = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    limits = [read_json(folder / "tokenizer_config.json").get("model_max_length")]
    limits.append(next((config[name] for name in POSITIONS if name in config), None))
    if config.get("model_type") in POSITIONS_AFTER_PADDING and isinstance(limits[1], int):
        limits[1] -= 2
    # Tokenizers without a limit state one of 1e30.
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    if asked is not None:
        check_max_length(asked, limits[1] if limits[1] in known else None)
        return asked
    return stated if type(stated) is int and stated > 0 else min(known, default=512)


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
    return f"sha256:{digest.hexdigest()[:16]}"


def read_json(path: Path, kind: type = dict) -> Any:  # noqa: ANN401  (JSON is any)
    """Read a JSON object, or a list of modules; of a file that is not there an empty one."""
    if not path.is_file():
        return kind()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        is_right = isinstance(value, kind)
        if kind is list and is_right:
            is_right = all(
                isinstance(m, dict) and {str} == {type(m.get("type")), type(m.get("path"))}
                for m in value
            )
        found = "" if is_right else f"no {'list of modules' if kind is list else 'JSON object'}"
    except (ValueError, RecursionError, OSError) as error:
        found = f"broken JSON ({shorten(str(error), 120)})"
    if found:
        raise EncoderError(
            f"{path}: found {found}; expected a model's configuration; download or save the model "
            "again"
        )
    return value
