"""Find the inputs that each output of a model depends on, and what of a model is a length, a position or a size.

Only elements count, not shapes: a value that is computed from the shape of a tensor does not depend on its elements,
and a tensor does not depend on the numbers that give its shape. All outputs of a node with a body (If, Loop, Scan or a
function call) depend on all values that the body reads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import FunctionKey, Steps, called_function, finish, function_key
from splitgraph.model.value_type import DTYPE_NAMES
from splitgraph.verification.models.model_files import nodes_within, scoped_nodes

# Operators and layers that read only shapes and counts.
_SHAPE_ONLY = kinds.SIZES | kinds.names(
    "EyeLike RandomNormalLike RandomUniformLike SequenceEmpty SequenceLength ShapeOf"
)
# Operators and layers that read only the element type of their second input.
_TYPED_LIKE = frozenset({"CastLike", "ConvertLike"})
# Inputs whose elements are no data, and say no shape either: a rate, a mode, frequencies, a region.
_SETTINGS: Mapping[str, tuple[int, ...]] = {"Dropout": (1, 2), "MelWeightMatrix": (2, 3, 4), "Resize": (1,)}
# Operators whose second input is boxes, in any units; ROIAlign-like layers read as many elements as these are large.
_BOXES = frozenset({"CropAndResize", "MaxRoiPool", "RoiAlign"})
_ANYWHERE = slice(None)
# The bit for all shapes; each output has a bit of its own.
_SHAPES = 1

# Element types in which a number can change a little; the others hold only powers of two, or 16 numbers.
_MOVABLE = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
_MOVABLE |= {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"}

_FRACTIONS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})
_FRACTIONS |= {onnx.TensorProto.BFLOAT16}
# Parts of the names of operators that read or write at positions: their first input takes any integer. So does the
# first one of a division, whose second one ends some engines if it is 0. The results of ArgMax and ArgMin are
# positions, whatever they are computed from.
_READING_AT = (
    *("Gather", "Scatter", "Feature", "OneHot", "Loss", "Embed", "Attention", "Sequence", "Shift", "RoiAlign"),
    *("RoiPool", "Lengths", *sorted(kinds.RECURRENT), "CumSum", "Trilu", "Unpool"),
)
# Operators whose second input is an axis or an offset, which engines check.
_OFFSET = frozenset({"CumSum", "Trilu"})
_OF_SEQUENCES = frozenset({"SequenceAt", "SequenceErase"})
# Of Div, Mod, Divide and FloorMod, too.
_PARTS = (*_READING_AT, "Div", "Mod")
_WELL_KNOWN = ("", "ai.onnx", "ai.onnx.ml", "org.openvinotoolkit")
# How the names of operators of onnxruntime begin that compute with any integers and texts.
_OF_ANY_NUMBER = (
    *("QLinear", "MatMulInteger", "DynamicQuantizeMatMul", "QGemm", "QuantizeLinear", "DequantizeLinear"),
    *("MulInteger", "ReduceSumInteger", "MurmurHash3", "Tokenizer", "Unique"),
)
# A loop of more iterations is not run on drawn values of any kind.
_MANY_ITERATIONS = 1000
# Operators that put truths together.
_OF_TRUTHS = frozenset({"And", "Not", "Or", "Identity"})
# Operators that write at positions, and where these stand among their inputs: what is written takes any integer.
_WRITING_AT = {
    **dict.fromkeys((*kinds.WRITES_AT, "MaxUnpool"), slice(1, 2)),
    **dict.fromkeys(("SequenceInsert", "TensorScatter"), slice(2, 3)),
}

Masks = dict[str, int]


def _read_elements(node: onnx.NodeProto) -> Sequence[str]:
    """Return the inputs whose elements a node reads."""
    if node.op_type in _SHAPE_ONLY:
        return ()
    return node.input[:1] if node.op_type in _TYPED_LIKE else node.input


def outputs_of_inputs(model: onnx.ModelProto, names: Iterable[str]) -> set[int]:
    """Return the positions of the outputs of a model that depend on the elements of some inputs; an IR is given as its
    ONNX mirror.
    """
    reader = _BackwardWalk({function_key(function): function for function in model.functions})
    masks: Masks = {}
    for index, value in enumerate(model.graph.output):
        masks[value.name] = masks.get(value.name, 0) | 2 << index
    finish(reader.read(model.graph.node, masks))
    mask = _union(masks.get(name, 0) for name in names) >> 1
    return {index for index in range(len(model.graph.output)) if mask >> index & 1}


def values_of_elements(model: onnx.ModelProto, fixed: Collection[str] = ()) -> set[str]:
    """Return the inputs, and the values of the main graph, that depend on the elements of inputs, and not only on their
    shapes. What a node with a body reads counts for all of its outputs. fixed: inputs that do not change.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    reached = {value.name for value in model.graph.input if value.name not in constants and value.name not in fixed}
    for node in model.graph.node:
        inner = {name for body, _ in _bodies(node, 1) for inside in nodes_within(body.node) for name in inside.input}
        reads = _read_elements(node)
        if kinds.may_draw(node) or not reached.isdisjoint(reads) or not reached.isdisjoint(inner):
            reached.update(node.output)
    return reached - {""}


def shape_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the inputs of a model whose elements a shape, a length or a number of iterations is computed from."""
    reader = _BackwardWalk({function_key(function): function for function in model.functions})
    masks: Masks = dict.fromkeys((value.name for value in model.graph.output), 2)
    finish(reader.read(model.graph.node, masks))
    return {value.name for value in model.graph.input if masks.get(value.name, 0) & _SHAPES}


def only_sizes(model: onnx.ModelProto) -> set[str]:
    """Return the values of the main graph that say sizes, lengths or numbers of iterations, and nothing else."""
    reader = _BackwardWalk({function_key(function): function for function in model.functions})
    masks: Masks = dict.fromkeys((value.name for value in model.graph.output), 2)
    finish(reader.read(model.graph.node, masks))
    return {name for name, mask in masks.items() if mask == _SHAPES}


def extent_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the inputs of a model that the extents of boxes may be computed from: how long an engine reads a box
    depends on its size.
    """
    return inputs_reaching(model, _BOXES, slice(1, 2))


_TREES = frozenset({"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"})


def inputs_reaching(
    model: onnx.ModelProto, operators: frozenset[str], places: slice = _ANYWHERE, *, cleaned_by: str = ""
) -> set[str]:
    """Return the inputs of a model from which elements reach operators, directly or not, at some of their inputs.

    cleaned_by: IsNaN or IsInf, of which a Where may choose what it tells: behind that, nothing reaches an operator.
    """
    roots: dict[str, set[str]] = {value.name: {value.name} for value in model.graph.input}
    called = [inner.op_type for function in model.functions for inner in nodes_within(function.node)]
    functions = set() if operators.isdisjoint(called) else {function_key(function) for function in model.functions}
    names: set[str] = set()
    tested: dict[str, set[str]] = {}
    for node in model.graph.node:
        inside = [inner for body, _ in _bodies(node, 1) for inner in nodes_within(body.node)]
        read = [roots.get(name, set()) for name in (*node.input, *(name for inner in inside for name in inner.input))]
        if cleaned_by and node.op_type in _TREES:
            # Features are compared alone: scores are numbers, whatever the features are.
            read = []
        elif cleaned_by and node.op_type in kinds.COMPARED:
            # A truth is a number, whatever it is of.
            read = []
            is_told = node.op_type == cleaned_by or (cleaned_by == "IsNaN" and _is_of_itself(node))
            tested[node.output[0]] = set(node.input) if is_told else set()
        elif node.op_type in _OF_TRUTHS:
            tested[node.output[0]] = set().union(*(tested.get(name, set()) for name in node.input))
        elif node.op_type == "Where" and tested.get(node.input[0]):
            read = [set() if name in tested[node.input[0]] else own for name, own in zip(node.input, read, strict=True)]
        # Which of the values that a body or a function reads reach an operator is not followed.
        is_within = called_function(node) in functions or any(
            inner.op_type in operators or called_function(inner) in functions for inner in inside
        )
        names.update(*(read if is_within else read[places] if node.op_type in operators else ()))
        for name in node.output if node.op_type not in _SHAPE_ONLY else ():
            roots.setdefault(name, set()).update(*read)
    return names


def _is_of_itself(node: onnx.NodeProto) -> bool:
    """Return True for an Equal of a value and itself, which NaN is not."""
    return node.op_type == "Equal" and len(set(node.input)) == 1


def index_inputs(model: onnx.ModelProto, *, has_guards: bool = False) -> set[str]:
    """Return the integer inputs of a model that positions may be computed from, or divisors of integers; conditions and
    numbers of iterations; sizes and lengths in a body; and what a function reads. Engines need not check those.

    has_guards: what a Mod or a Clip with constants limits is no position, because all numbers are allowed before it.
    """
    return _traced(model, _PARTS, has_guards=has_guards)


def amount_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the inputs of a model that say lengths, axes, offsets, or positions in sequences, which engines check; no
    other positions, and no numbers of iterations, which take time.
    """
    said = shape_inputs(model) | inputs_reaching(model, _OFFSET | _OF_SEQUENCES, slice(1, 2))
    said |= inputs_reaching(model, frozenset({"SequenceInsert"}), slice(2, 3))
    unchecked = [part for part in _READING_AT if part not in _OFFSET and part != "Sequence"]
    positions = _traced(model, unchecked, has_sizes=False)
    return said - positions - inputs_reaching(model, frozenset({"Loop"}), slice(1))


def divisor_inputs(model: onnx.ModelProto) -> set[str]:
    """Return those of `index_inputs` that only divisors are computed from. They take any number by which no 0 is
    divided.
    """
    return index_inputs(model) - _traced(model, _READING_AT)


class _Wanted(NamedTuple):
    """What is traced: parts of the names of operators that read positions, and whether sizes and lengths in a body.
    limits: constants with which a Mod or a Clip limits.
    """

    parts: Sequence[str]
    has_sizes: bool
    limits: Collection[str]


def _traced(
    model: onnx.ModelProto, parts: Sequence[str], *, has_sizes: bool = True, has_guards: bool = False
) -> set[str]:
    whole = {value.name for value in model.graph.input if value.type.tensor_type.elem_type not in _FRACTIONS}
    names: set[str] = set()
    roots = {name: {name} for name in whole}
    limits = _constants(model) if has_guards else ()
    _trace_positions(model.graph.node, roots, names, _Wanted(parts, has_sizes, limits), is_body=False)
    return names


def _constants(model: onnx.ModelProto) -> set[str]:
    made = (name for node, _ in scoped_nodes(model) if node.op_type == "Constant" for name in node.output)
    return {tensor.name for tensor in model.graph.initializer} | {*made}


def _is_guard(node: onnx.NodeProto, limits: Collection[str]) -> bool:
    """Return True if a node gives few numbers, whatever it reads."""
    own = node.input[1:]
    is_limited = bool(own) and all(name in limits for name in own)
    return is_limited and len(node.input) == {"Mod": 2, "Clip": 3}.get(node.op_type)


def _trace_positions(
    nodes: Iterable[onnx.NodeProto], roots: dict[str, set[str]], names: set[str], wanted: _Wanted, *, is_body: bool
) -> None:
    """Add to names the inputs of the model that positions are computed from. roots: the inputs of the model that each
    value is computed from; the values of the nodes are added.
    """
    for node in nodes:
        if node.op_type in kinds.ARG_REDUCES:
            continue
        read = [roots.get(name, set()) for name in (_read_elements(node) or node.input)]
        if is_body and wanted.has_sizes:
            names.update(*(read[place] for place in _shaping(node) if place < len(read)))
        if node.op_type in _SHAPE_ONLY:
            continue
        names.update(*read[_read_as_positions(node, wanted)])
        if node.op_type in ("If", "Loop"):
            # Its number of iterations, and its condition.
            names.update(*read[:2])
        read += [_traced_body(node, body, roots, names, wanted) for body, _ in _bodies(node, 2)]
        for name in node.output if not _is_guard(node, wanted.limits) else ():
            roots.setdefault(name, set()).update(*read)


def _read_as_positions(node: onnx.NodeProto, wanted: _Wanted) -> slice:
    """Return which inputs of a node are positions: all of an operator that nobody here knows."""
    takes_any = node.domain == "com.microsoft" and node.op_type.startswith(_OF_ANY_NUMBER)
    if node.domain not in _WELL_KNOWN and not takes_any:
        return _ANYWHERE
    if any(part in node.op_type for part in wanted.parts):
        return _WRITING_AT.get(node.op_type, slice(1, None))
    return slice(0)


def _traced_body(
    node: onnx.NodeProto, body: onnx.GraphProto, roots: Mapping[str, set[str]], names: set[str], wanted: _Wanted
) -> set[str]:
    """Trace a body, and return the inputs that its outputs are computed from."""
    inner = {name: set(own) for name, own in roots.items()}
    # The number of the iteration and the condition come first in a Loop; a Scan of opset 8 has lengths first.
    given = ["", "", *node.input[2:]] if node.op_type == "Loop" else node.input[-len(body.input) :]
    for value, name in zip(body.input, given, strict=False):
        inner[value.name] = set(roots.get(name, ()))
    states = list(zip(body.input[2:], body.output[1:], strict=False)) if node.op_type == "Loop" else []
    states = list(zip(body.input, body.output, strict=False)) if node.op_type == "Scan" else states
    grows = True
    while grows:
        _trace_positions(body.node, inner, names, wanted, is_body=True)
        # What one iteration computes, the next one reads.
        grows = False
        for state, result in states:
            grows |= not inner.get(result.name, set()) <= inner[state.name]
            inner[state.name] |= inner.get(result.name, set())
    return set().union(*(inner.get(value.name, set()) for value in body.output))


def may_not_end(model: onnx.ModelProto, counts: Mapping[str, int]) -> bool:
    """Return True if a Loop of a model may take very many iterations on other values: none but its condition ends it,
    or its number of iterations is large, or not known beside a condition that it computes. counts: the known numbers.
    """
    known = dict(counts)
    for node, _ in scoped_nodes(model):
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensor = node.attribute[0].t
            known |= {node.output[0]: _number(tensor)} if _is_number(tensor) else {}
    known |= {tensor.name: _number(tensor) for tensor in model.graph.initializer if _is_number(tensor)}
    loops = (node for node, _ in scoped_nodes(model) if node.op_type == "Loop")
    constants = _constants(model)
    return any(_is_open(node, known) and not _only_counts(node, constants) for node in loops)


def _only_counts(node: onnx.NodeProto, constants: Collection[str]) -> bool:
    """Return True if only constants decide when a Loop ends: then it ends whatever values are drawn for the rest."""
    is_given = all(name in constants for name in node.input[:2] if name)
    body = next((graph for graph, _ in _bodies(node, 2)), None)
    if not is_given or body is None or _keeps_condition(body):
        return False
    # States that begin as constants. Those that an iteration computes from anything else are left out, until only
    # states that hang on constants remain.
    states = [
        (value.name, result.name)
        for value, result, given in zip(body.input[2:], body.output[1:], node.input[2:], strict=False)
        if given in constants
    ]
    while True:
        known = _computed_from(body, {*constants, *(name for name, _ in states)})
        left = [state for state in states if state[1] in known]
        if left == states:
            return body.output[0].name in known
        states = left


def _computed_from(body: onnx.GraphProto, names: Iterable[str]) -> set[str]:
    """Return the values of the body of a Loop that hang on nothing but some values, constants, the number of the
    iteration and its condition.
    """
    known = {*names, *(tensor.name for tensor in body.initializer), *(value.name for value in body.input[:2])}
    for inner in body.node:
        is_plain = not any(attribute.HasField("g") for attribute in inner.attribute) and not kinds.may_draw(inner)
        if is_plain and all(name in known for name in inner.input):
            known.update(inner.output)
    return known


def _is_open(node: onnx.NodeProto, known: Mapping[str, int]) -> bool:
    name = node.input[0] if node.input else ""
    if not name:
        return True
    if name in known:
        return known[name] > _MANY_ITERATIONS
    return not any(_keeps_condition(body) for body, _ in _bodies(node, 2))


def _keeps_condition(body: onnx.GraphProto) -> bool:
    """Return True if the condition after an iteration is that before it, or a constant."""
    made = {name: node for node in body.node for name in node.output}
    name = body.output[0].name
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    return name not in made or made[name].op_type == "Constant"


def _is_number(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type == onnx.TensorProto.INT64 and math.prod(tensor.dims) == 1 and not tensor.external_data


def _number(tensor: onnx.TensorProto) -> int:
    return int(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


@dataclass(slots=True)
class _BackwardWalk:
    """Walks graphs backward, from their outputs to their inputs and constants.

    called: the functions that were walked, with the mask of their outputs. They are not walked again, because functions
    that call each other twice would take exponential time.
    """

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    called: set[tuple[FunctionKey, int]] = field(default_factory=set)

    def read(self, nodes: Sequence[onnx.NodeProto], masks: Masks) -> Steps:
        """Compute the masks of all values, from the masks of the outputs."""
        while self._pass(nodes, masks):
            pass
        for node in nodes:
            mask = _union(masks.get(name, 0) for name in node.output)
            for graph, inner in _bodies(node, mask):
                yield self.read(graph.node, inner)
            call = called_function(node), mask
            if mask and call[0] in self.functions and call not in self.called:
                self.called.add(call)
                function = self.functions[call[0]]
                yield self.read(function.node, dict.fromkeys(function.output, mask))

    def _pass(self, nodes: Sequence[onnx.NodeProto], masks: MutableMapping[str, int]) -> bool:
        """Visit the nodes from the last to the first. Return True if a mask grew after its node was visited, which only
        happens if the nodes are not sorted.
        """
        passed: set[str] = set()
        is_late = False
        for node in reversed(nodes):
            passed.update(node.output)
            mask = _union(masks.get(name, 0) for name in node.output)
            if not mask or node.op_type in _SHAPE_ONLY:
                continue
            of_shapes = _shaping(node)
            reads = _read_elements(node)
            read = [(name, _SHAPES if index in of_shapes else mask) for index, name in enumerate(reads)]
            for graph, inner in _bodies(node, mask):
                while self._pass(graph.node, inner):
                    pass
                read += inner.items()
            for name, more in read:
                known = masks.get(name, 0)
                if more & ~known:
                    masks[name] = known | more
                    is_late |= name in passed
        return is_late


def _shaping(node: onnx.NodeProto) -> tuple[int, ...]:
    return (*kinds.shape_inputs(node), *_SETTINGS.get(node.op_type, ()))


def _bodies(node: onnx.NodeProto, mask: int) -> Iterator[tuple[onnx.GraphProto, Masks]]:
    """Yield the graphs of a node, with the masks of their outputs."""
    for attribute in node.attribute if mask else ():
        for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
            yield graph, dict.fromkeys((value.name for value in graph.output), mask)


def is_weight(tensor: onnx.TensorProto) -> bool:
    """Return True for floating-point numbers that can change a little."""
    return DTYPE_NAMES.get(tensor.data_type) in _MOVABLE
