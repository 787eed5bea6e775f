"""The settings behind a number, as one line that fits beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from reffree.encoders.base import EncoderSpec
from reffree.naming import settings_of
from reffree.scoring.metrics import Metric
from reffree.study.bootstrap import CONFIDENCE, RESAMPLES

SHORT_KEYS = {
    "metrics": "m",
    "encoder": "e",
    "pooling": "p",
    "normalisation": "n",
    "dtype": "d",
    "maxlen": "l",
    "truncated": "t",
    "unsegmented": "u",
    "aggregation": "a",
    "null": "c",
    "seed": "s",
    "reffree": "v",
}
"""Fields of the short form; the others vary only in ways that do not change a score."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Named settings in a fixed order."""

    fields: dict[str, str]

    @classmethod
    def of(
        cls,
        metrics: Sequence[Metric],
        spec: EncoderSpec,
        *,
        truncated_share: float,
        unsegmented: str,
        device: str,
        seed: int,
        null: int,
    ) -> Signature:
        """Collect everything that went into a table of scores."""
        chance = {"null": f"permuted-lengths({null})"} if null else {}
        return cls(
            {
                "metrics": "+".join(map(_with_settings, metrics)),
                "encoder": f"{spec.name}@{spec.revision}",
                "backend": spec.backend,
                "pooling": spec.pooling,
                "normalisation": spec.normalisation,
                "dtype": spec.dtype,
                "maxlen": "given" if spec.max_length is None else str(spec.max_length),
                "truncated": f"{truncated_share:.2%}",
                "device": device,
                "unsegmented": unsegmented,
                "aggregation": "mean(segments)>mean(documents)",
                "interval": f"bootstrap(documents,{RESAMPLES},{CONFIDENCE:.0%})",
                **chance,
                "seed": str(seed),
                "reffree": version("reffree"),
            }
        )

    def __str__(self) -> str:
        return "|".join(f"{key}:{value}" for key, value in self.fields.items())

    def short(self) -> str:
        """Return the same without what cannot change a score, in single letters."""
        short = {**self.fields, "aggregation": "mean"}
        name, _, revision = short["encoder"].rpartition("@")
        short["encoder"] = f"{name.rsplit('/', 1)[-1]}@{revision.rsplit(':', 1)[-1][:8]}"
        return "|".join(f"{SHORT_KEYS[key]}:{short[key]}" for key in short if key in SHORT_KEYS)


def _with_settings(metric: Metric) -> str:
    options = ",".join(f"{key}={value}" for key, value in settings_of(metric).items())
    return f"{metric.name}({options})" if options else metric.name
