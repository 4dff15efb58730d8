"""Writes the sizes that a node reads as numbers, if its operator has such. Then no node has to compute them.

A target of Reshape has 0 for a dimension of the data and -1 for the only other one, one of Expand has 1 for a dimension
that stays. A Slice goes to the end of a dimension, or counts from it; a Split makes equal parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.folding.constants import constant_node
from splitgraph.conversion.folding.elements import Elements
from splitgraph.conversion.folding.uses import Uses
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.sizes.draft import equal_parts
from splitgraph.dim import Dim, Facts
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import attribute_value
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import MAIN, FunctionKey, GraphPath, Scope, called_function, node_label, plain_domain
from splitgraph.model.value_type import Item, Shape, ValueType

# New operands of a node by position: numbers, or None for an operand that is left out. Empty if nothing changes.
_Operands = dict[int, list[int] | list[float] | None]
_WHY = "sizes that it can say itself"


@dataclass(slots=True)
class _SizeReader:
    """A node that reads sizes. edited: gets other attributes where the reading needs them. facts: of its graph.
    certain: the facts without what a Reshape is taken to mean. relies_on_sizes: the reading is right only because no
    dimension is 0.
    """

    edited: Node
    scope: Scope
    elements: Elements
    facts: Facts
    certain: Facts
    since_version: int
    contents: Callable[[str], Sequence[Item] | None]
    nonempty: bool
    relies_on_sizes: bool = False

    def name(self, position: int) -> str:
        """Return the name of an input; "" for one that is omitted."""
        return self.edited.inputs[position] if position < len(self.edited.inputs) else ""

    def type_of(self, name: str) -> ValueType:
        return self.elements.type_of(self.scope.path, name)

    @property
    def data(self) -> Shape | None:
        return self.type_of(self.name(0)).shape

    @property
    def made(self) -> Shape | None:
        return self.type_of(self.edited.outputs[0]).shape

    def items(self, position: int) -> Sequence[Item] | None:
        """Return the elements of an input that is not constant; None where they are not known, or it is constant."""
        name = self.name(position)
        if not name or self.elements.of(self.scope.path, name) is not None:
            return None
        return self.contents(name)

    def numbers(self, position: int) -> list[int] | None:
        """Return the elements of an input that is constant."""
        name = self.name(position)
        array = self.elements.of(self.scope.path, name) if name else None
        return None if array is None else [int(number) for number in array.reshape(-1)]

    def attribute(self, name: str, default: object = None) -> object:
        found = self.edited.attributes.get(name)
        return default if found is None else attribute_value(found)


def plain_target(
    items: Sequence[Item], data: Shape, made: Shape, facts: Facts, *, nonempty: bool = False
) -> list[int] | None:
    """Return the target of a Reshape as numbers, with 0 for a dimension that the data has there, and -1 for one other;
    None if numbers cannot say it.

    data, made: the shapes of the data and of the result, which says what a -1 of the target is. nonempty: no dimension
    is 0. A -1 beside a dimension of 0 means nothing, where a computed size is right.
    """
    written: list[int] = []
    rest: list[Item] = []
    for axis, item in enumerate(items):
        meant = made[axis] if item in (-1, 0) else item
        if isinstance(meant, Dim) and axis < len(data) and data[axis] == meant:
            written.append(0)
        elif isinstance(meant, int):
            written.append(meant)
        else:
            written.append(-1)
            rest.append(item)
    if len(rest) > 1:
        return None
    if rest and rest[0] != -1 and not nonempty:
        others = [made[axis] if number == 0 else number for axis, number in enumerate(written) if number != -1]
        if not all(dim is not None and facts.prove_ge(dim, 1) for dim in others):
            return None
    return written


def _reshape(reader: _SizeReader) -> _Operands:
    """Return a target of numbers; -1 and 0 stand for sizes of the data."""
    items, data, made = reader.items(1), reader.data, reader.made
    if items is None or data is None or made is None or len(items) != len(made):
        return {}
    # With allowzero, a 0 is a dimension of 0; no other 0 is written.
    if reader.attribute("allowzero", 0) == 1 and any(item == 0 for item in (*items, *made)):
        return {}
    if any(not isinstance(item, (int, Dim)) or (isinstance(item, int) and item < -1) for item in items):
        return {}
    target = plain_target(items, data, made, reader.certain)
    if target is None and reader.nonempty:
        target = plain_target(items, data, made, reader.certain, nonempty=True)
        reader.relies_on_sizes = target is not None
    if target is None:
        return {}
    reader.edited.attributes.pop("allowzero", None)
    return {1: target}


def _expand(reader: _SizeReader) -> _Operands:
    """Return a target of numbers; 1 stands for a dimension that stays."""
    items, data, made = reader.items(1), reader.data, reader.made
    if items is None or data is None or made is None or len(items) > len(made):
        return {}
    target, first = [], len(made) - len(items)
    own = (*[1] * (len(made) - len(data)), *data)
    for axis, item in enumerate(items, first):
        if isinstance(item, int):
            target.append(item)
        elif own[axis] is not None and own[axis] == made[axis]:
            target.append(1)
        else:
            return {}
    return {1: target}


def _slice(reader: _SizeReader) -> _Operands:
    """Return numbers for the starts and ends that are at the end of a dimension, behind it, or counted from it."""
    data, bounds = reader.data, {position: reader.contents(reader.name(position)) for position in (1, 2)}
    starts, ends = bounds[1], bounds[2]
    if reader.since_version < 10 or data is None or starts is None or ends is None or len(starts) != len(ends):
        return {}
    axes = reader.numbers(3) if reader.name(3) else list(range(len(starts)))
    steps = reader.numbers(4) if reader.name(4) else [1] * len(starts)
    if axes is None or steps is None or not len(axes) == len(steps) == len(starts):
        return {}
    operands: _Operands = {}
    most = int(np.iinfo(reader.type_of(reader.name(2)).dtype or "int64").max)
    for position in (1, 2):
        if reader.items(position) is None:
            continue
        written = []
        for item, axis, step in zip(bounds[position] or (), axes, steps, strict=True):
            dim = data[axis] if -len(data) <= axis < len(data) else None
            said = item if isinstance(item, int) else _said_bound(item, dim, reader.facts, most) if step > 0 else None
            if said is None:
                break
            written.append(said)
        else:
            operands[position] = written
    return operands


def _said_bound(item: Item, dim: int | Dim | None, facts: Facts, most: int) -> int | None:
    """Return the number that stands for a bound of a slice at every size; None if there is none."""
    if not isinstance(item, Dim) or dim is None:
        return None
    if facts.prove_ge(item, dim):
        return most
    back = dim - item
    # A negative number counts from the end. A bound that may be negative itself would mean something else.
    return -back if isinstance(back, int) and back > 0 and facts.prove_ge(item, 0) else None


def _split(reader: _SizeReader) -> _Operands:
    """Return no lengths, and make the parts equal, if all lengths are the same and make up the whole dimension."""
    items, data, axis = reader.items(1), reader.data, reader.attribute("axis", 0)
    if items is None or data is None or not isinstance(axis, int) or not -len(data) <= axis < len(data):
        return {}
    total, parts = data[axis], len(reader.edited.outputs)
    length = items[0] if items else None
    if len(items) != parts or not isinstance(length, Dim) or any(item != length for item in items):
        return {}
    if total is None or not reader.facts.prove_eq(length * parts, total):
        return {}
    equal_parts(reader.edited, opset_of(reader.scope.imports), parts)
    return {1: None}


def _resize(reader: _SizeReader) -> _Operands:
    """Return scales in place of sizes, if the sizes are whole multiples of those of the data."""
    items, data = reader.items(3), reader.data
    has_scales = bool(reader.name(2)) and reader.numbers(2) != []
    if reader.since_version < 11 or items is None or data is None or has_scales:
        return {}
    if reader.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return {}
    # In this mode, scales refer to a region of the data, but sizes to the result.
    if reader.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return {}
    axes = reader.attribute("axes") or tuple(range(len(data)))
    if not isinstance(axes, tuple) or len(axes) != len(items):
        return {}
    scales: list[float] = []
    for item, axis in zip(items, axes, strict=True):
        dim = data[axis] if -len(data) <= axis < len(data) else None
        times = None if dim is None else _times(item, dim, reader.facts)
        if times is None:
            return {}
        scales.append(float(times))
    return {2: scales, 3: None}


def _times(item: Item, dim: int | Dim, facts: Facts) -> int | None:
    """Return the quotient of a size and a dimension; None if it is not a positive whole number."""
    if not isinstance(item, (int, Dim)):
        return None
    if isinstance(item, int) and isinstance(dim, int):
        return item // dim if item > 0 and dim > 0 and item % dim == 0 else None
    if isinstance(item, int) or isinstance(dim, int):
        return None
    (_, one), *_ = dim.terms
    (_, many), *_ = item.terms
    times = many // one if one else 0
    return times if times > 0 and facts.prove_eq(dim * times, item) else None


_READINGS: Mapping[str, Callable[[_SizeReader], _Operands]] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "Slice": _slice,
    "Split": _split,
    "Resize": _resize,
}


@dataclass(slots=True)
class SaidSizes:
    """Plans the readings of a root. nonempty: no dimension is 0. relying: the nodes whose readings are right only
    because of that.
    """

    plan: Plan
    walked: Walked
    elements: Elements
    uses: Uses
    names: FreshNames
    functions: frozenset[FunctionKey] = frozenset()
    as_nodes: bool = False
    nonempty: bool = False
    relying: list[str] = field(default_factory=list)
    _certain: dict[GraphPath, Facts] = field(default_factory=dict, init=False)

    def run(self) -> None:
        """Plan them in graph order."""
        self.plan.replace_all(list(self._replacements()))
        if self.relying:
            others = f" and {len(self.relying) - 1} more" if len(self.relying) > 1 else ""
            text = f"no dimension may be 0 when the result is run: a -1 stands for a size at this node{others}"
            self.plan.notes.append(diagnostic("SG423", text, self.relying[0], severity="info"))

    def _replacements(self) -> Iterator[tuple[Scope, int, Replacement]]:
        for scope in self.uses.root:
            for index, node in enumerate(scope.nodes):
                if node.op_type in _READINGS and self._is_followed((scope.path, index), node):
                    replacement = self._reading(scope, index, node)
                    if replacement is not None:
                        yield scope, index, replacement

    def _is_followed(self, place: NodePlace, node: NodeProto) -> bool:
        detail = self.walked.graphs.get(place[0])
        if plain_domain(node.domain) != "" or called_function(node) in self.functions or not node.output:
            return False
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return False
        return place not in self.walked.set_aside and detail is not None and place[1] not in detail.unread

    def _certain_of(self, path: GraphPath, facts: Facts) -> Facts:
        """Return the facts of a graph without those that say that a dimension is not 0. Inference takes a computed
        target of a Reshape, such as `[B*S, 8]`, to mean that; a model runs with B = 0 all the same.
        """
        if path not in self._certain:
            self._certain[path] = made = Facts()
            for obligation in facts.obligations:
                if (obligation.relation, obligation.rhs) != (">=", 1):
                    made.require(obligation)
        return self._certain[path]

    def _reading(self, scope: Scope, index: int, node: NodeProto) -> Replacement | None:
        version = meant_version(node.op_type, opset_of(scope.imports))
        facts = self.walked.facts.get(scope.path)
        if version is None or facts is None:
            return None
        edited = Node.of(node)
        reader = _SizeReader(
            edited,
            scope,
            self.elements,
            facts,
            self._certain_of(scope.path, facts),
            version.since_version,
            lambda name: self.elements.items_of(scope.path, name),
            self.nonempty,
        )
        operands = _READINGS[node.op_type](reader)
        if not operands:
            return None
        if reader.relies_on_sizes:
            self.relying.append(f"{scope.location}/{node_label(node, index)}")
        made, constants = [], []
        for position, numbers in operands.items():
            dtype = (
                np.float32
                if node.op_type == "Resize"
                else np.dtype(reader.type_of(reader.name(position)).dtype or "int64")
            )
            name = "" if numbers is None else self.names.new(f"{node_label(node, index)}_said")
            if numbers is not None:
                tensor = numpy_helper.from_array(np.array(numbers, dtype), name)
                if self.as_nodes or scope.path != MAIN:
                    made.append(constant_node(self.plan, tensor))
                else:
                    constants.append(tensor)
            if position < len(edited.inputs):
                edited.inputs[position] = name
        while edited.inputs and not edited.inputs[-1]:
            edited.inputs.pop()
        return Replacement([*made, edited], constants, _WHY, after=node.op_type)
