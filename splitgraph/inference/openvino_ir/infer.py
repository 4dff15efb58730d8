"""Inference of a whole OpenVINO IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from splitgraph.acceptance import Acceptance
from splitgraph.diagnostics import diagnostic
from splitgraph.dim import DimLike, Facts, Obligation, symbol
from splitgraph.graph.scopes import MAIN
from splitgraph.inference.accepted import settle
from splitgraph.inference.analysis import IR, Analysis
from splitgraph.inference.build_analysis import build_analysis
from splitgraph.inference.declared_types import define_graph_values, settle_size_conditions
from splitgraph.inference.given_sizes import NO_SIZES, InputShapes, Sizes, read_sizes
from splitgraph.inference.openvino_ir.layer_types import fault_of_layer
from splitgraph.inference.openvino_ir.mirror import Mirror, mirror
from splitgraph.inference.openvino_ir.write_dims import fill_ir
from splitgraph.inference.rules import load_openvino_rules
from splitgraph.inference.task import Task
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_state import WalkState

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import OpenVINOModel


def infer_ir(
    model: OpenVINOModel,
    *,
    bind: Mapping[str, int] | None = None,
    input_shapes: InputShapes | None = None,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    accept: Sequence[Acceptance] = (),
    fill: bool = True,
) -> Analysis:
    """Infer types and shapes of every value of an IR, whose intervals become bounded symbols; arguments and errors are
    those of `infer_model`. `Analysis.model` is a copy with the dims of its ports filled in.
    """
    mirrored = mirror(model)
    sizes = read_sizes(mirrored.model, bind, input_shapes)
    analysis = analyse_mirror(mirrored, sizes, empty_chunks, accept)
    filled = fill_ir(analysis, mirrored, model, sizes) if fill else model
    return replace(analysis, held=filled, opset={IR: model.version})


def analyse_mirror(
    mirrored: Mirror,
    sizes: Sizes = NO_SIZES,
    empty_chunks: Literal["clamp", "error"] = "clamp",
    accept: Sequence[Acceptance] = (),
) -> Analysis:
    """The analysis of the mirror itself; conversion finds the layers by its nodes."""
    task = Task(mirrored.model, empty_chunks, sizes, given_types=mirrored.given, declared_types=mirrored.declared)
    analysis = _analyse(mirrored, task)
    if not accept:
        return analysis
    settled = settle(accept, analysis.diagnostics, analysis.details.scopes, analysis.details.graphs)
    first = analysis.diagnostics
    if settled.locations:
        analysis = _analyse(mirrored, replace(task, set_aside=settled.locations))
    found = (*settled.apply(first, analysis.diagnostics), *settled.notes)
    return replace(analysis, diagnostics=found, accepted=tuple(settled.accepted))


def _analyse(mirrored: Mirror, task: Task) -> Analysis:
    state, main = _walk(mirrored, task)
    if state.find_scopes():
        state, main = _walk(mirrored, replace(task, reserved=frozenset(state.symbols.reserved)))
        state.find_scopes()
    _report_impossible_layers(state, mirrored)
    return build_analysis(state, main)


def _report_impossible_layers(state: WalkState, mirrored: Mirror) -> None:
    """Warn about layers that no operator set of OpenVINO has: OpenVINO does not read the model."""
    for scope in state.record.scopes:
        for layer in mirrored.layers.get(scope.path, ()):
            fault = fault_of_layer(layer.type, layer.version)
            if fault is not None:
                help = "Correct the layer's type or version; a layer of an extension has a version of its own."
                found = diagnostic("SG303", fault, f"{scope.location}/{layer.name}", severity="warning", help=help)
                state.record.report(found)


def _walk(mirrored: Mirror, task: Task) -> tuple[WalkState, Walk]:
    state = WalkState(task)
    load_openvino_rules()
    facts = Facts()
    main = Walk(state, MAIN, "main", state.task.imports, facts, bindings={})
    _require_intervals(main, mirrored.bounds, task.sizes.bound)
    define_graph_values(main, mirrored.model.graph, task.sizes.given)
    main.run(mirrored.model.graph.node)
    settle_size_conditions(state)
    return state, main


def _require_intervals(
    main: Walk, intervals: Mapping[str, tuple[int, int | None]], bound: Mapping[str, DimLike]
) -> None:
    """Require each dimension to be within its declared interval. Report a given size outside the interval."""
    for name, (lowest, most) in intervals.items():
        dim = bound.get(name, symbol(name))
        held = [Obligation(dim, ">=", lowest), *([] if most is None else [Obligation(most, ">=", dim)])]
        if "contradiction" in [main.facts.require(obligation) for obligation in held]:
            declared = f"{lowest}..{'' if most is None else most}"
            text = f"the dimension {name} is given as {dim}, but declared as {declared}"
            help = f"Give it a size within {declared}, or correct the shape that the model declares."
            main.report(diagnostic("SG304", text, "main", help=help))
