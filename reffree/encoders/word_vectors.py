"""Static word vectors for `sed`: words through an encoder, its input embeddings, or a text file.

All look words up as they are given, in lower case: `look_up` returns vectors (words, d) in float64,
and which words are known; unknown ones get zeros.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from reffree.encoders.base import encode_texts
from reffree.encoders.models import ModelFolder, find_model
from reffree.encoders.options import DEFAULT_ENCODER
from reffree.encoders.sentence_transformer import LOADING_ERRORS, SentenceTransformerEncoder
from reffree.util.arrays import Floats
from reffree.util.atomic import user_path
from reffree.util.errors import (
    EncoderError,
    InputError,
    Place,
    counted,
    first_line,
    mistake,
    shorten,
)

INPUT_EMBEDDINGS = (
    *("word_embeddings.weight", "embed_tokens.weight", "tok_embeddings.weight", "wte.weight"),
    *("shared.weight", "embed_in.weight", "word_embedding.weight"),
)
"""How input embeddings are named: BERT and kin, Llama, ModernBERT, GPT-2, T5, NeoX, XLNet."""

CARRIER = "a "
"""Stands before each word, so that tokenizers that mark word starts see one inside a text."""

THRESHOLD = 0.7
"""Least cosine of words that are related, with the vectors of Ocampo Diaz & Ouyang 2024, §3.3."""

THRESHOLDS = {"sentence-transformers/all-MiniLM-L6-v2": 0.51, "wordllama/l2_supercat_256": 0.32}
"""What stands for it with words through these encoders: as many words are related.

At .7, a word has 27 related ones among the 20,000 of spaCy's en_core_web_md, whose vectors are
those of the paper's en_core_web_lg; among 20,000 frequent English words these two have as many at
.513 and .322.
"""

Found = tuple[Floats, NDArray[np.bool_]]


class EncodedWordVectors:
    """Words through an encoder, each as a text of its own, so that a word always has one vector.

    A word is unknown if the encoder's tokenizer finds no piece for it, or for a part of it.
    """

    def __init__(self, folder: ModelFolder) -> None:
        """Remember what to load; nothing is read before the first word."""
        self.name = f"{folder.spec.name}@{folder.spec.revision}"
        self.threshold = THRESHOLDS.get(folder.spec.name, THRESHOLD)
        self._encoder = SentenceTransformerEncoder(folder, torch.device("cpu"))
        self._read: dict[str, tuple[NDArray[np.float32], bool]] = {}  # by word

    def look_up(self, words: Sequence[str]) -> Found:
        """Return vectors and which words are known; each is encoded once."""
        if not words:
            return np.zeros((0, 1)), np.zeros(0, dtype=bool)
        if new := [word for word in dict.fromkeys(words) if word not in self._read]:
            is_known = [bool(found) and None not in found for found in self._encoder.pieces(new)]
            encoded, _ = encode_texts(self._encoder, new)
            self._read |= zip(new, zip(encoded, is_known, strict=True), strict=True)
        vectors, known = zip(*(self._read[word] for word in words), strict=True)
        return np.stack(vectors).astype(np.float64), np.array(known, dtype=bool)


class ModelWordVectors:
    """Input embeddings of a model: a word's vector is the mean of those of its pieces.

    A word is unknown if its tokenizer finds no piece for it, or for a part of it.
    """

    threshold = THRESHOLD

    def __init__(self, folder: ModelFolder) -> None:
        """Remember what to load; nothing is read before the first word."""
        self.name = f"{folder.spec.name}@{folder.spec.revision}:pieces"
        self.folder = folder

    def look_up(self, words: Sequence[str]) -> Found:
        """Return vectors and which words are known."""
        embeddings, tokenizer = self._read
        vectors, known = np.zeros((len(words), embeddings.shape[1])), np.zeros(len(words), bool)
        if not words:
            return vectors, known
        how = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        read = tokenizer([CARRIER + word for word in words], **how)
        for i, ids in enumerate(read["input_ids"]):
            places = zip(ids, read["offset_mapping"][i], strict=True)
            pieces = [token for token, (_, end) in places if end > len(CARRIER)]
            if not pieces or tokenizer.unk_token_id in pieces:
                continue
            if max(pieces) >= len(embeddings):
                found = f"token {max(pieces)} and {counted(len(embeddings), 'embedding')}"
                raise self._refusal(found, "a tokenizer and weights of one model")
            vectors[i] = embeddings[pieces].to(torch.float64).numpy().mean(axis=0)
            known[i] = True
        return vectors, known

    @cached_property
    def _read(self) -> tuple[torch.Tensor, Any]:
        """Input embeddings, and the tokenizer beside them."""
        found: list[tuple[int, str, Path]] = []
        for path in sorted(self.folder.path.rglob("*.safetensors")):
            try:
                with safe_open(path, framework="pt") as file:
                    names = list(file.keys())
            except (SafetensorError, OSError) as error:
                raise self._refusal(f"{path.name} unreadable ({error})", "weights") from error
            ends = list(enumerate(INPUT_EMBEDDINGS))
            found += [(i, name, path) for name in names for i, end in ends if name.endswith(end)]
        if not found:
            expected = f"a tensor named like …{INPUT_EMBEDDINGS[0]}"
            raise self._refusal("no input embeddings", expected)
        _, name, path = min(found)
        with safe_open(path, framework="pt") as file:
            embeddings: torch.Tensor = file.get_tensor(name)
        from transformers import AutoTokenizer

        try:
            # Third-party deprecation warnings are not the user's to act on.
            with warnings.catch_warnings(action="ignore"):
                tokenizer = AutoTokenizer.from_pretrained(
                    str(path.parent), local_files_only=True, trust_remote_code=False
                )
        except LOADING_ERRORS as error:
            what = f"no working tokenizer ({first_line(error)})"
            raise self._refusal(what, "one beside the weights") from error
        if not tokenizer.is_fast:
            what = "a tokenizer that does not say where its tokens stand"
            raise self._refusal(what, "a tokenizer.json")
        return embeddings, tokenizer

    def _refusal(self, found: str, expected: str) -> EncoderError:
        return EncoderError(
            f"{self.folder.path}: found {found}; expected {expected}; use another model, or a text "
            "file of word vectors"
        )


class FileWordVectors:
    """Vectors from a text file as GloVe, word2vec and fastText write them: a word, then numbers.

    A first line of two whole numbers is word2vec's header. Entries of several words are passed
    over, and of a word that stands there twice the first is taken. Only where the words stand is
    held in memory; their numbers are read when they are looked up.
    """

    threshold = THRESHOLD

    def __init__(self, path: Path) -> None:
        """Find the words; every line is checked for its number of fields."""
        self.path = path
        self.dimension = 0
        self._offsets: dict[bytes, tuple[int, int]] = {}  # byte and line
        digest, offset, entries, promised = hashlib.sha256(), 0, 0, -1
        with self._open() as file:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                fields = line.split() if number == 1 else []
                if len(fields) == 2 and all(field.isdigit() for field in fields):
                    promised, self.dimension = int(fields[0]), int(fields[1])
                elif not line.isspace():
                    self.dimension = self.dimension or len(fields) - 1
                    if self.dimension < 1:
                        raise self._refusal(number, "no vector", "a word and its numbers")
                    entries += 1
                    self._note_word(line, number, offset)
                offset += len(line)
        if promised not in (-1, entries):
            found = f"a header of {counted(promised, 'word')} and {counted(entries, 'line')}"
            raise self._refusal(1, found, "as many lines as the header says")
        if not self._offsets:
            raise self._refusal(None, "no words", "lines of a word and its numbers")
        self.name = f"{path.name}@sha256:{digest.hexdigest()[:16]}"

    def look_up(self, words: Sequence[str]) -> Found:
        """Return vectors and which words are known."""
        vectors = np.zeros((len(words), self.dimension))
        places = [self._offsets.get(word.encode(errors="replace")) for word in words]
        with self._open() as file:
            for row, place in enumerate(places):
                if place is not None:
                    file.seek(place[0])
                    vectors[row] = self._numbers(file.readline(), place[1])
        return vectors, np.array([place is not None for place in places], dtype=bool)

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            found, expected = f"no readable file ({error.strerror})", "a text file of word vectors"
            raise mistake(Place(str(self.path)), found, expected, "check the path") from error

    def _note_word(self, line: bytes, number: int, offset: int) -> None:
        """Note where a word stands, unless its line starts with a space: that is no word."""
        spaces = line.rstrip().count(b" ")  # right for nearly all lines, and fast
        fields = spaces + 1 if spaces == self.dimension else len(line.split())
        if line[:1].isspace() or fields > self.dimension + 1:
            return
        if fields <= self.dimension:
            found = counted(max(0, fields - 1), "number")
            raise self._refusal(number, found, f"{self.dimension} after the word")
        self._offsets.setdefault(line.split(maxsplit=1)[0], (offset, number))

    def _numbers(self, line: bytes, number: int) -> Floats:
        try:
            vector = np.array([float(field) for field in line.split()[1:]])
        except ValueError:
            vector = np.zeros(0)
        if len(vector) != self.dimension or not np.isfinite(vector).all():
            found = repr(shorten(line.decode(errors="replace").strip()))
            raise self._refusal(number, found, f"a word and {self.dimension} finite numbers")
        return vector

    def _refusal(self, line: int | None, found: str, expected: str) -> InputError:
        remedy = "give vectors in the text format of GloVe or word2vec"
        return mistake(Place(str(self.path), line), found, expected, remedy)


def open_word_vectors(
    source: str | None = None, *, pieces: bool = False, offline: bool = False
) -> EncodedWordVectors | ModelWordVectors | FileWordVectors:
    """Word vectors of a text file, a model folder, a model's name, or the packaged model.

    With ``pieces``, a model's input embeddings instead of words that were through it; of static
    vectors, such as wordllama's, these are the same.
    """
    path = user_path(source or "")
    if os.path.isfile(path) or path.suffix.lower() in (".txt", ".vec"):  # noqa: PTH113  (also for names too long)
        return FileWordVectors(path)
    folder = find_model(DEFAULT_ENCODER if source is None else source, offline=offline)
    has_pieces = pieces and folder.loader != "static"
    return ModelWordVectors(folder) if has_pieces else EncodedWordVectors(folder)
