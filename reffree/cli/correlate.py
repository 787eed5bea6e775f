"""``reffree correlate``: do reference-free metrics rank systems as gold-based ones do?"""

from __future__ import annotations

from typing import Unpack

import click

from reffree.cli.corpora import StudyInputs
from reffree.cli.correlation import CorrelationOptions, correlating_of, correlation_options
from reffree.cli.encoding_options import several_encoders
from reffree.cli.file_options import corpora_argument, output_options, reading_options
from reffree.cli.scoring_options import embeddings_option, system_of_one_corpus


@click.command(name="correlate")
@corpora_argument
@system_of_one_corpus
@embeddings_option("Your own vectors of the one CORPUS instead of an encoder, as in reffree score.")
@correlation_options
@reading_options
@several_encoders
@output_options
def command(**given: Unpack[CorrelationOptions]) -> None:
    """Correlate reference-free with gold-based metrics over the systems of every CORPUS.

    Each CORPUS is read as in reffree score and needs gold; where it has fewer than eight systems,
    gold, random, perturbed, lexical and cohesion-seeking ones are added. Systems that seek cohesion
    in the embedding space are reported apart: on them a low loss means little.
    """
    from reffree.studies import check_table

    check_table("correlate", given["table"])
    inputs = StudyInputs.of(given)

    from reffree.studies import correlate

    result = correlate(
        inputs.corpora,
        encoders=given["encoders"] or (None,),
        embeddings=inputs.vectors,
        **correlating_of(given),
        **inputs.keywords,
    )
    inputs.write(result, given["table"])
