"""Run a configuration step by step, keeping what is finished, so that it can go on after a stop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import as_file, files
from pathlib import Path
from typing import NoReturn

import yaml

from reffree.data.corpus import Corpus
from reffree.evaluate.result import Result, load_result
from reffree.formats import jsonl, load
from reffree.formats.source import Source
from reffree.metrics.free.custom import registered
from reffree.studies import find_study
from reffree.studies.config import Config, Step
from reffree.util.atomic import make_folder, write_file
from reffree.util.errors import InputError
from reffree.util.progress import Progress, no_progress

PACKAGED = "demo"
"""The corpus that ships with reffree, wherever a configuration names it."""

RESOLVED = "config.yaml"
FINISHED = ".finished.json"
"""The ledger of finished steps, under a name that no step can have."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A step's result and where it is."""

    step: Step
    path: Path
    result: Result
    is_new: bool  # computed now, rather than found


def run_config(
    config: Config,
    folder: Path,
    *,
    fresh: bool = False,
    progress: Progress = no_progress,
    write: Callable[[Result], str],
    on_step: Callable[[Finished], None] = lambda finished: None,
) -> list[Finished]:
    """Run all steps; results, and the configuration with every default, go into a folder.

    A step whose results are there, from the same settings, the same files and the same version of
    reffree, is not run again unless ``fresh``. ``write`` makes the text of a results file.
    """
    corpora, contents = _read_corpora(config.corpora)
    make_folder(folder)
    resolved = yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True)
    write_file(folder / RESOLVED, [resolved])
    ledger: dict[str, str] = {}
    with suppress(InputError):  # where nothing, or nothing readable, says what is finished
        found = {} if fresh else Source(folder / FINISHED).json
        ledger = {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
    prints = {step.name: _fingerprint(step, contents) for step in config.steps}
    for step in config.steps:
        if ledger.get(step.name) != prints[step.name]:
            _check(step, corpora)
    done = []
    for step in config.steps:
        path, kept = folder / f"{step.name}.json", None
        if ledger.get(step.name) == prints[step.name]:
            with suppress(InputError):  # gone or damaged: it has to be made again
                kept = load_result(path)
        result = kept or find_study(step.study)(corpora, progress=progress, **step.settings)
        if kept is None:
            write_file(path, [write(result)])
            ledger[step.name] = prints[step.name]
            write_file(folder / FINISHED, [json.dumps(ledger, indent=1) + "\n"])
        done.append(Finished(step, path, result, is_new=kept is None))
        on_step(done[-1])
    return done


class _Checked(Exception):
    """A study has refused nothing, and its first stage would start."""


def _check(step: Step, corpora: Mapping[str, Corpus]) -> None:
    """Let a step refuse what it refuses: all of it before its first stage, and before others."""

    def stop(stage: str, total: int) -> NoReturn:
        raise _Checked

    with suppress(_Checked):
        find_study(step.study)(corpora, progress=stop, **step.settings)


def _read_corpora(named: Mapping[str, str]) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Corpora by name, and hashes of their files."""
    corpora, contents = {}, {}
    for name, file in named.items():
        if file == PACKAGED and not Path(file).exists():
            with as_file(files("reffree") / "resources" / "demo.jsonl") as path:
                corpora[name], contents[name] = load(path), _hash(path)
        else:
            corpora[name] = load(file)
            if Path(file).exists():
                contents[name] = _hash(Path(file))
            else:  # in no file, such as a data set of the hub
                lines = jsonl.Jsonl().write(corpora[name], ())
                contents[name] = _digest(line.encode() for line in lines)
    return corpora, contents


def _hash(path: Path) -> str:
    """Hash a file, or all files of a folder."""
    every = sorted(path.rglob("*")) if path.is_dir() else [path]
    return _digest(b for p in every if p.is_file() for b in (p.name.encode(), p.read_bytes()))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _fingerprint(step: Step, contents: Mapping[str, str]) -> str:
    """Everything a step's results depend on, files of scores and votes included."""
    scores = (step.settings.get("scores") or {}).values()
    named = [file for by_name in scores for file in by_name.values()]
    named += [step.settings["votes"]] if step.settings.get("votes") else []
    files = [file for file in named if Path(file).exists()]
    hashes = {**contents, **{file: _hash(Path(file)) for file in files}}
    parts = [step.study, step.settings, hashes, version("reffree")]
    parts += [registered()] if registered() else []
    return _digest([json.dumps(parts, sort_keys=True, default=str).encode()])
