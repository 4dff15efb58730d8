"""Infers the types, shapes and splits of a whole OpenVINO IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from splitgraph.dim import DimLike, Facts, Obligation, symbol
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.accepted import analyse_accepting
from splitgraph.inference.analysis import IR, Analysis
from splitgraph.inference.build_analysis import build_analysis
from splitgraph.inference.declared_types import define_graph_values, settle_size_conditions
from splitgraph.inference.infer import Walked, walked_of
from splitgraph.inference.openvino_ir.mirror import Mirror, mirror
from splitgraph.inference.rules import load_openvino_rules
from splitgraph.inference.task import UNBOUND, BoundSizes, Follow, Task, bound_type, read_sizes
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import MAIN, GraphPath, scopes
from splitgraph.model.value_type import Shape, ValueType
from splitgraph.options import NO_SIZES, STRICT, Leeway, Sizes

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel

Types = Mapping[GraphPath, Mapping[str, ValueType]]


def infer_ir(
    model: OpenVINOModel,
    given: Sizes = NO_SIZES,
    leeway: Leeway = STRICT,
    *,
    fill: bool = True,
) -> Analysis:
    """Infer types and shapes of every value of an IR. Its intervals become bounded symbols. Arguments and errors are
    those of `infer_model`. `Analysis.model` is a copy with the dims of its ports filled in.
    """
    mirrored = mirror(model)
    sizes = read_sizes(mirrored.model, given)
    analysis = analyse_mirror(mirrored, sizes, leeway)
    filled = fill_ir(analysis, mirrored, model, sizes) if fill else model
    return replace(analysis, held=filled, opset={IR: model.version})


def analyse_mirror(
    mirrored: Mirror,
    sizes: BoundSizes = UNBOUND,
    leeway: Leeway = STRICT,
) -> Analysis:
    """Return the analysis of the mirror. Conversion finds the layers by its nodes."""
    task = Task(
        mirrored.model, leeway.empty_chunks, sizes, given_types=mirrored.given, declared_types=mirrored.declared
    )
    analysis = analyse_accepting(task, leeway, partial(_analyse, mirrored))
    if not analysis.diagnostics and not analysis.accepted:
        return analysis
    found, accepted = (with_layers(each, mirrored) for each in (analysis.diagnostics, analysis.accepted))
    return replace(analysis, diagnostics=found, accepted=accepted)


def with_layers(findings: Iterable[Diagnostic], mirrored: Mirror) -> tuple[Diagnostic, ...]:
    """Return findings with the layers that they are about."""
    return with_nodes(
        findings, scopes(mirrored.model), lambda place: mirrored.layers[place.scope.path][place.position].label
    )


def walk_mirror(mirrored: Mirror, sizes: BoundSizes = UNBOUND, follow: Follow | None = None) -> Walked:
    """Infer every value of the mirror for a conversion. follow: as for `walk_model`; of the declared shapes of other
    layers than inputs and constants, only the ranks are believed then.
    """
    declared = mirrored.declared if follow is None else _without_sizes(mirrored.declared)
    task = Task(
        mirrored.model,
        sizes=sizes,
        is_reported=False,
        given_types=mirrored.given,
        declared_types=declared,
        follow=follow,
    )
    state, _ = _settled_walk(mirrored, task)
    return walked_of(state)


def _without_sizes(declared: Types) -> Types:
    return {
        path: {
            name: known if known.shape is None else known.with_shape((None,) * len(known.shape))
            for name, known in types.items()
        }
        for path, types in declared.items()
    }


def _analyse(mirrored: Mirror, task: Task) -> Analysis:
    state, main = _settled_walk(mirrored, task)
    _report_impossible_layers(state, mirrored)
    return build_analysis(state, main)


def _report_impossible_layers(state: WalkState, mirrored: Mirror) -> None:
    """Warn about layers that no operator set of OpenVINO has. OpenVINO does not read the model."""
    for scope in state.record.scopes:
        for layer in mirrored.layers.get(scope.path, ()):
            fault = fault_of_layer(layer.type, layer.version)
            if fault is not None:
                help = "Correct the layer's type or version; a layer of an extension has a version of its own."
                warning = diagnostic("SG303", fault, f"{scope.location}/{layer.name}", severity="warning", help=help)
                state.record.report(warning)


def _settled_walk(mirrored: Mirror, task: Task) -> tuple[WalkState, Walk]:
    """Walk the mirror, and again if the model has names of generated symbols."""
    state, main = _walk(mirrored, task)
    if state.find_scopes():
        state, main = _walk(mirrored, replace(task, reserved=frozenset(state.symbols.reserved)))
        state.find_scopes()
    return state, main


def _walk(mirrored: Mirror, task: Task) -> tuple[WalkState, Walk]:
    state, facts = WalkState(task), Facts()
    if task.follow is not None:
        task.follow.begin()
        facts = Facts(task.follow.bounds())
    load_openvino_rules()
    main = Walk(state, MAIN, "main", state.task.imports, facts, bindings={})
    _require_intervals(main, mirrored.bounds, task.sizes.bound)
    define_graph_values(main, mirrored.model.graph, task.sizes.given)
    main.run(mirrored.model.graph.node)
    settle_size_conditions(state)
    return state, main


def _require_intervals(
    main: Walk, intervals: Mapping[str, tuple[int, int | None]], bound: Mapping[str, DimLike]
) -> None:
    """Require each dimension to be within its declared interval. Report a given size outside of it."""
    for name, (lowest, most) in intervals.items():
        dim = bound.get(name, symbol(name))
        limits = [Obligation(dim, ">=", lowest), *([] if most is None else [Obligation(most, ">=", dim)])]
        if "contradiction" in [main.facts.require(obligation) for obligation in limits]:
            declared = f"{lowest}..{'' if most is None else most}"
            text = f"the dimension {name} is given as {dim}, but declared as {declared}"
            help = f"Give it a size within {declared}, or correct the shape that the model declares."
            main.report(diagnostic("SG304", text, "main", help=help))


def fill_ir(analysis: Analysis, mirrored: Mirror, model: OpenVINOModel, sizes: BoundSizes = UNBOUND) -> OpenVINOModel:
    """Return a copy of the model with the inferred dims in every port, and with the caller's sizes in its Parameters. A
    dimension that is no number is -1 in a port, because the IR has no names for dimensions.
    """
    copy = model.copy()
    if sizes is not UNBOUND:
        _fix_parameters(copy.graph, mirrored, sizes)
    _fill(copy.graph, MAIN, mirrored, analysis.details.types)
    copy.refresh()
    return copy


def _fill(graph: Graph, path: GraphPath, mirrored: Mirror, types: Types) -> None:
    names, known = mirrored.names[path], types.get(path, {})
    shapes = {place: value.shape for place, name in names.items() if (value := known.get(name)) is not None}
    for layer in graph.layers:
        if layer.type != "Const":
            _fill_ports(layer, "output", {port.id: shapes.get((layer.id, port.id)) for port in layer.outputs})
        read = {port.id: graph.sources.get((layer.id, port.id)) for port in layer.inputs}
        _fill_ports(layer, "input", {port: shapes.get(source) for port, source in read.items() if source is not None})
    nodes = [layer for layer in graph.layers if layer.type not in ("Parameter", "Result", "Const")]
    for index, layer in enumerate(nodes):
        for key, body in layer.bodies.items():
            _fill(body, (*path, index, key, 0), mirrored, types)


def _fix_parameters(graph: Graph, mirrored: Mirror, sizes: BoundSizes) -> None:
    """Write the given sizes into the shapes that the Parameters declare; open dimensions keep their text."""
    names, declared = mirrored.names[MAIN], mirrored.given[MAIN]
    shapes = {name: bound_type(known, sizes.bound).shape for name, known in declared.items()}
    for value, given in zip(mirrored.model.graph.input, sizes.given, strict=False):
        if given is not None and given.shape is not None:
            shapes[value.name] = given.shape
    for layer in graph.layers:
        data = layer.element.find("data")
        shape = shapes[names[layer.id, layer.outputs[0].id]] if layer.type == "Parameter" else None
        if data is not None and shape is not None:
            data.set("shape", _fixed_text(data.get("shape", "..."), shape))


def _fixed_text(written: str, shape: Shape) -> str:
    parts = written.strip().removeprefix("[").removesuffix("]").split(",")
    kept = parts if len(parts) == len(shape) and written != "..." else ["?"] * len(shape)
    fixed = [str(dim) if isinstance(dim, int) else part for dim, part in zip(shape, kept, strict=True)]
    return written if fixed == parts else ",".join(fixed)


def _fill_ports(layer: Layer, side: str, shapes: Mapping[int, Shape | None]) -> None:
    holder = layer.element.find(side)
    for port in () if holder is None else holder.findall("port"):
        shape = shapes.get(int(port.get("id", "-1")))
        if shape is not None:
            _write_dims(port, [str(dim) if isinstance(dim, int) else "-1" for dim in shape])


def _write_dims(port: Element, texts: Iterable[str]) -> None:
    wanted, present = list(texts), port.findall("dim")
    if len(wanted) == len(present):
        for dim, text in zip(present, wanted, strict=True):
            if (dim.text or "").strip() != text:
                dim.text = text
        return
    for dim in present:
        port.remove(dim)
    for text in wanted:
        SubElement(port, "dim").text = text


# Layers of operator sets ----------------------------------------------------------------------------------------------


# The newest operator set, of OpenVINO 2026.4. A set has the layers of those before it.
NEWEST_SET = 17
_PREFIX = "opset"

# Each operator set, and the layers that came with it. OpenVINO also reads a few of later sets as layers of opset1.
_TEXT = """
1: AUGRUCell AUGRUSequence Abs Acos Add Asin Atan AvgPool BatchNormInference BinaryConvolution Broadcast
    CTCGreedyDecoder Ceiling Clamp Concat Const Convert ConvertLike Convolution ConvolutionBackpropData Cos Cosh
    DeformableConvolution DeformablePSROIPooling DepthToSpace DetectionOutput Divide Elu Equal Erf Exp
    FakeQuantize Floor FloorMod GRN Gather GatherTree Greater GreaterEqual GroupConvolution
    GroupConvolutionBackpropData HardSigmoid Interpolate LRN LSTMCell Less LessEqual Log LogicalAnd LogicalNot
    LogicalOr LogicalXor MVN MatMul MaxPool Maximum Minimum Mod Multiply Negative NonMaxSuppression NormalizeL2
    NotEqual OneHot PReLU PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal RNNCell
    ROIPooling Range ReLU ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    RegionYolo Relu ReorgYolo Reshape Result Reverse ReverseSequence Select Selu ShapeOf ShuffleChannels Sigmoid
    Sign Sin Sinh SoftMax Softmax SpaceToDepth Split Sqrt SquaredDifference Squeeze StridedSlice Subtract Tan
    Tanh TensorIterator Tile TopK Transpose Unsqueeze VariadicSplit Xor
2: BatchToSpace Gelu SpaceToBatch
3: Assign Bucketize CumSum EmbeddingBagOffsetsSum EmbeddingBagPackedSum EmbeddingSegmentsSum ExtractImagePatches
    GRUCell NonZero ROIAlign ReadValue ScatterElementsUpdate ScatterUpdate
4: Acosh Asinh Atanh CTCLoss HSwish Mish ReduceL1 ReduceL2 ScatterNDUpdate SoftPlus Swish
5: GRUSequence GatherND HSigmoid LSTMSequence LogSoftmax Loop RNNSequence Round
6: CTCGreedyDecoderSeqLen ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
    ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
    ExperimentalDetectronTopKROIs GatherElements
7: DFT Einsum IDFT Roll
8: AdaptiveAvgPool AdaptiveMaxPool I420toBGR I420toRGB If MatrixNms MulticlassNms NV12toBGR NV12toRGB
    RandomUniform Slice
9: Eye GenerateProposals GridSample IRDFT RDFT SoftSign
10: IsFinite IsInf IsNaN Unique
12: GroupNormalization
13: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor FakeConvert Multinomial NMSRotated ScaledDotProductAttention
14: ConvertPromoteTypes Inverse
15: BitwiseLeftShift BitwiseRightShift Col2Im EmbeddingBagOffsets EmbeddingBagPacked ROIAlignRotated STFT
    SearchSorted SliceScatter StringTensorPack StringTensorUnpack
16: ISTFT Identity SegmentMax SparseFillEmptyRows
17: ErfInv GroupedMatMul
"""


def _parsed(text: str) -> dict[str, int]:
    """Return the first operator set of each layer, by the layer's type in lower case. No two types
    differ only in case.
    """
    since: dict[str, int] = {}
    number = 0
    for word in text.lower().split():
        if word.endswith(":"):
            number = int(word[:-1])
        else:
            since[word] = number
    return since


_SINCE = _parsed(_TEXT)


def fault_of_layer(type_: str, version: str) -> str | None:
    """Return why OpenVINO has no such layer. Return None for a layer that it has, and for a layer of an extension."""
    number = version.removeprefix(_PREFIX)
    if not version.startswith(_PREFIX):
        return None
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= NEWEST_SET):
        return f"OpenVINO has no operator set {version}; splitgraph knows opset1 to opset{NEWEST_SET}"
    since = _SINCE.get(type_.lower())
    if since is None:
        return f"OpenVINO has no layer {type_} in {version}"
    if int(number) < since:
        return f"OpenVINO has no layer {type_} in {version}; the layer came with {_PREFIX}{since}"
    return None
