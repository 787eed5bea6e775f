"""Short names of models, with the settings that are pinned to them.

``mpnet``, ``roberta`` and ``falcon-7b`` are the encoders of the ARP paper (Ghinassi et al. 2024,
§5.2: each the mean of the last layer), at the revisions their hub pages had when this was written.
The paper says nothing of maximum length or precision: the models' own are taken, and Falcon's
weights are computed in the type they are stored in, since 7 billion of them in float32 fill 29 GB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Loader = Literal["sentence-transformers", "encoder", "decoder", "static"]

DEFAULT_ENCODER = "minilm"


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


ALIASES = {
    "minilm": Alias(
        "sentence-transformers/all-MiniLM-L6-v2",
        "sentence-transformers",
        dimension=384,
        parameters=22_713_216,
        size=90_868_376,
        licence="Apache-2.0",
    ),
    "mpnet": Alias(
        "sentence-transformers/all-mpnet-base-v2",
        "sentence-transformers",
        dimension=768,
        parameters=109_486_464,
        size=438_000_000,
        licence="Apache-2.0",
        revision="e8c3b32edf5434bc2275fc9bab85f82640a19130",
    ),
    "roberta": Alias(
        "FacebookAI/roberta-base",
        "encoder",
        dimension=768,
        parameters=124_645_632,
        size=498_818_054,
        licence="MIT",
        revision="e2da8e2f811d1448a5b465c236feacd80ffbac7b",
    ),
    "falcon-7b": Alias(
        "tiiuae/falcon-7b",
        "decoder",
        dimension=4544,
        parameters=6_921_720_704,
        size=14_400_000_000,
        licence="Apache-2.0",
        revision="ec89142b67d748a1865ea4451372db8313ada0d8",
        dtype="bfloat16",
    ),
    "wordllama": Alias(
        "wordllama/l2_supercat_256",
        "static",
        dimension=256,
        parameters=8_192_000,
        size=16_384_096,
        licence="MIT (vectors derived from Llama 2)",
    ),
    "smollm2": Alias(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "decoder",
        dimension=576,
        parameters=134_515_008,
        size=98_362_432,
        licence="Apache-2.0",
    ),
}
