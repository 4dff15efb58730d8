"""The kinds of model, for type checkers: what a verb gives back is of the kind that it was given.

A path may lead to ONNX or to OpenVINO IR, so that its result is one of the two; every other model has the type of its
own. Libraries that may not be installed, or have no types, are described by what their models have, because a type
checker would take their classes for `Any`, and then accept everything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

Engine = Literal["auto", "reference", "onnxruntime", "openvino"]
Form = Literal["split", "variadic-split", "slice"]
StrPath = str | os.PathLike[str]


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

    from splitgraph.dim import Dim
    from splitgraph.formats.openvino_ir import OpenVINOModel
    from splitgraph.onnx_proto import ModelProto

    InMemory = ModelProto | OpenVINOModel | OnnxIrModel | GraphsurgeonGraph | RuntimeModel
    Source = InMemory | StrPath
    # Arrays by the names of inputs, several such cases, or the path of test data.
    GivenInputs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | StrPath
    M = TypeVar("M", bound=InMemory)
    # `Rewrite` alone, as an annotation, is a rewrite of some model.
    M_co = TypeVar("M_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)


class InferOptions(TypedDict, total=False):
    """The keywords of `infer`."""

    bind: Mapping[str, int] | None
    input_shapes: Mapping[str, Sequence[int | str | Dim | None]] | None
    empty_chunks: Literal["clamp", "error"]
    assume_defaults: bool
    accept: Sequence[str]


class RewriteOptions(TypedDict, total=False):
    """The keywords that all rewriting verbs have."""

    ir_version: int | Literal["keep"] | None
    accept: Sequence[str]
    assume_defaults: bool
    bind: Mapping[str, int] | None
    verify: bool
    try_sizes: Mapping[str, int] | None
    inputs: GivenInputs | None
    custom_ops: StrPath | Sequence[StrPath]
    providers: str | Sequence[str]
    samples: int
    seed: int
    engine: Engine
    rtol: float | None
    atol: float | None
    timeout: float


class ConvertOptions(RewriteOptions, total=False):
    """The keywords of `convert`."""

    opset: int | None
    target: str | None
    explicit_lengths: bool
