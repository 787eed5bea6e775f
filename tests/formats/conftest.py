"""Every test of formats works in a folder of its own."""

import json
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(content: object, name: str = "x.json") -> str:
    """Write a file of text, of bytes or of JSON, and return its name."""
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name
