"""Models with short names: what each is, and for some the installed package that has its files.

``mpnet``, ``roberta`` and ``falcon-7b`` are the encoders of the ARP paper (Ghinassi et al. 2024,
§5.2: each the mean of the last layer), at the revisions their hub pages had when this was written.
The paper says nothing of maximum length or precision: the models' own are taken, and Falcon's
weights are computed in the type they are stored in, since 7 billion of them in float32 fill 29 GB.
``distilbert`` is what Coen, "When F1 Fails", fine-tunes (§5.2; uncased in its code), ``bert`` what
the coherence model of Xing and Carenini (2021) starts from, with its next-sentence head.
The multilingual ones, likewise at a revision each, have safetensors, which not all such models do;
E5's card asks for "query: " before texts that are compared with one another.
Files of packages are trusted by their hashes (the weights' of ``minilm`` is the official
release's); the packages are never imported.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Literal

from reffree.util.errors import EncoderError

Loader = Literal["sentence-transformers", "encoder", "decoder", "static"]

UNREAD_FILES = {"README.md", ".gitattributes", "data_config.json"}
"""Files of a model folder that describe it to people or record its training."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A model under a short name."""

    model: str  # hub id; of wordllama, which is on none, package and file
    loader: Loader
    dimension: int
    parameters: int
    size: int  # bytes of the weights as they are stored
    licence: str
    revision: str | None = None  # commit on the hub; None where an installed package has the files
    dtype: str = "float32"
    prompt: str | None = None  # that the model was trained with, where its files do not have it
    languages: Mapping[str, Sequence[str]] = field(default_factory=dict)  # codes by script


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """Where a package keeps a model, and what its files must be."""

    package: str
    version: str
    install: str  # what to type
    files: Mapping[str, str]  # path within the model's folder → sha256; the weights first
    is_whole_folder: bool = False  # the libraries read the folder, so nothing may be added to it
    needs: Sequence[str] = ()  # further packages that read the files

    @property
    def weights(self) -> str:
        """Path of the weights within the folder."""
        return next(iter(self.files))

    @property
    def revision(self) -> str:
        """What the weights are known by."""
        return short_hash(self.files[self.weights])


_KNOWN = json.loads((files("reffree") / "resources" / "models.json").read_text(encoding="utf-8"))
PACKAGED = {
    alias: PackagedModel(**fields["packaged"])
    for alias, fields in _KNOWN.items()
    if "packaged" in fields
}
ALIASES = {
    alias: Alias(**{name: value for name, value in fields.items() if name != "packaged"})
    for alias, fields in _KNOWN.items()
}


def packaged_folder(alias: str, *, check_weights: bool = True) -> Path:
    """Find a model's files among the installed packages, and check them by their hashes.

    Without ``check_weights`` all but the weights, which take a moment to read: for who only wants
    to know what the model is.
    """
    model = PACKAGED[alias]
    folder = _installed(model)
    absent = [model.package] if folder is None else [n for n in model.needs if not _has(n)]
    if folder is None or absent:
        expected = " and ".join([f"{model.package} {model.version}", *model.needs])
        raise EncoderError(
            f"encoder {alias!r}: found no installed package {absent[0]}; expected {expected}; run "
            f"{model.install}"
        )
    check_files(model, folder, check_weights=check_weights)
    return folder


def is_installed(alias: str) -> bool:
    """Whether a packaged model's files are on this disk; they are not checked."""
    model = PACKAGED[alias]
    return _installed(model) is not None and all(map(_has, model.needs))


def check_files(model: PackagedModel, folder: Path, *, check_weights: bool = True) -> None:
    """Refuse the package unless every file is the one whose hash is known, and none is added."""
    expected = dict(model.files)
    if not check_weights and (folder / model.weights).is_file():
        del expected[model.weights]
    found = {n: sha256(folder / n) if (folder / n).is_file() else "no file" for n in expected}
    for name in (name for name in expected if found[name] != expected[name]):
        raise EncoderError(
            f"{folder / name}: found sha256 {found[name]}; expected {expected[name]}; the package "
            f"{model.package} is not the release reffree trusts: reinstall version {model.version}"
        )
    if not model.is_whole_folder:
        return
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    if unknown := sorted(present - model.files.keys() - UNREAD_FILES):
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
    if not _has(model.package):
        return None
    parts = PurePosixPath(model.weights).parts
    for file in importlib.metadata.files(model.package) or []:
        if file.parts[-len(parts) :] == parts:
            path = Path(str(file.locate()))
            return path.parents[len(parts) - 1] if path.is_file() else None
    return None


def _has(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
