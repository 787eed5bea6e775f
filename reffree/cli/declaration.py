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
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from reffree.util.declare import MISSING, OptionOf, option_in

LIGHT = (
    *("typing", "pathlib", "collections.abc", "reffree.util."),
    *("reffree.studies.keywords", "reffree.encoders.options"),
    "reffree.segmenters.trained.settings",
)
"""Modules, or beginnings of their names, that are imported to read a declaration."""


class Unknown:
    """A name that only the running function needs."""

    def __getattr__(self, name: str) -> Unknown:
        """Return another: what is inside something unknown is unknown."""
        return self

    def __call__(self, *args: object, **keywords: object) -> Unknown:
        """Return another: what something unknown makes is unknown."""
        return self

    def __getitem__(self, key: object) -> Unknown:
        """Return another."""
        return self

    def __or__(self, other: object) -> Any:  # noqa: ANN401  (a type, if one is known)
        """Leave the side that is known."""
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
        return getattr(importlib.import_module(self.module), self.function)


class _Names(dict[str, Any]):
    """Names of a module, each found out when it is first asked for."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        self.assigned = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def __missing__(self, name: str) -> Any:  # noqa: ANN401  (any value)
        self[name] = self._find(name)
        return self[name]

    def _find(self, name: str) -> Any:  # noqa: ANN401  (any value)
        if name in self.imported:
            module, original = self.imported[name]
            if module in LIGHT or module.startswith(tuple(x for x in LIGHT if x.endswith("."))):
                return getattr(importlib.import_module(module), original)
            return UNKNOWN
        if name in self.assigned:
            return self.evaluate(self.assigned[name])
        return getattr(builtins, name, UNKNOWN)

    def evaluate(self, expression: ast.expr) -> Any:  # noqa: ANN401  (any value)
        """Return the value of an expression; `UNKNOWN` for one that loops or makes functions."""
        loops = (ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.Lambda)
        if any(isinstance(node, loops) for node in ast.walk(expression)):
            return UNKNOWN
        try:
            return eval(compile(ast.Expression(expression), "declaration", "eval"), {}, self)
        except TypeError:  # an operation on something unknown
            return UNKNOWN


def source_of(module: str) -> str:
    """Return the text of a module of this package, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin).read_text(encoding="utf-8")


def first_line(module: str) -> str:
    """Return the first line of a module's docstring: its help in a list of commands."""
    return source_of(module).split('"""', 2)[1].strip().splitlines()[0]


@cache
def read_declaration(module: str, function: str) -> Declaration:
    """Read the declaration of a function from its module's source."""
    tree = ast.parse(source_of(module))
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    names = _Names(tree)
    found = []
    required = [None] * (len(node.args.args) - len(node.args.defaults))
    defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
    for argument, default in zip([*node.args.args, *node.args.kwonlyargs], defaults, strict=True):
        hint = names.evaluate(argument.annotation) if argument.annotation else UNKNOWN
        value = MISSING if default is None else names.evaluate(default)
        found.append((argument.arg, hint, value))
    if node.args.kwarg is not None and node.args.kwarg.annotation is not None:
        shared = names.evaluate(node.args.kwarg.annotation)
        if get_origin(shared) is Unpack:
            hints = get_type_hints(get_args(shared)[0], include_extras=True)
            for name, hint in hints.items():
                beside = option_in(hint)
                found.append((name, hint, None if beside is None else beside.initial))
    text = ast.get_docstring(node) or ""
    for heading in ("\nArgs:", "\nReturns:", "\nRaises:", "\n>>> "):
        text = text.partition(heading)[0]
    return Declaration(
        module,
        function,
        text.strip(),
        needs_corpora=len(node.args.defaults) < len(node.args.args),
        takes_one=node.args.args[0].arg == "corpus",
        options=tuple(
            OptionOf(name, hint, default, option)
            for name, hint, default in found
            if (option := option_in(hint)) is not None
        ),
    )
