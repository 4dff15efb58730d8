"""The ten ways to spoil a node that a conversion changed. Belongs to `planted_faults.py`.

A spoiling is an edit: it is described first, so that all can be counted and one can be chosen, and made when it is
asked for. The same models give the same spoilings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto
from planted_faults_changes import (
    ChangedNode,
    Constant,
    Path,
    Values,
    changed_nodes,
    graph_at,
    new_initializers,
)

WAYS = ("attribute", "constant", "axis", "dropped", "off by one", "default", "weight", "swapped", "sign", "cast")

# Attributes of type int that are a choice of two.
_FLAGS = {
    *("keepdims", "ceil_mode", "count_include_pad", "exclusive", "reverse", "align_corners", "largest", "sorted"),
    *("storage_order", "transA", "transB", "noop_with_empty_axes", "select_last_index", "time_major", "is_causal"),
    *("allowzero", "keep_aspect", "linear_before_reset", "input_forget", "layout", "training_mode", "unidirectional"),
}
_OTHER_TEXT = {
    "half_pixel": "asymmetric", "asymmetric": "half_pixel", "align_corners": "half_pixel", "constant": "edge",
    "pytorch_half_pixel": "half_pixel", "nearest": "linear", "linear": "nearest", "cubic": "linear",
    "floor": "ceil", "ceil": "floor", "round_prefer_floor": "round_prefer_ceil", "edge": "reflect",
    "round_prefer_ceil": "round_prefer_floor", "reflect": "edge", "none": "add", "add": "mul", "mul": "add",
    "max": "min", "min": "max", "mean": "sum", "sum": "mean", "DCR": "CRD", "CRD": "DCR", "avg": "max",
    "SAME_UPPER": "SAME_LOWER", "SAME_LOWER": "SAME_UPPER", "VALID": "SAME_UPPER", "NOTSET": "SAME_UPPER",
    "tanh": "none", "bilinear": "nearest", "zeros": "border", "border": "zeros", "forward": "reverse",
    "LEFT": "RIGHT", "RIGHT": "LEFT", "reverse": "forward",
}  # fmt: skip
_AXES = ("axis", "axes", "batch_axis", "time_axis", "scan_input_axes", "scan_output_axes", "batch_dims")
# The input of an operator that holds axes. Reductions have it at 1.
_AXES_INPUT = {"Slice": 3, "Pad": 3, "Squeeze": 1, "Unsqueeze": 1, "CumSum": 1, "VariadicSplit": 1}
_LENGTHS_INPUT = {"Split": 1, "SplitToSequence": 1, "VariadicSplit": 2}
# Bounds that a rewrite may have wrong by one: of a slice, of an index, of a range.
_BOUNDS_INPUTS = {"Slice": (1, 2), "Gather": (1,), "GatherND": (1,), "Range": (0, 1), "Pad": (1,), "TopK": (1,)}
_BOUNDS = ("starts", "ends", "pads")
_COMMUTATIVE = {
    *("Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
}
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_SIGNED = (*_FLOATS, TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8)
_NARROWER = {
    TensorProto.DOUBLE: TensorProto.FLOAT,
    TensorProto.FLOAT: TensorProto.FLOAT16,
    TensorProto.INT64: TensorProto.INT32,
    TensorProto.INT32: TensorProto.INT16,
    TensorProto.UINT64: TensorProto.UINT32,
    TensorProto.UINT32: TensorProto.UINT16,
}
# A larger constant is left alone in the changes that read all of it.
_MOST_ELEMENTS = 2**22


@dataclass(frozen=True, slots=True)
class TensorChange:
    """A change of the elements of a constant. at: which element, as a share of all of them."""

    constant: Constant
    kind: str
    at: float = 0.0

    @property
    def changed(self) -> TensorProto | None:
        """Return the other tensor; None where this change changes nothing."""
        return change_tensor(self.constant.tensor, self.kind, self.at)


@dataclass(frozen=True, slots=True)
class Edit:
    """What a spoiling does. nodes: replace the node at this place; None keeps it. tensor: a constant that changes."""

    path: Path
    index: int = 0
    nodes: tuple[NodeProto, ...] | None = None
    tensor: TensorChange | None = None

    @property
    def content(self) -> str:
        """Return a hash that two edits share only if they make the same model."""
        parts: list[object] = []
        if self.nodes is not None:
            parts += [self.path, self.index, *(node.SerializeToString(deterministic=True) for node in self.nodes)]
        if self.tensor is not None:
            constant = self.tensor.constant
            changed = self.tensor.changed
            assert changed is not None
            written = hashlib.sha256(changed.SerializeToString(deterministic=True)).hexdigest()
            parts += [constant.path, constant.key, written]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def apply(self, model: ModelProto) -> ModelProto:
        """Return a copy of a model with this edit."""
        copy = ModelProto()
        copy.CopyFrom(model)
        if self.tensor is not None:
            changed = self.tensor.changed
            assert changed is not None
            self.tensor.constant.in_copy(copy).CopyFrom(changed)
        if self.nodes is not None:
            graph = graph_at(copy, self.path)
            nodes = [*graph.node[: self.index], *self.nodes, *graph.node[self.index + 1 :]]
            kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(kept)
        return copy


class Spoiling(NamedTuple):
    """One way to spoil one node. place: graph and index. change: see `ChangedNode`. detail: what is spoiled of it."""

    place: str
    op: str
    change: str
    way: str
    detail: str
    edit: Edit

    @property
    def key(self) -> str:
        """Return what tells this spoiling from the others of its conversion."""
        return f"{self.place}|{self.way}|{self.detail}"


def spoilings(source: ModelProto, result: ModelProto) -> list[Spoiling]:
    """Return all ways to spoil what a conversion changed, without two that make the same model."""
    values = Values(result)
    found: dict[str, Spoiling] = {}
    for changed in changed_nodes(source, result):
        for way, make in _MAKERS.items():
            for detail, edit in make(changed, values):
                node = changed.node
                spoiling = Spoiling(changed.place, node.op_type, changed.change, way, detail, edit)
                found.setdefault(edit.content, spoiling)
    for scope, tensor in new_initializers(source, result):
        constant = Constant(scope.path, tensor.name, tensor)
        edit = _of_constant(constant, "one", tensor.name)
        if edit is not None:
            place = f"{scope.name}/{tensor.name}"
            found.setdefault(edit.content, Spoiling(place, "", "written", "constant", "initializer", edit))
    return list(found.values())


# Each way yields what it spoils, and how. --------------------------------------------------------------------------

_Edits = Iterator[tuple[str, Edit]]


def _attributes(changed: ChangedNode, values: Values) -> _Edits:
    for number, attribute in enumerate(changed.node.attribute):
        if attribute.name in (*_AXES, "to", "dtype") or attribute.ref_attr_name:
            continue
        if attribute.type == AttributeProto.TENSOR and changed.node.op_type != "Constant":
            constant = Constant(changed.scope.path, changed.index, attribute.t, attribute.name)
            edit = _of_constant(constant, "one", f"{changed.place}{attribute.name}")
            if edit is not None:
                yield attribute.name, edit
            continue
        other = _other_attribute(attribute, _share(f"{changed.place}{attribute.name}"))
        if other is not None:
            node = _copy(changed.node)
            node.attribute[number].CopyFrom(other)
            yield attribute.name, _of_nodes(changed, node)


def _other_attribute(attribute: AttributeProto, share: float) -> AttributeProto | None:
    """Return the attribute with another value; None where there is none that could be meant."""
    other = AttributeProto()
    other.CopyFrom(attribute)
    if attribute.type == AttributeProto.INT:
        is_flag = attribute.name in _FLAGS and attribute.i in (0, 1)
        other.i = 1 - attribute.i if is_flag else _next(attribute.i)
    elif attribute.type == AttributeProto.FLOAT:
        other.f = attribute.f + 1
    elif attribute.type == AttributeProto.STRING:
        text = _OTHER_TEXT.get(attribute.s.decode(errors="replace"))
        if text is None:
            return None
        other.s = text.encode()
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        place = int(share * len(attribute.ints))
        if attribute.name == "perm" and len(attribute.ints) > 1:
            place = min(place, len(attribute.ints) - 2)
            other.ints[place], other.ints[place + 1] = attribute.ints[place + 1], attribute.ints[place]
        else:
            other.ints[place] = _next(attribute.ints[place])
    elif attribute.type == AttributeProto.FLOATS and attribute.floats:
        place = int(share * len(attribute.floats))
        other.floats[place] = attribute.floats[place] + 1
    else:
        return None
    return other


def _constants(changed: ChangedNode, values: Values) -> _Edits:
    yield from _of_read(changed, values, "one")


def _weights(changed: ChangedNode, values: Values) -> _Edits:
    yield from _of_read(changed, values, "scale", of=_FLOATS)


def _signs(changed: ChangedNode, values: Values) -> _Edits:
    yield from _of_read(changed, values, "negate", of=_SIGNED)
    node = changed.node
    if node.output and node.output[0] and values.types.get(node.output[0], (0, None))[0] in _SIGNED:
        first, name = _copy(node), node.output[0]
        first.output[0] = f"{name}__whole"
        yield "output", _of_nodes(changed, first, NodeProto(op_type="Neg", input=[first.output[0]], output=[name]))


def _of_read(changed: ChangedNode, values: Values, kind: str, of: tuple[int, ...] = ()) -> _Edits:
    """Change each constant that a node reads, and the one that it is."""
    names = [*changed.node.input, *(changed.node.output[:1] if changed.node.op_type == "Constant" else ())]
    for number, name in enumerate(names):
        constant = values.constant(changed.scope, name)
        if constant is not None and (not of or constant.tensor.data_type in of):
            edit = _of_constant(constant, kind, f"{name}{kind}")
            if edit is not None:
                yield f"input {number}", edit


def _axes(changed: ChangedNode, values: Values) -> _Edits:
    for number, attribute in enumerate(changed.node.attribute):
        if attribute.name not in _AXES or attribute.ref_attr_name:
            continue
        for step in (1, -1):
            node = _copy(changed.node)
            if attribute.type == AttributeProto.INT:
                node.attribute[number].i += step
            elif attribute.ints:
                node.attribute[number].ints[0] += step
            else:
                continue
            yield f"{attribute.name} {step:+}", _of_nodes(changed, node)
    operator = _operator(changed.node)
    number = 1 if operator.startswith("Reduce") else _AXES_INPUT.get(operator, len(changed.node.input))
    constant = _read(changed, values, number)
    for step in (1, -1) if constant is not None else ():
        edit = _of_constant(constant, f"{step:+}", "axes")
        if edit is not None:
            yield f"input {number} {step:+}", edit


def _dropped(changed: ChangedNode, values: Values) -> _Edits:
    node = changed.node
    if not node.output or not node.output[0]:
        return
    own = values.types.get(node.output[0])
    named = [name for name in node.input if name]
    # Nothing is known of the values of a function.
    fitting = named if own is None else [name for name in named if values.types.get(name, own)[0] == own[0]]
    fitting = [name for name in fitting if own is not None and values.types.get(name) == own] or fitting
    if node.op_type == "Identity" or not fitting:
        return
    identity = NodeProto(op_type="Identity", input=[fitting[0]], output=[node.output[0]])
    if len(node.output) == 1:
        yield "first output", _of_nodes(changed, identity)
        return
    rest = _copy(node)
    rest.output[0] = f"{node.output[0]}__unread"
    yield "first output", _of_nodes(changed, rest, identity)


def _off_by_one(changed: ChangedNode, values: Values) -> _Edits:
    operator = _operator(changed.node)
    for number, attribute in enumerate(changed.node.attribute):
        node = _copy(changed.node)
        ints = node.attribute[number].ints
        if attribute.name == "split" and len(ints) > 1:
            place = min(int(_share(changed.place) * len(ints)), len(ints) - 2)
            ints[place], ints[place + 1] = ints[place] + 1, ints[place + 1] - 1
        elif attribute.name in _BOUNDS and ints:
            place = int(_share(changed.place) * len(ints))
            ints[place] = _next(ints[place])
        else:
            continue
        yield attribute.name, _of_nodes(changed, node)
    inputs = [(number, "one") for number in _BOUNDS_INPUTS.get(operator, ())]
    if operator in _LENGTHS_INPUT:
        inputs.append((_LENGTHS_INPUT[operator], "neighbours"))
    for number, kind in inputs:
        constant = _read(changed, values, number)
        edit = None if constant is None else _of_constant(constant, kind, f"{changed.place}bound")
        if edit is not None:
            yield f"input {number}", edit


def _defaults(changed: ChangedNode, values: Values) -> _Edits:
    """Remove what the conversion wrote: an attribute, or the last input if it may be left out and is a constant."""
    is_known = onnx.defs.has(changed.node.op_type, changed.node.domain)
    # A Constant without its value is no model.
    if changed.change != "written" or not is_known or changed.node.op_type == "Constant":
        return
    schema = onnx.defs.get_schema(changed.node.op_type, changed.node.domain)
    before = {} if changed.before is None else {each.name: each for each in changed.before.attribute}
    for number, attribute in enumerate(changed.node.attribute):
        declared = schema.attributes.get(attribute.name)
        if before.get(attribute.name) == attribute or (declared is not None and _is_needless(attribute, declared)):
            continue
        node = _copy(changed.node)
        del node.attribute[number]
        yield attribute.name, _of_nodes(changed, node)
    last = len(changed.node.input) - 1
    if last > 0 and _read(changed, values, last) is not None:
        declared_input = schema.inputs[min(last, len(schema.inputs) - 1)]
        if declared_input.option == onnx.defs.OpSchema.FormalParameterOption.Optional:
            node = _copy(changed.node)
            del node.input[last]
            yield f"input {last}", _of_nodes(changed, node)


def _is_needless(attribute: AttributeProto, declared: Any) -> bool:
    """Return True if a node needs this attribute, or has the same value without it."""
    value = declared.default_value
    is_default = value.type == attribute.type and _value(value) == _value(attribute)
    return bool(declared.required) or is_default


def _value(attribute: AttributeProto) -> object:
    return onnx.helper.get_attribute_value(attribute)


def _swapped(changed: ChangedNode, values: Values) -> _Edits:
    names = changed.node.input
    if changed.node.op_type in _COMMUTATIVE:
        return
    for number in range(len(names) - 1):
        left, right = names[number], names[number + 1]
        types = [values.types.get(name, (0, None))[0] for name in (left, right)]
        if left and right and left != right and types[0] == types[1]:
            node = _copy(changed.node)
            node.input[number], node.input[number + 1] = right, left
            yield f"inputs {number} and {number + 1}", _of_nodes(changed, node)


def _casts(changed: ChangedNode, values: Values) -> _Edits:
    node = changed.node
    if node.op_type not in ("Cast", "CastLike"):
        return
    yield "missing", _of_nodes(changed, NodeProto(op_type="Identity", input=node.input[:1], output=node.output))
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    if to in _NARROWER:
        between = f"{node.output[0]}__narrow"
        narrow = onnx.helper.make_node("Cast", [node.input[0]], [between], to=_NARROWER[to])
        wide = onnx.helper.make_node("Cast", [between], list(node.output), to=to)
        yield "narrower", _of_nodes(changed, narrow, wide)


_MAKERS: dict[str, Callable[[ChangedNode, Values], _Edits]] = dict(
    zip(
        WAYS,
        (_attributes, _constants, _axes, _dropped, _off_by_one, _defaults, _weights, _swapped, _signs, _casts),
        strict=True,
    )
)

# Parts of these ---------------------------------------------------------------------------------------------------


def _operator(node: NodeProto) -> str:
    """Return the operator; VariadicSplit for each function of that name."""
    return "VariadicSplit" if node.op_type.startswith("VariadicSplit") else str(node.op_type)


def _read(changed: ChangedNode, values: Values, number: int) -> Constant | None:
    if number >= len(changed.node.input):
        return None
    return values.constant(changed.scope, changed.node.input[number])


def _of_nodes(changed: ChangedNode, *nodes: NodeProto) -> Edit:
    return Edit(changed.scope.path, changed.index, nodes)


def _of_constant(constant: Constant | None, kind: str, seed: str) -> Edit | None:
    if constant is None:
        return None
    change = TensorChange(constant, kind, _share(f"{constant.key}{seed}"))
    return None if change.changed is None else Edit(constant.path, tensor=change)


def change_tensor(tensor: TensorProto, kind: str, at: float) -> TensorProto | None:
    """Return a tensor with other elements; None where the change would change none, or is not one of its type."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type == TensorProto.UNDEFINED:
        return None
    array = onnx.numpy_helper.to_array(tensor)
    if array.size == 0 or array.size > _MOST_ELEMENTS:
        return None
    flat = array.reshape(-1).copy()
    place = int(at * flat.size)
    if kind == "one":
        flat[place] = _other_element(flat[place])
    elif kind == "neighbours":
        if flat.size < 2:
            return None
        place = min(place, flat.size - 2)
        flat[place], flat[place + 1] = flat[place] + 1, flat[place + 1] - 1
    elif kind in ("+1", "-1"):
        flat[0] += int(kind)
    else:
        with np.errstate(over="ignore"):
            flat = (-flat if kind == "negate" else flat * np.asarray(1.01, dtype=flat.dtype)).astype(array.dtype)
    if flat.tobytes() == array.tobytes() and tensor.data_type != TensorProto.STRING:
        return None
    return onnx.numpy_helper.from_array(flat.reshape(array.shape), tensor.name)


def _other_element(element: Any) -> Any:
    if isinstance(element, (str, bytes)):
        return element + ("x" if isinstance(element, str) else b"x")
    if element.dtype == np.bool_:
        return not element
    if np.issubdtype(element.dtype, np.integer):
        return _next(int(element), int(np.iinfo(element.dtype).max))
    return element + np.asarray(1, dtype=element.dtype)


def _next(number: int, most: int = 2**63 - 1) -> int:
    """Return the next integer. A bound that stands for the end, whatever that is, becomes the one before the end."""
    return -1 if number >= 2**31 - 1 and most >= 2**31 else number - 1 if number == most else number + 1


def _share(seed: str) -> float:
    """Return a number from 0 up to 1 that belongs to a text."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:6], "big") / 2**48


def _copy(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
