"""Expressions over symbols as plain trees: what each judge reads, so that none of them relies on `Dim`.

A tree is a number, the name of a symbol, or (operator, left, right), where the operator is one of + - * // % max min.
A constraint compares a tree with 0. A tree has no value where a divisor is 0.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from splitgraph.dim import DimLike, dim_max, dim_min, symbol

Tree: TypeAlias = int | str | tuple[str, Any, Any]
Relation: TypeAlias = Literal[">=", "==", "!="]


class Constraint(NamedTuple):
    """`tree >= 0`, `tree == 0` or `tree != 0`."""

    tree: Tree
    relation: Relation

    def __str__(self) -> str:
        return f"{text_of(self.tree)} {self.relation} 0"


# What each operator is, over numbers and dims alike.
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": dim_max,
    "min": dim_min,
}
_PRINTED: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


def dim_of(tree: Tree) -> DimLike:
    """The tree as a dim of splitgraph, built with its operators."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return symbol(tree)
    return _OPERATORS[tree[0]](dim_of(tree[1]), dim_of(tree[2]))


def value_of(tree: Tree) -> int:
    """The number that a tree without symbols is."""
    found = dim_of(tree)
    assert isinstance(found, int)
    return found


def tree_of(dim: DimLike) -> Tree:
    """The tree of a dim, read from the text that users see."""
    return _tree_of_syntax(ast.parse(str(dim), mode="eval").body)


def _tree_of_syntax(node: ast.expr) -> Tree:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.BinOp):
        return (_PRINTED[type(node.op)], _tree_of_syntax(node.left), _tree_of_syntax(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ("-", 0, _tree_of_syntax(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        name = node.func.id
        return reduce(lambda one, other: (name, one, other), map(_tree_of_syntax, node.args))
    raise ValueError(f"not an expression over symbols: {ast.unparse(node)}")


def text_of(tree: Tree) -> str:
    """The tree as Python writes it, with a bracket around each operation inside another."""
    if not isinstance(tree, tuple):
        return str(tree)
    operator, left, right = tree
    if operator in ("max", "min"):
        return f"{operator}({text_of(left)}, {text_of(right)})"
    one, other = (
        f"({text_of(side)})" if isinstance(side, tuple) and side[0] not in ("max", "min") else text_of(side)
        for side in (left, right)
    )
    return f"{one} {operator} {other}"


def parts_of(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees in it."""
    yield tree
    if isinstance(tree, tuple):
        yield from parts_of(tree[1])
        yield from parts_of(tree[2])


def symbols_in(*trees: Tree) -> list[str]:
    """The names of the symbols, in alphabetic order."""
    return sorted({part for tree in trees for part in parts_of(tree) if isinstance(part, str)})


def divisors_in(tree: Tree) -> list[Tree]:
    """The divisors that are not numbers: the tree has a value where none of them is 0."""
    divided = (part for part in parts_of(tree) if isinstance(part, tuple) and part[0] in ("//", "%"))
    return [part[2] for part in divided if not isinstance(part[2], int)]


def is_linear(tree: Tree) -> bool:
    """True when nothing in it multiplies symbols or divides by them."""
    for part in parts_of(tree):
        if not isinstance(part, tuple):
            continue
        if part[0] == "*" and symbols_in(part[1]) and symbols_in(part[2]):
            return False
        if part[0] in ("//", "%") and not isinstance(part[2], int):
            return False
    return True


def renamed(tree: Tree, names: Mapping[str, str]) -> Tree:
    """The tree with other names for its symbols."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return names[tree]
    return (tree[0], renamed(tree[1], names), renamed(tree[2], names))
