"""A network that scores gaps, on vectors or texts: to be trained, used, and kept in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings
from reffree.encoders.models import find_model
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.segmenters.base import Inputs
from reffree.segmenters.network_folder import NetworkDescription, read_weights, write_network
from reffree.segmenters.scorer.data import Gaps
from reffree.segmenters.scorer.model import (
    GapModel,
    Head,
    HeadOnVectors,
    PairClassifier,
    PairOnTexts,
    document_logits,
)
from reffree.segmenters.scorer.transformer_files import load_transformer, read_layout, write_layout
from reffree.util.arrays import Floats
from reffree.util.errors import OptionError

LAYOUT = "transformer"

UNUSED = (
    *("pooling", "layer", "dtype", "attention", "prompt", "quantisation"),
    *("device_map", "backend", "context"),
)
"""Options of encoders that a fine-tuned one does not have."""

DescribedT = TypeVar("DescribedT", bound=NetworkDescription)


@dataclass(frozen=True, slots=True)
class GapNetwork(Generic[DescribedT]):
    """A network and what is known of it; ``tokenizer`` only where the encoder is fine-tuned."""

    network: Head | PairClassifier
    description: DescribedT
    tokenizer: Any = None

    def logits(self, inputs: Inputs, window: int) -> list[Floats]:
        """Score each of the ``n - 1`` gaps of every document, on the device that inputs name.

        Refuses vectors of another encoder than the one the network was trained on, as far as
        ``inputs`` says whose they are, and vectors of another size in any case.
        """
        return document_logits(self._models(inputs), window)

    def _models(self, inputs: Inputs) -> Iterator[GapModel]:
        """Let the network look at every document."""
        network, told, device = self.network, self.description, choose_device(inputs.device)
        if isinstance(network, PairClassifier):
            length = told.encoder.max_length
            for document in inputs.corpus:
                yield PairOnTexts(network, self.tokenizer, document.units, length, device)
            return
        for x in inputs.vectors(told.kind):
            told.check_vectors(inputs.encoder, x.shape[1])
            yield HeadOnVectors(network, [x], device)

    def save(self, folder: Path) -> None:
        """Write a new folder, whole or not at all."""
        write_network(folder, self.network, self.description, self._write_layout)

    def _write_layout(self, folder: Path) -> None:
        if isinstance(self.network, PairClassifier):
            write_layout(self.network.transformer, self.tokenizer, folder / LAYOUT)


def read_network(
    folder: Path,
    description: NetworkDescription,
    window: int,
    classifier: type[PairClassifier] = PairClassifier,
) -> tuple[Head | PairClassifier, Any]:
    """Read a network back, and its tokenizer if it has one; nothing in the folder is run."""
    settings, tokenizer = description.settings, None
    network: Head | PairClassifier
    if settings.finetune:
        transformer, tokenizer = read_layout(folder / LAYOUT)
        network = classifier(transformer, reads_first=tokenizer.cls_token is not None)
    else:
        network = Head(description.dimension, window, settings.hidden, settings.dropout)
    read_weights(folder, network, description)
    return network, tokenizer


@dataclass(frozen=True, slots=True)
class Start:
    """What a training starts from: the vectors of all units, or an encoder and their texts."""

    spec: EncoderSpec
    dimension: int
    vectors: Sequence[NDArray[np.generic]] = ()
    texts: Sequence[str] = ()
    transformer: Any = None
    tokenizer: Any = None

    @classmethod
    def on_vectors(cls, embedded: Sequence[Embeddings]) -> Start:
        """Leave the encoder as it is."""
        vectors = [x for each in embedded for x in each.vectors]
        return cls(embedded[0].spec, vectors[0].shape[1], vectors)

    @classmethod
    def on_texts(cls, texts: Sequence[str], options: EncoderOptions) -> Start:
        """Fine-tune the encoder itself, in float32 and as its files have it, but for its length."""
        settings, plain = options.model_settings, ModelSettings()
        for name in UNUSED:
            if (value := getattr(settings, name)) != getattr(plain, name):
                raise OptionError(
                    f"{name} = {value} for an encoder that is fine-tuned",
                    expected="one that is read as it is",
                    remedy="leave it out; mixed_precision is what it is trained in",
                )
        length = ModelSettings(max_length=settings.max_length)
        folder = find_model(options.model, offline=options.offline, settings=length)
        transformer, tokenizer = load_transformer(folder)
        dimension = transformer.config.hidden_size
        return cls(folder.spec, dimension, (), texts, transformer, tokenizer)

    def model(
        self,
        window: int,
        hidden: int,
        dropout: float,
        gaps: Gaps,
        device: torch.device,
        classifier: type[PairClassifier] = PairClassifier,
    ) -> GapModel:
        """Make a network with random weights, standardised on the gaps it will learn from."""
        if self.transformer is not None:
            reads_first = self.tokenizer.cls_token is not None
            network = classifier(self.transformer, reads_first=reads_first)
            return PairOnTexts(network, self.tokenizer, self.texts, self.spec.max_length, device)
        head = Head(self.dimension, window, hidden, dropout)
        model = HeadOnVectors(head, self.vectors)
        head.standardise(model, gaps)
        model.to(device)
        return model
