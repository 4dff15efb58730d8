"""What opset conversion knows about each operator. Each file holds one family of operators and reads as a history: a
decision about each boundary with its reason, and below the decision the functions that carry it out (see
`registry.py`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from splitgraph.conversion.operators.registry import _ADAPTERS, RULES, UNCHANGED, UNDECIDED, Rule, Step

__all__ = ["Rule", "Step", "adapter_of", "decision", "load_families"]


@cache
def load_families() -> None:
    """Imports every family once. Each family registers its decisions and adapters."""
    for family in iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")


def decision(operator: str, version: int) -> Rule | None:
    """Gives the rule of the boundary at which `version` is the newer one; None when only the schemas differ."""
    load_families()
    if (operator, version) in UNCHANGED:
        return None
    return RULES.get((operator, version), UNDECIDED)


def adapter_of(operator: str, version: int, *, going_up: bool) -> Step | None:
    """Gives the adapter of a boundary, None where there is none."""
    load_families()
    return _ADAPTERS.get((operator, version, going_up))
