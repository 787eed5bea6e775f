"""Static word vectors: words through an encoder, its input embeddings, or a text file of vectors.

All look words up as they are given; callers give words in lower case.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from reffree.encoders.base import encode_texts
from reffree.encoders.loaders import LOADING_ERRORS
from reffree.encoders.models import DEFAULT_ENCODER, ModelFolder, find_model
from reffree.encoders.sentence_transformer import SentenceTransformerEncoder
from reffree.util.arrays import Floats
from reffree.util.atomic import user_path
from reffree.util.errors import EncoderError, InputError, Place, counted, first_line, shorten

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


INPUT_EMBEDDINGS = (
    *("word_embeddings.weight", "embed_tokens.weight", "tok_embeddings.weight", "wte.weight"),
    *("shared.weight", "embed_in.weight", "word_embedding.weight"),
)
"""How input embeddings are named: BERT and kin, Llama, ModernBERT, GPT-2, T5, NeoX, XLNet."""

CARRIER = "a "
"""Stands before each word, so that tokenizers that mark word starts see one inside a text."""

VECTOR_FILES = (".txt", ".vec")

THRESHOLD = 0.7
"""Least cosine of words that are related, with the vectors of Ocampo Diaz & Ouyang 2024, §3.3."""

THRESHOLDS = {"sentence-transformers/all-MiniLM-L6-v2": 0.51, "wordllama/l2_supercat_256": 0.32}
"""What stands for it with words through these encoders: as many words are related.

At .7, a word has 27 related ones among the 20,000 of spaCy's en_core_web_md, whose vectors are
those of the paper's en_core_web_lg; among 20,000 frequent English words these two have as many at
.513 and .322.
"""


class EncodedWordVectors:
    """Words through an encoder, each as a text of its own, so that a word always has one vector.

    A word is unknown if the encoder's tokenizer finds no piece for it, or for a part of it.
    """

    def __init__(self, folder: ModelFolder) -> None:
        """Remember what to load; nothing is read before the first word."""
        self.folder = folder
        self._encoder = SentenceTransformerEncoder(folder, torch.device("cpu"))
        self._read: dict[str, tuple[NDArray[np.float32], bool]] = {}  # by word

    @property
    def name(self) -> str:
        """Model and revision."""
        return f"{self.folder.spec.name}@{self.folder.spec.revision}"

    @property
    def threshold(self) -> float:
        """Least cosine of related words: as measured, or the paper's."""
        return THRESHOLDS.get(self.folder.spec.name, THRESHOLD)

    def look_up(self, words: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
        """Vectors (words, d) in float64, and which words are known; each is encoded once."""
        if not words:
            return np.zeros((0, 1)), np.zeros(0, dtype=bool)
        new = [word for word in dict.fromkeys(words) if word not in self._read]
        if new:
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
        self.folder = folder

    @property
    def name(self) -> str:
        """Model and revision."""
        return f"{self.folder.spec.name}@{self.folder.spec.revision}:pieces"

    def look_up(self, words: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
        """Vectors (words, d) in float64, and which words are known; unknown ones get zeros."""
        pieces = self._pieces(words)
        known = np.array([len(found) > 0 for found in pieces], dtype=bool)
        vectors = np.zeros((len(words), self._embeddings.shape[1]))
        flat = torch.tensor([piece for found in pieces for piece in found], dtype=torch.int64)
        if len(flat):
            if int(flat.max()) >= len(self._embeddings):
                raise self._refusal(
                    f"token {int(flat.max())} and {counted(len(self._embeddings), 'embedding')}",
                    "a tokenizer and weights of one model",
                )
            rows = self._embeddings[flat].to(torch.float64).numpy()
            counts = np.array([len(found) for found in pieces if found])
            starts = np.cumsum(counts) - counts
            vectors[known] = np.add.reduceat(rows, starts, axis=0) / counts[:, None]
        return vectors, known

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        """Token ids of each word; none where one of them is the unknown token."""
        if not words:
            return []
        encoded = self._tokenizer(
            [CARRIER + word for word in words],
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        unknown = self._tokenizer.unk_token_id
        pieces = []
        for ids, spans in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
            found = [
                token for token, (_, end) in zip(ids, spans, strict=True) if end > len(CARRIER)
            ]
            pieces.append([] if unknown in found else found)
        return pieces

    @cached_property
    def _weights(self) -> tuple[Path, str]:
        """File and name of the input embeddings."""
        found: list[tuple[int, str, Path]] = []
        for path in sorted(self.folder.path.rglob("*.safetensors")):
            try:
                with safe_open(path, framework="pt") as file:
                    names = list(file.keys())
            except (SafetensorError, OSError) as error:
                raise self._refusal(f"{path.name} unreadable ({error})", "weights") from error
            for name in names:
                rank = next((r for r, e in enumerate(INPUT_EMBEDDINGS) if name.endswith(e)), None)
                if rank is not None:
                    found.append((rank, name, path))
        if not found:
            raise self._refusal(
                "no input embeddings", f"a tensor named like …{INPUT_EMBEDDINGS[0]}"
            )
        _, name, path = min(found)
        return path, name

    @cached_property
    def _embeddings(self) -> torch.Tensor:
        path, name = self._weights
        with safe_open(path, framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        from transformers import AutoTokenizer

        try:
            # Third-party deprecation warnings are not the user's to act on.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tokenizer = AutoTokenizer.from_pretrained(
                    str(self._weights[0].parent), local_files_only=True, trust_remote_code=False
                )
        except LOADING_ERRORS as error:
            raise self._refusal(
                f"no working tokenizer ({first_line(error)})", "one beside the weights"
            ) from error
        if not tokenizer.is_fast:
            raise self._refusal(
                "a tokenizer that does not say where its tokens stand", "a tokenizer.json"
            )
        return tokenizer

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
        self._offsets: dict[bytes, tuple[int, int]] = {}  # byte and line
        digest = hashlib.sha256()
        with self._open() as file:
            self.dimension = self._index(file, digest)
        self._revision = f"sha256:{digest.hexdigest()[:16]}"

    @property
    def name(self) -> str:
        """File and hash."""
        return f"{self.path.name}@{self._revision}"

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self._offsets)

    def look_up(self, words: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
        """Vectors (words, d) in float64, and which words are known; unknown ones get zeros."""
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
            raise InputError(
                f"no readable file ({error.strerror})",
                expected="a text file of word vectors",
                remedy="check the path",
                place=Place(str(self.path)),
            ) from error

    def _index(self, lines: BinaryIO, digest: hashlib._Hash) -> int:
        """Note where each word's line starts; returns the number of dimensions."""
        promised: tuple[int, int] | None = None  # words and dimensions that a header states
        dimension, entries, offset = 0, 0, 0
        for number, line in enumerate(lines, start=1):
            digest.update(line)
            if number == 1:
                fields = line.split()
                if len(fields) == 2 and all(field.isdigit() for field in fields):
                    promised = int(fields[0]), int(fields[1])
                dimension = promised[1] if promised else len(fields) - 1
                if dimension < 1:
                    raise self._refusal(number, "no vector", "a word and its numbers")
            if not (number == 1 and promised) and not line.isspace():
                entries += 1
                self._note(line, number, offset, dimension)
            offset += len(line)
        if promised and promised[0] != entries:
            stated = f"a header of {counted(promised[0], 'word')} and {counted(entries, 'line')}"
            raise self._refusal(1, stated, "as many lines as the header says")
        if not self._offsets:
            raise self._refusal(None, "no words", "lines of a word and its numbers")
        return dimension

    def _note(self, line: bytes, number: int, offset: int, dimension: int) -> None:
        """Note where a word stands, unless its line starts with a space: that is no word."""
        spaces = line.rstrip().count(b" ")  # right for nearly all lines, and fast
        fields = spaces + 1 if spaces == dimension > 0 else len(line.split())
        if line[:1].isspace() or fields > dimension + 1:
            return
        if fields <= dimension:
            found = counted(max(0, fields - 1), "number")
            raise self._refusal(number, found, f"{dimension} after the word")
        self._offsets.setdefault(line.split(maxsplit=1)[0], (offset, number))

    def _numbers(self, line: bytes, number: int) -> Floats:
        try:
            vector = np.array([float(field) for field in line.split()[1:]])
        except ValueError:
            vector = np.zeros(0)
        if len(vector) != self.dimension or not np.isfinite(vector).all():
            shown = shorten(line.decode(errors="replace").strip())
            raise self._refusal(number, repr(shown), f"a word and {self.dimension} finite numbers")
        return vector

    def _refusal(self, line: int | None, found: str, expected: str) -> InputError:
        return InputError(
            found,
            expected=expected,
            remedy="give vectors in the text format of GloVe or word2vec",
            place=Place(str(self.path), line),
        )


def open_word_vectors(
    source: str | None = None, *, pieces: bool = False, offline: bool = False
) -> EncodedWordVectors | ModelWordVectors | FileWordVectors:
    """Word vectors of a text file, a model folder, a model's name, or the packaged model.

    With ``pieces``, a model's input embeddings instead of words that were through it; of static
    vectors, such as wordllama's, these are the same.
    """
    if source is not None:
        path = user_path(source)
        if os.path.isfile(path) or path.suffix.lower() in VECTOR_FILES:  # noqa: PTH113  (also for names too long)
            return FileWordVectors(path)
    folder = find_model(DEFAULT_ENCODER if source is None else source, offline=offline)
    has_pieces = pieces and folder.loader != "static"
    return ModelWordVectors(folder) if has_pieces else EncodedWordVectors(folder)
