"""A command's declaration, read from the source of its function without importing it.

Importing the function would load NumPy and torch before a help page is shown. So its signature is
read from the file: types and defaults are evaluated with the names that light modules give, and
with the constants of the same file; anything else, such as what checks a name, is left `Unknown`.
A test holds what is read here to the imported function.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reffree.cli.messages import progress
from reffree.util.declare import MISSING, OptionOf, choose_options

LIGHT = (
    *("typing", "pathlib", "collections.abc", "reffree.util."),
    *("reffree.studies.keywords", "reffree.encoders.options"),
    "reffree.segmenters.trained.settings",
)
"""Modules, or beginnings of their names, that are imported to read a declaration."""


class Unknown:
    """A name that only the running function needs; so is all that is made of it or inside it."""

    __iter__ = None

    def __getattr__(self, name: str) -> Unknown:
        return self

    def __call__(self, *args: object, **keywords: object) -> Unknown:  # noqa: D102
        return self

    def __getitem__(self, key: object) -> Unknown:
        return self

    def __or__(self, other: object) -> Any:  # noqa: ANN401  (a type, if one is known)
        return other

    __ror__ = __or__


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a command needs of its function: where it is, its documentation, its options."""

    module: str
    function: str
    help: str  # first paragraphs of the docstring, up to its sections
    needs_corpora: bool  # whether the corpora have no default
    takes_one: bool  # whether its corpora are one
    options: tuple[OptionOf, ...]

    def load(self) -> Any:  # noqa: ANN401  (the function)
        """Import the function."""
        with progress("Loading"):
            return getattr(importlib.import_module(self.module), self.function)


class _Names(dict[str, Any]):
    """Names of a module, each found out when it is first asked for."""

    def __init__(self, tree: ast.Module) -> None:
        self.imported: dict[str, tuple[str, str]] = {}
        self.assigned: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = (node.module, alias.name)
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.assigned[node.targets[0].id] = node.value

    def __missing__(self, name: str) -> Any:  # noqa: ANN401  (any value)
        module, original = self.imported.get(name, ("", ""))
        if module in LIGHT or module.startswith(tuple(x for x in LIGHT if x.endswith("."))):
            self[name] = getattr(importlib.import_module(module), original)
        elif name in self.assigned:
            self[name] = self.evaluate(self.assigned[name])
        else:
            self[name] = UNKNOWN if module else getattr(builtins, name, UNKNOWN)
        return self[name]

    def evaluate(self, expression: ast.expr) -> Any:  # noqa: ANN401  (any value)
        """Return the value of an expression; `UNKNOWN` where it needs what is unknown."""
        try:
            return eval(compile(ast.Expression(expression), "declaration", "eval"), {}, self)
        except (TypeError, NameError):  # such as a loop over something unknown
            return UNKNOWN


def source_of(module: str) -> str:
    """Return the text of a module of this package, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin).read_text(encoding="utf-8")


@cache
def read_declaration(module: str, function: str) -> Declaration:
    """Read the declaration of a function from its module's source."""
    tree = ast.parse(source_of(module))
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    names, own = _Names(tree), node.args
    required = [None] * (len(own.args) - len(own.defaults))
    defaults = [*required, *own.defaults, *own.kw_defaults]
    arguments = [*zip([*own.args, *own.kwonlyargs], defaults, strict=True)]
    arguments += [(own.kwarg, None)] if own.kwarg is not None else []
    found = [
        (
            argument.arg,
            names.evaluate(argument.annotation) if argument.annotation else UNKNOWN,
            MISSING if default is None else names.evaluate(default),
        )
        for argument, default in arguments
    ]
    text = ast.get_docstring(node) or ""
    for heading in ("\nArgs:", "\nReturns:", "\nRaises:", "\n>>> "):
        text = text.partition(heading)[0]
    return Declaration(
        module,
        function,
        text.strip(),
        needs_corpora=len(own.defaults) < len(own.args),
        takes_one=own.args[0].arg == "corpus",
        options=choose_options(found),
    )
