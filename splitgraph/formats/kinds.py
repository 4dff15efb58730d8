"""The kinds of model, for type checkers: what a verb gives back is of the kind that it was given.

A path may lead to ONNX or to OpenVINO IR, so that its result is one of the two; every other model has the type of its
own. Libraries that may not be installed, or have no types, are described by what their models have, because a type
checker would take their classes for `Any`, and then accept everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol


class OnnxIrModel(Protocol):
    """An `onnx_ir.Model`."""

    @property
    def ir_version(self) -> int: ...
    @property
    def opset_imports(self) -> dict[str, int]: ...


class GraphsurgeonGraph(Protocol):
    """An `onnx_graphsurgeon.Graph`."""

    def fold_constants(self, *arguments: Any, **options: Any) -> Any: ...
    def toposort(self, *arguments: Any, **options: Any) -> Any: ...


class RuntimeModel(Protocol):
    """An `ov.Model`."""

    def get_ordered_ops(self) -> Any: ...
    def get_parameters(self) -> Any: ...


if TYPE_CHECKING:
    # For the default of a type variable; type checkers bring typing_extensions, and nothing else needs it.
    from typing_extensions import TypeVar

    from splitgraph.formats.openvino_ir import OpenVINOModel
    from splitgraph.model.onnx_proto import ModelProto
    from splitgraph.options import StrPath

    InMemory = ModelProto | OpenVINOModel | OnnxIrModel | GraphsurgeonGraph | RuntimeModel
    Source = InMemory | StrPath
    M = TypeVar("M", bound=InMemory)
    # `Rewrite` alone, as an annotation, is a rewrite of some model.
    M_co = TypeVar("M_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)
