"""A corpus's vectors: encoded, or as the user gives them."""

from __future__ import annotations

import hashlib
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Unpack

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.lib.npyio import NpzFile
from numpy.typing import ArrayLike, NDArray

from reffree.data.corpus import Corpus, Document
from reffree.data.filter import FilteredCorpus, filter_units
from reffree.encoders.aliases import unread_units
from reffree.encoders.base import Encoder, EncoderSpec, encode_texts
from reffree.encoders.device import device_names
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.arrays import check_finite, to_plain_floats
from reffree.util.bounds import check_limit
from reffree.util.declare import declared
from reffree.util.errors import OptionError, Place, mistake
from reffree.util.progress import Progress, no_progress

BROKEN = (
    *(ValueError, EOFError, MemoryError, NotImplementedError, OverflowError, TypeError, KeyError),
    *(SyntaxError, RecursionError, tokenize.TokenError, struct.error, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What numpy and zipfile raise on damaged files: a header is Python's syntax, a zip may be any."""

MAGIC = b"\x93NUMPY"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One array per document, in corpus order, and what was done to get them."""

    vectors: list[NDArray[np.generic]]
    spec: EncoderSpec
    n_distinct: int
    n_truncated: int  # units of which the model read only the beginning
    device: str
    unread: Mapping[str, int] = field(default_factory=dict)  # units by what the encoder is not for


Vectors = Sequence[ArrayLike] | Mapping[str, ArrayLike] | Embeddings
"""Vectors as a user gives them: one array per document, in corpus order or by id."""


def unit_texts(units: Sequence[str], context: int = 0) -> list[str]:
    """Return what is encoded for every unit of a document: with ``context`` its neighbours too.

    The unit stands between up to ``context`` units before it and as many after it, fewer at the
    document's ends, with a space between any two; all count alike in the text's vector. So a short
    utterance borrows meaning, and two units nearer than ``2 * context + 1`` share text also where a
    boundary lies between them. What the encoder cuts off is the end.

    >>> unit_texts(["Yes.", "Bees dance.", "Why?"], context=1)
    ['Yes. Bees dance.', 'Yes. Bees dance. Why?', 'Bees dance. Why?']
    """
    if not context:
        return list(units)
    return [" ".join(units[max(0, i - context) : i + context + 1]) for i in range(len(units))]


def distinct_texts(corpus: Corpus, context: int = 0) -> list[str]:
    """Return every text that is encoded once, in the order of first appearance."""
    texts = (unit_texts(document.units, context) for document in corpus.documents)
    return list(dict.fromkeys(text for document in texts for text in document))


def encode_corpus(
    corpus: Corpus, encoder: Encoder, options: EncoderOptions, progress: Progress = no_progress
) -> Embeddings:
    """Encode a corpus of the units that take part, every distinct text once.

    Of the options only context and drop are used, and device and device map for their names.
    """
    texts = distinct_texts(corpus, options.context)
    with progress("Encoding", len(texts)) as advance:
        vectors, tokens = encode_texts(encoder, texts, advance)
    row = {text: i for i, text in enumerate(texts)}
    rows = [[row[text] for text in unit_texts(d.units, options.context)] for d in corpus.documents]
    limit = encoder.spec.max_length
    too_long = tokens > limit if limit else np.zeros(len(texts), dtype=bool)
    device = "+".join(dict.fromkeys(device_names(options.device)))
    is_spread = options.model_settings.device_map is not None
    return Embeddings(
        vectors=[vectors[r] for r in rows],
        spec=replace(encoder.spec, context=options.context, dropped=options.dropped),
        n_distinct=len(texts),
        n_truncated=int(sum(too_long[r].sum() for r in rows)),
        device=f"spread from {device}" if is_spread else device,
        unread=unread_units(encoder.spec.name, [u for d in corpus.documents for u in d.units]),
    )


@declared
def embed(
    corpus: Corpus, *, progress: Progress = no_progress, **encoding: Unpack[Encoding]
) -> Embeddings:
    """Return the vectors of a corpus's units, for ``embeddings=`` of `reffree.score` and others.

    Every distinct text is encoded once, and kept in the cache unless ``cache`` is off; what is
    there already is read and not encoded. The keywords are those of `EncoderOptions`. Units that
    ``drop`` leaves out have no vector.
    """
    options = EncoderOptions(**encoding)
    return corpus_vectors(filter_units(corpus, options.drop).corpus, None, options, progress)


def corpus_vectors(
    corpus: Corpus, embeddings: Vectors | None, options: EncoderOptions, progress: Progress
) -> Embeddings:
    """Take the vectors that are given, or encode every distinct text once.

    The corpus is of the units that take part (`units_taking_part`).
    """
    assert all(map(all, filter_units(corpus, options.drop).kept)), "units are to be left out first"
    if embeddings is None:
        from reffree.encoders.opening import open_encoder

        return encode_corpus(corpus, open_encoder(options), options, progress)
    given = _check_vectors(corpus, embeddings)
    if options.context not in (0, given.spec.context):
        raise OptionError(
            f"context = {options.context} beside vectors that are given",
            expected="texts to encode with their neighbours",
            remedy="leave out one of the two",
        )
    return given


def coming_spec(embeddings: Vectors | None, options: EncoderOptions) -> EncoderSpec | None:
    """Say what will have made a corpus's vectors; the encoder is found, and nothing encoded.

    None of arrays that are given without a word of what made them.
    """
    if embeddings is None:
        from reffree.encoders.opening import open_encoder

        spec = open_encoder(options).spec
        return replace(spec, context=options.context, dropped=options.dropped)
    return embeddings.spec if isinstance(embeddings, Embeddings) else None


def units_taking_part(
    corpus: Corpus, embeddings: Vectors | None, options: EncoderOptions
) -> tuple[FilteredCorpus, Vectors | None]:
    """Leave out units as the options say, of a corpus and of the vectors that are given for it.

    Vectors that were encoded with these units left out are returned as they are.
    """
    part = filter_units(corpus, options.drop)
    is_done = isinstance(embeddings, Embeddings) and embeddings.spec.dropped == part.dropped
    if embeddings is None or part.dropped == "none" or is_done:
        return part, embeddings
    given = _check_vectors(corpus, embeddings)
    kept = [x[np.array(mask)] for x, mask in zip(given.vectors, part.kept, strict=True)]
    return part, replace(given, vectors=kept, spec=replace(given.spec, dropped=part.dropped))


def _check_vectors(corpus: Corpus, given: Vectors) -> Embeddings:
    if not isinstance(given, Embeddings):
        return from_arrays(corpus, given)
    vectors = _arrays(corpus, given.vectors, None)
    is_same = all(a is b for a, b in zip(vectors, given.vectors, strict=True))
    return given if is_same else replace(given, vectors=vectors)


def from_arrays(
    corpus: Corpus,
    arrays: Sequence[ArrayLike] | Mapping[str, ArrayLike],
    file: str | None = None,
) -> Embeddings:
    """Take one array per document, in corpus order or by document id.

    An array has a row for every unit, or for every unit that was kept when some have no text.
    """
    vectors = _arrays(corpus, arrays, file)
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


def _arrays(
    corpus: Corpus, arrays: Sequence[ArrayLike] | Mapping[str, ArrayLike], file: str | None
) -> list[NDArray[np.generic]]:
    """Return the documents' arrays in corpus order, each with a row for every unit."""
    place, n = Place(file=file), len(corpus)
    found, expected = f"{len(arrays)} arrays of embeddings", f"{n}, one per document in order"
    if isinstance(arrays, Mapping):
        expected = f"one for each of the {n} documents, by id"
        if absent := [doc.id for doc in corpus.documents if doc.id not in arrays]:
            found = f"no array for {absent[0]!r} among the embeddings"
        elif len(arrays) == n:
            arrays = [arrays[doc.id] for doc in corpus.documents]
    if isinstance(arrays, Mapping) or len(arrays) != n:
        raise mistake(place, found, expected, "embed every document of this corpus")
    pairs = zip(arrays, corpus.documents, strict=True)
    vectors = [_rows(array, document, file) for array, document in pairs]
    widths = sorted({x.shape[1] for x in vectors})
    if len(widths) > 1:
        found = f"embeddings of {' and '.join(map(str, widths))} dimensions"
        remedy = "use one encoder for the whole corpus"
        raise mistake(place, found, "the same number for every document", remedy)
    return vectors


def from_file(corpus: Corpus, path: Path) -> Embeddings:
    """Read ``.npz`` (one array per document id) or ``.npy`` (all units stacked in corpus order)."""
    place = Place(file=str(path))
    try:
        with path.open("rb") as handle:  # numpy leaves a damaged file open
            if handle.read(len(MAGIC)) == MAGIC:
                handle.seek(0)
                _check_sizes([(handle, path.stat().st_size)], place)
            handle.seek(0)
            loaded = np.load(handle, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                arrays = _split(loaded, corpus, place)
            else:
                with loaded:
                    _check_archive(loaded, corpus, place)
                    arrays = [loaded[doc.id] for doc in corpus.documents]
    except (OSError, *BROKEN) as error:
        found = "a file that is no array of numbers"
        if isinstance(error, OSError):
            found = f"a file that cannot be opened ({error.strerror or 'unreadable'})"
        expected = "a .npy or .npz file of numbers, without pickled objects"
        remedy = "check the path, and save the vectors with numpy.save or numpy.savez"
        raise mistake(place, found, expected, remedy) from None
    return from_arrays(corpus, arrays, file=str(path))


def _check_archive(loaded: NpzFile, corpus: Corpus, place: Place) -> None:
    """Refuse arrays of other documents, or that unpack to more than they may, before any is."""
    ids = [document.id for document in corpus.documents]
    missing = [id for id in ids if id not in loaded]
    if missing or (unknown := sorted(loaded.keys() - set(ids))):
        if missing:
            found = f"no array for document {missing[0]!r} ({len(missing)} missing)"
        else:
            found = f"an array for {unknown[0]!r}, which the corpus does not have"
        remedy = "save the vectors of this corpus with numpy.savez(file, **{id: array})"
        raise mistake(place, found, "one array per document, named by its id", remedy)
    archive = loaded.zip
    assert archive is not None  # it is open
    names = set(archive.namelist())
    members = [archive.getinfo(id if id in names else f"{id}.npy") for id in ids]
    _check_sizes(((archive.open(each), each.file_size) for each in members), place)


def _check_sizes(arrays: Iterable[tuple[IO[bytes], int]], place: Place) -> None:
    """Refuse arrays that are too wide or too large, by the headers of their files."""
    total = 0
    for file, size in arrays:
        read = read_array_header_1_0 if read_magic(file) == (1, 0) else read_array_header_2_0
        shape, _, dtype = read(file)
        n_bytes, dimension = math.prod(shape) * dtype.itemsize, shape[1] if len(shape) > 1 else 1
        if n_bytes > size:
            raise ValueError("a header that promises more than there is")
        check_limit("dimension", dimension, f"vectors of {dimension:,} numbers", place)
        total += n_bytes
    check_limit("embedding_bytes", total, f"{total:,} bytes of vectors", place)


def _split(stacked: NDArray[np.generic], corpus: Corpus, place: Place) -> list[NDArray[np.generic]]:
    lengths = [len(document.units) for document in corpus.documents]
    given = [len(document.kept) for document in corpus.documents]
    for sizes in (given, lengths):
        if stacked.ndim == 2 and len(stacked) == sum(sizes):
            return np.split(stacked, np.cumsum(sizes)[:-1])
    expected = f"{sum(given)} rows, one per unit of the corpus in order"
    remedy = "embed every unit of this corpus, or save one array per document in a .npz file"
    raise mistake(place, f"an array of shape {stacked.shape}", expected, remedy)


def _rows(array: ArrayLike, document: Document, file: str | None) -> NDArray[np.generic]:
    """Bring a list or tensor, also of bfloat16 or on a device, to NumPy, a row for every unit."""
    place = Place(file=file, document=document.id)
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        array = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    found = "embeddings whose rows differ in length"
    try:
        x = to_plain_floats(np.asarray(array))
        found = f"embeddings of shape {x.shape} and type {x.dtype}"
    except ValueError:
        x = np.empty(0)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        expected = "a matrix of numbers with one row per unit"
        raise mistake(place, found, expected, "stack the units' vectors")
    if len(x) not in (len(document.units), len(document.kept)):
        expected = f"{len(document.kept)}, the number of units in the document"
        found, remedy = f"embeddings with {len(x)} rows", "embed this version of the corpus"
        raise mistake(place, found, expected, remedy)
    check_finite(x, place)
    if len(x) == len(document.units):
        return x
    kept: NDArray[np.generic] = x[np.array(document.kept)]
    return kept
