"""Which adapter carries which operator over which boundary, in which direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from splitgraph.conversion.step import Step

Adapter = Callable[[Step], None]
# (operator, first opset of the newer version, whether the node goes up).
Place = tuple[str, int, bool]

_ADAPTERS: dict[Place, Adapter] = {}


def upward(operators: str, *versions: int) -> Callable[[Adapter], Adapter]:
    """Register an adapter for operators (separated by spaces) that go up over the boundaries of these versions."""
    return _register(operators, versions, going_up=True)


def downward(operators: str, *versions: int) -> Callable[[Adapter], Adapter]:
    """Register an adapter for operators (separated by spaces) that go down over the boundaries of these versions; for
    the first version of an operator, the adapter writes the node with others.
    """
    return _register(operators, versions, going_up=False)


def _register(operators: str, versions: tuple[int, ...], *, going_up: bool) -> Callable[[Adapter], Adapter]:
    def register(adapter: Adapter) -> Adapter:
        for operator in operators.split():
            for version in versions:
                place = (operator, version, going_up)
                if place in _ADAPTERS:
                    raise ValueError(f"two adapters for {place}")
                _ADAPTERS[place] = adapter
        return adapter

    return register


def adapter_of(operator: str, version: int, *, going_up: bool) -> Adapter | None:
    """The adapter of a boundary, None where there is none."""
    return _ADAPTERS.get((operator, version, going_up))


def registered() -> Mapping[Place, Adapter]:
    """Every adapter by its place."""
    return _ADAPTERS
