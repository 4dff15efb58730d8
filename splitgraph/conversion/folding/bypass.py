"""Removes nodes that give what they get: their readers read their input instead. Equal constants become one constant.

A node whose output a graph gives stays: the name of that output has to be made by something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from splitgraph.conversion.folding.certainty import has_negative_zero
from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.uses import Uses, has_bodies
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.rewrite import Change
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import attribute_value
from splitgraph.model.names import ValueKey
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.places import versioned_operator
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import MAIN, FunctionKey, GraphPath, Scope, called_function, node_label, plain_domain
from splitgraph.model.tensor_data import byte_size, is_external
from splitgraph.model.value_type import Shape, ValueType

WHY = "it gives what it gets"
# Smaller constants are not worth a change of their readers.
_LEAST_SHARED = 1024
_MOST_SHARED = 2**16


@dataclass(frozen=True, slots=True)
class _Site:
    """A node, with what is known of its inputs and outputs."""

    node: NodeProto
    path: GraphPath
    elements: Elements

    def type_of(self, name: str) -> ValueType:
        return self.elements.type_of(self.path, name)

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input, if all of its dimensions are known."""
        given = self.node.input[position] if position < len(self.node.input) else ""
        shape = self.type_of(given).shape if given else None
        return None if shape is None or None in shape else shape

    @property
    def has_shape_of_data(self) -> bool:
        """True if the output has the shape of the first input, at all sizes."""
        return self.has_shape_of(0)

    def has_shape_of(self, position: int) -> bool:
        """Return True if the output has the shape of an input, at all sizes."""
        made = self.type_of(self.node.output[0]).shape
        return made is not None and self.shape(position) == made

    def is_all(self, position: int, number: int) -> bool:
        """Return True if all elements of an input are known, and this number."""
        if position >= len(self.node.input) or not self.node.input[position]:
            return False
        array = self.elements.of(self.path, self.node.input[position])
        # -0.0 is another number than 0.0: -0.0 - -0.0 is 0.0.
        return array is not None and bool((array == number).all()) and not has_negative_zero(array)

    def is_absent_or_all(self, position: int, number: int) -> bool:
        """Return True if an input is omitted, or all of its elements are known, and this number."""
        given = position < len(self.node.input) and bool(self.node.input[position])
        return not given or self.is_all(position, number)

    def attribute(self, name: str) -> object:
        """Return an attribute; None if the node has none of the name."""
        found = (attribute for attribute in self.node.attribute if attribute.name == name)
        return next((attribute_value(attribute) for attribute in found), None)


def _first_if(is_same: Callable[[_Site], bool]) -> Callable[[_Site], int | None]:
    return lambda site: 0 if is_same(site) else None


def _moves_nothing(site: _Site) -> bool:
    return site.has_shape_of_data


def _same_dtype(site: _Site) -> bool:
    dtypes = [site.type_of(name).dtype for name in (site.node.input[0], site.node.output[0])]
    return dtypes[0] is not None and dtypes[0] == dtypes[1]


def _drops_nothing(site: _Site) -> bool:
    """Return True for a Dropout outside of training."""
    return site.attribute("is_test") in (None, 1) and site.is_absent_or_all(2, 0)


def _slices_nothing(site: _Site) -> bool:
    return site.has_shape_of_data and site.is_absent_or_all(4, 1)


def _pads_nothing(site: _Site) -> bool:
    pads = site.attribute("pads")
    return not any(pads) if isinstance(pads, tuple) else site.is_all(1, 0)


def _keeps_order(site: _Site) -> bool:
    perm, shape = site.attribute("perm"), site.type_of(site.node.input[0]).shape
    if isinstance(perm, tuple):
        return perm == tuple(range(len(perm)))
    return perm is None and shape is not None and len(shape) < 2


def _is_alone(site: _Site) -> bool:
    return len(site.node.input) == 1


def _neutral(number: int, *positions: int) -> Callable[[_Site], int | None]:
    """Return a function for an operator that an operand of this number makes do nothing; it returns the other operand.
    positions: where the number may be.
    """
    # A list of such numbers is no number, but a weight as it was before training. Runtimes look for nodes with weights
    # when they fuse layers.

    def other(site: _Site) -> int | None:
        for position in positions:
            shape = site.shape(position)
            is_number = shape is not None and all(size == 1 for size in shape) and site.is_all(position, number)
            if is_number and len(site.node.input) == 2 and site.has_shape_of(1 - position):
                return 1 - position
        return None

    return other


def _neutral_of_integers(number: int, *positions: int) -> Callable[[_Site], int | None]:
    """Do as `_neutral` for integers only: with floats, -0.0 + 0.0 is 0.0."""
    other = _neutral(number, *positions)
    return lambda site: (
        other(site) if (site.type_of(site.node.output[0]).dtype or "").startswith(("int", "uint")) else None
    )


def _chosen(site: _Site) -> int | None:
    """Return the operand that a Where takes, if its condition is the same for all elements."""
    for position, truth in ((1, 1), (2, 0)):
        if site.is_all(0, truth) and site.has_shape_of(position):
            return position
    return None


# For each operator, the input that it gives; None if it gives another value.
_GIVEN: Mapping[str, Callable[[_Site], int | None]] = {
    **dict.fromkeys(kinds.RESHAPES | {"Expand"}, _first_if(_moves_nothing)),
    "Identity": _first_if(lambda site: True),
    "Dropout": _first_if(_drops_nothing),
    **dict.fromkeys(("Cast", "CastLike"), _first_if(_same_dtype)),
    "Slice": _first_if(_slices_nothing),
    "Pad": _first_if(_pads_nothing),
    "Transpose": _first_if(_keeps_order),
    "Tile": _first_if(lambda site: site.is_all(1, 1)),
    **dict.fromkeys(("Concat", "Sum", "Max", "Min", "Mean"), _first_if(_is_alone)),
    "Mul": _neutral(1, 0, 1),
    "Div": _neutral(1, 1),
    "Add": _neutral_of_integers(0, 0, 1),
    "Sub": _neutral(0, 1),
    "Where": _chosen,
}


def plan_bypass(
    plan: Plan, walked: Walked, elements: Elements, uses: Uses, functions: frozenset[FunctionKey] = frozenset()
) -> None:
    """Plan that readers of nodes which give what they get read their inputs, and that equal constants become one.

    functions: the model's own, whose names may be those of operators of ai.onnx.
    """
    sources = dict(_equal_constants(uses))
    for scope in uses.root:
        for index, node in enumerate(scope.nodes):
            if plain_domain(node.domain) != "" or called_function(node) in functions:
                continue
            place = scope.path, index
            given = None if _stays(walked, uses, place, node) else _given(node, scope, elements)
            if given is not None:
                sources[uses.key(scope.path, node.output[0])] = (uses.definitions.home(scope.path, given), given)
                before = versioned_operator(node, scope.imports)
                plan.changes.append(Change(f"{scope.location}/{node_label(node, index)}", before, "", WHY))
    if sources:
        plan.replace_all(list(_with_sources(uses, _Sources(uses, sources))))


def _given(node: NodeProto, scope: Scope, elements: Elements) -> str | None:
    """Return the name of the input that a node gives; None if it gives another value."""
    given = _GIVEN.get(node.op_type)
    if given is None or not node.input or any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    site = _Site(node, scope.path, elements)
    position = given(site)
    name = None if position is None else node.input[position]
    return name if name and site.type_of(name).kind == "tensor" else None


def _stays(walked: Walked, uses: Uses, place: NodePlace, node: NodeProto) -> bool:
    """Return True for a node of which nothing is concluded, and for one that makes a result or a second value."""
    detail = walked.graphs.get(place[0])
    if place in walked.set_aside or detail is None or place[1] in detail.unread or not node.output or has_bodies(node):
        return True
    keys = [uses.key(place[0], name) for name in node.output if name]
    is_used = [key in uses.results or bool(uses.readers.get(key)) for key in keys]
    return not node.output[0] or keys[0] in uses.results or any(is_used[1:]) or not is_used[0]


def _equal_constants(uses: Uses) -> Iterator[tuple[ValueKey, tuple[GraphPath, str]]]:
    """Yield the constants of the main graph that an earlier one equals, each with that one."""
    first: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    main = uses.scopes.get(MAIN)
    for key, tensor in uses.tensors.items() if main is not None else ():
        size = byte_size(tensor) or 0
        is_main = uses.definitions.home(MAIN, tensor.name) == MAIN and uses.key(MAIN, tensor.name) == key
        if is_main and _LEAST_SHARED <= size <= _MOST_SHARED and not is_external(tensor) and key not in uses.results:
            other = first.setdefault((tensor.data_type, tuple(tensor.dims), _data_of(tensor)), tensor.name)
            if other != tensor.name:
                yield key, (MAIN, other)


def _data_of(tensor: TensorProto) -> bytes:
    """Return bytes that are equal for tensors that are stored alike."""
    copy = TensorProto()
    copy.CopyFrom(tensor)
    for field in ("name", "doc_string"):
        copy.ClearField(field)
    return copy.SerializeToString(deterministic=True)


class _Sources:
    """Where values come from that nodes only pass on."""

    def __init__(self, uses: Uses, sources: Mapping[ValueKey, tuple[GraphPath, str]]) -> None:
        self._uses, self._sources = uses, sources

    def seen_from(self, path: GraphPath, name: str) -> str:
        """Return the name of the value that a graph may read instead of one: the farthest source that it can see."""
        found, key = name, self._uses.key(path, name)
        while key in self._sources:
            home, source = self._sources[key]
            key = self._uses.key(home, source)
            # A graph within may define the name for a value of its own.
            if self._uses.definitions.home(path, source) == home:
                found = source
        return found


def _with_sources(uses: Uses, sources: _Sources) -> Iterator[tuple[Scope, int, Replacement]]:
    """Yield the readers of values that have another source, in graph order."""
    for scope in uses.root:
        for index, node in enumerate(scope.nodes):
            read: Sequence[str] = [sources.seen_from(scope.path, name) if name else "" for name in node.input]
            if list(read) != list(node.input):
                edited = Node.of(node)
                edited.inputs = list(read)
                yield scope, index, Replacement([edited])
