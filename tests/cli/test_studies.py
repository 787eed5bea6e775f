"""Commands of studies: their options are the keywords of the functions they call."""

from __future__ import annotations

import inspect

import click
import pytest

from reffree.cli import cli
from reffree.cli.inputs import FileOptions
from reffree.studies import STUDIES, find_study
from reffree.studies.keywords import StudyKeywords

NOT_OF_THE_STUDY = {*FileOptions.__annotations__, *StudyKeywords.__annotations__}
OF_ONE_USE = {"is_study", "perturbations"}  # of reffree perturb


@pytest.mark.parametrize("name", STUDIES)
def test_options_have_names_and_defaults_of_keywords(name):
    keywords = inspect.signature(find_study(name)).parameters
    command = cli.get_command(click.Context(cli), name)
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}
    own = {n: o for n, o in options.items() if n not in NOT_OF_THE_STUDY | OF_ONE_USE}
    assert own.keys() <= keywords.keys()
    assert ("embeddings" in options) == ("embeddings" in keywords)
    for option in own.values():
        if option.show_default and option.name != "texts":  # encoders keeps none by default
            assert option.default == keywords[option.name].default, option.name
