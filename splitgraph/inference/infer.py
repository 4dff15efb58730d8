"""Inference of a whole model: the walk over its main graph, over functions that nothing calls, and the analysis of what
was found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import DimLike, Facts
from splitgraph.graph.scopes import MAIN, GraphPath, Scope, function_key, function_location, opset_imports, plain_domain
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.bindings import InputShapes, implied_bindings, read_bindings, read_input_shapes
from splitgraph.inference.context import NodeContext
from splitgraph.inference.filling import fill_model
from splitgraph.inference.findings import build_analysis
from splitgraph.inference.known import Visit
from splitgraph.inference.rules import load_rules
from splitgraph.inference.state import FunctionCall, GraphDetail, State
from splitgraph.inference.walk import Walk
from splitgraph.onnx_proto import GraphProto, ModelProto
from splitgraph.schemas import newest_opset
from splitgraph.value_type import UNKNOWN, ValueType


def infer_model(
    model: ModelProto,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: InputShapes | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    fill: bool = True,
    owned: bool = False,
) -> Analysis:
    """Infer types and shapes of every value of a model, which is not changed unless it is `owned`.

    bind: values for symbols. input_shapes: shapes for inputs, in place of the declared ones; a dimension is an int, an
    expression, a Dim or None. empty_chunks: what num_outputs chunks that overrun the dimension are. fill: make the copy
    with the types filled in; without it `Analysis.model` is the model itself, for callers that need only the facts.
    owned: nobody else has the model, so that it is filled in itself and no copy is made.
    Raises SplitgraphError for a binding or an input shape that fits nothing in the model; never for a wrong model.
    """
    analysis = _analyse(model, bind, input_shapes, empty_chunks)
    if not fill:
        return analysis
    if not owned:
        filled = ModelProto()
        filled.CopyFrom(model)
        model = filled
    return fill_model(analysis, model)


@dataclass(frozen=True, slots=True)
class Walked:
    """What the walks over a model found, in symbols of their own, before anything is put as a person reads it: all that
    conversion asks for.

    diagnostics: every finding. never_run: errors in branches that never run, which are none of the model. opset:
    imported version of each domain. scopes: every graph of the model. graphs: what was inferred of each, by its path.
    misdeclared: declarations that are wrong in their shape alone; then no shape that is declared of what nodes give was
    believed. named: by the name that its author gave to a dimension of which nothing else is known, the graphs that
    declare it.
    """

    diagnostics: tuple[Diagnostic, ...]
    never_run: tuple[Diagnostic, ...]
    opset: Mapping[str, int]
    scopes: tuple[Scope, ...]
    graphs: Mapping[GraphPath, GraphDetail]
    misdeclared: tuple[Diagnostic, ...]
    named: Mapping[str, Collection[GraphPath]]

    def visits(self, scope: Scope) -> Sequence[Visit | None]:
        """For each node of a graph what it has in common with others, as `GraphDetail.visits`."""
        detail = self.graphs.get(scope.path)
        known = [] if detail is None else detail.visits
        return known if len(known) == len(scope.nodes) else [None] * len(scope.nodes)


def walk_model(model: ModelProto) -> Walked:
    """Infer every value of a model, which is not changed; never raises for a wrong one."""
    state, _ = _walk(model, None, None, "clamp", is_reported=False)
    misdeclared = tuple([found for found in state.diagnostics if found in state.misdeclared])
    if misdeclared:
        # Who is wrong once may be wrong where nothing contradicts it, and conversion would build upon that.
        state, _ = _walk(model, None, None, "clamp", is_reported=False, believes_shapes=False)
    named = {name: frozenset(graphs) for name, graphs in state.adopted.items()}
    found, never_run = tuple(state.diagnostics), tuple(state.never_run)
    return Walked(found, never_run, dict(state.imports), state.scopes, state.details, misdeclared, named)


def _analyse(
    model: ModelProto, bind: Mapping[str, int] | None, input_shapes: InputShapes | None, empty_chunks: str
) -> Analysis:
    # A function of its own, so that what the walks kept is gone when the model is copied and filled.
    return build_analysis(*_walk(model, bind, input_shapes, empty_chunks))


def _walk(
    model: ModelProto,
    bind: Mapping[str, int] | None,
    input_shapes: InputShapes | None,
    empty_chunks: str,
    reserved: Set[str] = frozenset(),
    *,
    is_reported: bool = True,
    believes_shapes: bool = True,
) -> tuple[State, Walk]:
    given = read_input_shapes(model, input_shapes)
    bound = {**implied_bindings(model, given), **read_bindings(model, bind)}
    state = State(
        model,
        empty_chunks,
        bound,
        reserved=set(reserved),
        is_reported=is_reported,
        believes_shapes=believes_shapes,
    )
    load_rules()
    facts = Facts()
    main = Walk(state, MAIN, "main", state.imports, facts, bindings={})
    if _opsets_known(state):
        main.define_graph_values(model.graph, given)
        main.run(model.graph.node)
        _check_outputs(main, model.graph)
        _walk_function_bodies(state, facts)
    else:
        main.define_graph_values(model.graph, None)
    if state.find_scopes():
        # A subgraph names a dimension as one was named that nobody knew. To list subgraphs before would mean to look at
        # every node once more, and this hardly ever happens.
        options = {"is_reported": is_reported, "believes_shapes": believes_shapes}
        return _walk(model, bind, input_shapes, empty_chunks, state.reserved, **options)
    return state, main


def _opsets_known(state: State) -> bool:
    """Report an opset of ai.onnx that does not exist, or two of them, in the model or one of its functions: nothing can
    be said of its operators.
    """
    imports = [("", state.model.opset_import)]
    imports += [(function_location(f), f.opset_import) for f in state.model.functions]
    good = True
    for location, entries in imports:
        opsets = sorted({entry.version for entry in entries if plain_domain(entry.domain) == ""})
        text = help = None
        if len(opsets) > 1:
            help = "Remove all of these imports but the one that the nodes were written for."
            text = f"imports several opsets of ai.onnx at once: {', '.join(map(str, opsets))}"
        elif opsets and not 1 <= opsets[0] <= newest_opset(opsets[0]):
            newest = newest_opset(opsets[0])
            help = None if opsets[0] > 0 else "Import the opset that the nodes were written for."
            text = f"imports opset {opsets[0]} of ai.onnx; splitgraph knows 1 to {newest}"
        if text is not None:
            state.report(diagnostic("SG103", text, location, help=help))
            good = False
    return good


def _check_outputs(main: Walk, graph: GraphProto) -> None:
    for value in graph.output:
        if not main.is_defined(value.name):
            main.report(diagnostic("SG105", f"the output {value.name!r} is defined by nothing in the model", "main"))


def _walk_function_bodies(state: State, facts: Facts) -> None:
    """Walk each function's body as written, which conversion edits: with what all calls of it have in common, and
    quietly where it was walked at its calls already.
    """
    for index, function in enumerate(state.model.functions):
        key = function_key(function)
        calls = state.calls.get(key, [])
        imports = {**state.imports, **opset_imports(function.opset_import)}
        body = Walk(state, ("F", index), function_location(function), imports, facts.child(), bindings=None)
        state.quiet += bool(calls)
        state.calling.append(key)
        known = calls if state.follows_every_call else []
        for position, name in enumerate(function.input):
            body.define(name, _common(body, known, position), body.location)
        body.run(function.node)
        body.check_function_outputs(function)
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


__all__ = ["NodeContext", "Walked", "infer_model", "walk_model"]
