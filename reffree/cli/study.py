"""``reffree study``: a command for every study, derived from its function."""

from __future__ import annotations

from collections.abc import Mapping

import click

from reffree.cli import LazyGroup
from reffree.cli.declaration import first_line
from reffree.cli.derive import study_command
from reffree.studies import STUDIES


class StudyGroup(LazyGroup):
    """Knows the studies by the names of their modules, and their helps by the first lines."""

    def listed(self) -> Mapping[str, str]:
        """Return the studies with the first lines of their modules."""
        return {name: first_line(module) for name, module in STUDIES.items()}

    def load(self, name: str) -> click.Command:
        """Derive the command of a study."""
        return study_command(STUDIES[name], name, name)


command = StudyGroup(
    "study",
    help="Run one study: corpora in, tables, charts and a sentence or two out.\n\nEvery CORPUS is "
    "a corpus of its own. A file of several studies is run by reffree run.",
)
