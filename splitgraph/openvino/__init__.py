"""splitgraph inside an OpenVINO pipeline: extensions for its ONNX frontend, passes over an `ov.Model`, and both ways
between an `ov.Model` and the IR that splitgraph reads.

>>> import openvino as ov, splitgraph.openvino
>>> core = ov.Core()
>>> core.add_extension(splitgraph.openvino.extensions())
>>> model = core.read_model("model.variadic-split.onnx")

Nothing here imports openvino before it is used; without it installed, a SplitgraphError says what to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.formats.openvino_runtime import from_ov_model, require_openvino, to_ov_model
from splitgraph.openvino.extensions import extensions

if TYPE_CHECKING:
    from splitgraph.openvino.passes import SplitToVariadicSplit, VariadicSplitToSplit

__all__ = [
    "SplitToVariadicSplit",
    "VariadicSplitToSplit",
    "extensions",
    "from_ov_model",
    "to_ov_model",
]

# Their base class is OpenVINO's.
_PASSES = ("SplitToVariadicSplit", "VariadicSplitToSplit")


# A type checker would take this for leave to use any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _PASSES:
            raise AttributeError(f"module 'splitgraph.openvino' has no attribute {name!r}")
        require_openvino()
        from splitgraph.openvino import passes

        globals()[name] = value = getattr(passes, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
