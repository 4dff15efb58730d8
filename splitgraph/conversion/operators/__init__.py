"""What opset conversion knows of operators, one file for each family of them. A file reads as a history: each boundary
of an operator with the decision and its reason, and below it the functions that carry it out (see `registry.py`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from splitgraph.conversion.operators.registry import _ADAPTERS, RULES, UNCHANGED, UNDECIDED, Adapter, Rule

__all__ = ["Adapter", "Rule", "adapter_of", "decision", "load_families"]


@cache
def load_families() -> None:
    """Import every family, which registers its decisions and adapters, once."""
    for family in iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")


def decision(operator: str, version: int) -> Rule | None:
    """The rule of the boundary at which `version` is the newer one; None when only the schemas differ."""
    load_families()
    if (operator, version) in UNCHANGED:
        return None
    return RULES.get((operator, version), UNDECIDED)


def adapter_of(operator: str, version: int, *, going_up: bool) -> Adapter | None:
    """The adapter of a boundary, None where there is none."""
    load_families()
    return _ADAPTERS.get((operator, version, going_up))
