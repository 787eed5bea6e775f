"""The caller's own vectors, checked against the corpus."""

from __future__ import annotations

import hashlib
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.typing import ArrayLike, NDArray

from reffree.bounds import check_limit
from reffree.corpus import Corpus, Document
from reffree.encoders.base import EncoderSpec
from reffree.encoders.embed import Embeddings
from reffree.errors import InputError, Place

BROKEN = (
    *(ValueError, EOFError, MemoryError, NotImplementedError, OverflowError, TypeError, KeyError),
    *(SyntaxError, RecursionError, tokenize.TokenError, struct.error, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What numpy and zipfile raise on damaged files: a header is Python's syntax, a zip may be any."""

MAGIC = b"\x93NUMPY"


def from_arrays(
    corpus: Corpus,
    arrays: Sequence[ArrayLike] | Mapping[str, ArrayLike],
    file: str | None = None,
) -> Embeddings:
    """Take one array per document, in corpus order or by document id.

    An array has a row for every unit, or for every unit that was kept when some have no text.
    """
    if isinstance(arrays, Mapping):
        absent = [doc.id for doc in corpus.documents if doc.id not in arrays]
        if absent or len(arrays) != len(corpus):
            found = f"no array for {absent[0]!r}" if absent else f"{len(arrays)} arrays"
            raise InputError(
                f"{found} among the embeddings",
                expected=f"one for each of the {len(corpus)} documents, by id",
                remedy="embed every document of this corpus",
                place=Place(file=file),
            )
        arrays = [arrays[doc.id] for doc in corpus.documents]
    if len(arrays) != len(corpus):
        raise InputError(
            f"{len(arrays)} arrays of embeddings",
            expected=f"{len(corpus)}, one per document in corpus order",
            remedy="embed every document of this corpus",
            place=Place(file=file),
        )
    vectors = [
        _rows(_plain(array, document, file), document, file)
        for array, document in zip(arrays, corpus.documents, strict=True)
    ]
    widths = {x.shape[1] for x in vectors}
    if len(widths) > 1:
        raise InputError(
            f"embeddings of {' and '.join(map(str, sorted(widths)))} dimensions",
            expected="the same number for every document",
            remedy="use one encoder for the whole corpus",
            place=Place(file=file),
        )
    digest = hashlib.blake2b(digest_size=8)
    for x in vectors:
        digest.update(np.ascontiguousarray(x).tobytes())
    spec = EncoderSpec(
        name="precomputed",
        revision=f"blake2b:{digest.hexdigest()}",
        pooling="given",
        normalisation="given",
        dtype="+".join(sorted({str(x.dtype) for x in vectors})),
        max_length=None,
        backend="precomputed",
    )
    n_distinct = sum(len(x) for x in vectors)
    return Embeddings(vectors, spec, n_distinct=n_distinct, n_truncated=0, device="given")


def from_file(corpus: Corpus, path: Path) -> Embeddings:
    """Read ``.npz`` (one array per document id) or ``.npy`` (all units stacked in corpus order)."""
    place = Place(file=str(path))
    try:
        _check_one(path, place)
        with path.open("rb") as handle:  # numpy leaves a damaged file open
            loaded = np.load(handle, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                arrays = _split(loaded, corpus, place)
            else:
                with loaded:
                    missing = [doc.id for doc in corpus.documents if doc.id not in loaded]
                    unknown = sorted(loaded.keys() - {doc.id for doc in corpus.documents})
                    if unknown and not missing:
                        raise InputError(
                            f"an array for {unknown[0]!r}, which the corpus does not have",
                            expected="one array per document, named by its id",
                            remedy="check that vectors and corpus belong together",
                            place=place,
                        )
                    if missing:
                        raise InputError(
                            f"no array for document {missing[0]!r} ({len(missing)} missing)",
                            expected="one array per document, named by its id",
                            remedy="save them with numpy.savez(file, **{id: array})",
                            place=place,
                        )
                    _check_archive(loaded.zip, corpus, place)
                    arrays = [loaded[doc.id] for doc in corpus.documents]
    except OSError as error:
        raise InputError(
            f"a file that cannot be opened ({error.strerror or 'unreadable'})",
            expected="a .npy or .npz file",
            remedy="check the path",
            place=place,
        ) from None
    except BROKEN:
        raise InputError(
            "a file that is no array of numbers",
            expected="a .npy or .npz file of numbers, without pickled objects",
            remedy="save the vectors with numpy.save or numpy.savez",
            place=place,
        ) from None
    return from_arrays(corpus, arrays, file=str(path))


def _check_one(path: Path, place: Place) -> None:
    """Refuse an array that is larger than its file or than the limits, before it is read."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            file.seek(0)
            _check_sizes([_sizes(file, path.stat().st_size)], place)


def _check_archive(archive: zipfile.ZipFile, corpus: Corpus, place: Place) -> None:
    """Refuse arrays that unpack to more than they may, before any is unpacked."""
    names, found = set(archive.namelist()), []
    for document in corpus.documents:
        info = archive.getinfo(document.id if document.id in names else f"{document.id}.npy")
        with archive.open(info) as file:
            found.append(_sizes(file, info.file_size))
    _check_sizes(found, place)


def _sizes(file: IO[bytes], size: int) -> tuple[int, int]:
    """Return the numbers in a row and the bytes of an array from its header."""
    version = read_magic(file)
    read = read_array_header_1_0 if version == (1, 0) else read_array_header_2_0
    shape, _, dtype = read(file)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > size:
        raise ValueError("a header that promises more than there is")
    return (shape[1] if len(shape) > 1 else 1), n_bytes


def _check_sizes(found: Sequence[tuple[int, int]], place: Place) -> None:
    dimension, n_bytes = max(d for d, _ in found), sum(n for _, n in found)
    check_limit("dimension", dimension, f"vectors of {dimension:,} numbers", place)
    check_limit("embedding_bytes", n_bytes, f"{n_bytes:,} bytes of vectors", place)


def _split(stacked: NDArray[np.generic], corpus: Corpus, place: Place) -> list[NDArray[np.generic]]:
    lengths = [len(document.units) for document in corpus.documents]
    given = [len(document.kept) for document in corpus.documents]
    for sizes in (given, lengths):
        if stacked.ndim == 2 and len(stacked) == sum(sizes):
            return np.split(stacked, np.cumsum(sizes)[:-1])
    raise InputError(
        f"an array of shape {stacked.shape}",
        expected=f"{sum(given)} rows, one per unit of the corpus in order",
        remedy="embed every unit of this corpus, or save one array per document in a .npz file",
        place=place,
    )


def _plain(array: ArrayLike, document: Document, file: str | None) -> NDArray[np.generic]:
    """Bring torch tensors, also those of bfloat16 or on a device, and lists to NumPy."""
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)
    try:
        return np.asarray(array)
    except ValueError:
        raise InputError(
            "embeddings whose rows differ in length",
            expected="a matrix of numbers with one row per unit",
            remedy="stack the units' vectors",
            place=Place(file=file, document=document.id),
        ) from None


def _rows(x: NDArray[np.generic], document: Document, file: str | None) -> NDArray[np.generic]:
    place = Place(file=file, document=document.id)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        raise InputError(
            f"embeddings of shape {x.shape} and type {x.dtype}",
            expected="a matrix of numbers with one row per unit",
            remedy="stack the units' vectors",
            place=place,
        )
    if len(x) == len(document.units):
        return x
    if len(x) == len(document.kept):
        kept: NDArray[np.generic] = x[np.array(document.kept)]
        return kept
    raise InputError(
        f"embeddings with {len(x)} rows",
        expected=f"{len(document.kept)}, the number of units in the document",
        remedy="embed this version of the corpus",
        place=place,
    )
