"""Tiny checkpoints of real architectures, with random weights and a small real tokenizer."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForNextSentencePrediction,
    BertConfig,
    DistilBertConfig,
    FalconConfig,
    GPT2Config,
    LlamaConfig,
    MPNetConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
)

WORDS = [
    *("the", "a", "budget", "server", "bees", "honey", "winter", "queue"),
    *("login", "bill", "dance", "run", "knee", "shoe", "light", "lens"),
]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
CHAT_TEMPLATE = "{% for m in messages %}<s> winter winter {{ m['content'] }} </s>{% endfor %}"
REAL = {
    # What the real config.json have that a tiny model can have too: FacebookAI/roberta-base,
    # microsoft/mpnet-base, tiiuae/falcon-7b, HuggingFaceTB/SmolLM2-135M, openai-community/gpt2,
    # google-bert/bert-base-uncased, distilbert/distilbert-base-uncased.
    "roberta": {"layer_norm_eps": 1e-5, "type_vocab_size": 1, "hidden_act": "gelu"},
    "mpnet": {"layer_norm_eps": 1e-5, "relative_attention_num_buckets": 32, "hidden_act": "gelu"},
    "falcon": {
        **{"alibi": False, "bias": False, "multi_query": True, "parallel_attn": True},
        **{"new_decoder_architecture": False, "layer_norm_epsilon": 1e-5},
    },
    "llama": {
        **{"hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": True},
        **{"rope_parameters": {"rope_theta": 100_000.0, "rope_type": "default"}},
    },
    "gpt2": {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
    "bert": {"layer_norm_eps": 1e-12, "type_vocab_size": 2, "hidden_act": "gelu"},
    "distilbert": {"activation": "gelu", "sinusoidal_pos_embds": False},
}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
ENDS = {"bos_token_id": 1, "eos_token_id": 2}
SHRUNK = {
    "roberta": {**{"pad_token_id": 0, "intermediate_size": 32, "max_position_embeddings": 34}},
    "mpnet": {"pad_token_id": 0, "intermediate_size": 32, "max_position_embeddings": 34},
    "falcon": {"max_position_embeddings": 32},
    "llama": {
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32},
        **{"max_position_embeddings": 32},
    },
    "gpt2": {"max_position_embeddings": 32},
    "bert": {"pad_token_id": 0, "intermediate_size": 32, "max_position_embeddings": 32},
    "distilbert": {"pad_token_id": 0, "hidden_dim": 32, "max_position_embeddings": 32},
}
CONFIGS = {
    "roberta": RobertaConfig,
    "mpnet": MPNetConfig,
    "falcon": FalconConfig,
    "llama": LlamaConfig,
    "gpt2": GPT2Config,
    "bert": BertConfig,
    "distilbert": DistilBertConfig,
    "xlm-roberta": XLMRobertaConfig,
}
ENCODERS = ("roberta", "mpnet", "bert", "distilbert", "xlm-roberta")
WITH_CLS = ("bert", "distilbert")


REAL["xlm-roberta"], SHRUNK["xlm-roberta"] = REAL["roberta"], SHRUNK["roberta"]


def config(architecture: str) -> PreTrainedConfig:
    vocabulary = {"vocab_size": len(WORDS) + len(SPECIAL)}
    values = {**vocabulary, **ENDS, **SMALL, **REAL[architecture], **SHRUNK[architecture]}
    return CONFIGS[architecture](**values)


def tokenizer(
    architecture: str, *, chat: bool = False, padding_side: str = "right"
) -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"eos_token": "</s>", "unk_token": "<unk>"}
    if architecture in ENCODERS:
        core.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 1), trim_offsets=False
        )
        special |= {"pad_token": "<pad>", "bos_token": "<s>"}
    if architecture in WITH_CLS:
        pair = "<s> $A </s> $B:1 </s>:1"
        ids = [("<s>", 1), ("</s>", 2)]
        core.post_processor = processors.TemplateProcessing("<s> $A </s>", pair, ids)
        special |= {"cls_token": "<s>", "sep_token": "</s>"}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=core, padding_side=padding_side, **special)
    if chat:
        wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def save_checkpoint(
    architecture: str,
    folder: Path,
    *,
    chat: bool = False,
    dtype: torch.dtype = torch.float32,
    padding_side: str = "right",
    head: bool = False,
    is_random: bool = True,
) -> Path:
    """Save a checkpoint; ``head`` adds the one that predicts tokens, or the next sentence.

    Its weights are far apart unless ``is_random`` is False: those that training would start from.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        heads = (
            AutoModelForNextSentencePrediction if architecture == "bert" else AutoModelForCausalLM
        )
        kind = heads if head else AutoModel
        model = kind.from_config(config(architecture))
        with torch.no_grad():
            for parameter in model.parameters() if is_random else ():
                parameter.normal_(std=0.5)
    model.to(dtype).save_pretrained(folder)
    tokenizer(architecture, chat=chat, padding_side=padding_side).save_pretrained(folder)
    return folder
