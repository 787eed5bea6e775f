"""Options of how texts become vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from reffree.bounds import Count, Positive
from reffree.cli.options import Decorator, option_group, whole
from reffree.encoders.options import BACKENDS, CHOICES


def model_settings(*, hidden: bool) -> Decorator:
    """How a model makes a vector; ``reffree models --help`` shows what other commands hide."""
    option = partial(click.option, hidden=hidden)
    return option_group(
        option(
            "--pooling",
            type=click.Choice(CHOICES["pooling"]),
            help="Of the tokens' vectors, over a model's bare transformer.  [default: the model's "
            "own, else mean]",
        ),
        option(
            "--layer",
            type=int,
            metavar="N",
            help="Whose output is pooled: 0 embeddings, -1 last.  [default: -1]",
        ),
        option(
            "--dtype",
            type=click.Choice(CHOICES["dtype"]),
            help="Of the computation; auto is the weights' own.  [default: float32, falcon-7b "
            "bfloat16]",
        ),
        option(
            "--attention",
            type=click.Choice(CHOICES["attention"]),
            help="Implementation.  [default: the best the architecture has]",
        ),
        option(
            "--prompt", metavar="TEXT", help="Put before every text.  [default: the model's own]"
        ),
        option(
            "--max-length",
            type=int,
            metavar="N",
            help="Tokens read of a text.  [default: the model's own]",
        ),
        option(
            "--quantisation",
            type=click.Choice(CHOICES["quantisation"]),
            help="Quantise the weights (needs bitsandbytes).",
        ),
        option(
            "--device-map",
            type=click.Choice(["auto", "balanced", "sequential"]),
            help="Spread a model too large for one device over all, memory and disk.",
        ),
        option(
            "--backend",
            type=click.Choice(BACKENDS),
            default="torch",
            show_default=True,
            help="What runs the transformer; auto is the fastest of those installed that give "
            "torch's vectors; onnx-int8 moves them, and the signature says how far.",
        ),
        option("--trust-remote-code", is_flag=True, help="Run code that comes with a model."),
        option(
            "--allow-pickle",
            is_flag=True,
            help="Read .bin weights where there are no safetensors.",
        ),
    )


cache_dir_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="REFFREE_CACHE_DIR",
    help="Folder of the embedding cache.  [default: the user's cache folder]",
)

_how_to_encode = option_group(
    model_settings(hidden=True),
    click.option(
        "--context",
        type=whole(Count),
        default=0,
        show_default=True,
        metavar="K",
        help="Encode each unit with K units before and after it (helps short utterances).",
    ),
    click.option(
        "--drop-backchannels",
        is_flag=True,
        help='Leave out units such as "yeah" or "mm-hmm" (English), like units without text.',
    ),
    click.option(
        "--drop-repeats",
        is_flag=True,
        help="Of equal units of a document keep the first, so that a text counts once.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="auto, cpu, cuda, cuda:1 or mps.",
    ),
    click.option(
        "--batch-tokens",
        type=whole(Positive),
        help="Tokens per encoder batch, padding included; by default chosen for the device.",
    ),
    click.option("--offline", is_flag=True, help="Never connect to a model hub."),
    click.option(
        "--no-cache",
        "cache",
        is_flag=True,
        callback=lambda ctx, param, value: not value,
        help="Neither read nor write cached embeddings.",
    ),
    cache_dir_option,
)

encoding_options = option_group(
    click.option(
        "--encoder",
        metavar="NAME",
        help="Alias, folder or hub id; reffree models lists aliases, its --help the settings of "
        "models.  [default: minilm]",
    ),
    _how_to_encode,
)

several_encoders = option_group(
    click.option(
        "--encoder",
        "encoders",
        multiple=True,
        metavar="NAME",
        help="Alias, folder or hub id; reffree models lists aliases. May be repeated.  [default: "
        "minilm]",
    ),
    _how_to_encode,
)
