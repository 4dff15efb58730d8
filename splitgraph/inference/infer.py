"""Inference of a whole model: walk the main graph and the functions, then build the analysis."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Facts
from splitgraph.graph.order import sorted_order
from splitgraph.graph.scopes import (
    MAIN,
    GraphPath,
    Scope,
    function_location,
    node_label,
    plain_domain,
)
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.broadcast_assumptions import may_be_settled, settle_assumptions
from splitgraph.inference.build_analysis import build_analysis
from splitgraph.inference.context import NodeContext
from splitgraph.inference.define_graph import define_graph_values
from splitgraph.inference.function_bodies import walk_function_bodies
from splitgraph.inference.given_sizes import NO_SIZES, InputShapes, Sizes, read_sizes
from splitgraph.inference.input_defaults import (
    defaults_assumed,
    defaults_left_open,
    defaults_of,
    left_open,
    may_tell_shapes,
)
from splitgraph.inference.rules import load_rules
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_results import GraphDetail, Visit
from splitgraph.inference.walk_state import WalkState
from splitgraph.inference.write_value_info import fill_model
from splitgraph.onnx_proto import GraphProto, ModelProto
from splitgraph.schemas import newest_opset


def infer_model(
    model: ModelProto,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: InputShapes | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    assume_defaults: bool = False,
    assumes_nonempty: bool = False,
    fill: bool = True,
    owned: bool = False,
) -> Analysis:
    """Infer types and shapes of every value of a model, which is not changed unless it is `owned`.

    bind: values for symbols. input_shapes: shapes for inputs, in place of the declared ones; a dimension is an int, an
    expression, a Dim or None. empty_chunks: what num_outputs chunks that overrun the dimension are.
    assume_defaults: take initializers that are also inputs for constants. assumes_nonempty: take the larger of two
    dimensions for what they broadcast to, and say what that takes for granted (`Analysis.assumptions`); without it, for
    callers that must be right at every size, nothing is assumed. fill: make the copy with the types filled in; without
    it `Analysis.model` is the model itself, for callers that need only the facts.
    owned: nobody else has the model, so that it is filled in itself and no copy is made.
    Raises SplitgraphError for a binding or an input shape that fits nothing in the model; never for a wrong model.
    """
    sizes = read_sizes(model, bind, input_shapes)
    analysis = _analyse(model, sizes, empty_chunks, assume_defaults, assumes_nonempty)
    if not fill:
        return analysis
    if not owned:
        filled = ModelProto()
        filled.CopyFrom(model)
        model = filled
    return fill_model(analysis, model, sizes)


@dataclass(frozen=True, slots=True)
class Walked:
    """The results of walking a model, with the internal names of symbols: all that conversion needs.

    diagnostics: every finding. never_run: errors in branches that never run; they are no errors of the model. opset:
    imported version of each domain. scopes: every graph of the model. graphs: the results for each graph, by path.
    misdeclared: declarations with only a wrong shape; if there are any, no declared shape of a node's output was
    believed. named: declared names of dimensions that are otherwise unknown, each with the graphs that declare it.
    facts: what is known of the symbols in each graph.
    """

    diagnostics: tuple[Diagnostic, ...]
    never_run: tuple[Diagnostic, ...]
    opset: Mapping[str, int]
    scopes: tuple[Scope, ...]
    graphs: Mapping[GraphPath, GraphDetail]
    misdeclared: tuple[Diagnostic, ...]
    named: Mapping[str, Collection[GraphPath]]
    facts: Mapping[GraphPath, Facts]

    def visits(self, scope: Scope) -> Sequence[Visit | None]:
        """The visit of each node of a graph, as in `GraphDetail.visits`."""
        detail = self.graphs.get(scope.path)
        known = [] if detail is None else detail.visits
        return known if len(known) == len(scope.nodes) else [None] * len(scope.nodes)


def walk_model(model: ModelProto) -> Walked:
    """Infer every value of a model, which is not changed; never raises for a wrong one."""
    state, _ = _walk(model, NO_SIZES, "clamp", is_reported=False)
    misdeclared = tuple([found for found in state.diagnostics if found in state.misdeclared])
    if misdeclared:
        # Another declaration may be wrong too, without a contradiction, and conversion would depend on it.
        state, _ = _walk(model, NO_SIZES, "clamp", is_reported=False, believes_shapes=False)
    named = {name: frozenset(graphs) for name, graphs in state.adopted.items()}
    found, avoided = state.branches.settled(state.diagnostics, lambda error: False)
    never_run = (*state.never_run, *avoided)
    return Walked(
        tuple(found), never_run, dict(state.imports), state.scopes, state.details, misdeclared, named, state.facts
    )


def _analyse(
    model: ModelProto, sizes: Sizes, empty_chunks: str, assume_defaults: bool, assumes_nonempty: bool
) -> Analysis:
    # A function of its own, so that what the walks kept is gone when the model is copied and filled.
    state, main = _believing(model, sizes, empty_chunks, assume_defaults, assumes_nonempty)
    if state.assumed_pairs and (_errors(state) or may_be_settled(state, main.facts)):
        # A requirement that came later may rest on what was assumed before it: only a walk that assumes nothing tells.
        exact, exact_main = _believing(model, sizes, empty_chunks, assume_defaults, False)
        if _errors(state) <= _errors(exact):
            settle_assumptions(state, exact_main.facts)
        else:
            # What is wrong only where something is assumed is wrong with the assumption.
            state, main = exact, exact_main
    _settle_branches(state, sizes)
    defaults = defaults_of(model)
    if defaults and assume_defaults:
        state.report(defaults_assumed(len(defaults)))
    elif any(map(may_tell_shapes, defaults)):
        _, assumed = _walk(model, sizes, empty_chunks, is_reported=False, assumes_defaults=True)
        count = left_open(main.types, assumed.types, frozenset(state.generated))
        if count:
            state.report(defaults_left_open(len(defaults), count))
    return build_analysis(state, main)


def _believing(
    model: ModelProto, sizes: Sizes, empty_chunks: str, assumes_defaults: bool, assumes_nonempty: bool
) -> tuple[WalkState, Walk]:
    """Walk a model. Declared shapes are believed unless one of them is wrong."""
    walk = partial(
        _walk, model, sizes, empty_chunks, assumes_defaults=assumes_defaults, assumes_nonempty=assumes_nonempty
    )
    state, main = walk()
    misdeclared = [found for found in state.diagnostics if found in state.misdeclared]
    if misdeclared:
        # As for a conversion: what nothing but a declaration says may be as wrong as the one that is known to be.
        state, main = walk(believes_shapes=False)
        for found in misdeclared:
            state.report(found)
    return state, main


def _errors(state: WalkState) -> set[tuple[str, str]]:
    return {(found.code, found.location) for found in state.diagnostics if found.severity == "error"}


def _settle_branches(state: WalkState, sizes: Sizes) -> None:
    """Separate errors in branches that the given sizes rule out from errors that the model has at any size."""
    if not state.branches.avoidable:
        return
    at_any_size: set[tuple[str, str]] = set()
    if sizes is not NO_SIZES:
        plain, _ = _walk(state.model, NO_SIZES, state.empty_chunks, is_reported=False)
        at_any_size = {(found.code, found.location) for found in plain.diagnostics}

    def is_of_sizes(error: Diagnostic) -> bool:
        return sizes is not NO_SIZES and (error.code, error.location) not in at_any_size

    state.diagnostics[:], avoided = state.branches.settled(state.diagnostics, is_of_sizes)
    state.never_run.update(dict.fromkeys(avoided))


def _walk(
    model: ModelProto,
    sizes: Sizes,
    empty_chunks: str,
    reserved: Set[str] = frozenset(),
    *,
    is_reported: bool = True,
    believes_shapes: bool = True,
    assumes_defaults: bool = False,
    assumes_nonempty: bool = False,
    sorts: bool = False,
) -> tuple[WalkState, Walk]:
    state = WalkState(
        model,
        empty_chunks,
        sizes.bound,
        reserved=set(reserved),
        is_reported=is_reported,
        believes_shapes=believes_shapes,
        assumes_defaults=assumes_defaults,
        assumes_nonempty=assumes_nonempty,
        sorts=sorts,
    )
    load_rules()
    facts = Facts()
    main = Walk(state, MAIN, "main", state.imports, facts, bindings={})
    if _opsets_known(state):
        define_graph_values(main, model.graph, sizes.given)
        main.run(model.graph.node)
        _check_outputs(main, model.graph)
        walk_function_bodies(state, main)
        # Nothing is read there any more, and a large model has as many visits as values.
        main.calls.settled.forget()
    else:
        define_graph_values(main, model.graph, None)
    lacking = state.tensors.finding()
    if lacking is not None:
        state.report(lacking)
    # A subgraph declares a dimension with the name of a generated symbol, or a node reads the output of a later node.
    # Both are rare; looking for them first would cost another pass over all nodes.
    if state.find_scopes() or (state.is_disordered and not sorts):
        return _walk(
            model,
            sizes,
            empty_chunks,
            state.reserved,
            is_reported=is_reported,
            believes_shapes=believes_shapes,
            assumes_defaults=assumes_defaults,
            assumes_nonempty=assumes_nonempty,
            sorts=sorts or state.is_disordered,
        )
    for scope in state.scopes if sorts else ():
        _check_order(state, scope)
    return state, main


def _check_order(state: WalkState, scope: Scope) -> None:
    """Report nodes that are not in topological order."""
    order = sorted_order(scope.nodes)
    moved = next((position for position, index in enumerate(order) if position != index), None)
    if moved is not None:
        first = node_label(scope.nodes[moved], moved)
        text = f"the nodes are out of order: {first} reads a value that a later node produces"
        state.report(diagnostic("SG112", text, scope.location, severity="warning"))


def _opsets_known(state: WalkState) -> bool:
    """Report an ai.onnx opset that does not exist, or two different ones, in the model or in a function. False then:
    the operators cannot be known.
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
            main.report(diagnostic("SG105", f"nothing in the model defines the output {value.name!r}", "main"))


__all__ = ["NodeContext", "Walked", "infer_model", "walk_model"]
