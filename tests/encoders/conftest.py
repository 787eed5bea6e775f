"""What tests of encoders share."""

from __future__ import annotations

import pytest

from tests.checkpoints import save_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Folders of tiny models, each made once; not to be written to."""
    root = tmp_path_factory.mktemp("checkpoints")

    def made(architecture, **options):
        name = "-".join([architecture, *(f"{k}={v}" for k, v in options.items())])
        if not (root / name).exists():
            save_checkpoint(architecture, root / name, **options)
        return root / name

    return made
