"""Builders: they write the nodes and constants that take the place of one node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from splitgraph.conversion.known_values import INLINE_FIRST, is_given
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.dim import DimLike, symbols_of
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import Scope, node_label
from splitgraph.model.values import int64_tensor
from splitgraph.splits.lowering import NotRepresentable
from splitgraph.splits.variadic_split_1 import LOWEST_OPSET, function_name

# The attribute of a Constant that can refer to an attribute of the enclosing function, by the type of that attribute.
_CONSTANT_ATTRIBUTES: Mapping[int, str] = {
    AttributeProto.INT: "value_int",
    AttributeProto.INTS: "value_ints",
    AttributeProto.FLOAT: "value_float",
}


class NodeBuilder(ABC):
    """Writes nodes for one node of the model.

    There are two builders, because splits, repairs and loops write for the opset of the result, and adapters for the
    opset next to a boundary. `Emission` keeps messages, which are final; `NodeAtBoundary` keeps each `Node`, which the
    climb converts further.
    """

    __slots__ = ()

    @abstractmethod
    def new_name(self, hint: str) -> str:
        """Return a name that is new in every scope of the model and begins with the name of the node."""

    @abstractmethod
    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], hint: str, attributes: Mapping[str, Any]
    ) -> None:
        """Keep a node. Attributes of None are left out."""

    def write(self, op_type: str, inputs: Sequence[str], hint: str, **attributes: Any) -> str:
        """Write a node with one output; returns the name of the output."""
        output = self.new_name(hint)
        self.add(op_type, inputs, [output], hint, attributes)
        return output

    def write_many(self, op_type: str, inputs: Sequence[str], hints: Sequence[str], **attributes: Any) -> list[str]:
        """Write a node with several outputs; returns their names."""
        outputs = [self.new_name(hint) for hint in hints]
        self.add(op_type, inputs, outputs, hints[0], attributes)
        return outputs

    def refer(self, attribute: str, kind: int, hint: str) -> str:
        """Return the name of a constant with the value of an attribute of the enclosing function, of the type
        `kind`.
        """
        return self.write("Constant", [], hint, **{_CONSTANT_ATTRIBUTES[kind]: reference(attribute, kind)})


class SharedLengths:
    """The names of computed lengths in one graph, by dimension and meaning.

    inputs: the symbols in the shapes of inputs without a default. Only lengths of dimensions made of these are shared:
    the names of other dimensions are often wrong. Only Split reads shared lengths, because it fails where they do not
    sum to its dimension. Only Split-13 needs computed lengths, and a later upgrade keeps them, so that the node that
    computes them may stay.
    """

    def __init__(self, inputs: Set[str]) -> None:
        self._inputs = inputs
        self._names: dict[Hashable, str] = {}
        self._shared_names: set[str] = set()

    def of(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """Return the name of the lengths of a dimension, computed now unless an earlier node computed them.

        meaning: equal for equal lengths of this dimension.
        """
        if total is None or not symbols_of(total) <= self._inputs:
            return compute()
        name = self._names.get((total, meaning))
        if name is None:
            name = self._names[total, meaning] = compute()
            self._shared_names.add(name)
        return name

    def holds(self, name: str) -> bool:
        """Return True if the name is that of shared lengths."""
        return name in self._shared_names


@dataclass(slots=True)
class Emission(NodeBuilder):
    """The nodes and constants that replace one node: helpers first, then the main nodes, which have its outputs.

    opset: of ai.onnx, for which helpers are written. in_function: constants are Constant nodes, because functions have
    no initializers; also in models whose IR version makes every initializer an input. prefix: of all new names.
    is_given: whether an attribute of the enclosing function has a value in every call. drafts: the graph that holds all
    new nodes and tensors of a conversion, because messages without a parent take kilobytes each. common: the lengths
    that the splits of the graph share; None where each has its own. left_out: the inputs of the enclosing function that
    some call omits.
    """

    names: FreshNames
    opset: int
    in_function: bool
    prefix: str
    is_given: Callable[[str], bool]
    drafts: GraphProto
    common: SharedLengths | None = None
    left_out: Collection[str] = ()
    helpers: list[NodeProto] = field(default_factory=list)
    mains: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    _constants: dict[tuple[int, ...] | int, str] = field(default_factory=dict)
    _references: dict[str, str] = field(default_factory=dict)

    def afresh(self, opset: int, initializers: list[TensorProto] | None = None) -> Emission:
        """Return an empty emission for the same node; it can share the list of initializers."""
        shared = [] if initializers is None else initializers
        return Emission(
            self.names,
            opset,
            self.in_function,
            self.prefix,
            self.is_given,
            self.drafts,
            left_out=self.left_out,
            initializers=shared,
        )

    @property
    def nodes(self) -> list[NodeProto]:
        """All emitted nodes in topological order."""
        return [*self.helpers, *self.mains]

    def replacement(self, why: str, before: str = "", after: str = "") -> Replacement:
        """Return what was emitted in place of the node. before, after: the operators for the list of changes."""
        return Replacement(self.nodes, self.initializers, why, before, after)

    def new_name(self, hint: str) -> str:
        """Return a name that is new in every scope of the model and begins with the prefix."""
        return self.fresh_name(f"{self.prefix}_{hint}")

    def fresh_name(self, name: str) -> str:
        """Return a name like this one that is new in every scope of the model."""
        return self.names.new(name)

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], hint: str, attributes: Mapping[str, Any]
    ) -> None:
        """Keep a helper node; its name is that of its first output."""
        name = self.names.new(f"{outputs[0]}_node")
        self.helpers.append(make_node(op_type, inputs, outputs, name=name, graph=self.drafts, **attributes))

    def constant(self, values: Sequence[int] | int, hint: str) -> str:
        """Return the name of an int64 constant: 1-D for a sequence, 0-D for an int."""
        key = values if isinstance(values, int) else tuple(values)
        if key not in self._constants:
            name = self.new_name(hint)
            tensor = int64_tensor(name, key, self.drafts)
            if self.in_function:
                self.add("Constant", [], [name], hint, {"value": tensor})
            else:
                self.initializers.append(tensor)
            self._constants[key] = name
        return self._constants[key]

    def reference(self, attribute: str, data: str, hint: str) -> str:
        """Return the name of a 1-D int64 tensor with the axis of `data` that an attribute of the enclosing function
        gives.
        """
        if attribute not in self._references:
            if self._obstacle_to(attribute, AttributeProto.INT):
                self._references[attribute] = self._marked_axis(attribute, data, hint)
            else:
                number = self.refer(attribute, AttributeProto.INT, f"{hint}_number")
                self._references[attribute] = self.write("Reshape", [number, self.constant([1], "one")], hint)
        return self._references[attribute]

    def _obstacle_to(self, attribute: str, kind: int) -> str:
        return obstacle_to_reference(kind, self.opset, is_given=self.is_given(attribute))

    def shared(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """Return the name of lengths that other splits of the graph may read, too; `compute` emits them."""
        return compute() if self.common is None else self.common.of(total, meaning, compute)

    def lengths_reference(self, attribute: str) -> str:
        """Return the name of a 1-D int64 tensor with the lengths that an attribute of the enclosing function gives."""
        obstacle = self._obstacle_to(attribute, AttributeProto.INTS)
        if obstacle:
            text = f"the lengths are an attribute of the enclosing function, and {obstacle}"
            raise NotRepresentable("SG402", text, f"{INLINE_FIRST.capitalize()}.")
        return self.refer(attribute, AttributeProto.INTS, "lengths")

    def _marked_axis(self, attribute: str, data: str, hint: str) -> str:
        """Return the axis, computed where Constant cannot refer to the attribute: in a tensor with the rank of `data`
        and dimensions of 1, Gather doubles the dimension of this axis. A missing axis is 0 for Gather and Split alike.
        """
        rank = self.write("Shape", [self.write("Shape", [data], "shape")], "rank")
        ones = self.write("ConstantOfShape", [rank], "ones", value=int64_tensor("", [1]))
        point, twice = self.write("ConstantOfShape", [ones], "point"), self.constant([0, 0], "twice")
        mark = self.write("Gather", [point, twice], "mark", axis=reference(attribute, AttributeProto.INT))
        marked = self.write("Sub", [self.write("Shape", [mark], "marked"), self.constant([1], "one")], "marked")
        return self.write("Reshape", [self.write("NonZero", [marked], "found"), self.constant([1], "one")], hint)

    def draft(self) -> NodeProto:
        """Return an empty node, to be filled and emitted."""
        made: NodeProto = self.drafts.node.add()
        return made

    def main(self, node: NodeProto) -> None:
        """Emit a node that has outputs of the original."""
        self.mains.append(node)

    def function_node(self, parts: int) -> str:
        """Return the name of the function VariadicSplit_<parts>, which the model gets when a node calls it."""
        if self.opset < LOWEST_OPSET:
            raise NotRepresentable(
                "SG408",
                f"VariadicSplit is written as a function that needs opset {LOWEST_OPSET}",
                f"Upgrade to opset {LOWEST_OPSET} first.",
            )
        return function_name(parts)


def new_emission(
    plan: Plan,
    model: ModelProto,
    scope: Scope,
    node: NodeProto,
    index: int,
    names: FreshNames,
    opset: int,
    common: SharedLengths | None = None,
) -> Emission:
    """Return an empty emission for one node of the model."""
    constants_are_nodes = scope.in_function or model.ir_version < 4
    given = partial(is_given, model, plan.left_out, scope)
    left_out = plan.left_out.inputs_in(scope)
    prefix = prefix_of(node, index)
    return Emission(names, opset, constants_are_nodes, prefix, given, plan.drafts, common, left_out)


def prefix_of(node: NodeProto, index: int) -> str:
    """Return what the names of all values begin with that are written for a node."""
    return node.name or next(filter(None, node.output), "") or node_label(node, index)


def axes_node(emission: Emission, op_type: str, data: str, output: str, axis: int) -> NodeProto:
    """Return a Squeeze or Unsqueeze along one axis: axes are an attribute below opset 13 and an input from there on."""
    name = emission.names.new(f"{output}_node")
    if emission.opset < 13:
        return make_node(op_type, [data], [output], name=name, axes=[axis])
    return make_node(op_type, [data, emission.constant([axis], "axes")], [output], name=name)


def obstacle_to_reference(kind: int, opset: int, *, is_given: bool) -> str:
    """Return why a Constant at an opset cannot refer to an attribute of the enclosing function; "" where it can. kind:
    its type. is_given: whether the attribute has a value in every call.
    """
    if kind not in _CONSTANT_ATTRIBUTES:
        return "Constant cannot refer to one of its type"
    if opset >= 12 and is_given:
        return ""
    return f"Constant cannot refer to one {'below opset 12' if opset < 12 else 'that a call leaves out'}"


def reference(attribute: str, kind: int) -> AttributeProto:
    """Return the value of an attribute that refers to an attribute of the enclosing function."""
    return AttributeProto(type=AttributeProto.AttributeType.Name(kind), ref_attr_name=attribute)
