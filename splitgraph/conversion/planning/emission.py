"""Where lowering puts its nodes and constants: an emitter for each node that is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.left_out import INLINE_FIRST, is_given
from splitgraph.conversion.splits.shared_lengths import SharedLengths
from splitgraph.dim import DimLike
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import Scope, node_label
from splitgraph.graph.tensors import int64_tensor
from splitgraph.node_making import make_node
from splitgraph.onnx_proto import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.variants.lowering import NotRepresentable
from splitgraph.variants.variadic_function import LOWEST_OPSET, function_name

if TYPE_CHECKING:
    from splitgraph.conversion.planning.plan import Plan


@dataclass(slots=True)
class Emission:
    """Emits the nodes that replace one node.

    opset: of ai.onnx, in whose dialect helper nodes are written. in_function: constants are Constant nodes, as a
    function has no initializers; so they are in a model whose IR version makes every initializer an input. is_given:
    whether an attribute of the enclosing function has a value in every call. drafts: where its nodes and tensors are
    made, one graph for all of a conversion: messages that stand alone take kilobytes each. common: the lengths that
    splits of its graph have in common; None where each has its own. left_out: inputs of the enclosing function that a
    call leaves out.
    """

    names: FreshNames
    opset: int
    in_function: bool
    prefix: str
    is_given: Callable[[str], bool]
    drafts: GraphProto
    common: SharedLengths | None = None
    left_out: Collection[str] = ()
    variadic_parts: set[int] = field(default_factory=set)
    helpers: list[NodeProto] = field(default_factory=list)
    mains: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    _constants: dict[tuple[int, ...] | int, str] = field(default_factory=dict)
    _references: dict[str, str] = field(default_factory=dict)

    def afresh(self, opset: int, initializers: list[TensorProto] | None = None) -> Emission:
        """An emitter for the same node that has emitted nothing yet, but perhaps into the same initializers."""
        held = [] if initializers is None else initializers
        return Emission(
            self.names,
            opset,
            self.in_function,
            self.prefix,
            self.is_given,
            self.drafts,
            left_out=self.left_out,
            variadic_parts=self.variadic_parts,
            initializers=held,
        )

    @property
    def nodes(self) -> list[NodeProto]:
        """All emitted nodes in topological order."""
        return [*self.helpers, *self.mains]

    def constant(self, values: Sequence[int] | int, hint: str) -> str:
        """The name of an int64 constant: 1-D for a sequence, 0-D for an int."""
        key = values if isinstance(values, int) else tuple(values)
        if key not in self._constants:
            name = self.names.new(f"{self.prefix}_{hint}")
            held = int64_tensor(name, key, self.drafts)
            if self.in_function:
                self.helpers.append(
                    make_node(
                        "Constant", [], [name], name=self.names.new(f"{name}_node"), graph=self.drafts, value=held
                    )
                )
            else:
                self.initializers.append(held)
            self._constants[key] = name
        return self._constants[key]

    def helper(self, op_type: str, inputs: Sequence[str], hint: str, **attributes: Any) -> str:
        """Emit a helper node with one output and give that output's name."""
        output = self.names.new(f"{self.prefix}_{hint}")
        self.helpers.append(
            make_node(op_type, inputs, [output], name=self.names.new(f"{output}_node"), graph=self.drafts, **attributes)
        )
        return output

    def reference(self, attribute: str, data: str, hint: str) -> str:
        """The name of a 1-D int64 tensor with the axis of `data` that an attribute of the enclosing function gives."""
        if attribute not in self._references:
            found = self.opset >= 12 and self.is_given(attribute)
            self._references[attribute] = (
                self._constant_axis(attribute, hint) if found else self._marked_axis(attribute, data, hint)
            )
        return self._references[attribute]

    def _constant_axis(self, attribute: str, hint: str) -> str:
        number = self.names.new(f"{self.prefix}_{hint}_number")
        node = make_node("Constant", [], [number], name=self.names.new(f"{number}_node"), graph=self.drafts)
        node.attribute.append(_reference("value_int", attribute))
        self.helpers.append(node)
        return self.helper("Reshape", [number, self.constant([1], "one")], hint)

    def shared(self, total: DimLike | None, meaning: Hashable, compute: Callable[[], str]) -> str:
        """The name of lengths of a dimension that other splits of the graph may read too; `compute` emits them."""
        return compute() if self.common is None else self.common.of(total, meaning, compute)

    def lengths_reference(self, attribute: str) -> str:
        """The name of a 1-D int64 tensor with the lengths that an attribute of the enclosing function gives."""
        if self.opset < 12 or not self.is_given(attribute):
            missing = "below opset 12" if self.opset < 12 else "that a call leaves out"
            raise NotRepresentable(
                "SG402",
                f"the lengths are an attribute of the enclosing function, and Constant cannot refer to one {missing}",
                f"{INLINE_FIRST.capitalize()}.",
            )
        name = self.names.new(f"{self.prefix}_lengths")
        node = make_node("Constant", [], [name], name=self.names.new(f"{name}_node"), graph=self.drafts)
        node.attribute.append(AttributeProto(name="value_ints", type=AttributeProto.INTS, ref_attr_name=attribute))
        self.helpers.append(node)
        return name

    def _marked_axis(self, attribute: str, data: str, hint: str) -> str:
        """The axis, found by marking it: in a tensor of the rank of `data` and dimensions of 1, Gather doubles one.

        Constant cannot refer to an attribute below opset 12, nor to one that a call leaves out; for Gather, as for
        Split, a missing axis is 0.
        """
        rank = self.helper("Shape", [self.helper("Shape", [data], "shape")], "rank")
        ones = self.helper("ConstantOfShape", [rank], "ones", value=int64_tensor("", [1]))
        mark = self.helper(
            "Gather", [self.helper("ConstantOfShape", [ones], "point"), self.constant([0, 0], "twice")], "mark"
        )
        self.helpers[-1].attribute.append(_reference("axis", attribute))
        marked = self.helper("Sub", [self.helper("Shape", [mark], "marked"), self.constant([1], "one")], "marked")
        return self.helper("Reshape", [self.helper("NonZero", [marked], "found"), self.constant([1], "one")], hint)

    def new_name(self, hint: str) -> str:
        """A name that is new in every scope of the model."""
        return self.names.new(hint)

    def draft(self) -> NodeProto:
        """An empty node, to be filled and emitted."""
        made: NodeProto = self.drafts.node.add()
        return made

    def main(self, node: NodeProto) -> None:
        """Emit a node that stands for the original."""
        self.mains.append(node)

    def function_node(self, parts: int) -> str:
        """Note that the model needs VariadicSplit_<parts>, and give its name."""
        if self.opset < LOWEST_OPSET:
            raise NotRepresentable(
                "SG408",
                f"VariadicSplit is written as a function that needs opset {LOWEST_OPSET}",
                f"Upgrade to opset {LOWEST_OPSET} first.",
            )
        self.variadic_parts.add(parts)
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
    """An emitter for one node of a model; constants are nodes in functions, and where the IR version makes every
    initializer an input.
    """
    constants_are_nodes = scope.in_function or model.ir_version < 4
    prefix = node.name or next(filter(None, node.output), "") or node_label(node, index)
    given = partial(is_given, model, plan.left_out, scope)
    left_out = plan.left_out.inputs_in(scope)
    return Emission(names, opset, constants_are_nodes, prefix, given, plan.drafts, common, left_out)


def axes_node(emission: Emission, op_type: str, data: str, output: str, axis: int) -> NodeProto:
    """A Squeeze or Unsqueeze on one axis in the dialect of the opset: axes are an attribute below 13, an input from
    there on.
    """
    name = emission.names.new(f"{output}_node")
    if emission.opset < 13:
        return make_node(op_type, [data], [output], name=name, axes=[axis])
    return make_node(op_type, [data, emission.constant([axis], "axes")], [output], name=name)


def _reference(name: str, attribute: str) -> AttributeProto:
    """An integer attribute that refers to an attribute of the enclosing function."""
    return AttributeProto(name=name, type=AttributeProto.INT, ref_attr_name=attribute)
