"""Adapters: what carries a node over a boundary that it cannot cross as it is, by families of operators.

An adapter is a function of a `Step`, registered for operators and the first opset of the newer version. It is called
where the generic guard cannot keep the node, edits it, or raises `Inexact`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from splitgraph.conversion.adapters.registry import Adapter, adapter_of, downward, registered, upward

__all__ = ["Adapter", "adapter_of", "downward", "load_adapters", "registered", "upward"]


@cache
def load_adapters() -> None:
    """Import every family, which registers its adapters, once."""
    for family in iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")
