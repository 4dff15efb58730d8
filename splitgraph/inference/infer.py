"""Inference of a whole model: the walk over its main graph, over functions that nothing calls, and the analysis of what
was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import onnx
from onnx import defs

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, parse_dim, parse_expression, symbols_of
from splitgraph.graph.names import dimension_names
from splitgraph.graph.scopes import MAIN, function_key, function_location, opset_imports
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.context import NodeContext
from splitgraph.inference.filling import fill_model
from splitgraph.inference.findings import build_analysis
from splitgraph.inference.rules import load_rules
from splitgraph.inference.state import FunctionCall, State
from splitgraph.inference.walk import Walk
from splitgraph.value_type import UNKNOWN, ValueType

InputShapes = Mapping[str, Sequence["int | str | Dim | None"]]


def infer_model(
    model: onnx.ModelProto,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: InputShapes | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    fill: bool = True,
) -> Analysis:
    """Infer types and shapes of every value of a model, which is not changed.

    bind: values for symbols. input_shapes: shapes for inputs, in place of the declared ones; a dimension is an int, an
    expression, a Dim or None. empty_chunks: what num_outputs chunks that overrun the dimension are. fill: make the copy
    with the types filled in; without it `Analysis.model` is the model itself, for callers that need only the facts.
    Raises SplitgraphError for a binding or an input shape that fits nothing in the model; never for a wrong model.
    """
    if empty_chunks not in ("clamp", "error"):
        raise SplitgraphError(f"empty_chunks is {empty_chunks!r}; it must be 'clamp' or 'error'")
    state = State(model, empty_chunks, _bindings(model, bind or {}))
    load_rules()
    facts = Facts()
    main = Walk(state, MAIN, "main", state.imports, facts, bindings={})
    if _opsets_known(state):
        shapes = _input_types(main, model, input_shapes or {})
        main.define_graph_values(model.graph, shapes)
        main.run(model.graph.node)
        _check_outputs(main, model.graph)
        _walk_function_bodies(state, facts)
    else:
        main.define_graph_values(model.graph, None)
    analysis = build_analysis(state, main)
    return fill_model(analysis, model) if fill else analysis


def _bindings(model: onnx.ModelProto, bind: Mapping[str, int]) -> Mapping[str, DimLike]:
    if not bind:
        return {}
    declared = {symbol for written in dimension_names(model) for symbol in symbols_of(parse_dim(written))}
    for name, value in bind.items():
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            raise SplitgraphError(
                f"no dimension of the model is named {name!r}; it has: {known}",
                [diagnostic("SG304", f"no dimension {name!r}")],
            )
        if not isinstance(value, int) or value < 0:
            raise SplitgraphError(f"the dimension {name!r} cannot be {value!r}; it is an integer of at least 0")
    return dict(bind)


def _input_types(main: Walk, model: onnx.ModelProto, input_shapes: InputShapes) -> list[ValueType | None] | None:
    if not input_shapes:
        return None
    names = [value.name for value in model.graph.input]
    for name in input_shapes:
        if name not in names:
            raise SplitgraphError(f"the model has no input {name!r}; it has: {', '.join(names) or 'none'}")
    given: list[ValueType | None] = []
    for value in model.graph.input:
        shape = input_shapes.get(value.name)
        if shape is None:
            given.append(None)
            continue
        given.append(ValueType(_kind(value), None, tuple(_given_dim(dim) for dim in shape)))
    return given


def _kind(value: onnx.ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value")
    return "tensor" if kind is None else kind.removesuffix("_type")


def _given_dim(dim: int | str | Dim | None) -> DimLike | None:
    if isinstance(dim, str):
        try:
            return parse_expression(dim)
        except ValueError as error:
            raise SplitgraphError(f"{dim!r} is no dimension: {error}") from None
    if isinstance(dim, int) and dim < 0:
        raise SplitgraphError(f"a dimension cannot be {dim}; it is an integer of at least 0")
    return dim


def _opsets_known(state: State) -> bool:
    """Report an opset of ai.onnx that does not exist, in the model or one of its functions: nothing can be said of its
    operators.
    """
    newest = defs.onnx_opset_version()
    imports = [("", state.imports)]
    imports += [(function_location(f), opset_imports(f.opset_import)) for f in state.model.functions]
    good = True
    for location, imported in imports:
        opset = imported.get("")
        if opset is not None and not 1 <= opset <= newest:
            state.report(
                diagnostic("SG103", f"imports opset {opset} of ai.onnx; this onnx knows 1 to {newest}", location)
            )
            good = False
    return good


def _check_outputs(main: Walk, graph: onnx.GraphProto) -> None:
    for value in graph.output:
        if not main.is_defined(value.name):
            main.report(diagnostic("SG105", f"the output {value.name!r} is defined by nothing in the model", "main"))


def _walk_function_bodies(state: State, facts: Facts) -> None:
    """Walk each function's body as written, which conversion edits: with what all calls of it have in common, quietly
    where it was
    walked at its calls already."""
    for index, function in enumerate(state.model.functions):
        key = function_key(function)
        calls = state.calls.get(key, [])
        imports = {**state.imports, **opset_imports(function.opset_import)}
        body = Walk(state, ("F", index), function_location(function), imports, facts.child(), bindings=None)
        state.quiet += bool(calls)
        state.calling.append(key)
        for position, name in enumerate(function.input):
            body.define(name, _common(body, calls, position), body.location)
        body.run(function.node)
        state.calling.pop()
        state.quiet -= bool(calls)


def _common(body: Walk, calls: Sequence[FunctionCall], position: int) -> ValueType:
    """What all calls of a function agree on of one input: kind, element type, rank and static dimensions; symbols of
    one call mean nothing in another.
    """
    types = [(call.inputs[position] if position < len(call.inputs) else None) or UNKNOWN for call in calls]
    if not types or any(value.kind != types[0].kind for value in types):
        return UNKNOWN
    dtype = types[0].dtype if all(value.dtype == types[0].dtype for value in types) else None
    shapes = [value.shape for value in types]
    if None in shapes or len({len(shape or ()) for shape in shapes}) > 1:
        return ValueType(types[0].kind, dtype, None, types[0].element)
    dims = [set(dims) for dims in zip(*(shape or () for shape in shapes), strict=True)]
    return ValueType(types[0].kind, dtype, tuple(_agreed(body, each) for each in dims), types[0].element)


def _agreed(body: Walk, dims: set[DimLike | None]) -> DimLike:
    only = dims.pop() if len(dims) == 1 else None
    return only if isinstance(only, int) else body.fresh()


__all__ = ["NodeContext", "infer_model"]
