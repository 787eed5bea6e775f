"""Libraries that are not installed get a sentence; what is broken inside one stays an error."""

from __future__ import annotations

import sys

import pytest

from reffree.util.errors import InputError, ReffreeError
from reffree.util.optional import missing_packages, require, require_pandas


def refusal(name):
    return InputError(f"no {name}", expected="it", remedy="install it")


def test_what_is_missing_gets_the_callers_sentence(monkeypatch):
    assert require("json.decoder", refusal).JSONDecoder
    with pytest.raises(InputError, match="found no no_such_package; expected it; install it"):
        require("no_such_package", refusal)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="found no pyarrow"):
        require("pyarrow.parquet", refusal)
    monkeypatch.setitem(sys.modules, "json", None)  # a part of it has been imported above
    with pytest.raises(InputError, match="found no json"):
        require("json.decoder", refusal)


def test_what_a_package_lacks_itself_is_no_missing_package(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        require("broken_package", refusal)
    with pytest.raises(InputError, match="found no no_such_package"):
        require("broken_package", refusal, ["no_such_package"])


def test_data_frames_say_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ReffreeError, match=r"^found no pandas; .*pip install pandas, or use to_di"):
        require_pandas()


def test_packages_are_looked_for_without_importing_them():
    assert missing_packages(["json", "no_such_package"]) == ["no_such_package"]
