"""What trained networks have in common: how they start, score gaps, and are kept in a folder."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from reffree.data.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors, corpus_vectors, units_taking_part
from reffree.encoders.models import find_model
from reffree.encoders.options import EncoderOptions, ModelSettings
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.selection import Rule, select_above
from reffree.segmenters.trained.folder import (
    DESCRIPTION,
    Description,
    SettingsT,
    encoders_of,
    read_description,
)
from reffree.segmenters.trained.gap_networks import (
    GapModel,
    Head,
    HeadOnVectors,
    PairClassifier,
    PairOnTexts,
    document_logits,
    load_transformer,
    read_layout,
)
from reffree.segmenters.trained.settings import Kind, TrainingSettings
from reffree.segmenters.trained.training import Trainer
from reffree.util.arrays import Floats, Integers
from reffree.util.atomic import check_new_folder, replacing
from reffree.util.errors import EncoderError, InputError, OptionError, Place
from reffree.util.progress import Progress

WEIGHTS = "weights.safetensors"
LAYOUT = "transformer"
"""Folder of what a fine-tuned transformer is beside its weights."""

UNUSED = (
    *("pooling", "layer", "dtype", "attention", "prompt", "quantisation"),
    *("device_map", "backend", "context"),
)
"""Options of encoders that a fine-tuned one does not have."""


@dataclass(frozen=True, slots=True)
class Trained(Generic[SettingsT]):
    """A network and what is known of it; ``tokenizer`` only where the encoder is fine-tuned."""

    network: nn.Module
    description: Description[SettingsT]
    tokenizer: Any = None
    kind: ClassVar[Kind]

    @abstractmethod
    def gap_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Score the ``n - 1`` gaps of every document, from 0 to 1, on the device of the inputs.

        Refuses vectors of another encoder than the one it was trained on, as far as ``inputs``
        says whose they are, and of another size.
        """

    @classmethod
    @abstractmethod
    def make_network(
        cls, description: Description[SettingsT], layout: Path
    ) -> tuple[nn.Module, Any]:
        """Make the network that is described, without its weights, and its tokenizer if any."""

    @classmethod
    def of(
        cls,
        trainer: Trainer,
        settings: SettingsT,
        start: Start,
        corpora: Mapping[str, tuple[str, ...]],
        counts: Mapping[str, int],
        figures: Mapping[str, Any],
    ) -> Self:
        """Write down how a network came about."""
        description = Description(
            settings=settings,
            encoder=start.spec,
            dimension=start.dimension,
            corpora=corpora,
            counts=counts,
            figures=figures,
            history=tuple(trainer.history),
            is_interrupted=trainer.is_interrupted,
            device=str(trainer.accelerator.device),
            precision=trainer.accelerator.mixed_precision,
        )
        return cls(trainer.network, description, start.tokenizer)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read a folder that `save` wrote; nothing in it is run."""
        path = Path(folder) / WEIGHTS
        description = read_description(Path(folder), cls.kind)
        network, tokenizer = cls.make_network(description, Path(folder) / LAYOUT)
        try:
            weights = path.read_bytes()
            if hashlib.sha256(weights).hexdigest() == description.weights:
                network.load_state_dict(safetensors.torch.load(weights))
                return cls(network.eval(), description, tokenizer)
            found = "weights that do not belong to the description beside them"
        except OSError as error:
            found = f"no weights ({error.strerror})"
        except (safetensors.SafetensorError, RuntimeError):
            found = "weights of another shape than described"
        raise InputError(
            found,
            expected=f"the weights of a {cls.kind} that reffree train {cls.kind} wrote",
            remedy=f"copy the whole folder again, or train the {cls.kind} again",
            place=Place(file=str(path)),
        )

    def save(self, folder: Path | str) -> None:
        """Write a new folder, whole or not at all."""
        folder = Path(folder)
        check_new_folder(folder)
        state = self.network.state_dict()
        weights = safetensors.torch.save(
            {k: v.detach().cpu().contiguous() for k, v in state.items()}
        )
        text = self.description.as_json(hashlib.sha256(weights).hexdigest())
        try:
            with replacing(folder) as temporary:
                temporary.mkdir()
                (temporary / WEIGHTS).write_bytes(weights)
                (temporary / DESCRIPTION).write_text(text, encoding="utf-8")
                if isinstance(self.network, PairClassifier):
                    self.network.transformer.config.save_pretrained(str(temporary / LAYOUT))
                    self.tokenizer.save_pretrained(str(temporary / LAYOUT))
                if folder.is_dir():
                    folder.rmdir()
        except OSError as error:
            raise InputError(
                f"a folder that cannot be written ({error.strerror or error})",
                expected=f"a place with room for the {self.kind}",
                remedy="choose another, or create the folder it is to be in",
                place=Place(file=str(folder)),
            ) from None

    def read_vectors(self, inputs: Inputs) -> Iterator[NDArray[np.generic]]:
        """Every document's vectors, if they are of the encoder that the network was trained on."""
        known = self.description
        for x in inputs.vectors(self.kind):
            known.check_encoder(inputs.encoder)
            if x.shape[1] != known.dimension:
                raise EncoderError(
                    f"{self.kind}: found vectors of {x.shape[1]} dimensions; expected "
                    f"{known.dimension}, those of {known.encoder.name!r}, which it was trained on; "
                    f"use that encoder, or train a {self.kind} for this one"
                )
            yield x


class GapNetwork(Trained[SettingsT]):
    """A network that looks at windows of units on both sides of a gap."""

    __slots__ = ()
    classifier: ClassVar[type[PairClassifier]] = PairClassifier

    @classmethod
    def make_network(
        cls, description: Description[SettingsT], layout: Path
    ) -> tuple[nn.Module, Any]:
        """Make a head on vectors, or a classifier on the encoder that was fine-tuned."""
        parts = read_layout(layout) if description.settings.finetune else (None, None)
        start = Start(description.encoder, description.dimension, (), (), *parts)
        return start.network(description.settings, cls.classifier), start.tokenizer

    def logits(self, inputs: Inputs) -> list[Floats]:
        """Score each of the ``n - 1`` gaps of every document, on the device that inputs name."""
        network, device = self.network, choose_device(inputs.device)
        models: Iterator[GapModel]
        if isinstance(network, Head):
            models = (HeadOnVectors(network, [x], device) for x in self.read_vectors(inputs))
        else:
            assert isinstance(network, PairClassifier)
            read = self.tokenizer, self.description.encoder.max_length
            models = (PairOnTexts(network, d.units, *read, device) for d in inputs.corpus)
        return document_logits(models, self.description.settings.window)


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
    def of(
        cls,
        corpora: Mapping[str, Corpus],
        embeddings: Mapping[str, Vectors],
        settings: TrainingSettings,
        options: EncoderOptions,
        progress: Progress,
    ) -> Start:
        """Encode corpora of the units that take part, or open the encoder that is fine-tuned.

        That is trained in float32 and as its files have it, but for its length.
        """
        if not settings.finetune:
            embedded = [
                corpus_vectors(corpus, embeddings.get(name), options, progress)
                for name, corpus in corpora.items()
            ]
            vectors = [x for each in embedded for x in each.vectors]
            return cls(embedded[0].spec, vectors[0].shape[1], vectors)
        for name in UNUSED:
            value = getattr(options.model_settings, name)
            if value != getattr(ModelSettings(), name):
                raise OptionError(
                    f"{name} = {value} for an encoder that is fine-tuned",
                    expected="one that is read as it is",
                    remedy="leave it out; mixed_precision is what it is trained in",
                )
        length = ModelSettings(max_length=options.model_settings.max_length)
        folder = find_model(options.model, offline=options.offline, settings=length)
        transformer, tokenizer = load_transformer(folder)
        texts = [unit for corpus in corpora.values() for d in corpus for unit in d.units]
        return cls(folder.spec, transformer.config.hidden_size, (), texts, transformer, tokenizer)

    def network(
        self, settings: TrainingSettings, classifier: type[PairClassifier]
    ) -> Head | PairClassifier:
        """Make a network with random weights."""
        if self.transformer is not None:
            return classifier(self.transformer, reads_first=self.tokenizer.cls_token is not None)
        return Head(self.dimension, settings.window, settings.hidden, settings.dropped)

    def model(
        self,
        settings: TrainingSettings,
        windows: Integers,
        device: torch.device,
        classifier: type[PairClassifier] = PairClassifier,
    ) -> GapModel:
        """Make a network and what it looks at, standardised on the gaps it will learn from."""
        network = self.network(settings, classifier)
        if isinstance(network, PairClassifier):
            return PairOnTexts(network, self.texts, self.tokenizer, self.spec.max_length, device)
        model = HeadOnVectors(network, self.vectors)
        network.standardise(model, windows)
        model.to(device)
        return model


def take_part(
    corpora: Corpus | Mapping[str, Corpus] | None,
    embeddings: Mapping[str, Vectors] | None,
    options: EncoderOptions,
) -> tuple[dict[str, Corpus], dict[str, Vectors]]:
    """Leave out units as the options say, of corpora by name and of the vectors given for them.

    One corpus without a name is called ``corpus``.
    """
    parts, vectors = {}, {}
    named = {"corpus": corpora} if isinstance(corpora, Corpus) else corpora or {}
    for name, corpus in named.items():
        part, given = units_taking_part(corpus, (embeddings or {}).get(name), options)
        parts[name] = part.corpus
        if given is not None:
            vectors[name] = given
    return parts, vectors


class TrainedMethod(GapScorer):
    """A segmenter whose network is in the folder ``path``."""

    __slots__ = ()
    path: str
    threshold: float | Literal["held_out"]
    trained: ClassVar[type[Trained[Any]]]

    def __post_init__(self) -> None:
        GapScorer.__post_init__(self)
        if not self.path:
            kind = self.trained.kind
            raise InputError(
                "no path",
                expected=f"the folder of a trained {kind}",
                remedy=f"write {self.name}:path=FOLDER, and make one with reffree train {kind}",
            )

    @property
    def encoders(self) -> tuple[EncoderSpec, ...]:
        """The encoder that it was trained on; none of a network whose encoder was fine-tuned."""
        return encoders_of(filter(None, [self.path]), self.trained.kind)

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not for a network whose encoder was fine-tuned."""
        return bool(self.encoders)

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a damaged folder, another encoder, and a threshold that training did not give."""
        GapScorer.check(self, corpus, encoder)
        if self.path:
            self.trained.load(self.path).description.check_encoder(encoder)
            self.chosen_threshold()

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Score of every gap, from 0 to 1."""
        return self.trained.load(self.path).gap_scores(inputs)

    def selection_rule(self) -> Rule:
        """Select all that reach the threshold."""
        threshold, min_gap = self.chosen_threshold(), getattr(self, "min_gap", 1)
        return lambda scores, candidates: select_above(scores, threshold, min_gap, candidates)

    def chosen_threshold(self) -> float:
        """Return the threshold given, or the best on the documents held out in training."""
        if self.threshold != "held_out":
            return self.threshold
        description = read_description(Path(self.path), self.trained.kind)
        found: float | None = description.figures["threshold"]
        if found is None:
            raise InputError(
                "threshold = held_out of a model that was trained without gold",
                expected="gold in the documents held out in training",
                remedy="leave it out, or train with gold",
            )
        return found
