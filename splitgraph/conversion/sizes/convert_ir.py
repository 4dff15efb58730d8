"""An OpenVINO IR with other sizes: its Parameters get them, and the dimensions of all ports follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.conversion.plan import Plan
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.dim import Dim, DimLike
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.inference.analysis import IR
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.inference.task import read_sizes
from splitgraph.model.values import value_type
from splitgraph.options import NewSizes, Sizes

_HELP = (
    "Constants of an IR stay as they are. Reshape the ONNX model, and convert it to IR again (splitgraph convert "
    "MODEL.onnx -o MODEL.xml)."
)


def convert_ir_sizes(model: OpenVINOModel, sizes: NewSizes) -> Rewrite[OpenVINOModel]:
    """Return a copy of an IR whose inputs have other sizes; a name becomes a dynamic dimension. Raises ConversionError
    where a layer needs the old size, SplitgraphError for wrong sizes.
    """
    if sizes.follow:
        raise SplitgraphError("the constants of an IR stay as they are; follow is for ONNX models")
    shapes = _wanted(model, sizes)
    copy = model.copy()
    names = mirror(model).names[()]
    for layer in copy.graph.layers:
        shape = shapes.get(names[layer.id, layer.outputs[0].id]) if layer.type == "Parameter" else None
        data = layer.element.find("data")
        if shape is not None and data is not None:
            data.set("shape", ",".join(str(dim) if isinstance(dim, int) else "?" for dim in shape))
    copy.refresh()
    analysis = infer_ir(copy)
    plan = Plan()
    known = {finding.location for finding in infer_ir(model, fill=False).diagnostics}
    for finding in analysis.diagnostics:
        if finding.severity == "error" and finding.location not in known:
            text = f"with the new sizes: {finding.message}"
            plan.blockers.append(diagnostic("SG420", text, finding.location, help=_HELP))
    for name, shape in shapes.items():
        for axis, (dim, found) in enumerate(zip(shape, analysis.types[name].shape or (), strict=True)):
            # What later layers require is known of the input.
            if not isinstance(dim, int) and isinstance(found, int):
                text = f"later layers need {name!r} to be {found} along axis {axis}, and not {dim}"
                plan.blockers.append(diagnostic("SG420", text, f"main/{name}", help=_HELP))
    given = {str(dim) for name in shapes for dim in analysis.types[name].shape or () if isinstance(dim, Dim)}
    for obligation, locations in analysis.required_by.items():
        if obligation.relation == "==" and len(obligation.symbols) == 1 and obligation.symbols <= given:
            plan.blockers.append(diagnostic("SG420", f"needs {obligation}", locations[0], help=_HELP))
    plan.raise_blockers("the sizes cannot change")
    version: Mapping[str, int] = {IR: model.version}
    return Rewrite(analysis.model, (), from_opset=version, to_opset=version, new_sizes=sizes)


def _wanted(model: OpenVINOModel, sizes: NewSizes) -> Mapping[str, Sequence[DimLike | None]]:
    """Return the new shape of each input that changes."""
    mirrored = mirror(model).model
    asked = dict(sizes.shapes or {})  # type: ignore[arg-type]
    if sizes.batch is not None:
        for value in mirrored.graph.input:
            shape = value_type(value.type).shape
            if shape:
                asked.setdefault(value.name, [sizes.batch, *shape[1:]])
    given = read_sizes(mirrored, Sizes(None, asked)).given
    return {
        value.name: known.shape
        for value, known in zip(mirrored.graph.input, given, strict=True)
        if known is not None and known.shape is not None
    }
