"""Recognizing the nodes by which splitgraph computes lengths, or an axis from an attribute of a function, so that the
way back is lossless.

Inference cannot follow such lengths where the rank is unknown, nor an attribute that differs from call to call. But
nodes that equal those that lowering writes have the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from splitgraph.canonical import CanonicalSplit, SplitForm
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.splits.lower import without_rest
from splitgraph.deferred import np, numpy_helper
from splitgraph.graph.names import FreshNames, Producers
from splitgraph.graph.scopes import plain_domain
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto
from splitgraph.value_type import ValueType
from splitgraph.variants.lowering import LowerRequest, NotRepresentable, computed_lengths


def lengths_are_computed(
    producers: Producers, node: NodeProto, split: CanonicalSplit, data: ValueType, opset: int, form: SplitForm
) -> bool:
    """True when the lengths of a VariadicSplit call are computed by the nodes that lowering writes for the form.

    Where the lengths of equal parts are valid they sum to the dimension, so chunks are the same.
    """
    forms: tuple[SplitForm, ...] = ("equal",) if form == "equal" else ("chunks", "equal")
    return any(
        _computes(producers, node, replace(split, form=each), data, _expected(node, opset, given))
        for each in forms
        for given in (False, True)
    )


def has_no_rest(producers: Producers, node: NodeProto, data: ValueType, opset: int) -> bool:
    """True when the lengths of a VariadicSplit call come from the nodes that replace a -1 by the rest along the axis of
    the call, so that none of them is -1.
    """
    if len(node.input) < 3:
        return False
    # From the lengths up to the lengths that were given, and to the axis.
    given = _above(producers, node.input[2], ("Where", 2), ("Cast", 0))
    axis = _above(
        producers, node.input[2], ("Where", 1), ("Sub", 0), ("Sub", 0), ("Gather", 1), ("Reshape", 0), ("Cast", 0)
    )
    if given is None or axis is None:
        return False
    along, wanted = (_number(producers.constant(name)) for name in (axis, node.input[1]))
    if along is None or wanted is None:
        return False
    if along != wanted and (not data.rank or (along - wanted) % data.rank):
        return False
    alike, expected = NodeProto(), _expected(node, opset, given=False)
    alike.CopyFrom(node)
    alike.input[1] = axis
    lengths = without_rest(alike, given, expected)
    return _same(producers, {made.output[0]: made for made in expected.helpers}, lengths, node.input[2])


def _number(tensor: TensorProto | None) -> int | None:
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
        return None
    array = numpy_helper.to_array(tensor)
    return int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None


def _above(producers: Producers, name: str, *steps: tuple[str, int]) -> str | None:
    """The value at the end of a path upwards: each step names an operator and one of its inputs; None without such."""
    for op_type, index in steps:
        made = producers.node(name)
        if made is None or made.op_type != op_type or len(made.input) <= index:
            return None
        name = made.input[index]
    return name


def axis_reference(producers: Producers, node: NodeProto, opset: int, attributes: Iterable[str]) -> str | None:
    """The attribute of the enclosing function that gives the axis of a VariadicSplit call, None where none does.

    attributes: those of the function.
    """
    made = producers.node(node.input[1])
    if made is not None and (made.op_type, plain_domain(made.domain)) == ("Constant", ""):
        return next((a.ref_attr_name for a in made.attribute if a.name == "value_int" and a.ref_attr_name), None)
    for attribute in attributes:
        for given in (False, True):
            expected = _expected(node, opset, given)
            wanted = expected.reference(attribute, node.input[0], "axis")
            if _same(producers, {made.output[0]: made for made in expected.helpers}, wanted, node.input[1]):
                return attribute
    return None


def _expected(node: NodeProto, opset: int, given: bool) -> Emission:
    return Emission(FreshNames(node.input), opset, True, "expected", lambda attribute: given, GraphProto())


def _computes(
    producers: Producers, node: NodeProto, split: CanonicalSplit, data: ValueType, expected: Emission
) -> bool:
    axis = next((attribute for attribute in node.attribute if attribute.name == "axis"), None)
    unknown = replace(split, lengths=None)
    try:
        request = LowerRequest(node=node, split=unknown, data=data, builder=expected, axis_attribute=axis)
        wanted = computed_lengths(request)
    except NotRepresentable:
        return False
    return _same(producers, {made.output[0]: made for made in expected.helpers}, wanted, node.input[2])


def _same(producers: Producers, expected: Mapping[str, NodeProto], wanted: str, found: str) -> bool:
    node = expected.get(wanted)
    if node is None:
        return wanted == found
    if node.op_type == "Constant" and node.attribute[0].name == "value":
        tensor = producers.constant(found)
        return tensor is not None and _equal(tensor, node.attribute[0].t)
    made = producers.node(found)
    return (
        made is not None
        and (made.op_type, plain_domain(made.domain)) == (node.op_type, "")
        and list(made.output) == [found]
        and len(made.input) == len(node.input)
        and list(made.attribute) == list(node.attribute)
        and all(_same(producers, expected, a, b) for a, b in zip(node.input, made.input, strict=True))
    )


def _equal(first: TensorProto, second: TensorProto) -> bool:
    if first.data_type != second.data_type or list(first.dims) != list(second.dims):
        return False
    if first.data_location == TensorProto.EXTERNAL:
        return False
    return bool(np.array_equal(numpy_helper.to_array(first), numpy_helper.to_array(second)))
