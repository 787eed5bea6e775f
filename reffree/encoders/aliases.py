"""Models with short names: what each is, was made for, and, of some, the package with its files.

``mpnet``, ``roberta`` and ``falcon-7b`` are the encoders of the ARP paper (Ghinassi et al. 2024,
§5.2: each the mean of the last layer), at the revisions their hub pages had when this was written.
The paper says nothing of maximum length or precision: the models' own are taken, and Falcon's
weights are computed in the type they are stored in, since 7 billion of them in float32 fill 29 GB.
``distilbert`` is what Coen, "When F1 Fails", fine-tunes (§5.2; uncased in its code), ``bert`` what
the coherence model of Xing and Carenini (2021) starts from, with its next-sentence head.
The multilingual ones, likewise at a revision each, have safetensors, which not all such models do;
E5's card asks for "query: " before texts that are compared with one another.
Files of packages are trusted by their hashes (the weights' of ``minilm`` is the official
release's); the packages are never imported. Text that a model was not made for is known by the
script that most of a unit's letters have, and for encoders of English by a corpus's stop words.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Literal

from reffree.util.errors import EncoderError

Loader = Literal["sentence-transformers", "encoder", "decoder", "static"]

UNREAD_FILES = {"README.md", ".gitattributes", "data_config.json"}
"""Files of a model folder that describe it to people or record its training."""

SAMPLE = 500
"""Units that are looked at for their language, spread evenly."""

KANA = dict.fromkeys(("Hiragana", "Katakana", "Katakana-hiragana", "Halfwidth"), "Kana")
SAME = {"Cjk": "Han", "Fullwidth": "Latin", **KANA}
"""Scripts that the names of letters begin with otherwise."""


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
    tried: str = ""  # architecture, of which tests run a tiny model where no package has weights


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
        return f"sha256:{self.files[self.weights][:16]}"


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
    for name, expected in model.files.items():
        is_there = (folder / name).is_file()
        if is_there and name == model.weights and not check_weights:
            continue
        found = sha256(folder / name) if is_there else "no file"
        if found != expected:
            raise EncoderError(
                f"{folder / name}: found sha256 {found}; expected {expected}; the package "
                f"{model.package} is not the release reffree trusts: reinstall version "
                f"{model.version}"
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


def _installed(model: PackagedModel) -> Path | None:
    """Return the folder of a package's model, without importing the package."""
    parts = PurePosixPath(model.weights).parts
    for package in importlib.metadata.distributions(name=model.package):
        for file in package.files or ():
            if file.parts[-len(parts) :] == parts:
                path = Path(str(file.locate()))
                return path.parents[len(parts) - 1] if path.is_file() else None
    return None


def _has(package: str) -> bool:
    return any(True for _ in importlib.metadata.distributions(name=package))


def unread_units(model: str, units: Sequence[str]) -> dict[str, int]:
    """Count units that a model was not made for, by script or language; none where unknown.

    >>> unread_units("FacebookAI/roberta-base", ["Bees dance.", "蜜蜂会跳舞。", "42"])
    {'Han script': 1}
    """
    made_for = next((known.languages for known in ALIASES.values() if known.model == model), None)
    if not made_for:
        return {}
    scripts = [main_script(unit) for unit in units]
    found = Counter(f"{each} script" for each in scripts if each and each not in made_for)
    if made_for.get("Latin") == ["en"]:
        from reffree.util.words import language_of

        latin = [unit for unit, each in zip(units, scripts, strict=True) if each == "Latin"]
        language = language_of(latin[:: len(latin) // SAMPLE + 1])
        if language not in (None, "english"):
            found[str(language).capitalize()] = len(latin)
    return dict(found)


def readers(scripts: Iterable[str]) -> list[str]:
    """Return the aliases of the models that were made for many languages in all these scripts."""
    wanted = {each.removesuffix(" script") for each in scripts if each.endswith(" script")}
    many = {alias: set(known.languages) for alias, known in ALIASES.items()}
    return [alias for alias, known in many.items() if len(known) > 1 and wanted <= known]


def main_script(text: str) -> str:
    """Return the script of most letters; empty without any.

    >>> main_script("GPT说话"), main_script("…")
    ('Latin', '')
    """
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    scripts = Counter(filter(None, map(_script_of, text)))
    return max(scripts, key=lambda script: scripts[script], default="")


@cache
def _script_of(sign: str) -> str:
    """Return the script that a letter's name begins with; empty for what is no letter."""
    if not unicodedata.category(sign).startswith("L"):
        return ""
    first = unicodedata.name(sign, "").partition(" ")[0].capitalize()
    return SAME.get(first, first)
