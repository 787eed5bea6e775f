"""Operations and bytes of encoding, and the seconds they take on a card.

Formulas, data sheets, and every assumption as a constant with its reason; `gpu_scoring_costs.py`
has those of scoring, `gpu_model.py` makes tables of them, `gpu_checks.py` holds them against
measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reffree.encoders.sentence_transformer import TOKENS_PER_BATCH

Dtype = Literal["float64", "float32", "tf32", "bfloat16"]
Attention = Literal["eager", "fused"]
ELEMENT_BYTES: dict[Dtype, int] = {"float64": 8, "float32": 4, "tf32": 4, "bfloat16": 2}

MATMUL_SHARE = 0.70
"""Of a card's peak that matrix products reach. NVIDIA's TensorRT demo, where little else is left,
reaches 57 % (BERT-base) and 63 % (BERT-large) of an A100's peak over all (see `PUBLISHED`)."""

MEMORY_SHARE = 0.80
"""Of a card's bandwidth that kernels reach which only read and write."""

KERNEL_SECONDS = 10e-6
"""Between two kernels that Python starts: some 100,000 a second from one thread."""

KERNELS_PER_LAYER = 20
BATCH_TOKENS = TOKENS_PER_BATCH["cuda"]
"""Tokens in a batch: the most that a batch holds, where memory has a place for them."""

PCIE_SHARE = 0.80
"""Of the bus that pinned copies reach."""

TOKENS_PER_CORE = 500_000.0
"""Tokens a second that one core makes of text; ``--calibrate`` measures some more here."""

UNIT_PYTHON_SECONDS = 4e-6
TOKEN_PYTHON_SECONDS = 0.3e-6
"""Of that, for a unit and for each of its tokens, what is Python: lists of ids, batches. Threads of
one process take turns at it and at starting kernels (``--calibrate``)."""

CORES_PER_CARD = 8
"""Cores of the host for every card: what cloud machines with these cards have, or more."""

ROW_SECONDS = 10e-6
ROW_BYTE_SECONDS = 2.5e-9
"""Writing one vector to the cache, and each of its bytes, by one thread; ``--calibrate`` measures
them on a file of 100,000 rows, and larger ones take somewhat longer."""

LOOKUP_SECONDS = 20e-6
"""Reading a unit and looking it up in the cache, before anything is encoded: `load.py` took 25 s
for a million units, some of it to start."""

DRIVER_BYTES_PER_SECOND = 3e9
"""What a driver takes in from actors: a 25 Gbit/s network, or pickles from one thread."""

UNIT_CHARACTERS_PER_TOKEN = 4.5

FREE_SHARE = 0.9
"""Of a card's memory that models and scores may take."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card as its maker describes it: dense operations a second, bytes a second."""

    name: str
    source: str
    peak: dict[Dtype, float]  # matrix products, without sparsity
    bandwidth: float
    memory: float  # bytes
    bus: float  # bytes a second, one way
    capability: tuple[int, int] | None  # CUDA's; None for what is no such card


CARDS = (
    Card(
        "A100 80GB SXM",
        "NVIDIA A100 Tensor Core GPU data sheet (1758950-r4)",
        {"float64": 19.5e12, "float32": 19.5e12, "tf32": 156e12, "bfloat16": 312e12},
        bandwidth=2039e9,
        memory=80e9,
        bus=32e9,
        capability=(8, 0),
    ),
    Card(
        "H100 80GB SXM",
        "NVIDIA H100 Tensor Core GPU data sheet; half of the figures with sparsity",
        {"float64": 67e12, "float32": 67e12, "tf32": 494.5e12, "bfloat16": 989.5e12},
        bandwidth=3350e9,
        memory=80e9,
        bus=64e9,
        capability=(9, 0),
    ),
    Card(
        "L4 24GB",
        "NVIDIA L4 Tensor Core GPU data sheet; half of the figures with sparsity; float64 is 1/64 "
        "of float32 in the Ada architecture. At 72 W it may not hold its clock: an upper bound",
        {"float64": 0.473e12, "float32": 30.3e12, "tf32": 60e12, "bfloat16": 121e12},
        bandwidth=300e9,
        memory=24e9,
        bus=32e9,
        capability=(8, 9),
    ),
)


@dataclass(frozen=True, slots=True)
class Transformer:
    """An encoder as its ``config.json`` describes it."""

    name: str
    layers: int
    hidden: int
    heads: int
    feed: int
    parameters: float
    attention: Attention
    kv_heads: int | None = None  # None: as many as heads
    has_pooler: bool = True
    attention_passes: int = 8  # times that eager attention touches its scores

    def flops(self, tokens: int) -> float:
        """Operations of the matrix products for one unit, a multiplication and an addition each."""
        h = self.hidden
        attended = 2 * tokens * h  # products of scores and of what is seen, per token
        pooled = 2 * h * h if self.has_pooler else 0
        return float(self.layers * 2 * tokens * (self.layer_weights + attended) + pooled)

    def activation_bytes(self, tokens: int, dtype: Dtype, *, fused: bool = False) -> float:
        """Bytes that kernels read and write for one unit, weights aside.

        Per token and layer, in numbers: queries, keys and values 6h, attention 4h, its output 2h,
        two additions with their normalisations 10h, the two feed-forward layers 2h + 2f and the
        activation between 2f; where attention is eager, its scores so many times. ``fused`` leaves
        out what an engine does inside a product: the activation and half of the additions.
        """
        h = self.hidden
        numbers = 24 * h + 4 * self.feed
        if fused:
            numbers -= 5 * h + 2 * self.feed
        if self.attention == "eager" and not fused:
            numbers += self.attention_passes * self.heads * tokens
        return float(self.layers * tokens * numbers * ELEMENT_BYTES[dtype])

    @property
    def layer_weights(self) -> int:
        """Numbers in the matrices of one layer."""
        h, keys = self.hidden, self.hidden // self.heads * (self.kv_heads or self.heads)
        return 2 * h * h + 2 * h * keys + 2 * h * self.feed

    def read_bytes(self, dtype: Dtype) -> float:
        """Bytes of the weights that a batch reads: of its words' vectors, next to none."""
        return float(self.layers * self.layer_weights * ELEMENT_BYTES[dtype])

    def fits(self, card: Card, dtype: Dtype) -> bool:
        """Whether the weights leave a tenth of the card free."""
        return self.parameters * ELEMENT_BYTES[dtype] <= FREE_SHARE * card.memory


MODELS = (
    Transformer(
        "MPNet-base", 12, 768, 12, 3072, 109e6, "eager", attention_passes=10
    ),  # transformers has no fused attention for it; scores are scaled, biased and masked
    Transformer("RoBERTa-base", 12, 768, 12, 3072, 125e6, "fused"),
    Transformer("RoBERTa-large", 24, 1024, 16, 4096, 355e6, "fused"),
    Transformer("Falcon-7B", 32, 4544, 71, 4 * 4544, 6.92e9, "fused", kv_heads=1, has_pooler=False),
)
MINILM = Transformer("MiniLM-L6", 6, 384, 12, 1536, 22.7e6, "fused")

LENGTHS = (20, 60)
"""Tokens of a unit: a turn of talk, a sentence of an encyclopedia with some to spare."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Seconds for one unit in every stage of encoding; they work at the same time.

    So an ideal pipeline has it: batches in, the model and vectors out are queues of their
    own, the host tokenises the next batches and a thread writes the cache.
    """

    products: float
    activations: float
    python: float  # that threads of a process take turns at
    copies: float  # in the direction that takes longer
    tokenising: float
    cache: float
    driver: float = 0.0
    lookup: float = LOOKUP_SECONDS  # before all others

    @property
    def seconds(self) -> dict[str, float]:
        """By what bounds; products and other kernels take turns on the card."""
        on_card = "compute" if self.products >= self.activations else "memory"
        return {
            on_card: self.products + self.activations,
            "Python": self.python,
            "copies": self.copies,
            "tokenising": self.tokenising,
            "cache writer": self.cache,
            "driver": self.driver,
        }

    @property
    def bound(self) -> str:
        """The slowest stage."""
        return max(self.seconds, key=lambda name: self.seconds[name])

    @property
    def units_per_second(self) -> float:
        """What the slowest stage lets through."""
        return 1 / max(self.seconds.values())

    @property
    def whole_run(self) -> float:
        """Units per second of a run that encodes all of them, with what is done before."""
        return 1 / (self.lookup + max(self.seconds.values()))

    def on(
        self, cards: int, hosts: int = 1, *, writers: int = 1, one_process: bool = False
    ) -> Stages:
        """Spread over cards of a host and hosts; ``writers`` caches are filled at a time.

        ``embed`` has a process for every card, all other commands a thread in ``one_process``.
        """
        n = cards * hosts
        return Stages(
            self.products / n,
            self.activations / n,
            self.python / (hosts if one_process else n),
            self.copies / n,
            self.tokenising / n,
            self.cache / writers,
            self.driver if hosts > writers else 0.0,
            self.lookup / writers,
        )


def encoding(model: Transformer, tokens: int, card: Card, dtype: Dtype) -> Stages | None:
    """Predict encoding units of so many tokens on one card; None where weights do not fit."""
    if not model.fits(card, dtype):
        return None
    moved = model.activation_bytes(tokens, dtype)
    moved += model.read_bytes(dtype) * tokens / BATCH_TOKENS
    vector = 4 * model.hidden
    launches = KERNELS_PER_LAYER * model.layers * KERNEL_SECONDS / BATCH_TOKENS
    return Stages(
        products=model.flops(tokens) / (card.peak[dtype] * MATMUL_SHARE),
        activations=moved / (card.bandwidth * MEMORY_SHARE),
        python=UNIT_PYTHON_SECONDS + (TOKEN_PYTHON_SECONDS + launches) * tokens,
        copies=max(16 * tokens, vector) / (card.bus * PCIE_SHARE),
        tokenising=tokens / (TOKENS_PER_CORE * CORES_PER_CARD),
        cache=ROW_SECONDS + ROW_BYTE_SECONDS * vector,
        driver=(vector + UNIT_CHARACTERS_PER_TOKEN * tokens) / DRIVER_BYTES_PER_SECOND,
    )
