"""The types and constants of the values of one graph: the inferred ones, and those that conversion adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from splitgraph.conversion.moved_constants import moved_elements
from splitgraph.conversion.node import reads_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.model.attributes import CONSTANT_DTYPES
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.model.schemas.fit import YOUNG_TYPES
from splitgraph.model.scopes import GraphPath, Scope, called_function, function_key, plain_domain, subgraphs
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS, MAX_WRITTEN, UNKNOWN, Contents, ValueType
from splitgraph.model.values import array_of, tensor_contents, tensor_type, type_proto

if TYPE_CHECKING:
    from numpy.typing import NDArray


Array: TypeAlias = "NDArray[Any]"


class KnownValues:
    """The types and constants of all values that the nodes of one graph can read: those of the graph, of the enclosing
    graphs, and those that conversion adds.
    """

    def __init__(self, walked: Walked, path: GraphPath) -> None:
        self._details: Mapping[GraphPath, GraphDetail] = walked.graphs
        self._named = walked.named
        self._scopes = walked.scopes
        # The node or initializer that gives each value of a graph, by the graph's path.
        self._producers: dict[GraphPath, Mapping[str, NodeProto | TensorProto]] = {}
        self._path = path
        # The values of the graph itself; added values have other names.
        here = self._details.get(path)
        self._here: Mapping[str, ValueType] = {} if here is None else here.types
        # The values whose elements were asked for since the set was last cleared.
        self.asked: set[str] = set()
        self._types: dict[str, ValueType] = {}
        # Tensors are decoded when their elements are asked for.
        self._elements: dict[str, Array | TensorProto | None] = {}
        # For each added value without a type yet: the nodes added together with its producer, and their opsets.
        self._added: dict[str, tuple[Sequence[NodeProto], Mapping[str, int]]] = {}

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value, or UNKNOWN."""
        known = self._here.get(name)
        if known is not None or not name:
            return known or UNKNOWN
        if name in self._added:
            self._infer_added(*self._added[name])
        known = self._types.get(name)
        if known is not None:
            return known
        path = self._home_of(name)
        return UNKNOWN if path is None else self._details[path].types[name]

    def elements(self, name: str) -> Array | None:
        """Return the elements of a value that is constant in every run, otherwise None. A default that a caller may
        override is not constant. The elements of tensors in other files are not read.
        """
        self.asked.add(name)
        if name in self._added:
            self._infer_added(*self._added[name])
        if name not in self._elements:
            constant, known = self._constant_of(name)
            self._elements[name] = _as_array(constant, known)
        elements = self._elements[name]
        if isinstance(elements, TensorProto):
            elements = self._elements[name] = _as_array(elements, UNKNOWN)
        if elements is None and name not in self._types:
            elements = self._elements[name] = self._moved(name)
        return elements

    def _moved(self, name: str) -> Array | None:
        """Return the elements of a constant of a new type, which inference does not keep where a rule read it, or of a
        value of such a type that nodes move or cast from constants; None for another value.
        """
        known, node = self.type_of(name), None
        dtype = known.dtype
        if dtype in YOUNG_TYPES and known.shape is not None:
            node = self.producer(name)
        if isinstance(node, TensorProto):
            return _as_array(node, known)
        sizes = tuple(size for size in known.shape or () if isinstance(size, int))
        if node is None or dtype is None or len(sizes) < len(known.shape or ()) or plain_domain(node.domain) != "":
            return None
        read = node.input[:]
        return moved_elements(
            node, lambda place: self.elements(read[place]) if place < len(read) and read[place] else None, sizes, dtype
        )

    def producer(self, name: str) -> NodeProto | TensorProto | None:
        """Return the node of the model that gives a value, in this graph or an enclosing one, or the initializer that
        the value is, unless it is the default of an input; None without one.
        """
        # Nodes that are alike may read values of different producers: what one becomes is not for the others.
        self.asked.add("")
        path = self._home_of(name)
        if path is None:
            return None
        if path not in self._producers:
            self._producers[path] = _producers(scope for scope in self._scopes if scope.path == path)
        return self._producers[path].get(name)

    def integers(self, name: str) -> list[int] | None:
        """Return the elements of a constant tensor of integers in row-major order; None as for `elements`."""
        if name in self._elements or name in self._added:
            elements = self.elements(name)
            return None if elements is None else [int(item) for item in elements.reshape(-1)]
        self.asked.add(name)
        contents, _ = self._contents(name)
        return None if contents is None or contents.integers is None else list(contents.integers)

    def contents(self, name: str) -> Contents | None:
        """Return the known elements of a small value of the model, in symbols where they depend on dimensions, or
        None.
        """
        self.asked.add(name)
        return self._contents(name)[0]

    def knows_elements(self, name: str) -> bool:
        """Return True when inference knows elements of a value: a constant, or a result of shape arithmetic."""
        return self._constant_of(name)[0] is not None

    def branches(self) -> Iterator[Mapping[str, GraphDetail]]:
        """Return the inference of the subgraphs of each node, by attribute."""
        details: dict[int, dict[str, GraphDetail]] = {}
        for path, detail in self._details.items():
            if path[:-3] == self._path and len(path) == len(self._path) + 3:
                details.setdefault(path[-3], {})[path[-2]] = detail
        yield from details.values()

    def are_named_within(self, symbols: Set[str]) -> bool:
        """Return True when a subgraph of the graph declares a dimension with one of these symbols."""
        paths = (path for name in symbols for path in self._named.get(name, ()))
        return any(len(path) > len(self._path) and path[: len(self._path)] == self._path for path in paths)

    def fingerprint(self, name: str, most: int) -> bytes | None:
        """Return bytes that are equal for equal constants: with the same type, shape and elements, or the same symbolic
        elements; b"" for values that are not constant. None for constants of more than `most` bytes or of strings.
        """
        if name not in self._types and name not in self._added:
            # A value of the model: the fingerprint must not depend on earlier questions.
            contents, known = self._contents(name)
            if contents is not None:
                return repr((known.dtype, contents)).encode()
        elements = self.elements(name)
        if elements is None:
            return b""
        if elements.nbytes > most or elements.dtype == object:
            return None
        return b"%s%r" % (str(elements.dtype).encode(), elements.shape) + elements.tobytes()

    def define(self, name: str, known: ValueType, elements: Array | TensorProto | None = None) -> None:
        """Set the type and elements of an added value."""
        self._types[name] = known
        self._elements[name] = elements

    def define_constant(self, name: str, tensor: TensorProto) -> None:
        """Set the tensor that an added value is."""
        self.define(name, tensor_type(tensor), None if is_in_other_file(tensor) else tensor)

    def note(self, nodes: Sequence[NodeProto], imports: Mapping[str, int]) -> None:
        """Set the nodes that produce added values, and the opsets of their domains. Their types are inferred together,
        when one is asked for.
        """
        group = tuple(nodes)
        for name in _made(group):
            if name not in self._added and not self._is_known(name):
                self._added[name] = (group, imports)

    def _is_known(self, name: str) -> bool:
        return name in self._types or self._home_of(name) is not None

    def _infer_added(self, nodes: Sequence[NodeProto], imports: Mapping[str, int]) -> None:
        within = set(_made(nodes))
        for name in within:
            self._added.pop(name, None)
        # Inference of single nodes ignores attributes that refer to one of the enclosing function.
        for node in nodes:
            if _refers(node):
                known = _referred_type(node)
                for name in _made([node]):
                    self.define(name, known)
        plain = [node for node in nodes if not _refers(node)]
        details: list[GraphDetail] = list(self._analysed(plain, imports).graphs.values())
        for name in within:
            if not self._is_known(name):
                detail = next((candidate for candidate in details if name in candidate.types), details[0])
                known = detail.types.get(name, UNKNOWN)
                self.define(name, known, _as_array(detail.constants.get(name), known))

    def split_detail(self, node: NodeProto, opset: int) -> SplitDetail:
        """Return the inference of an added split node."""
        detail: SplitDetail = self._analysed([node], {"": opset}).graphs[()].splits[0]
        return detail

    def _analysed(self, nodes: Sequence[NodeProto], imports: Mapping[str, int]) -> Walked:
        """Return the inference of added nodes as a model of their own, given the types and constants that they read."""
        within = set(_made(nodes))
        read = dict.fromkeys(name for node in nodes for name in reads_of(node) if name not in within)
        inputs, initializers = [], []
        for name in read:
            known = self.type_of(name)
            # Nothing is computed from large weights, which need not be read.
            elements = None if _is_large(known) else self.elements(name)
            number = DTYPE_NUMBERS.get(known.dtype or "")
            if elements is not None and number is not None:
                initializers.append(numpy_helper.from_array(elements, name))
            else:
                inputs.append(ValueInfoProto(name=name, type=type_proto(known)))
        outputs = [ValueInfoProto(name=name) for node in nodes for name in node.output if name]
        graph = helper.make_graph(list(nodes), "added", inputs, outputs, initializers)
        opsets = [helper.make_opsetid(domain, opset) for domain, opset in imports.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return walk_model(model)

    def _home_of(self, name: str) -> GraphPath | None:
        """Return the innermost of this graph and the enclosing ones that defines the value."""
        path = self._path
        while True:
            detail = self._details.get(path)
            if detail is not None and name in detail.types:
                return path
            if not path or (path[0] == "F" and len(path) <= 2):
                return None
            path = path[:-3]

    def _constant_of(self, name: str) -> tuple[Contents | TensorProto | None, ValueType]:
        """Return the elements of a value as inference keeps them, and its type."""
        path = self._home_of(name)
        if path is None:
            return None, UNKNOWN
        detail = self._details[path]
        return detail.constants.get(name), detail.types[name]

    def _contents(self, name: str) -> tuple[Contents | None, ValueType]:
        """Return the elements of a small constant, otherwise None; and the type."""
        constant, known = self._constant_of(name)
        return tensor_contents(constant) if isinstance(constant, TensorProto) else constant, known


def _producers(scopes: Iterable[Scope]) -> Mapping[str, NodeProto | TensorProto]:
    found: dict[str, NodeProto | TensorProto] = {}
    for scope in scopes:
        found.update({output: node for node in scope.nodes for output in node.output if output})
        if not scope.is_function:
            inputs = {value.name for value in scope.proto.input}
            found.update({tensor.name: tensor for tensor in scope.proto.initializer if tensor.name not in inputs})
    return found


def _refers(node: NodeProto) -> bool:
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return True
    return any(_refers(inner) for _, _, graph in subgraphs(node) for inner in graph.node)


def _referred_type(node: NodeProto) -> ValueType:
    """Return the type that the attribute of a Constant node implies; UNKNOWN for other nodes."""
    for attribute in node.attribute:
        if node.op_type == "Constant" and attribute.name in CONSTANT_DTYPES:
            shape = (None,) if attribute.name.endswith("s") else ()
            return ValueType("tensor", CONSTANT_DTYPES[attribute.name], shape)
    return UNKNOWN


def _made(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """Return all outputs of the nodes, and all values of their subgraphs."""
    for node in nodes:
        yield from (name for name in node.output if name)
        for _, _, graph in subgraphs(node):
            yield from (value.name for value in graph.input)
            yield from (tensor.name for tensor in graph.initializer)
            yield from _made(graph.node)


def _decoded(tensor: TensorProto) -> Array | None:
    """Return the elements of a tensor; None for a malformed one, which onnx's checker reports."""
    try:
        elements: Array = array_of(tensor)
    except (ValueError, TypeError, KeyError):
        return None
    return elements


def _is_large(known: ValueType) -> bool:
    """Return True for a tensor of more elements than conversion writes out."""
    sizes = [size for size in known.shape or () if isinstance(size, int)]
    return len(sizes) == len(known.shape or ()) and math.prod(sizes) > MAX_WRITTEN


def _as_array(constant: Contents | TensorProto | None, known: ValueType) -> Array | None:
    """Return the elements of a constant as an array of its element type, None where one of them is unknown."""
    if constant is None:
        return None
    if isinstance(constant, TensorProto):
        return None if is_in_other_file(constant) else _decoded(constant)
    number = DTYPE_NUMBERS.get(known.dtype or "")
    if number is None or not all(isinstance(item, (int, float, str)) for item in constant.items):
        return None
    return np.array(constant.items, dtype=helper.tensor_dtype_to_np_dtype(number)).reshape(constant.shape)


# What calls of a function leave out -----------------------------------------------------------------------------------

# What to do about a body whose nodes cannot be written anew for all calls of it at once.
INLINE_FIRST = "inline the function first, as onnx.inliner and `splitgraph convert --to split --explicit-lengths` do"
_HELP = f"{INLINE_FIRST.capitalize()}; or give the input in every call."


# By the index of a function.
_Names = dict[int, frozenset[str]]
# Returns what a call omits, given the names that have no value in the graph of the call.
_Missing = Callable[[FunctionProto, NodeProto, Collection[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What at least one call of a function leaves out, or hands on from one that does, by the function's index: inputs,
    and attributes without a default.
    """

    inputs: Mapping[int, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def inputs_in(self, scope: Scope) -> frozenset[str]:
        """Return the inputs that a graph of a function can read and some call leaves out."""
        return self.inputs.get(scope.path[1], frozenset()) if self.inputs and scope.in_function else frozenset()


def find_left_out(model: ModelProto, scopes: Sequence[Scope]) -> LeftOut:
    """Return what the calls of a model leave out. scopes: its scopes."""
    indices = {function_key(function): index for index, function in enumerate(model.functions)}
    if not indices:
        return LeftOut()
    calls = [
        (scope, node, indices[key])
        for scope in scopes
        for node in scope.nodes
        if (key := called_function(node)) in indices
    ]
    return LeftOut(_by_function(model, calls, _missing_inputs), _by_function(model, calls, _missing_attributes))


def _by_function(model: ModelProto, calls: Sequence[tuple[Scope, NodeProto, int]], missing_of: _Missing) -> _Names:
    left_out: _Names = dict.fromkeys(range(len(model.functions)), frozenset())
    changed = True
    while changed:
        changed = False
        for scope, node, index in calls:
            absent = left_out[scope.path[1]] if scope.in_function else frozenset()
            missing = left_out[index].union(missing_of(model.functions[index], node, absent))
            changed |= missing != left_out[index]
            left_out[index] = missing
    return left_out


def _missing_inputs(function: FunctionProto, call: NodeProto, absent: Collection[str]) -> Iterable[str]:
    given = [name if name not in absent else "" for name in call.input]
    return [name for position, name in enumerate(function.input) if not any(given[position : position + 1])]


def _missing_attributes(function: FunctionProto, call: NodeProto, absent: Collection[str]) -> Iterable[str]:
    return {*function.attribute} - {given.name for given in call.attribute if given.ref_attr_name not in absent}


def is_given(model: ModelProto, left_out: LeftOut, scope: Scope, attribute: str) -> bool:
    """Return True when an attribute of the function that a scope is in has a default, or a value in every call."""
    if not scope.in_function:
        return False
    index = scope.path[1]
    function = model.functions[index]
    has_default = any(default.name == attribute for default in function.attribute_proto)
    return has_default or (attribute in function.attribute and attribute not in left_out.attributes.get(index, ()))


def reads_left_out(node: NodeProto, left_out: Collection[str]) -> bool:
    """Return True for a node that reads an input that some call omits."""
    return bool(left_out) and any(name in left_out for name in node.input)


def without_left_out(node: NodeProto, left_out: Collection[str]) -> NodeProto:
    """Return the node as it is in calls that omit all of these inputs."""
    made = NodeProto()
    made.CopyFrom(node)
    made.input[:] = ["" if name in left_out else name for name in node.input]
    return made


def blocker(node: NodeProto, left_out: Collection[str], code: str, location: str) -> Diagnostic:
    """Return the blocker for a node that reads an omitted input and would have to change."""
    name = next(name for name in node.input if name in left_out)
    text = f"{node.op_type} reads {name!r}, an input of the function that a call leaves out, and would have to change"
    return diagnostic(code, text, location, help=_HELP)
