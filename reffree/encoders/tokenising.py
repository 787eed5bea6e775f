"""What a model computes on: texts counted, cut and padded from ids that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.base import EncoderSpec

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

IDS = "input_ids"
MASK = "attention_mask"
TYPES = "token_type_ids"

Features = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """A tokenised text."""

    position: int
    tokens: int  # before truncation, special ones and those of the prompt included
    length: int  # of what the model reads
    content: Any  # ids, or the text where the model itself makes its features


class Tokeniser:
    """Counts tokens first, so that batches can be planned, then makes what a batch is given as.

    This one lets the model make its features: for models where they are more than ids, such as
    those with chat templates.
    """

    def __init__(self, model: SentenceTransformer, spec: EncoderSpec) -> None:
        """Take over the model's tokenizer."""
        self.model = model
        self.tokenizer = model.tokenizer
        self.prompt = spec.prompt
        self.limit = spec.max_length

    def read(self, positions: Sequence[int], texts: Sequence[str]) -> list[Read]:
        """Count the tokens of some texts."""
        ids = self._ids([self.prompt + text for text in texts], is_special=True)
        counts = list(map(len, ids))
        lengths = [min(count, self.limit) if self.limit else count for count in counts]
        return [Read(*one) for one in zip(positions, counts, lengths, texts, strict=True)]

    def pieces(self, words: Sequence[str]) -> list[list[int | None]]:
        """Return the tokens of each word, special ones left out; None is the unknown one."""
        if callable(self.tokenizer):
            unknown = self.tokenizer.unk_token_id
        else:
            unknown = self.tokenizer.token_to_id("<unk>")
        ids = self._ids([*words], is_special=False)
        return [[None if one == unknown else one for one in each] for each in ids]

    def _ids(self, texts: list[str], *, is_special: bool) -> list[list[int]]:
        if callable(self.tokenizer):
            how = {"add_special_tokens": is_special, "truncation": False, "verbose": False}
            ids: list[list[int]] = self.tokenizer(texts, **how)[IDS]
            return ids
        encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def collate(self, reads: Sequence[Read]) -> Features:
        """Make what the model computes on, padded to the longest text; on the host."""
        texts = [read.content for read in reads]
        features: Features = dict(self.model.preprocess(texts, prompt=self.prompt))
        return features


class TokenisedOnce(Tokeniser):
    """Keeps every text's ids from counting to collation."""

    def __init__(self, model: SentenceTransformer, spec: EncoderSpec, others: Features) -> None:
        """Take over the model's tokenizer; ``others`` is what features hold besides tensors."""
        super().__init__(model, spec)
        self.others = others
        self.fill = {
            IDS: self.tokenizer.pad_token_id,
            TYPES: getattr(self.tokenizer, "pad_token_type_id", 0),
        }

    def read(self, positions: Sequence[int], texts: Sequence[str]) -> list[Read]:
        """Tokenise without truncation, and what is too long again with it: it keeps its ends."""
        full = [self.prompt + text for text in texts]
        whole = self._columns(full, {"truncation": False})
        tokens = [len(columns[IDS]) for columns in whole]
        long = [i for i, count in enumerate(tokens) if self.limit and count > self.limit]
        if long:
            how = {"truncation": "longest_first", "max_length": self.limit}
            cut = self._columns([full[i] for i in long], how)
            for i, columns in zip(long, cut, strict=True):
                whole[i] = columns
        return [
            Read(position, count, len(columns[IDS]), columns)
            for position, count, columns in zip(positions, tokens, whole, strict=True)
        ]

    def _columns(self, texts: list[str], how: dict[str, Any]) -> list[dict[str, NDArray[np.int32]]]:
        made = self.tokenizer(texts, verbose=False, return_attention_mask=False, **how)
        return [
            {name: np.asarray(values[i], dtype=np.int32) for name, values in made.items()}
            for i in range(len(texts))
        ]

    def collate(self, reads: Sequence[Read]) -> Features:
        """Pad the ids to the longest text, on the tokenizer's side."""
        shape = (len(reads), max(read.length for read in reads))
        names = list(reads[0].content)
        padded = {name: np.full(shape, self.fill.get(name, 0), dtype=np.int64) for name in names}
        mask = np.zeros(shape, dtype=np.int64)
        is_left = self.tokenizer.padding_side == "left"
        for row, read in enumerate(reads):
            here = slice(shape[1] - read.length, None) if is_left else slice(read.length)
            mask[row, here] = 1
            for name in names:
                padded[name][row, here] = read.content[name]
        tensors = {name: torch.from_numpy(array) for name, array in (*padded.items(), (MASK, mask))}
        return {**tensors, **self.others}


class BagsOfTokens(Tokeniser):
    """Keeps every text's ids from counting to collation, for static vectors: no padding, no end."""

    def read(self, positions: Sequence[int], texts: Sequence[str]) -> list[Read]:
        """Tokenise, without the places of tokens in their texts."""
        full = [self.prompt + text for text in texts]
        encodings = self.tokenizer.encode_batch_fast(full, add_special_tokens=False)
        bags = [np.asarray(encoding.ids, dtype=np.int32) for encoding in encodings]
        return [
            Read(position, len(bag), len(bag), bag)
            for position, bag in zip(positions, bags, strict=True)
        ]

    def collate(self, reads: Sequence[Read]) -> Features:
        """Put all bags into one row, and say where each begins."""
        row = np.concatenate([read.content for read in reads]).astype(np.int64)
        begins = np.cumsum([0, *(read.length for read in reads[:-1])], dtype=np.int64)
        return {IDS: torch.from_numpy(row), "offsets": torch.from_numpy(begins)}


def tokeniser_of(model: SentenceTransformer, spec: EncoderSpec) -> Tokeniser:
    """Tokenise once wherever that gives exactly the features the model makes itself.

    Tried on a short text and on one that has to be cut, with the prompt: whatever a model's folder
    asks of its tokenizer shows there.
    """
    own = Tokeniser(model, spec)
    tokenizer = model.tokenizer
    short, long = "A b.", "Of bees, 3 " * (spec.max_length or 8)
    expected = own.collate(own.read([0, 1], [short, long]))
    others = {k: v for k, v in expected.items() if not isinstance(v, torch.Tensor)}
    once: Tokeniser
    if callable(tokenizer):
        if tokenizer.pad_token_id is None or others.get("modality") != "text":
            return own
        once = TokenisedOnce(model, spec, others)
    elif hasattr(tokenizer, "encode_batch_fast") and not others:
        once = BagsOfTokens(model, spec)
    else:
        return own
    if MASK not in expected and "offsets" not in expected:
        return own  # such as texts packed into one row for flash attention
    found = once.collate(once.read([0, 1], [short, long]))
    is_equal = found.keys() == expected.keys() and all(
        found[name].dtype == value.dtype and torch.equal(found[name], value)
        if isinstance(value, torch.Tensor)
        else found[name] == value
        for name, value in expected.items()
    )
    return once if is_equal else own
