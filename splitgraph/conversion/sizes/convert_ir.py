"""Writes an OpenVINO IR with other sizes: its Parameters get them, and the constants that say an old size follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from splitgraph.conversion.ir_editor import Place, graph_at
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.rewrite import GivenSizes, Rewrite
from splitgraph.conversion.sizes.baked import is_right
from splitgraph.conversion.sizes.constant_outputs import constant_output_notes, spelled_outputs
from splitgraph.conversion.sizes.constant_outputs_ir import readers_of, with_readers, without_readers
from splitgraph.conversion.sizes.formulas import NotWritable
from splitgraph.conversion.sizes.laws import condition_findings
from splitgraph.conversion.sizes.needs import Reading
from splitgraph.conversion.sizes.rules_ir import LAYERS
from splitgraph.conversion.sizes.search import Given, find_reading
from splitgraph.conversion.sizes.user_entries import given_by_the_user
from splitgraph.conversion.sizes.wanted import Wanted, read_wanted, relabelled, renamed
from splitgraph.conversion.sizes.weights import NotRead, WeightReader
from splitgraph.conversion.sizes.write_ir import LayerWriter
from splitgraph.dim import DimLike
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.inference.analysis import IR, Analysis
from splitgraph.inference.openvino_ir import Mirror, infer_ir, mirror, walk_mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.inference.task import BoundSizes, read_sizes
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.scopes import MAIN, GraphPath, scopes
from splitgraph.model.tensor_data import is_external
from splitgraph.model.values import array_of, value_type
from splitgraph.options import NewSizes, Sizes

_HELP = "Reshape the ONNX model, and convert it to IR again (splitgraph convert MODEL.onnx -o MODEL.xml)."


def convert_ir_sizes(model: OpenVINOModel, sizes: NewSizes) -> Rewrite[OpenVINOModel]:
    """Return a copy of an IR whose inputs have other sizes; a name becomes a dynamic dimension. Constants that say an
    old size follow. Raises ConversionError with everything that is in the way, SplitgraphError for wrong sizes.
    """
    wanted = read_wanted_ir(model, sizes)
    rewrite, given = convert_ir_to(model, wanted, sizes)
    return replace(rewrite, new_sizes=GivenSizes(sizes, *given))


def convert_ir_to(
    model: OpenVINOModel, wanted: Wanted, sizes: NewSizes, taken: Mapping[Reading, int] | None = None
) -> tuple[Rewrite[OpenVINOModel], Given]:
    """Return the rewrite of an IR to sizes that were read before, and what `GivenSizes` holds besides these sizes.

    wanted: the sizes as read from `sizes`. taken: the readings of numbers, if they are known (see `find_reading`).
    """
    model, readers = with_readers(model)
    wanted = replace(wanted, outputs=readers_of(model, readers))
    before = infer_ir(model, fill=False).diagnostics
    known = {finding.location for finding in before if finding.severity == "error"}
    unlabelled, bound = mirror(model), BoundSizes(wanted.bound, ())
    mirrored = relabelled_mirror(unlabelled, wanted)
    plan = Plan()
    entries = given_by_the_user(lambda: walk_mirror(mirrored, bound), sizes, LAYERS, wanted)
    weights = WeightReader(_Constants(model, mirrored).read)
    unchanged = walk_mirror(_with_inputs(unlabelled, renamed(unlabelled.model, wanted)), bound)
    found = find_reading(
        wanted, LAYERS, entries, unchanged, lambda follower: walk_mirror(mirrored, bound, follower), weights, taken
    )
    walked, follower = found.walked, found.follower
    plan.blockers += spelled_outputs(
        found.in_the_way(known), {name: reader.constant for name, reader in readers.items()}
    )
    plan.raise_blockers("the sizes cannot change")
    copy = model.copy()
    writer = LayerWriter(copy, mirrored, walked, follower)
    try:
        writer.run()
    except NotWritable as reason:
        plan.blockers.append(diagnostic("SG420", str(reason), "main", help=_HELP))
    plan.raise_blockers("the sizes cannot change")
    kept = without_readers(copy, readers)
    analysis = with_shapes(copy, _new_shapes(wanted))
    plan.blockers += _left_over(analysis, wanted, known)
    plan.raise_blockers("the sizes cannot change")
    version: Mapping[str, int] = {IR: model.version}
    constants = unchanged.graphs[MAIN].constants
    elements = {name: constants[reader.value] for name, reader in readers.items() if reader.value in constants}
    answers = (*sizes.keep, *sizes.follow)
    said = (*condition_findings(found.judgement, found.wanted), *constant_output_notes(kept, elements, answers))
    changes = tuple(writer.changes)
    return Rewrite(analysis.model, changes, said, from_opset=version, to_opset=version), found.given


def _new_shapes(wanted: Wanted) -> dict[str, list[DimLike | None]]:
    return {
        name: [None if dim is None else wanted.after(dim) for dim in shape] for name, shape in wanted.shapes.items()
    }


def relabelled_mirror(mirrored: Mirror, wanted: Wanted) -> Mirror:
    """Return a mirror with the new shapes of its inputs. Inputs of bodies get those that are passed to them."""
    made = relabelled(mirrored.model, wanted)
    given = {path: dict(types) for path, types in mirrored.given.items()}
    for scope in scopes(made):
        for value in scope.proto.input:
            shape = value_type(value.type).shape
            if scope.path != MAIN and shape is not None:
                shape = (None,) * len(shape)
                for dim in value.type.tensor_type.shape.dim:
                    dim.Clear()
            given[scope.path][value.name] = given[scope.path][value.name].with_shape(shape)
    return replace(mirrored, model=made, given=given)


def read_wanted_ir(model: OpenVINOModel, sizes: NewSizes) -> Wanted:
    """Return which dimensions of an IR change, as `read_wanted` does."""
    mirrored = mirror(model)

    def runs(made: ModelProto, at: Sizes) -> bool:
        return is_right(analyse_mirror(_with_inputs(mirrored, made), read_sizes(made, at)))

    return read_wanted(mirrored.model, sizes, runs)


def _with_inputs(mirrored: Mirror, made: ModelProto) -> Mirror:
    """Return a mirror with other types of its inputs: those of a model that is like it otherwise."""
    own = mirrored.given[MAIN]
    inputs = {value.name: own[value.name].with_shape(value_type(value.type).shape) for value in made.graph.input}
    return replace(mirrored, model=made, given={**mirrored.given, MAIN: {**own, **inputs}})


class _Constants:
    """Reads the constants of an IR, of which the mirror has the small ones."""

    def __init__(self, model: OpenVINOModel, mirrored: Mirror) -> None:
        self._model, self._names = model, mirrored.names

    def read(self, home: GraphPath, tensor: TensorProto) -> Any:
        """Return the elements of a constant. Raises NotRead for strings."""
        if tensor.data_type == TensorProto.STRING:
            raise NotRead("are strings")
        if not is_external(tensor):
            return array_of(tensor)
        layers = graph_at(self._model.graph, home).layers
        layer = next(each for each in layers if each.outputs and self._names[home][_place(each)] == tensor.name)
        content = bytes(self._model.constant(layer))
        return array_of(TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=content))


def _place(layer: Layer) -> Place:
    return layer.id, layer.outputs[0].id


# Shapes of the result -------------------------------------------------------------------------------------------------


def with_shapes(model: OpenVINOModel, shapes: Mapping[str, Sequence[DimLike | None]]) -> Analysis:
    """Infer an IR anew, whose inputs get these shapes. `Analysis.model` has them in all ports. The model is edited.

    shapes: by input; a dimension that is no number is dynamic, and None stays as it is written.
    """
    names = mirror(model).names[MAIN]
    for layer in model.graph.layers:
        shape = shapes.get(names[_place(layer)]) if layer.type == "Parameter" else None
        data = layer.element.find("data")
        if shape is not None and data is not None:
            data.set("shape", _written(layer.data.get("shape", "..."), shape))
    _forget_sizes(model.graph)
    model.refresh()
    analysis = infer_ir(model)
    for layer in analysis.model.graph.layers:
        for body in layer.bodies.values():
            _tell_parameters(body)
    analysis.model.refresh()
    return analysis


def _written(before: str, shape: Sequence[DimLike | None]) -> str:
    parts = before.strip().removeprefix("[").removesuffix("]").split(",")
    kept = parts if len(parts) == len(shape) and before.strip() != "..." else ["?"] * len(shape)
    return ",".join(
        str(dim) if isinstance(dim, int) else part if dim is None or not part.strip().isdecimal() else "?"
        for dim, part in zip(shape, kept, strict=True)
    )


def _forget_sizes(graph: Graph) -> None:
    """Make the dimensions of all ports dynamic: those of layers that inference does not know are of the old sizes."""
    for layer in graph.layers:
        if layer.type != "Const":
            for dim in layer.element.iterfind("output/port/dim"):
                dim.text = "-1"
        for dim in layer.element.iterfind("input/port/dim"):
            dim.text = "-1"
        for body in layer.bodies.values():
            _forget_sizes(body)
            for inner, data in _parameters(body):
                data.set("shape", _shape_text([None] * len(inner.outputs[0].dims or ())))


def _tell_parameters(graph: Graph) -> None:
    """Write the dimensions that the inputs of a body got."""
    for layer, data in _parameters(graph):
        data.set("shape", _shape_text(layer.outputs[0].dims or ()))
    for layer in graph.layers:
        for body in layer.bodies.values():
            _tell_parameters(body)


def _parameters(graph: Graph) -> Iterator[tuple[Layer, Element]]:
    """Yield the inputs of a graph whose ranks are known and not 0, with their attributes."""
    for layer in graph.layers:
        data = layer.element.find("data")
        if layer.type == "Parameter" and data is not None and layer.outputs[0].dims:
            yield layer, data


def _shape_text(dims: Sequence[int | None]) -> str:
    return ",".join("?" if dim is None else str(dim) for dim in dims)


def _left_over(analysis: Analysis, wanted: Wanted, known: Collection[str]) -> Iterator[Diagnostic]:
    """Yield what the result needs to be of the old size, after all."""
    for finding in analysis.diagnostics:
        if finding.severity == "error" and finding.location not in known:
            yield diagnostic("SG420", f"with the new sizes: {finding.message}", finding.location, help=_HELP)
    for name, shape in wanted.shapes.items():
        for axis, (dim, found) in enumerate(zip(shape, analysis.types[name].shape or (), strict=True)):
            # What later layers require is known of the input.
            if dim is not None and not isinstance(wanted.after(dim), int) and isinstance(found, int):
                text = f"later layers need {name!r} to be {found} along axis {axis}, and not {dim}"
                yield diagnostic("SG420", text, f"main/{name}", help=_HELP)
