"""The registry of decisions: one for each boundary. A boundary is a place where an operator changed; its name is the
first opset of the newer version. The operators are those of ai.onnx and of ai.onnx.ml, which have no name in common.

`unchanged` says that the operator means the same on both sides, wherever both schemas allow the node (attributes,
inputs, outputs, types: the climb compares them). Where one version lacks an attribute, the default of the other
means what the operator does without the attribute.

`changed` says that the meaning changed, or the allowed values. The steps stand below it, each for one direction. Under
`@exact_upward`, `@exact_downward` or `@exact` (both ways), a predicate tells whether a node means the same on both
sides, and looks only. Under `@edited_upward`, `@edited_downward` or `@edited`, a step edits the attributes of the node,
or raises `Inexact`, for which the reason of the boundary is told. Where the node cannot be kept so, an adapter under
`@upward` or `@downward` writes it in another way, or raises `Inexact` with a reason of its own.

Each decision comes from the signatures of both versions and the differences between their documents (onnx.defs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.scopes import MACHINE_LEARNING

# Keeps a node, edits it, writes others, or raises Inexact.
Step = Callable[[NodeAtBoundary], None]
# Tells whether a node means the same on both sides.
Predicate = Callable[[NodeAtBoundary], bool]


def always(_: NodeAtBoundary) -> None:
    """Keep every node: in this direction only the schemas differ."""


def never(_: NodeAtBoundary) -> None:
    """Keep no node: the node alone cannot be exact, it needs other nodes or inputs."""
    raise Inexact


@dataclass(slots=True)
class Rule:
    """A boundary at which a step decides whether a node stays.

    reason: what changed, completing "<operator> changes at opset N: ...". up, down: the step in that direction, which
    keeps or edits the node, or raises Inexact. hint: what else could help the user besides stopping before the
    boundary.
    """

    reason: str
    up: Step = never
    down: Step = never
    hint: str = ""


UNDECIDED = Rule("this version of splitgraph does not know what changed", hint="or install a newer splitgraph")

# An operator and the first opset of the newer version.
Boundary = tuple[str, int]
UNCHANGED: set[Boundary] = set()
RULES: dict[Boundary, Rule] = {}
# Operator, version, and whether the node goes up.
_ADAPTERS: dict[tuple[str, int, bool], Step] = {}


def unchanged(operators: str, *versions: int) -> None:
    """Say that only the schemas of operators (separated by spaces) differ at the boundaries of these versions."""
    for version in versions:
        for boundary in _boundaries(operators, version):
            if boundary in UNCHANGED or boundary in RULES:
                raise ValueError(f"two decisions about {boundary}")
            UNCHANGED.add(boundary)


def changed(operators: str, version: int, reason: str, *, up: Step = never, down: Step = never, hint: str = "") -> None:
    """Say what changed in operators (separated by spaces) at the boundary of a version: see `Rule`."""
    for boundary in _boundaries(operators, version):
        if boundary in UNCHANGED or boundary in RULES:
            raise ValueError(f"two decisions about {boundary}")
        RULES[boundary] = Rule(reason, up, down, hint)


def exact_upward(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Register a predicate that tells whether a node may stay as it is when the node goes up."""
    return _exact(operators, version, "up")


def exact_downward(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Register a predicate that tells whether a node may stay as it is when the node goes down."""
    return _exact(operators, version, "down")


def exact(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Register a predicate for both directions."""
    return _exact(operators, version, "up", "down")


def edited_upward(operators: str, version: int) -> Callable[[Step], Step]:
    """Register a step that edits a node, or keeps it, when the node goes up."""
    return _edited(operators, version, "up")


def edited_downward(operators: str, version: int) -> Callable[[Step], Step]:
    """Register a step that edits a node, or keeps it, when the node goes down."""
    return _edited(operators, version, "down")


def edited(operators: str, version: int) -> Callable[[Step], Step]:
    """Register a step for both directions."""
    return _edited(operators, version, "up", "down")


def where(predicate: Predicate) -> Step:
    """Return the step that keeps a node where the predicate is true of it."""

    def step(node: NodeAtBoundary) -> None:
        if not predicate(node):
            raise Inexact

    return step


def _exact(operators: str, version: int, *ways: str) -> Callable[[Predicate], Predicate]:
    def register(predicate: Predicate) -> Predicate:
        _edited(operators, version, *ways)(where(predicate))
        return predicate

    return register


def _edited(operators: str, version: int, *ways: str) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        for boundary in _boundaries(operators, version):
            for way in ways:
                if getattr(RULES[boundary], way) is not never:
                    raise ValueError(f"two steps for {boundary} {way}ward")
                setattr(RULES[boundary], way, step)
        return step

    return register


def upward(operators: str, *versions: int) -> Callable[[Step], Step]:
    """Register an adapter for operators (separated by spaces) that go up over the boundaries of these versions."""
    return _register(operators, versions, going_up=True)


def downward(operators: str, *versions: int) -> Callable[[Step], Step]:
    """Register an adapter for operators (separated by spaces) that go down over the boundaries of these versions. At
    the first version of an operator, the adapter writes the node with other operators.
    """
    return _register(operators, versions, going_up=False)


def _register(operators: str, versions: tuple[int, ...], *, going_up: bool) -> Callable[[Step], Step]:
    def register(adapter: Step) -> Step:
        for version in versions:
            for boundary in _boundaries(operators, version):
                place = (*boundary, going_up)
                if place in _ADAPTERS:
                    raise ValueError(f"two adapters for {place}")
                _ADAPTERS[place] = adapter
        return adapter

    return register


def _boundaries(operators: str, version: int) -> list[Boundary]:
    return [(operator, version) for operator in operators.split()]


# What is registered -------------------------------------------------------------------------------------------------


# The room of the families of each domain.
_ROOMS = {"": "", MACHINE_LEARNING: ".machine_learning"}


@cache
def load_families(domain: str = "") -> None:
    """Import every family of a domain once. Each family registers its decisions and adapters."""
    package = import_module(f"{__package__}{_ROOMS[domain]}")
    for family in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{family.name}")


def decision(operator: str, version: int, domain: str = "") -> Rule | None:
    """Return the rule of the boundary at which `version` is the newer one; None when only the schemas differ."""
    load_families(domain)
    if (operator, version) in UNCHANGED:
        return None
    return RULES.get((operator, version), UNDECIDED)


def adapter_of(operator: str, version: int, domain: str = "", *, going_up: bool) -> Step | None:
    """Return the adapter of a boundary, None where there is none."""
    load_families(domain)
    return _ADAPTERS.get((operator, version, going_up))


# Steps of several families --------------------------------------------------------------------------------------------


MINUS_AXIS = "below it, an axis must not be negative"
SHAPES_HINT = "or give the inputs static shapes"
RANK_HINT = "or declare the shape of the input"


def shapes_are_equal(node: NodeAtBoundary) -> bool:
    """Return True when all inputs have the same shape, or when there is only one input."""
    return len(node.came.inputs) == 1 or node.shapes_are_equal()


def axes_counted_from_front(name: str, *, rank_of_output: bool = False) -> Step:
    """Make a step: the axes in an attribute are at least 0, or the rank is known, so that the axes can be counted from
    the front, as they must be below opset 11.

    rank_of_output: the axes are those of the output, which has one more dimension for each axis.
    """

    def step(node: NodeAtBoundary) -> None:
        count_from_front(node, name, rank_of_output)

    return step


def count_from_front(node: NodeAtBoundary, name: str, rank_of_output: bool) -> None:
    """Count the axes in an attribute from the front. Raise Inexact where the rank is needed and unknown."""
    value = node.value(name)
    if value is UNRESOLVED:
        raise Inexact
    axes = value if isinstance(value, tuple) else () if value is None else (value,)
    if all(axis >= 0 for axis in axes):
        return
    rank = node.rank(0)
    if rank is None:
        raise Inexact
    rank += len(axes) if rank_of_output else 0
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    node.set(
        name, positive if isinstance(value, tuple) else positive[0], "below opset 11 axes are counted from the front"
    )


def input_is_omitted(index: int) -> Step:
    """Make a step that keeps a node without an input."""
    return where(lambda node: not node.uses_input(index))


def value_is_one_of(name: str, *allowed: str) -> Step:
    """Make a step that keeps a node when a string attribute has one of the values that the other version knows."""
    return where(lambda node: node.value_or_default(name) in allowed)
