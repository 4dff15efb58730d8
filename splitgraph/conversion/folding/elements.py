"""Finds values that are the same in every run, and their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from splitgraph.conversion.folding.certainty import FOLLOWED_DTYPES, Array, is_allowed, is_certain, may_be_certain
from splitgraph.conversion.folding.uses import Uses, has_bodies
from splitgraph.conversion.plan import opset_of
from splitgraph.inference import Walked
from splitgraph.inference.computed_values import NotComputed, evaluate
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import CONSTANT_DTYPES, attribute_value
from splitgraph.model.deferred import helper, np
from splitgraph.model.names import ValueKey
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import FunctionKey, GraphPath, called_function, plain_domain
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, Item, ValueType
from splitgraph.model.values import array_of

# No value of more bytes is computed or read.
MOST_BYTES = 2**16
# What inference knows of the lengths of a split may follow from the split itself.
_SPLITS = frozenset({"Split", "SplitToSequence"})


class Elements:
    """The values of a root that are the same in every run, as arrays of their types.

    Integers are as inference knows them, which follows shapes. onnx's evaluator runs what inference does not follow:
    floats, and more elements than shapes have. Values that are asked for in the order of nodes take no deep recursion.

    has_rounded: whether one of them is rounded, so that a runtime may give other last bits.
    """

    def __init__(
        self, walked: Walked, uses: Uses, functions: frozenset[FunctionKey] = frozenset(), *, rounds: bool = False
    ) -> None:
        """functions: the model's own, whose names may be those of operators of ai.onnx. rounds: of numbers that
        runtimes round in their own ways, one that the specification allows counts as known.
        """
        self._walked, self._uses, self._functions = walked, uses, functions
        self._rounds, self.has_rounded = rounds, False
        self._known: dict[ValueKey, Array | None] = {}
        self._evaluated: dict[NodePlace, Mapping[str, Array]] = {}

    def of(self, path: GraphPath, name: str) -> Array | None:
        """Return the elements of the value that a graph reads under a name; None if they are not known."""
        home = self._uses.definitions.home(path, name)
        key = self._uses.key(home, name)
        if key not in self._known:
            # For a value that depends on itself, which is an error of the model.
            self._known[key] = None
            self._known[key] = self._found(home, name, key)
        return self._known[key]

    def items_of(self, path: GraphPath, name: str) -> Sequence[Item] | None:
        """Return the elements of a small value of integers, with sizes as inference follows them; None for others."""
        if not name:
            return None
        home = self._uses.definitions.home(path, name)
        known, detail = self.type_of(home, name), self._walked.graphs.get(home)
        contents = None if detail is None else detail.constants.get(name)
        if contents is None or known.dtype not in ("int32", "int64"):
            return None
        place = self._uses.makers.get(self._uses.key(home, name))
        if isinstance(contents, TensorProto) or place is None:
            array = self.of(home, name)
            return None if array is None else [int(number) for number in array.reshape(-1)]
        if self._is_set_aside(place) or not self._follows_from_its_node(home, name, place):
            return None
        return contents.items

    def type_of(self, path: GraphPath, name: str) -> ValueType:
        """Return the type of the value that a graph reads under a name."""
        detail = self._walked.graphs.get(self._uses.definitions.home(path, name))
        return UNKNOWN if detail is None else detail.types.get(name, UNKNOWN)

    def _found(self, home: GraphPath, name: str, key: ValueKey) -> Array | None:
        known = self.type_of(home, name)
        if not is_small(known):
            return None
        tensor = self._uses.tensors.get(key)
        if tensor is not None:
            return _decoded(tensor)
        place = self._uses.makers.get(key)
        if place is None:
            return None
        node = self._uses.node(place)
        if plain_domain(node.domain) != "" or called_function(node) in self._functions or self._is_set_aside(place):
            return None
        if node.op_type == "Constant":
            return constant_of(node)
        inferred = self._inferred(home, name, known, place)
        return self._computed(place, node).get(name) if inferred is None else inferred

    def _is_set_aside(self, place: NodePlace) -> bool:
        """Return True for a node of which nothing is concluded."""
        detail = self._walked.graphs.get(place[0])
        return place in self._walked.set_aside or detail is None or place[1] in detail.unread

    def _inferred(self, home: GraphPath, name: str, known: ValueType, place: NodePlace) -> Array | None:
        """Return the integers that inference knows of a value. Of floats, it knows them in double precision."""
        if known.dtype is None or known.dtype.startswith("float"):
            return None
        contents = self._walked.graphs[home].constants.get(name)
        integers = None if contents is None or isinstance(contents, TensorProto) else contents.integers
        if contents is None or isinstance(contents, TensorProto) or integers is None:
            return None
        if not self._follows_from_its_node(home, name, place):
            return None
        try:
            return np.array(integers, _numpy(known.dtype)).reshape(contents.shape)
        except OverflowError:
            return None

    def _follows_from_its_node(self, home: GraphPath, name: str, place: NodePlace) -> bool:
        """Return False for lengths of a split that only the split itself says: with others it would fail, not go on."""
        readers = map(self._uses.node, self._uses.readers.get(self._uses.key(home, name), ()))
        if not any(reader.op_type in _SPLITS and name in reader.input[1:] for reader in readers):
            return True
        node, path = self._uses.node(place), place[0]
        return node.op_type in kinds.SIZES or all(
            self.of(path, given) is not None or None not in (self.items_of(path, given) or (None,))
            for given in node.input
            if given
        )

    def _computed(self, place: NodePlace, node: NodeProto) -> Mapping[str, Array]:
        """Return what onnx's evaluator gives for a node whose inputs are known, if every runtime gives that."""
        if place not in self._evaluated:
            self._evaluated[place] = self._evaluate(place, node)
        return self._evaluated[place]

    def _evaluate(self, place: NodePlace, node: NodeProto) -> Mapping[str, Array]:
        path, scope = place[0], self._uses.scopes[place[0]]
        opset = opset_of(scope.imports)
        version = meant_version(node.op_type, opset)
        if version is None or has_bodies(node):
            return {}
        since = version.since_version
        may_be, takes_any = may_be_certain(node.op_type, since), self._rounds and is_allowed(node.op_type, since)
        if not (may_be or takes_any):
            return {}
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return {}
        given = [self.of(path, name) if name else None for name in node.input]
        if any(name and array is None for name, array in zip(node.input, given, strict=True)):
            return {}
        types = {name: self.type_of(path, name) for name in node.output if name}
        if not all(map(is_small, types.values())):
            return {}
        try:
            made = evaluate(node, opset, given)
        except NotComputed:
            # The specification lets such a node fail; a runtime says so when it runs it.
            return {}
        arrays = [None if array is None else np.asarray(array) for array in made]
        results = {name: array for name, array in zip(node.output, arrays, strict=True) if name and array is not None}
        if not all(_has_type(results[name], known) for name, known in types.items()):
            return {}
        if may_be and is_certain(node.op_type, given, arrays):
            return results
        self.has_rounded |= takes_any
        return results if takes_any else {}


def is_small(known: ValueType) -> bool:
    """Return True for a tensor of a type that is followed, with known sizes and few bytes."""
    if known.kind != "tensor" or known.dtype not in FOLLOWED_DTYPES or known.shape is None:
        return False
    sizes = [dim for dim in known.shape if isinstance(dim, int)]
    if len(sizes) < len(known.shape):
        return False
    return bool(prod(sizes) * _numpy(known.dtype).itemsize <= MOST_BYTES)


def constant_of(node: NodeProto) -> Array | None:
    """Return the elements of a Constant node; None for strings, sparse ones, and those in other files."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return _decoded(attribute.t)
        dtype = CONSTANT_DTYPES.get(attribute.name)
        if dtype in FOLLOWED_DTYPES:
            return np.array(attribute_value(attribute), _numpy(dtype))
    return None


def _decoded(tensor: TensorProto) -> Array | None:
    """Return the elements of a tensor; None for those in other files, and for a malformed one."""
    if is_in_other_file(tensor):
        return None
    try:
        elements: Array = array_of(tensor)
    except (ValueError, TypeError, KeyError):
        return None
    return elements


def _has_type(array: Array, known: ValueType) -> bool:
    return array.shape == known.shape and array.dtype == _numpy(known.dtype)


def _numpy(dtype: str | None) -> np.dtype[Any]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype or ""]))
