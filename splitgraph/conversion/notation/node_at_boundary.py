"""`NodeAtBoundary`: a node at one boundary between two versions of its operator, with everything that a step may do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from splitgraph.conversion.builders import Emission, NodeBuilder, obstacle_to_reference
from splitgraph.conversion.known_values import INLINE_FIRST, Array, KnownValues
from splitgraph.conversion.node import Node, added, slots_of
from splitgraph.model.attributes import UNRESOLVED, attribute_value, make_attribute
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import AttributeProto, TensorProto
from splitgraph.model.schemas import OperatorVersion
from splitgraph.model.schemas.fit import mistyped
from splitgraph.model.scopes import named_opset
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS, MAX_RANK, MAX_WRITTEN, UNKNOWN, Shape, ValueType
from splitgraph.model.values import array_of, int64_tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


# Nodes of ai.onnx that take the place of one of another domain are written at this opset, or at that of the result if
# the result is newer; below it, operators take attributes that they take as inputs later.
OLDEST_DIALECT = 13
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


class Inexact(Exception):
    """A step raises it for a node that it cannot take over the boundary exactly.

    reason: completes "<operator> changes at opset N: ..."; without one, the boundary's own. help: what the user could
    do besides stopping there.
    """

    def __init__(self, reason: str = "", help: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help


class Surroundings(Protocol):
    """What a node at a boundary knows of its graph and its way."""

    @property
    def values(self) -> KnownValues:
        """The types and constants of all values that the node can read."""

    @property
    def emission(self) -> Emission:
        """Where constants and names come from."""

    @property
    def to_opset(self) -> int:
        """The opset to which the model goes."""

    @property
    def location(self) -> str:
        """Where the node of the model is, for messages."""

    @property
    def in_function(self) -> bool:
        """True in the body of a function, where types may be unknown."""

    @property
    def assumptions(self) -> dict[str, None]:
        """Sentences about element types that are unknown and were assumed."""

    def is_read(self, name: str) -> bool:
        """Return True when anything in the model reads a value."""


def elements_of(tensor: TensorProto) -> Array:
    """Return the elements of a tensor that is an attribute. Raises Inexact where they are in another file, or
    malformed.
    """
    if is_in_other_file(tensor):
        raise Inexact("its value is external data, which is not read")
    try:
        elements: Array = array_of(tensor)
    except (ValueError, TypeError, KeyError):
        raise Inexact("its value is malformed") from None
    return elements


def require_few_axes(count: int) -> None:
    """Raise Inexact for more axes than a tensor has in any runtime: some nodes would be written for each."""
    if count > MAX_RANK:
        raise Inexact(f"nothing is written out for more than {MAX_RANK} axes")


def require_few(*sizes: int) -> None:
    """Raise Inexact where a constant of this shape, or this number of nodes, is too large to be written out."""
    many = math.prod(sizes)
    if many > MAX_WRITTEN:
        raise Inexact(f"it takes {many:,} constants, and at most {MAX_WRITTEN:,} are written out")


def _require_known(name: str, value: Any) -> Any:
    """Return the value of an attribute; raise Inexact when it refers to an attribute of the enclosing function."""
    if value is UNRESOLVED:
        raise Inexact(f"{name} is an attribute of the enclosing function", INLINE_FIRST)
    return value


@dataclass(slots=True)
class NodeAtBoundary(Node, NodeBuilder):
    """A node at one boundary: what is known of it, and everything that a step may do to it.

    A step edits the node itself (operator, inputs, outputs, attributes). `write` puts nodes before it, `write_after`
    behind it, and `drop_node` removes the node. Everything is written for the side that the node goes to; the climb
    converts it further from there.

    from_opset: the opset that the node comes from. upward: from `lower` to `upper`, or back. came: the node as it came
    to the boundary. reasons: why each attribute that was edited was. same_defaults: attributes whose defaults differ in
    spelling only. dialect: the opset of the written nodes of ai.onnx, if not the one next to the boundary; always that
    of nodes that are written for one of another domain.
    """

    around: Surroundings = field(kw_only=True)
    from_opset: int = field(kw_only=True)
    upward: bool = field(kw_only=True)
    lower: OperatorVersion = field(kw_only=True)
    upper: OperatorVersion = field(kw_only=True)
    came: Node = field(kw_only=True)
    reasons: dict[str, str] = field(default_factory=dict)
    same_defaults: set[str] = field(default_factory=set)
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    dropped: bool = False
    dialect: int | None = None

    @classmethod
    def at(
        cls,
        node: Node,
        around: Surroundings,
        from_opset: int,
        upward: bool,
        lower: OperatorVersion,
        upper: OperatorVersion,
    ) -> NodeAtBoundary:
        """Return a copy of the node at a boundary."""
        inputs, outputs, attributes = list(node.inputs), list(node.outputs), dict(node.attributes)
        return cls(
            node.op_type,
            inputs,
            outputs,
            attributes,
            node.original,
            node.name,
            node.wrap,
            node.domain,
            around=around,
            from_opset=from_opset,
            upward=upward,
            lower=lower,
            upper=upper,
            came=node,
            dialect=max(around.to_opset, OLDEST_DIALECT) if node.domain else None,
        )

    @property
    def made(self) -> list[Node]:
        """The nodes that the node became, in order."""
        return [*self.before, *([] if self.dropped else [self.copy()]), *self.after]

    @property
    def values(self) -> KnownValues:
        """The types and constants of all values that the node can read."""
        return self.around.values

    @property
    def emission(self) -> Emission:
        """Where constants and names come from."""
        return self.around.emission

    @property
    def to_opset(self) -> int:
        """The opset to which the model goes."""
        return self.around.to_opset

    @property
    def opset(self) -> int:
        """The opset next to the boundary, on the side that the node goes to."""
        version = self.upper.since_version
        return version if self.upward else version - 1

    @property
    def stop(self) -> int:
        """The opset next to the boundary, on the side that the node comes from."""
        version = self.upper.since_version
        return version - 1 if self.upward else version

    @property
    def old(self) -> OperatorVersion:
        """The version that the node comes from."""
        return self.lower if self.upward else self.upper

    @property
    def new(self) -> OperatorVersion:
        """The version that the node goes to."""
        return self.upper if self.upward else self.lower

    @property
    def side(self) -> str:
        """Where the new version holds, in words."""
        boundary = self.named(self.upper.since_version)
        return f"from {boundary} on" if self.upward else f"below {boundary}"

    def named(self, opset: int) -> str:
        """Return an opset of the node's domain in words."""
        return named_opset(self.lower.domain, opset)

    # Attributes ----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Return True when the node has the attribute."""
        return name in self.attributes

    def value(self, name: str, absent: Any = None) -> Any:
        """Return the attribute's value, `absent` without it, UNRESOLVED when it refers to an attribute of the
        function.
        """
        attribute = self.attributes.get(name)
        if attribute is None:
            return absent
        return UNRESOLVED if attribute.ref_attr_name else attribute_value(attribute)

    def value_or_default(self, name: str) -> Any:
        """Return the attribute's value; where the node omits it, the default of the version that the node comes from.

        UNRESOLVED when the attribute refers to an attribute of the function.
        """
        return self.value(name, self.old.attributes[name].default_value)

    def is_set(self, name: str) -> bool:
        """Return True when an integer attribute is known and not 0."""
        value = self.value(name, 0)
        return value is not UNRESOLVED and value != 0

    def set(self, name: str, value: Any, why: str) -> None:
        """Give the attribute a value: int, float, str, bytes, TensorProto or a non-empty sequence of them."""
        self.attributes[name] = make_attribute(name, value)
        self.reasons[name] = _about(name, why)

    def set_default(self, name: str, default: AttributeProto, why: str) -> None:
        """Write a default out."""
        self.set(name, attribute_value(default), why)

    def drop(self, *names: str, why: str) -> None:
        """Remove attributes that the node has."""
        for name in names:
            if self.attributes.pop(name, None) is not None:
                self.reasons[name] = _about(name, why)

    def accept_default(self, *names: str) -> None:
        """Say that leaving these attributes out means the same on both sides, though the schemas' defaults differ."""
        self.same_defaults.update(names)

    # What is known of inputs and outputs ---------------------------------------------------------------------------

    def uses_input(self, index: int) -> bool:
        """Return True when the node came with an input at this position."""
        return index < len(self.came.inputs) and self.came.inputs[index] != ""

    def uses_output(self, index: int) -> bool:
        """Return True when the node came with an output at this position."""
        return index < len(self.came.outputs) and self.came.outputs[index] != ""

    def _came_type(self, index: int) -> ValueType:
        return self.values.type_of(self.came.inputs[index]) if self.uses_input(index) else UNKNOWN

    def dtype(self, index: int) -> str | None:
        """Return the element type of an input, None when unknown."""
        return self._came_type(index).dtype

    def shape(self, index: int) -> Shape | None:
        """Return the shape of an input, None when unknown."""
        return self._came_type(index).shape

    def rank(self, index: int) -> int | None:
        """Return the rank of an input, None when unknown."""
        shape = self.shape(index)
        return None if shape is None else len(shape)

    def shapes_are_equal(self) -> bool:
        """Return True when all inputs are known to have the same shape."""
        shapes = [self.shape(index) for index in range(len(self.came.inputs))]
        first = shapes[0] if shapes else None
        return first is not None and None not in first and all(shape == first for shape in shapes)

    def is_read(self, name: str) -> bool:
        """Return True when anything in the model reads a value."""
        return self.around.is_read(name)

    def input_type(self, index: int) -> ValueType:
        """Return the type of an input; UNKNOWN where the node omits it."""
        return self.values.type_of(self.inputs[index] if index < len(self.inputs) else "")

    def output_type(self, index: int = 0) -> ValueType:
        """Return the type of an output; UNKNOWN where the node omits it."""
        return self.values.type_of(self.outputs[index] if index < len(self.outputs) else "")

    def elements(self, index: int) -> Array | None:
        """Return the elements of an input that is the same in every run; None where this is not certain."""
        return self.values.elements(self.inputs[index]) if self.uses_input(index) else None

    def integers(self, index: int) -> list[int] | None:
        """Return the elements of an input of integers that is the same in every run; None where this is not certain."""
        return self.values.integers(self.inputs[index]) if self.uses_input(index) else None

    def constant_ints(self, index: int, name: str) -> list[int]:
        """Return the elements of an input of integers; raise Inexact when they are known only at run time."""
        numbers = self.integers(index)
        if numbers is None:
            raise Inexact(f"{name} is an attribute {self.side}, and here it is known only at run time")
        return numbers

    def known_dtype(self, index: int = 0) -> str:
        """Return the element type of an input; raise Inexact when it is unknown."""
        dtype = self.input_type(index).dtype
        if dtype is None:
            raise Inexact(f"the element type of {self.inputs[index]!r} is unknown")
        return dtype

    def known_rank(self, index: int = 0) -> int:
        """Return the rank of an input; raise Inexact when it is unknown."""
        shape = self.input_type(index).shape
        if shape is None:
            raise Inexact(f"the rank of {self.inputs[index]!r} is unknown", "declare the shape of the input")
        return len(shape)

    def known_value(self, name: str, absent: Any = None) -> Any:
        """Return the value of an attribute; raise Inexact when it refers to an attribute of the enclosing function."""
        return _require_known(name, self.value(name, absent))

    def known_value_or_default(self, name: str) -> Any:
        """Return the value of an attribute; where the node omits the attribute, the default of the version that the
        node comes from. Raises Inexact when it refers to an attribute of the enclosing function.
        """
        return _require_known(name, self.value_or_default(name))

    def known_is_set(self, name: str) -> bool:
        """Return True when an integer attribute is not 0; raise Inexact when it refers to an attribute of the enclosing
        function.
        """
        return bool(self.known_value(name, 0))

    def require_types(self) -> None:
        """Raise Inexact for an element type that the new version does not take."""
        for slot in mistyped(slots_of(self.came, self.values.type_of, self.old), self.new, skip_renamed=True):
            raise Inexact(f"it does not take {slot.type_text or 'every element type'} {self.side} ({slot.label})")

    # Writing -------------------------------------------------------------------------------------------------------

    def new_name(self, hint: str) -> str:
        """Return a name that is new in every scope of the model."""
        return self.emission.new_name(hint)

    def constant(self, values: ArrayLike, hint: str, dtype: DTypeLike = "int64") -> str:
        """Add a constant and return its name: an initializer, or a Constant node in functions."""
        if isinstance(values, range):
            require_few(len(values))
        if dtype == "int64" and isinstance(values, (int, list, tuple)):
            items = [values] if isinstance(values, int) else values
            if all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
                return self.tensor(int64_tensor("", values), hint)
        return self.tensor(numpy_helper.from_array(np.asarray(values, dtype=dtype)), hint)

    def tensor(self, tensor: TensorProto, hint: str) -> str:
        """Add a constant that holds a tensor, and return its name."""
        added_tensor, name = self.emission.drafts.initializer.add(), self.new_name(hint)
        added_tensor.CopyFrom(tensor)
        if self.emission.in_function:
            # The conversion of a node is reused for equal nodes, whose constants have other names.
            added_tensor.ClearField("name")
            self._constant_node(added_tensor, name, hint)
        else:
            added_tensor.name = name
            self.emission.initializers.append(added_tensor)
        self.values.define_constant(name, added_tensor)
        return name

    def like_data(self, value: float, hint: str) -> str:
        """Add a scalar of the element type of the first input, and return its name. Where the type is unknown, CastLike
        finds it.
        """
        dtype = self.input_type(0).dtype
        if dtype is not None:
            kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype])
            # Numbers beyond float16 become infinite.
            with np.errstate(over="ignore"):
                return self.tensor(numpy_helper.from_array(np.asarray(value).astype(kind)), hint)
        if not self.upward or self.to_opset < 15:
            return self.constant(value, hint, self.known_dtype())
        self.dialect = 15
        return self.write("CastLike", [self.constant(value, hint, np.float32), self.inputs[0]], f"{hint}_typed")

    def _constant_node(self, tensor: TensorProto, name: str, hint: str) -> None:
        """Put a Constant before the node. Below opset 9 Constant gives floats only, and Cast makes the others."""
        given, output, opset = tensor, name, self.dialect or self.opset
        is_cast = opset < 9 and tensor.data_type not in _FLOATS
        if is_cast:
            floats = elements_of(tensor).astype(np.float64)
            if tensor.data_type == TensorProto.STRING or np.any(np.abs(floats) > 2**53):
                raise Inexact(f"Constant gives floating-point numbers only {self.side}, which are not exact here")
            given, output = numpy_helper.from_array(floats), self.new_name(f"{hint}_number")
        self.before.append(added("Constant", [], [output], self.new_name(f"{hint}_node"), {"value": given}))
        if is_cast:
            to: object = tensor.data_type if opset >= 6 else TensorProto.DataType.Name(tensor.data_type)
            cast = added("Cast", [output], [name], self.new_name(f"{hint}_cast"), {"to": to})
            self.before.append(cast)

    def attribute_as_input(self, name: str, dtype: DTypeLike = "int64") -> str:
        """Turn an attribute of the node into a constant, and return its name: 1-D for a list, 0-D for one number."""
        attribute = self.attributes.pop(name)
        self.reasons[name] = f"{name} is an input {self.side}"
        if not attribute.ref_attr_name:
            return self.constant(attribute_value(attribute), name, dtype)
        kind = attribute.type
        is_given = self.emission.is_given(attribute.ref_attr_name)
        obstacle = obstacle_to_reference(kind, self.dialect or self.opset, is_given=is_given)
        if obstacle:
            raise Inexact(f"{name} is an attribute of the enclosing function, and {obstacle}", INLINE_FIRST)
        return self.refer(attribute.ref_attr_name, kind, name)

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], hint: str, attributes: Mapping[str, Any]
    ) -> None:
        """Put a node before the node."""
        self.before.append(added(op_type, inputs, outputs, self.new_name(f"{hint}_node"), attributes))

    def write_own(self, op_type: str, inputs: Sequence[str], hint: str, **attributes: object) -> str:
        """Write a node of the node's own domain before the node; returns the name of its output."""
        output = self.new_name(hint)
        self.before.append(
            added(op_type, inputs, [output], self.new_name(f"{hint}_node"), attributes, self.came.domain)
        )
        return output

    def write_after(self, op_type: str, inputs: Sequence[str], output: str, **attributes: object) -> None:
        """Put a node behind the node; its output has this name."""
        self.after.append(added(op_type, inputs, [output], self.new_name(f"{op_type.lower()}_node"), attributes))

    def rename(self, op_type: str) -> None:
        """Make the node another operator with the same inputs, outputs and attributes."""
        self.op_type = op_type

    def replace(self, op_type: str, inputs: Sequence[str], **attributes: object) -> None:
        """Make the node another operator of ai.onnx with the same outputs, these inputs and only these attributes."""
        self.op_type, self.domain = op_type, ""
        self.inputs[:] = inputs
        self.attributes.clear()
        self.attributes |= added(op_type, [], [], "", attributes).attributes

    def redirect(self, index: int, hint: str) -> str:
        """Rename an output, so that a node behind can give the old name, and return the old name."""
        old = self.outputs[index]
        self.outputs[index] = self.new_name(hint)
        return old

    def drop_node(self) -> None:
        """Remove the node; other nodes must give its outputs."""
        self.dropped = True


def _about(name: str, why: str) -> str:
    """Return a reason that names its attribute: adapters say "it"."""
    return name + why.removeprefix("it") if why.startswith("it ") else why
