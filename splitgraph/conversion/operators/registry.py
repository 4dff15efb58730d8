"""The registry of decisions: one for each boundary. A boundary is a place where an operator of ai.onnx changed; its
name is the first opset of the newer version.

`unchanged` says that the operator means the same on both sides, wherever both schemas allow the node (attributes,
inputs, outputs, types: the schema guard checks them). Where one version lacks an attribute, the default of the other
means what the operator does without the attribute.

`changed` says that the meaning changed, or the allowed values. Two kinds of functions stand below it. A predicate under
`@exact_upward`, `@exact_downward` or `@exact` (both ways) tells whether a node means the same on both sides; the
predicate may edit the attributes of the node first. An adapter under `@upward` or `@downward` writes the node in
another way where the guard cannot keep it, or raises `Inexact`.

Each decision comes from the signatures of both versions and the differences between their documents (onnx.defs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from splitgraph.conversion.nodes.crossing import Crossing, Predicate
from splitgraph.conversion.writing.adapter_context import AdapterContext

Adapter = Callable[[AdapterContext], None]


def always(_: Crossing) -> bool:
    """True for every node: in this direction only the schemas differ."""
    return True


def never(_: Crossing) -> bool:
    """False for every node: the node alone cannot be exact, it needs other nodes or inputs."""
    return False


@dataclass(slots=True)
class Rule:
    """A boundary at which a node may stay only when a predicate says so.

    reason: what changed, completing "<operator> changes at opset N: ...". up, down: when a node may stay in that
    direction. hint: what else could help the user besides stopping before the boundary.
    """

    reason: str
    up: Predicate = never
    down: Predicate = never
    hint: str = ""


UNDECIDED = Rule("this version of splitgraph does not know what changed", hint="or install a newer splitgraph")

# An operator and the first opset of the newer version.
Boundary = tuple[str, int]
UNCHANGED: set[Boundary] = set()
RULES: dict[Boundary, Rule] = {}
# Operator, version, and whether the node goes up.
_ADAPTERS: dict[tuple[str, int, bool], Adapter] = {}


def unchanged(operators: str, *versions: int) -> None:
    """Says that only the schemas of operators (separated by spaces) differ at the boundaries of these versions."""
    for version in versions:
        for boundary in _boundaries(operators, version):
            if boundary in UNCHANGED or boundary in RULES:
                raise ValueError(f"two decisions about {boundary}")
            UNCHANGED.add(boundary)


def changed(
    operators: str, version: int, reason: str, *, up: Predicate = never, down: Predicate = never, hint: str = ""
) -> None:
    """Says what changed in operators (separated by spaces) at the boundary of a version: see `Rule`."""
    for boundary in _boundaries(operators, version):
        if boundary in UNCHANGED or boundary in RULES:
            raise ValueError(f"two decisions about {boundary}")
        RULES[boundary] = Rule(reason, up, down, hint)


def exact_upward(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Registers a predicate that tells whether a node may stay as it is when the node goes up."""

    def register(predicate: Predicate) -> Predicate:
        for boundary in _boundaries(operators, version):
            if RULES[boundary].up is not never:
                raise ValueError(f"two predicates for {boundary} upward")
            RULES[boundary].up = predicate
        return predicate

    return register


def exact_downward(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Registers a predicate that tells whether a node may stay as it is when the node goes down."""

    def register(predicate: Predicate) -> Predicate:
        for boundary in _boundaries(operators, version):
            if RULES[boundary].down is not never:
                raise ValueError(f"two predicates for {boundary} downward")
            RULES[boundary].down = predicate
        return predicate

    return register


def exact(operators: str, version: int) -> Callable[[Predicate], Predicate]:
    """Registers a predicate for both directions."""

    def register(predicate: Predicate) -> Predicate:
        return exact_upward(operators, version)(exact_downward(operators, version)(predicate))

    return register


def upward(operators: str, *versions: int) -> Callable[[Adapter], Adapter]:
    """Registers an adapter for operators (separated by spaces) that go up over the boundaries of these versions."""
    return _register(operators, versions, going_up=True)


def downward(operators: str, *versions: int) -> Callable[[Adapter], Adapter]:
    """Registers an adapter for operators (separated by spaces) that go down over the boundaries of these versions. At
    the first version of an operator, the adapter writes the node with other operators.
    """
    return _register(operators, versions, going_up=False)


def _register(operators: str, versions: tuple[int, ...], *, going_up: bool) -> Callable[[Adapter], Adapter]:
    def register(adapter: Adapter) -> Adapter:
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
