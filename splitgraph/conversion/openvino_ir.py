"""Converting the splits of an IR between OpenVINO's Split-1 and VariadicSplit-1."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from splitgraph.conversion.ir_editor import GraphEditor, NewPort, Place, graph_at, insert_input, nodes_of, set_data
from splitgraph.conversion.layer_draft import LayerDraft, LayerValue, as_read
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.dim import Dim
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.inference.analysis import IR, Analysis
from splitgraph.inference.openvino_ir import is_split, mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.inference.walk_results import GraphDetail, NodePlace, SplitDetail
from splitgraph.model.deferred import np
from splitgraph.model.scopes import GraphPath
from splitgraph.options import STRICT, Leeway
from splitgraph.splits.lowering import lengths_with_rest

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
    from splitgraph.inference.openvino_ir import Mirror


@dataclass(frozen=True, slots=True)
class _Edit:
    """The rewrite of one split layer.

    detail: its inference. lengths: in the new form; None where they are computed at run time. axis_is_scalar: Split
    needs a scalar axis.
    """

    path: GraphPath
    index: int
    detail: SplitDetail
    location: str
    lengths: tuple[int, ...] | None = None
    axis_is_scalar: bool = True


@dataclass(slots=True)
class _Plan:
    edits: list[_Edit] = field(default_factory=list)
    blockers: list[Diagnostic] = field(default_factory=list)


def convert_ir(
    model: OpenVINOModel,
    to: str,
    *,
    explicit_lengths: bool = False,
    leeway: Leeway = STRICT,
    only: Collection[NodePlace] | None = None,
) -> Rewrite:
    """Return a copy of the model with its splits as Split or as VariadicSplit; names, ports and all other layers stay.

    explicit_lengths: replace a -1 of a VariadicSplit by its length where that is known. leeway: what the user permits;
    conversion changes splits only, so that no other layer is needed. only: the splits to convert, None for all. Raises
    ConversionError with every split that the target cannot express, SplitgraphError for wrong arguments.
    """
    if to == "slice":
        raise SplitgraphError("splits of an OpenVINO IR cannot be converted to 'slice'; only those of ONNX models can")
    if to not in ("split", "variadic-split"):
        raise SplitgraphError(f"splits cannot be converted to {to!r}; the targets are 'split' and 'variadic-split'")
    if explicit_lengths and to == "split":
        raise SplitgraphError("OpenVINO's Split has no lengths to write out; explicit_lengths is for 'variadic-split'")
    mirrored = mirror(model)
    analysis = analyse_mirror(mirrored, leeway=leeway)
    plan = _planned(model, mirrored, analysis, to, explicit_lengths, only)
    if plan.blockers:
        lines = "".join(f"\n  {blocker.code}  {blocker.location}  {blocker.message}" for blocker in plan.blockers)
        raise ConversionError(f"the splits cannot be converted to {to}:{lines}", plan.blockers)
    changes = tuple(_change(edit, to) for edit in plan.edits)
    version = {IR: model.version}
    notes = tuple(finding for finding in analysis.diagnostics if finding.code == "SG606")
    return Rewrite(
        _apply(plan, model, to), changes, notes, from_opset=version, to_opset=version, accepted=analysis.accepted
    )


def _planned(
    model: OpenVINOModel,
    mirrored: Mirror,
    analysis: Analysis,
    to: str,
    explicit_lengths: bool,
    only: Collection[NodePlace] | None,
) -> _Plan:
    """Return the edits of the splits that are converted, and what is in their way. Errors of the model are, too."""
    plan = _Plan(blockers=[finding for finding in analysis.diagnostics if finding.severity == "error"])
    locations = {scope.path: scope.location for scope in analysis.details.scopes}
    for path, layers in mirrored.layers.items():
        found: GraphDetail = analysis.details.graphs.get(path) or GraphDetail()
        sources = graph_at(model.graph, path).sources
        for index, layer in enumerate(layers):
            if is_split(layer) and (only is None or (path, index) in only):
                first = len(plan.edits)
                place = path, index, f"{locations[path]}/{layer.name}"
                _plan(plan, layer, found.splits.get(index), place, to, explicit_lengths)
                axis = sources.get((layer.id, layer.inputs[1].id)) if len(layer.inputs) > 1 else None
                known = found.types.get(mirrored.names[path].get(axis, "")) if axis is not None else None
                is_scalar = known is not None and known.shape == ()
                plan.edits[first:] = [replace(edit, axis_is_scalar=is_scalar) for edit in plan.edits[first:]]
    return plan


def _change(edit: _Edit, to: str) -> Change:
    after = "VariadicSplit-1" if to == "variadic-split" else "Split-1"
    return Change(edit.location, edit.detail.variant.label, after, f"convert to {to}")


def _plan(
    plan: _Plan,
    layer: Layer,
    detail: SplitDetail | None,
    place: tuple[GraphPath, int, str],
    to: str,
    explicit_lengths: bool,
) -> None:
    location = place[2]
    if detail is None or detail.split is None:
        if detail is None or not detail.errors:
            text = f"inference knows nothing about this {layer.type}, so it cannot be replaced exactly"
            plan.blockers.append(diagnostic("SG407", text, location))
        return
    if to == "variadic-split":
        _plan_variadic(plan, layer, detail, place, explicit_lengths)
    elif layer.type == "VariadicSplit":
        problem = _no_plain_split(layer, detail)
        if problem is None:
            plan.edits.append(_Edit(*place[:2], detail, location))
        else:
            help = "Keep VariadicSplit, which OpenVINO runs as well."
            plan.blockers.append(diagnostic("SG408", problem, location, help=help))


def _plan_variadic(
    plan: _Plan, layer: Layer, detail: SplitDetail, place: tuple[GraphPath, int, str], explicit_lengths: bool
) -> None:
    split = detail.split
    assert split is not None
    if layer.type == "VariadicSplit":
        lengths = split.static_lengths
        if explicit_lengths and detail.rest_possible and lengths is not None:
            plan.edits.append(_Edit(*place[:2], detail, place[2], lengths))
        return
    plan.edits.append(_Edit(*place[:2], detail, place[2], lengths_with_rest(split)))


def _no_plain_split(layer: Layer, detail: SplitDetail) -> str | None:
    """Return why a VariadicSplit cannot become a Split; None where it can."""
    split = detail.split
    assert split is not None
    lengths = split.lengths or ()
    # Equal lengths that are no numbers are equal parts of any dimension: -1 alone, or computed ones.
    are_alike = bool(lengths) and all(length == lengths[0] for length in lengths) and isinstance(lengths[0], Dim)
    if not are_alike and (split.static_lengths is None or not isinstance(split.total, int)):
        return "Split makes equal parts of a dimension, and cannot pin one that is dynamic or lengths known at run time"
    if len(set(lengths)) > 1:
        return f"Split makes equal parts, and these are {', '.join(map(str, lengths))}"
    if split.axis is None:
        return "the axis is known only at run time, so the parts may be unequal"
    return None


def _apply(plan: _Plan, model: OpenVINOModel, to: str) -> OpenVINOModel:
    copy = model.copy()
    editors: dict[GraphPath, tuple[GraphEditor, Graph, list[Layer]]] = {}
    for edit in plan.edits:
        if edit.path not in editors:
            graph = graph_at(copy.graph, edit.path)
            editors[edit.path] = (GraphEditor(copy, graph), graph, nodes_of(graph))
        editor, graph, nodes = editors[edit.path]
        if to == "split":
            _write_split(editor, graph, nodes[edit.index], edit)
        else:
            _write_variadic(editor, graph, nodes[edit.index], edit)
    copy.refresh()
    return copy


def _write_split(editor: GraphEditor, graph: Graph, layer: Layer, edit: _Edit) -> None:
    """Edit a VariadicSplit to be a Split: without lengths, with the number of parts and a scalar axis."""
    split = edit.detail.split
    assert split is not None and split.axis is not None
    axis, lengths = layer.inputs[1], layer.inputs[2]
    gone = [graph.sources[layer.id, lengths.id]]
    editor.disconnect((layer.id, lengths.id))
    holder = layer.element.find("input")
    assert holder is not None
    ports = holder.findall("port")
    ports[1].tail = ports[2].tail
    holder.remove(ports[2])
    if not edit.axis_is_scalar:
        gone.append(graph.sources[layer.id, axis.id])
        editor.disconnect((layer.id, axis.id))
        editor.connect(editor.constant(layer, "axis", split.axis), (layer.id, axis.id))
        for dim in ports[1].findall("dim"):
            ports[1].remove(dim)
        ports[1].text = None
        ports[1].set("precision", "I64")
    layer.element.set("type", "Split")
    set_data(layer, {"num_splits": str(len(layer.outputs))})
    editor.remove_unread(_by_id(graph, gone))


def _write_variadic(editor: GraphEditor, graph: Graph, layer: Layer, edit: _Edit) -> None:
    """Edit a Split to be a VariadicSplit: a third input with the lengths, constant or computed; -1 is unknown."""
    count = len(layer.outputs)
    if layer.type == "VariadicSplit":
        lengths = layer.inputs[2]
        gone = graph.sources[layer.id, lengths.id]
        editor.disconnect((layer.id, lengths.id))
        editor.connect(editor.constant(layer, "split_lengths", list(edit.lengths or ())), (layer.id, lengths.id))
        editor.remove_unread(_by_id(graph, [gone]))
        return
    number = 1 + max(port.id for port in (*layer.inputs, *layer.outputs))
    draft = LayerDraft(editor, layer)
    if edit.lengths is None:
        source = _equal_lengths(draft, graph, count)
    else:
        source = draft.constant(np.array(edit.lengths, np.int64), "split_lengths")
    insert_input(layer, number, NewPort("I64", [count]))
    editor.connect(source.place, (layer.id, number))
    layer.element.set("type", "VariadicSplit")
    set_data(layer, {})


def _equal_lengths(draft: LayerDraft, graph: Graph, count: int) -> LayerValue:
    """Write layers that compute the lengths of equal parts at run time."""
    data, axis = (as_read(graph, draft.layer, port) for port in draft.layer.inputs[:2])
    dim = draft.write("Gather", [draft.write("Shape", [data], "shape"), axis], "dim", axis=0)
    length = draft.write("Div", [dim, draft.constant(np.array(count), "parts")], "length")
    return draft.write("Expand", [length, draft.constant(np.array([count]), "count")], "split_lengths")


def _by_id(graph: Graph, places: Sequence[Place]) -> list[Layer]:
    numbers = {place[0] for place in places}
    return [layer for layer in graph.layers if layer.id in numbers]
