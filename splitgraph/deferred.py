"""Libraries that few models need, each imported when it is first used: NumPy, and onnx beyond its messages.

A module that says `from splitgraph.deferred import np` does not import NumPy; `np.asarray(...)` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Deferred:
    """Stands for a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        # The next time it is an attribute of this object.
        setattr(self, attribute, found)
        return found


if TYPE_CHECKING:
    import numpy as np
    from onnx import defs, helper, numpy_helper, reference
else:
    np = _Deferred("numpy")
    defs = _Deferred("onnx.defs")
    helper = _Deferred("onnx.helper")
    numpy_helper = _Deferred("onnx.numpy_helper")
    reference = _Deferred("onnx.reference")

__all__ = ["defs", "helper", "np", "numpy_helper", "reference"]
