"""Imports modules when they are first used, in whatever thread that happens.

A module that says `from splitgraph.model.deferred import np` does not import NumPy; `np.asarray(...)` does. The same
holds for parts of onnx beyond its messages.

Python locks each module while it is imported. To import `a.b` takes the lock of `a.b`, and then that of `a`; where `a`
imports `a.b` itself, another thread takes them in the other order, and Python hands out a module that is not finished.
So parents are imported first, and the packages of splitgraph that import their own modules by `import_whole`.
"""

from __future__ import annotations

from _thread import RLock
from importlib import import_module
from typing import TYPE_CHECKING, Any

_ONE_AT_A_TIME = RLock()
_WHOLE: set[str] = set()


def import_whole(*names: str) -> None:
    """Import modules of splitgraph, one thread at a time. A function calls this before it imports from a package that
    imports its own modules; a test finds the functions that do not.
    """
    for name in names:
        if name not in _WHOLE:
            with _ONE_AT_A_TIME:
                _import(name)
                _WHOLE.add(name)


def _import(name: str) -> Any:
    """Import a module after its parents."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        import_module(".".join(parts[:length]))
    return import_module(name)


class Deferred:
    """Stands for a module, which is imported with the first attribute that is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(_import(self._name), attribute)
        # Next time, it is an attribute of this object.
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import numpy as np
    from onnx import defs, helper, numpy_helper, reference
else:
    np = Deferred("numpy")
    defs = Deferred("onnx.defs")
    helper = Deferred("onnx.helper")
    numpy_helper = Deferred("onnx.numpy_helper")
    reference = Deferred("onnx.reference")

__all__ = ["defs", "helper", "import_whole", "np", "numpy_helper", "reference"]
