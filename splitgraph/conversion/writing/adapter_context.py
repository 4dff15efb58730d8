"""`AdapterContext`: what an adapter sees and edits, a node at one boundary between two versions of its operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from splitgraph.attribute_values import UNRESOLVED, attribute_value
from splitgraph.contents import MAX_RANK, MAX_WRITTEN
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.nodes.element_types import misfits, slots_of
from splitgraph.conversion.nodes.known_values import Array, KnownValues
from splitgraph.conversion.nodes.node import Node, added
from splitgraph.conversion.nodes.node_builder import NodeBuilder, obstacle_to_reference
from splitgraph.conversion.nodes.omitted_arguments import INLINE_FIRST
from splitgraph.conversion.planning.emission import Emission
from splitgraph.deferred import helper, np, numpy_helper
from splitgraph.graph.tensors import array_of, int64_tensor
from splitgraph.onnx_proto import TensorProto
from splitgraph.tensor_places import is_in_other_file
from splitgraph.value_type import DTYPE_NUMBERS, ValueType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


class Inexact(Exception):
    """An adapter raises it for a node that it cannot convert exactly.

    reason: completes "<operator> changes at opset N: ...". help: what the user could do besides stopping there.
    """

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help


def elements_of(tensor: TensorProto) -> Array:
    """Gives the elements of a tensor that is an attribute. Raises Inexact where they are in another file, or
    malformed.
    """
    if is_in_other_file(tensor):
        raise Inexact("its value is external data, which is not read")
    try:
        found: Array = array_of(tensor)
    except (ValueError, TypeError, KeyError):
        raise Inexact("its value is malformed") from None
    return found


def require_few_axes(count: int) -> None:
    """Raises Inexact for more axes than a tensor has in any runtime: some nodes would be written for each."""
    if count > MAX_RANK:
        raise Inexact(f"nothing is written out for more than {MAX_RANK} axes")


def require_few(*sizes: int) -> None:
    """Raises Inexact where a constant of this shape, or this number of nodes, is too large to be written out."""
    many = math.prod(sizes)
    if many > MAX_WRITTEN:
        raise Inexact(f"it takes {many:,} constants, and at most {MAX_WRITTEN:,} are written out")


def _require_known(name: str, value: Any) -> Any:
    """Gives the value of an attribute; raises Inexact when it refers to an attribute of the enclosing function."""
    if value is UNRESOLVED:
        raise Inexact(f"{name} is an attribute of the enclosing function", INLINE_FIRST)
    return value


@dataclass(slots=True)
class AdapterContext(Crossing, NodeBuilder):
    """A node at one boundary, with everything that an adapter may do to it.

    `form` holds the node for editing (operator, inputs, outputs, attributes). `emit` puts nodes before it, `emit_after`
    behind it, and `drop_node` removes the node. Everything is written for the side that the node goes to; the climb
    converts it further from there.
    """

    form: Node = field(kw_only=True)
    values: KnownValues = field(kw_only=True)
    emission: Emission = field(kw_only=True)
    # Tells whether anything in the model reads a value.
    is_read: Callable[[str], bool] = field(kw_only=True)
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    dropped: bool = False
    # The opset of the written nodes, if not the one next to the boundary.
    dialect: int | None = None

    @property
    def opset(self) -> int:
        """The opset next to the boundary, on the side that the node goes to."""
        version = self.upper.since_version
        return version if self.upward else version - 1

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, which the adapter may edit."""
        return self.form.inputs

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, which the adapter may edit."""
        return self.form.outputs

    # What is known -------------------------------------------------------------------------------------------------

    def input_type(self, index: int) -> ValueType:
        """Gives the type of an input; UNKNOWN where the node omits it."""
        return self.values.type_of(self.inputs[index] if index < len(self.inputs) else "")

    def output_type(self, index: int = 0) -> ValueType:
        """Gives the type of an output; UNKNOWN where the node omits it."""
        return self.values.type_of(self.outputs[index] if index < len(self.outputs) else "")

    def elements(self, index: int) -> Array | None:
        """Gives the elements of an input that is the same in every run; None where this is not certain."""
        return self.values.elements(self.inputs[index]) if self.uses_input(index) else None

    def integers(self, index: int) -> list[int] | None:
        """Gives the elements of an input of integers that is the same in every run; None where this is not certain."""
        return self.values.integers(self.inputs[index]) if self.uses_input(index) else None

    def constant_ints(self, index: int, what: str) -> list[int]:
        """Gives the elements of an input of integers; raises Inexact when they are known only at run time."""
        found = self.integers(index)
        if found is None:
            raise Inexact(f"{what} is an attribute {self.side}, and here it is known only at run time")
        return found

    def known_dtype(self, index: int = 0) -> str:
        """Gives the element type of an input; raises Inexact when it is unknown."""
        dtype = self.input_type(index).dtype
        if dtype is None:
            raise Inexact(f"the element type of {self.inputs[index]!r} is unknown")
        return dtype

    def known_rank(self, index: int = 0) -> int:
        """Gives the rank of an input; raises Inexact when it is unknown."""
        shape = self.input_type(index).shape
        if shape is None:
            raise Inexact(f"the rank of {self.inputs[index]!r} is unknown", "declare the shape of the input")
        return len(shape)

    def known_value(self, name: str, absent: Any = None) -> Any:
        """Gives the value of an attribute; raises Inexact when it refers to an attribute of the enclosing function."""
        return _require_known(name, self.value(name, absent))

    def known_value_or_default(self, name: str) -> Any:
        """Gives the value of an attribute; where the node omits the attribute, the default of the version that the node
        comes from. Raises Inexact when it refers to an attribute of the enclosing function.
        """
        return _require_known(name, self.value_or_default(name))

    def known_is_set(self, name: str) -> bool:
        """True when an integer attribute is not 0; raises Inexact when it refers to an attribute of the enclosing
        function.
        """
        return bool(self.known_value(name, 0))

    def require_types(self) -> None:
        """Raises Inexact for an element type that the new version does not take."""
        for slot in misfits(slots_of(self.facts, self.old), self.new, skip_renamed=True):
            raise Inexact(f"it does not take {slot.found or 'every element type'} {self.side} ({slot.label})")

    # Writing -------------------------------------------------------------------------------------------------------

    def new_name(self, hint: str) -> str:
        """A name that is new in every scope of the model."""
        return self.emission.new_name(hint)

    def constant(self, values: ArrayLike, hint: str, dtype: DTypeLike = "int64") -> str:
        """Adds a constant and gives its name: an initializer, or a Constant node in functions."""
        if isinstance(values, range):
            require_few(len(values))
        if dtype == "int64" and isinstance(values, (int, list, tuple)):
            items = [values] if isinstance(values, int) else values
            if all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
                return self.tensor(int64_tensor("", values), hint)
        return self.tensor(numpy_helper.from_array(np.asarray(values, dtype=dtype)), hint)

    def tensor(self, held: TensorProto, hint: str) -> str:
        """Adds a constant that holds a tensor, and gives its name."""
        tensor, name = self.emission.drafts.initializer.add(), self.new_name(hint)
        tensor.CopyFrom(held)
        if self.emission.in_function:
            # The conversion of a node is reused for equal nodes, whose constants have other names.
            tensor.ClearField("name")
            self._constant_node(tensor, name, hint)
        else:
            tensor.name = name
            self.emission.initializers.append(tensor)
        self.values.define_constant(name, tensor)
        return name

    def like_data(self, value: float, hint: str) -> str:
        """Adds a scalar of the element type of the first input, and gives its name. Where the type is unknown, CastLike
        finds it.
        """
        dtype = self.input_type(0).dtype
        if dtype is not None:
            kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype])
            # Numbers beyond float16 become infinite.
            with np.errstate(over="ignore"):
                return self.tensor(numpy_helper.from_array(np.asarray(value).astype(kind)), hint)
        if not self.upward or self.facts.target < 15:
            return self.constant(value, hint, self.known_dtype())
        self.dialect = 15
        return self.emit("CastLike", [self.constant(value, hint, np.float32), self.inputs[0]], f"{hint}_typed")

    def _constant_node(self, tensor: TensorProto, name: str, hint: str) -> None:
        """Puts a Constant before the node. Below opset 9 Constant gives floats only, and Cast makes the others."""
        given, output = tensor, name
        is_cast = self.opset < 9 and tensor.data_type not in _FLOATS
        if is_cast:
            floats = elements_of(tensor).astype(np.float64)
            if tensor.data_type == TensorProto.STRING or np.any(np.abs(floats) > 2**53):
                raise Inexact(f"Constant gives floating-point numbers only {self.side}, which are not exact here")
            given, output = numpy_helper.from_array(floats), self.new_name(f"{hint}_number")
        self.before.append(added("Constant", [], [output], self.new_name(f"{hint}_node"), {"value": given}))
        if is_cast:
            to: object = tensor.data_type if self.opset >= 6 else TensorProto.DataType.Name(tensor.data_type)
            cast = added("Cast", [output], [name], self.new_name(f"{hint}_cast"), {"to": to})
            self.before.append(cast)

    def attribute_as_input(self, name: str, dtype: DTypeLike = "int64") -> str:
        """Turns an attribute of the node into a constant, and gives its name: 1-D for a list, 0-D for one number."""
        attribute = self.attributes.pop(name)
        self.reasons[name] = f"it is an input {self.side}"
        if not attribute.ref_attr_name:
            return self.constant(attribute_value(attribute), name, dtype)
        kind = attribute.type
        is_given = self.emission.is_given(attribute.ref_attr_name)
        obstacle = obstacle_to_reference(kind, self.opset, is_given=is_given)
        if obstacle:
            raise Inexact(f"{name} is an attribute of the enclosing function, and {obstacle}", INLINE_FIRST)
        return self.refer(attribute.ref_attr_name, kind, name)

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], hint: str, attributes: Mapping[str, Any]
    ) -> None:
        """Put a node before the node."""
        self.before.append(added(op_type, inputs, outputs, self.new_name(f"{hint}_node"), attributes))

    def emit_after(self, op_type: str, inputs: Sequence[str], output: str, **attributes: object) -> None:
        """Puts a node behind the node; its output has this name."""
        self.after.append(added(op_type, inputs, [output], self.new_name(f"{op_type.lower()}_node"), attributes))

    def rename(self, op_type: str) -> None:
        """Makes the node another operator with the same inputs, outputs and attributes."""
        self.form.op_type = op_type

    def replace(self, op_type: str, inputs: Sequence[str], **attributes: object) -> None:
        """Makes the node another operator with the same outputs, these inputs and only these attributes."""
        self.form.op_type = op_type
        self.form.inputs[:] = inputs
        self.attributes.clear()
        self.attributes |= added(op_type, [], [], "", attributes).attributes

    def redirect(self, index: int, hint: str) -> str:
        """Renames an output, so that a node behind can give the old name, and gives the old name."""
        old = self.outputs[index]
        self.outputs[index] = self.new_name(hint)
        return old

    def drop_node(self) -> None:
        """Removes the node; other nodes must give its outputs."""
        self.dropped = True
