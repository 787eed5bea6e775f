"""The small faults: every place of a module where one fits, and the module's text with it.

Text in messages, annotations, decorators and docstrings are left alone: no number comes from them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "floor": "ceil"}
NAMES |= {new: old for old, new in NAMES.items()}
SKIPPED = {"annotation", "returns", "decorator_list", "type_comment", "format_spec"}


@dataclass(frozen=True)
class Site:
    """A node that can be replaced: ``getattr(holder, field)``, or its ``index``-th element."""

    holder: ast.AST
    field: str
    index: int | None
    node: ast.AST
    function: str
    statement: ast.AST

    @contextmanager
    def holding(self, node: ast.AST) -> Iterator[None]:
        """Put another node into the tree, for a while."""
        for each in (node, self.node):
            if self.index is None:
                setattr(self.holder, self.field, each)
            else:
                getattr(self.holder, self.field)[self.index] = each
            if each is node:
                yield


def sites(
    node: ast.AST, function: str = "module", statement: ast.AST | None = None
) -> Iterator[Site]:
    """Every node of a tree that may be replaced, from the top down."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = node.name if function == "module" else f"{function}.{node.name}"
    for field, value in ast.iter_fields(node):
        if field in SKIPPED:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or untouched(child):
                continue
            inner = child if isinstance(child, ast.stmt) or statement is None else statement
            place = index if isinstance(value, list) else None
            yield Site(node, field, place, child, function, inner)
            if not isinstance(child, ast.Raise):
                yield from sites(child, function, inner)


def untouched(node: ast.AST) -> bool:
    """Whether a node, with all below it, is text, an import or a check, and never a number."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert))


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """The faults one node can have."""
    for kind, faults in FAULTS.items():
        if isinstance(node, kind):
            yield from faults(node)


def comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    for place, operator in enumerate(node.ops):
        changed = copy.deepcopy(node)
        changed.ops[place] = COMPARISONS[type(operator)]()
        yield changed


def arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    if type(node.op) in OPERATORS:
        changed = copy.deepcopy(node)
        changed.op = OPERATORS[type(node.op)]()
        yield changed


def constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        changed = (node.value + 1, node.value - 1)
        yield from (ast.Constant(value) for value in changed if value != node.value)


def calls(node: ast.Call) -> Iterator[ast.AST]:
    """Another function of the same arguments, and the first two arguments swapped."""
    changed = copy.deepcopy(node)
    if isinstance(changed.func, ast.Name) and changed.func.id in NAMES:
        changed.func.id = NAMES[changed.func.id]
        yield changed
    elif isinstance(changed.func, ast.Attribute) and changed.func.attr in NAMES:
        changed.func.attr = NAMES[changed.func.attr]
        yield changed
    elif len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        changed.args[:2] = changed.args[1::-1]
        yield changed


def slices(node: ast.Slice) -> Iterator[ast.AST]:
    """A bound one further, or none; a constant bound moves as every constant does."""
    for end in ("lower", "upper"):
        bound = getattr(node, end)
        if bound is None:
            continue
        changed = copy.copy(node)
        setattr(changed, end, None)
        yield changed
        if not isinstance(bound, ast.Constant):
            changed = copy.copy(node)
            setattr(changed, end, ast.BinOp(bound, ast.Add(), ast.Constant(1)))
            yield changed


def conditions(node: ast.If | ast.IfExp | ast.While) -> Iterator[ast.AST]:
    """The opposite condition, where no operator in it says so already."""
    if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield changed


def assignments(node: ast.Assign) -> Iterator[ast.AST]:
    """A value that is not stored in a table or an object; a name would only be missed."""
    if all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets):
        yield ast.copy_location(ast.Pass(), node)


def answers(node: ast.Return) -> Iterator[ast.AST]:
    if not (node.value is None or isinstance(node.value, ast.Constant)):
        yield ast.Return(ast.Constant(None))


FAULTS = {
    ast.Compare: comparisons,
    ast.BinOp: arithmetic,
    ast.AugAssign: arithmetic,
    ast.BoolOp: lambda node: [
        ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    ],
    ast.UnaryOp: lambda node: [node.operand],
    ast.Constant: constants,
    ast.Call: calls,
    ast.Slice: slices,
    (ast.If, ast.IfExp, ast.While): conditions,
    (ast.Expr, ast.Raise, ast.AugAssign, ast.Continue, ast.Break): lambda node: [
        ast.copy_location(ast.Pass(), node)
    ],
    ast.Assign: assignments,
    ast.Continue: lambda node: [ast.Break()],
    ast.Break: lambda node: [ast.Continue()],
    ast.Return: answers,
}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is, what was there and what is there instead."""

    tree: ast.Module
    site: Site
    fault: ast.AST

    @property
    def line(self) -> int:
        """The line of the module's text."""
        return getattr(self.site.node, "lineno", 0)

    @property
    def name(self) -> str:
        """The function, what was there and what is there instead; not always unique."""
        return f"{self.site.function}: {first_line(self.site.node)} → {first_line(self.fault)}"

    @property
    def label(self) -> str:
        """The function, and the whole statement as it is with the fault."""
        with self.in_tree():
            is_whole = self.site.statement is self.site.node
            text = first_line(self.fault if is_whole else self.site.statement)
        if isinstance(self.fault, ast.Pass):
            text += f"  # {first_line(self.site.node)}"
        return f"{self.site.function}: {text}"

    def source(self) -> str:
        """The whole module with the fault."""
        with self.in_tree():
            return ast.unparse(self.tree)

    def in_tree(self) -> AbstractContextManager[None]:
        """Put the fault into the tree, for a while."""
        fault = ast.copy_location(self.fault, self.site.node)
        return self.site.holding(ast.fix_missing_locations(fault))


def first_line(node: ast.AST) -> str:
    """A node as text, cut where a statement's body begins."""
    return ast.unparse(node).partition("\n")[0]


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module's text, in the order of the text."""
    tree = ast.parse(source)
    return [
        Mutant(tree, site, fault) for site in list(sites(tree)) for fault in variants(site.node)
    ]
