"""The small faults: every place of a module where one fits, and the module's text with it.

Text in messages, annotations, decorators and docstrings are left alone: no number comes from them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
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

    def put(self, node: ast.AST) -> None:
        """Replace the node in its tree."""
        if self.index is None:
            setattr(self.holder, self.field, node)
        else:
            getattr(self.holder, self.field)[self.index] = node


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


def connectives(node: ast.BoolOp) -> Iterator[ast.AST]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ast.BoolOp(other, node.values)


def signs(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


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


def omissions(node: ast.stmt) -> Iterator[ast.AST]:
    yield ast.copy_location(ast.Pass(), node)


def assignments(node: ast.Assign) -> Iterator[ast.AST]:
    """A value that is not stored in a table or an object; a name would only be missed."""
    if all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets):
        yield from omissions(node)


def jumps(node: ast.Continue | ast.Break) -> Iterator[ast.AST]:
    yield from omissions(node)
    yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


def answers(node: ast.Return) -> Iterator[ast.AST]:
    if not (node.value is None or isinstance(node.value, ast.Constant)):
        yield ast.Return(ast.Constant(None))


FAULTS = {
    ast.Compare: comparisons,
    ast.BinOp: arithmetic,
    ast.AugAssign: arithmetic,
    ast.BoolOp: connectives,
    ast.UnaryOp: signs,
    ast.Constant: constants,
    ast.Call: calls,
    ast.Slice: slices,
    (ast.If, ast.IfExp, ast.While): conditions,
    (ast.Expr, ast.Raise, ast.AugAssign): omissions,
    ast.Assign: assignments,
    (ast.Continue, ast.Break): jumps,
    ast.Return: answers,
}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is, what was there and what is there instead."""

    module: str
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
        self.put()
        whole = self.fault if self.site.statement is self.site.node else self.site.statement
        text = first_line(whole)
        if isinstance(self.fault, ast.Pass):
            text += f"  # {first_line(self.site.node)}"
        self.take_out()
        return f"{self.site.function}: {text}"

    def put(self) -> None:
        """Put the fault into the tree."""
        self.site.put(ast.copy_location(self.fault, self.site.node))
        ast.fix_missing_locations(self.tree)

    def take_out(self) -> None:
        """Bring the tree back to what it was."""
        self.site.put(self.site.node)

    def source(self) -> str:
        """The whole module with the fault."""
        self.put()
        text = ast.unparse(self.tree)
        self.take_out()
        return text


def first_line(node: ast.AST) -> str:
    """A node as text, cut where a statement's body begins."""
    return ast.unparse(node).partition("\n")[0]


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module's text, in the order of the text."""
    tree = ast.parse(source)
    return [
        Mutant(module, tree, site, fault)
        for site in list(sites(tree))
        for fault in variants(site.node)
    ]
