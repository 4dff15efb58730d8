"""What lowering is given and what it may emit: nodes of the target opset, constants, computed lengths."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from splitgraph.dim import DimLike
from splitgraph.model.attributes import make_attribute
from splitgraph.model.onnx_proto import AttributeProto, NodeProto, TensorProto
from splitgraph.model.value_type import ValueType
from splitgraph.splits.canonical import CanonicalSplit


class NotRepresentable(Exception):
    """The target version has no form for this split. code: of the diagnostic; message: what is missing; help: what to
    do instead; exists_from: the opset from which on there is a form, None if no other opset helps.
    """

    def __init__(self, code: str, message: str, help: str | None = None, exists_from: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help
        self.exists_from = exists_from


class Builder(Protocol):
    """Where lowering puts its nodes; names are new in every scope, helper nodes are of the target opset."""

    @property
    def opset(self) -> int:
        """The target opset of ai.onnx, in whose dialect helper nodes are written."""

    def constant(self, values: Sequence[int] | int, hint: str) -> str:
        """Return the name of an int64 constant: 1-D for a sequence, 0-D for an int."""

    def write(
        self, op_type: str, inputs: Sequence[str], hint: str, **attributes: int | Sequence[int] | TensorProto
    ) -> str:
        """Emit a helper node with one output and give that output's name."""

    def reference(self, attribute: str, data: str, hint: str) -> str:
        """Return the name of a 1-D int64 tensor with the axis of `data` that an attribute of the enclosing function
        gives.
        """

    def lengths_reference(self, attribute: str) -> str:
        """Return the name of a 1-D int64 tensor with the lengths that an attribute of the enclosing function gives."""

    def shared(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """Return the name of lengths of a dimension that other splits of the graph may read too; `compute` emits
        them.
        """

    def fresh_name(self, name: str) -> str:
        """Return a name like this one that is new in every scope of the model."""

    def draft(self) -> NodeProto:
        """Return an empty node, to be filled and emitted."""

    def main(self, node: NodeProto) -> None:
        """Emit a node that stands for the original."""

    def function_node(self, parts: int) -> str:
        """Make sure that the model has the function VariadicSplit_<parts>, and give its name."""


@dataclass(frozen=True, slots=True)
class LowerRequest:
    """One split to write in another form.

    node: the original, from which names, documentation and metadata are taken. split: its canonical form. data: type of
    what is split. lengths: name of an int64 1-D tensor with the lengths at run time, where there is one. divisible: the
    dimension is proved to be a multiple of the number of parts. explicit_lengths: write lengths even where the target
    has a shorter form.
    """

    node: NodeProto
    split: CanonicalSplit
    data: ValueType
    builder: Builder
    lengths: str | None = None
    divisible: bool = False
    explicit_lengths: bool = False
    axis_attribute: AttributeProto | None = None

    @property
    def parts(self) -> int:
        """Number of outputs, omitted ones included."""
        return len(self.node.output)


def lengths_reference(request: LowerRequest) -> str | None:
    """Return the attribute of the enclosing function that holds the lengths; None if there is none."""
    names = (attribute.ref_attr_name for attribute in request.node.attribute if attribute.name == "split")
    return next(filter(None, names), None)


def copy_node(
    request: LowerRequest,
    inputs: Sequence[str],
    op_type: str = "Split",
    keep: Sequence[str] = ("axis",),
    pattern: NodeProto | None = None,
) -> NodeProto:
    """Return a copy of the original node with other inputs and only the attributes in `keep`; name, documentation and
    metadata stay. If the axis is kept and the original has it as an input, it becomes an attribute.

    pattern: the original without its inputs, outputs and attributes (`pattern_of`), for a copy with other outputs.
    """
    node = request.builder.draft()
    node.CopyFrom(request.node if pattern is None else pattern)
    node.op_type = op_type
    del node.input[:]
    node.input.extend(inputs)
    kept = [attribute for attribute in request.node.attribute if attribute.name in keep]
    del node.attribute[:]
    node.attribute.extend(kept)
    if "axis" in keep and request.axis_attribute is None and written_axis(request):
        set_int(node, "axis", request.split.axis or 0)
    return node


def pattern_of(request: LowerRequest) -> NodeProto:
    """Return the original without its inputs, outputs and attributes. Copying all outputs for each of them would take
    the square of their number.
    """
    pattern = NodeProto()
    pattern.CopyFrom(request.node)
    for field in ("input", "output", "attribute"):
        pattern.ClearField(field)
    return pattern


def set_int(node: NodeProto, name: str, value: int) -> None:
    """Set an integer attribute, replacing one of that name."""
    for attribute in node.attribute:
        if attribute.name == name:
            attribute.CopyFrom(make_attribute(name, value))
            return
    node.attribute.append(make_attribute(name, value))


def set_ints(node: NodeProto, name: str, values: Sequence[int]) -> None:
    """Append an attribute that is a list of integers."""
    node.attribute.add(name=name, type=AttributeProto.INTS, ints=values)


def written_axis(request: LowerRequest) -> int | None:
    """Return the axis as a number, normalised where the rank is known; None for a reference attribute."""
    attribute = request.axis_attribute
    if attribute is not None and attribute.ref_attr_name:
        return request.split.axis if request.data.rank is not None else None
    if request.split.axis is None and attribute is None:
        raise NotRepresentable("SG402", "the axis is an input known only at run time", "Make the axis a constant.")
    return attribute.i if request.split.axis is None and attribute is not None else request.split.axis


def axis_tensor(request: LowerRequest) -> str:
    """Return the name of a 1-D int64 tensor with the axis."""
    axis = written_axis(request)
    if axis is not None:
        return request.builder.constant([axis], "axis")
    attribute = request.axis_attribute
    reference = "" if attribute is None else attribute.ref_attr_name
    return request.builder.reference(reference, request.node.input[0], "axis")


def dimension(request: LowerRequest) -> str:
    """Return the name of a 1-D int64 tensor of one element: the dimension that is split, as run time knows it."""
    axis = written_axis(request)
    if axis is not None and axis < 0 and request.builder.opset < 11:
        raise NotRepresentable(
            "SG402",
            f"the axis is {axis} on a tensor of unknown rank, and Gather takes no negative index below opset 11",
            "Stop at opset 11, or declare the shape of the input.",
            exists_from=11,
        )
    shape = request.builder.write("Shape", [request.node.input[0]], "shape")
    return request.builder.write("Gather", [shape, axis_tensor(request)], "dim", axis=0)


def computed_lengths(request: LowerRequest) -> str:
    """Return the name of a 1-D int64 tensor with the lengths. If no tensor has them, they are computed from the data's
    shape (opset 12 on), for this split or for an earlier one of the same dimension.
    """
    split = request.split
    if request.lengths is not None or split.static_lengths is not None or lengths_reference(request) is not None:
        return own_lengths(request)
    form = "equal" if request.divisible and split.form == "chunks" else split.form
    return request.builder.shared(split.total, (form, split.lengths, request.parts), lambda: own_lengths(request))


def own_lengths(request: LowerRequest) -> str:
    """Return the lengths as `computed_lengths` does, computed from the shape of the data of this split.

    Equal parts and chunks are dim // k and ceil(dim / k); chunks that overrun the dimension are clamped, as canonical
    bounds are.
    """
    if request.lengths is not None:
        return request.lengths
    static = request.split.static_lengths
    if static is not None:
        return request.builder.constant(static, "lengths")
    reference = lengths_reference(request)
    if reference is not None:
        return request.builder.lengths_reference(reference)
    builder, parts = request.builder, request.parts
    dim = dimension(request)
    with_rest = lengths_with_rest(request.split)
    if request.split.form == "lengths" and with_rest is not None:
        return _lengths_around_rest(request, with_rest, dim)
    if request.split.form == "equal" or request.divisible:
        size = builder.write("Div", [dim, builder.constant([parts], "parts")], "size")
        return builder.write("Mul", [size, builder.constant([1] * parts, "ones")], "lengths")
    if request.split.form != "chunks":
        raise NotRepresentable("SG402", "the lengths are known only at run time and no tensor holds them")
    size = chunk_size(request, dim)
    if parts == 2:
        # Two chunks never overrun the dimension.
        return builder.write("Concat", [size, builder.write("Sub", [dim, size], "rest")], "lengths", axis=0)
    ends = builder.write("Mul", [size, builder.constant(range(1, parts + 1), "upto")], "ends")
    starts = builder.write("Mul", [size, builder.constant(range(parts), "from")], "starts")
    ends = builder.write("Min", [ends, dim], "ends")
    starts = builder.write("Min", [starts, dim], "starts")
    return builder.write("Sub", [ends, starts], "lengths")


def lengths_with_rest(split: CanonicalSplit) -> tuple[int, ...] | None:
    """Return the lengths with -1 in place of the only unknown one; None if several are unknown."""
    lengths = split.lengths
    if lengths is None:
        return None
    numbers = tuple(length if isinstance(length, int) else -1 for length in lengths)
    return numbers if numbers.count(-1) <= 1 else None


def _lengths_around_rest(request: LowerRequest, lengths: Sequence[int], dim: str) -> str:
    builder, position = request.builder, lengths.index(-1)
    rest = builder.write("Sub", [dim, builder.constant([sum(lengths) + 1], "others")], "rest")
    pieces = [rest]
    if position:
        pieces.insert(0, builder.constant(lengths[:position], "before"))
    if position + 1 < len(lengths):
        pieces.append(builder.constant(lengths[position + 1 :], "after"))
    return rest if len(pieces) == 1 else builder.write("Concat", pieces, "lengths", axis=0)


def chunk_size(request: LowerRequest, dim: str) -> str:
    """Return the name of ceil(dim / parts) as a 1-D int64 tensor of one element."""
    builder, parts = request.builder, request.parts
    raised = builder.write("Add", [dim, builder.constant([parts - 1], "round")], "raised")
    return builder.write("Div", [raised, builder.constant([parts], "parts")], "size")
