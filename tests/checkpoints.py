"""Tiny checkpoints of real architectures, with random weights and a small real tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModel,
    FalconConfig,
    LlamaConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

WORDS = [
    *("the", "a", "budget", "server", "bees", "honey", "winter", "queue"),
    *("login", "bill", "dance", "run", "knee", "shoe", "light", "lens"),
]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
CHAT_TEMPLATE = "{% for m in messages %}<s> winter winter {{ m['content'] }} </s>{% endfor %}"
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def config(architecture: str) -> PreTrainedConfig:
    vocabulary = {"vocab_size": len(WORDS) + len(SPECIAL)}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    match architecture:
        case "roberta":
            return RobertaConfig(
                **vocabulary, **ids, **SMALL, intermediate_size=32, max_position_embeddings=34
            )
        case "mpnet":
            return MPNetConfig(
                **vocabulary, **ids, **SMALL, intermediate_size=32, max_position_embeddings=34
            )
        case "falcon":
            return FalconConfig(
                **vocabulary, **SMALL, bos_token_id=1, eos_token_id=2, max_position_embeddings=32
            )
        case "llama":
            return LlamaConfig(
                **vocabulary, **SMALL, intermediate_size=32, max_position_embeddings=32
            )
    raise ValueError(architecture)


def tokenizer(architecture: str, *, chat: bool = False) -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"eos_token": "</s>", "unk_token": "<unk>"}
    if architecture in ("roberta", "mpnet"):
        core.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 1), trim_offsets=False
        )
        special |= {"pad_token": "<pad>", "bos_token": "<s>"}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    if chat:
        wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def save_checkpoint(
    architecture: str, folder: Path, *, chat: bool = False, dtype: torch.dtype = torch.float32
) -> Path:
    torch.manual_seed(0)
    model = AutoModel.from_config(config(architecture))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    model.to(dtype).save_pretrained(folder)
    tokenizer(architecture, chat=chat).save_pretrained(folder)
    return folder
