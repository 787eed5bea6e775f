"""Batches of texts: tokenised once, planned by tokens, made ready ahead, computed side by side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.base import EncoderSpec

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

T = TypeVar("T")
R = TypeVar("R")
Limits = tuple[int, int | None]
"""Tokens that a batch may hold, and how many are enough; see `plan_batches`."""

TOKENISED_AT_ONCE = 2048
"""Texts; the next so many are tokenised while the batches of these are computed."""

READY_BATCHES = 2
"""Batches that wait collated for the model."""

IN_FLIGHT = 3
"""Batches that are queued on a card: one computed, one behind it, one on its way back."""

MOST_WORKERS = 4
"""Python runs in one of them at a time, so more would wait for it."""

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
        tokenizer = self.tokenizer
        is_plain = not callable(tokenizer)
        unknown = tokenizer.token_to_id("<unk>") if is_plain else tokenizer.unk_token_id
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
        return [Read(p, len(bag), len(bag), bag) for p, bag in zip(positions, bags, strict=True)]

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
    once = own
    if callable(tokenizer):
        if tokenizer.pad_token_id is not None and others.get("modality") == "text":
            once = TokenisedOnce(model, spec, others)
    elif hasattr(tokenizer, "encode_batch_fast") and not others:
        once = BagsOfTokens(model, spec)
    found = once.collate(once.read([0, 1], [short, long]))
    is_equal = found.keys() == expected.keys() and all(
        found[name].dtype == value.dtype and torch.equal(found[name], value)
        if isinstance(value, torch.Tensor)
        else found[name] == value
        for name, value in expected.items()
    )
    return once if is_equal else own


def plan_batches(
    lengths: Sequence[int], token_budget: int, enough: int | None = None
) -> list[list[int]]:
    """Group positions so that each batch, padded, holds ``token_budget`` tokens at most.

    Longest first: padding is small, and a batch that is too large for the device fails at once.
    A text longer than the budget goes alone. A batch that holds ``enough`` tokens takes no more
    texts that would need padding: for devices that are busy with few tokens already.

    >>> plan_batches([3, 9, 4, 4], token_budget=12)
    [[1], [2, 3, 0]]
    >>> plan_batches([3, 9, 4, 4], token_budget=12, enough=8)
    [[1], [2, 3], [0]]
    """
    batches: list[list[int]] = []
    longest = held = 0
    for position in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        is_open = enough is None or held < enough or lengths[position] == longest
        if batches and held + longest <= token_budget and is_open:
            batches[-1].append(position)
            held += longest
        else:
            batches.append([position])
            longest = held = max(1, lengths[position])
    return batches


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that are computed together."""

    reads: list[Read]
    features: Features

    @property
    def size(self) -> int:
        """Tokens of the batch, padding included."""
        return max(read.length for read in self.reads) * len(self.reads)


def make_batches(
    texts: Sequence[str],
    tokeniser: Tokeniser,
    limits: Callable[[], Limits],
    *,
    pinned: bool = False,
) -> Iterator[Batch]:
    """Tokenise and batch texts, the longest first.

    Texts are taken by their characters, window after window, and batched by their tokens; the last
    batch of a window, which may not be full, waits for the texts of the next. ``limits`` is asked
    for every window: memory may have run out since the one before. ``pinned`` batches are in memory
    that a card reads by itself.
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    waiting: list[Read] = []
    for start in range(0, len(order), TOKENISED_AT_ONCE):
        window = order[start : start + TOKENISED_AT_ONCE]
        waiting += tokeniser.read(window, [texts[i] for i in window])
        *full, waiting = split(waiting, *limits())
        yield from (batch_of(reads, tokeniser, pinned=pinned) for reads in full)
    if waiting:
        yield batch_of(waiting, tokeniser, pinned=pinned)


def split(reads: Sequence[Read], token_budget: int, enough: int | None = None) -> list[list[Read]]:
    """Plan the batches of some texts."""
    plan = plan_batches([read.length for read in reads], token_budget, enough)
    return [[reads[i] for i in positions] for positions in plan]


def batch_of(reads: list[Read], tokeniser: Tokeniser, *, pinned: bool = False) -> Batch:
    """Collate some texts."""
    features = tokeniser.collate(reads)
    if pinned:
        features = {
            name: value.pin_memory() if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }
    return Batch(reads, features)


def draw_ahead(items: Iterable[T]) -> Generator[T, None, None]:
    """Draw from an iterable in a thread, a few items before they are asked for.

    What it raises is raised here, in its turn; closing this stops the thread.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="reffree-tokenising") as thread:
        pending = deque(thread.submit(next, source, None) for _ in range(READY_BATCHES))
        try:
            while (item := pending.popleft().result()) is not None:
                pending.append(thread.submit(next, source, None))
                yield item
        finally:
            for future in pending:
                future.cancel()


class ThreadShare(NamedTuple):
    """How the threads that torch may use are shared out."""

    workers: int
    threads: int  # of each worker


def share_threads() -> ThreadShare:
    """Give every worker as many threads as the others, one where there are few."""
    total = torch.get_num_threads()
    workers = min(total, MOST_WORKERS)
    return ThreadShare(workers, total // workers)


def run_side_by_side(
    items: Iterable[T], compute: Callable[[T], R], share: ThreadShare
) -> Generator[tuple[T, Callable[[], R]], None, None]:
    """Yield items in order, each with a function that returns what was computed, or raises.

    A batch's small matrices keep few threads busy: two batches on one thread each take less time
    than one after the other on two threads. The first is computed alone, when it is asked for: it
    loads what the others share. Closing this lets running computations end and starts no more.
    """
    source = iter(items)
    for item in source if share.workers == 1 else islice(source, 1):
        yield item, partial(compute, item)
    with _workers(share) as pool:
        pending: deque[tuple[T, Callable[[], R]]] = deque()
        try:
            for item in source:
                pending.append((item, pool.submit(compute, item).result))
                if len(pending) > share.workers:
                    yield pending.popleft()
            while pending:
                yield pending.popleft()
        except BaseException:  # closed early, or the source has failed
            pool.shutdown(cancel_futures=True)
            raise


def queue_ahead(
    items: Iterable[T], begin: Callable[[T], Callable[[], R]], depth: int = IN_FLIGHT
) -> Generator[tuple[T, Callable[[], R]], None, None]:
    """Yield items in order, each with a function that returns what was computed, or raises.

    For devices that go on while the host prepares more: ``begin`` queues an item's work and returns
    what waits for it, up to ``depth`` items before it is asked for.
    """
    under_way: deque[tuple[T, Callable[[], R]]] = deque()
    for item in items:
        try:
            under_way.append((item, begin(item)))
        except (RuntimeError, IndexError) as error:
            # Its frames hold memory of the device, and it is raised in its turn, after all before.
            failed: Future[R] = Future()
            failed.set_exception(error.with_traceback(None))
            under_way.append((item, failed.result))
            while under_way:  # who splits a batch that was too large does so before the next
                yield under_way.popleft()
        if len(under_way) >= depth:
            yield under_way.popleft()
    while under_way:
        yield under_way.popleft()


def _workers(share: ThreadShare) -> ThreadPoolExecutor:
    """Start every worker with its number of threads; that of all other threads stays."""
    before = torch.get_num_threads()
    are_ready = threading.Barrier(share.workers + 1)

    def begin() -> None:
        torch.set_num_threads(share.threads)  # of this thread, and of those that ask later
        torch.get_num_threads()  # a thread that has asked keeps its number
        are_ready.wait()

    pool = ThreadPoolExecutor(share.workers, "reffree-encoding", initializer=begin)
    for _ in range(share.workers):
        pool.submit(int)
    are_ready.wait()
    torch.set_num_threads(before)
    return pool
