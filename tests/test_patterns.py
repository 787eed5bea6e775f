"""No regular expression of the package takes more than linear time, whatever it is given."""

from __future__ import annotations

import ast
import importlib
import re
import time
from pathlib import Path

import pytest

import reffree

parser = importlib.import_module("re._parser" if hasattr(re, "_parser") else "sre_parse")

PACKAGE = Path(reffree.__file__).parent
RUNS = (*" \t\naA0é", *"#=<>-.,:;[](){}\"'_|/\\&%@+*!?~", "v ", "<v ", "=-", "1.", "a-", ".)", "> ")
ENDS = ("", "x", "\0", "]")
SIZES = (500, 2_000, 8_000)
SEARCHES = {"search", "sub", "subn", "findall", "finditer", "split"}


def patterns() -> dict[str, tuple[re.Pattern[str], set[str]]]:
    """Every pattern compiled at the top of a module, and how the module uses it."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        names = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and "re.compile" in ast.unparse(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if not names:
            continue
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        used = {
            (node.value.id, node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for name in sorted(names):
            value = getattr(importlib.import_module(module), name)
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                uses = {attribute for owner, attribute in used if owner == name}
                found[f"{module}:{name}"] = (value, uses)
    return found


def example(items) -> str:
    """A text that parsed items match, or nearly."""
    text = ""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            text += chr(value)
        elif name == "IN":
            text += example(value[:1]) if str(value[0][0]) != "NEGATE" else "x"
        elif name == "RANGE":
            text += chr(value[0])
        elif name == "CATEGORY":
            text += {"DIGIT": "0", "SPACE": " "}.get(str(value).removeprefix("CATEGORY_"), "a")
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            text += example(value[2]) * max(1, min(value[0], 50))
        elif name == "SUBPATTERN":
            text += example(value[3])
        elif name == "BRANCH":
            text += example(value[1][0])
        elif name in ("ANY", "NOT_LITERAL"):
            text += "x"
    return text


def seconds(run, text: str, times: int = 2) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        run(text)
        best = min(best, time.process_time() - start)
    return best


PATTERNS = patterns()


@pytest.mark.parametrize("name", PATTERNS)
def test_time_grows_with_the_length_and_no_faster(name):
    """Between sizes a factor of 4: what is quadratic takes 16 times as long, what is cubic 64."""
    pattern, uses = PATTERNS[name]
    items = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    prefixes = {example(items[:i]) for i in range(len(items) + 1)}
    runs = [pattern.fullmatch, pattern.match]
    runs += [pattern.search] if uses & SEARCHES else []
    for prefix in prefixes:
        for run in RUNS:
            for end in ENDS:
                texts = [prefix + run * (size // len(run)) + end for size in SIZES]
                for method in runs:
                    before = seconds(method, texts[0])
                    for text in texts[1:]:
                        after = seconds(method, text)
                        told = f"{pattern.pattern!r} on {prefix!r} + {run!r} × n + {end!r}"
                        if max(10 * before, 0.01) <= after < 0.1:  # again: it may be noise
                            after = seconds(method, text, times=10)
                        assert after < max(10 * before, 0.01), told
                        before = max(after, 0.0002)


def test_a_pattern_that_grows_is_found(monkeypatch):
    slow = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
    monkeypatch.setitem(PATTERNS, "slow", (slow, set()))
    monkeypatch.setattr("tests.test_patterns.SIZES", (250, 1_000))
    with pytest.raises(AssertionError, match="× n"):
        test_time_grows_with_the_length_and_no_faster("slow")
