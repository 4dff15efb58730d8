"""Find the traits of the nodes of a model, from its inference."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from splitgraph.dim import Dim
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail, SplitDetail, Visit
from splitgraph.model.names import Producers
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.places import operator_label, version_of
from splitgraph.model.schemas import OperatorVersion, kinds
from splitgraph.model.scopes import (
    GraphPath,
    Scope,
    called_function,
    function_key,
    node_label,
    roots,
    sorted_order,
)
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, Contents, Ratio, ValueType
from splitgraph.model.values import tensor_contents
from splitgraph.runtimes.factors import Factors, factors
from splitgraph.runtimes.operator_traits import operator_traits
from splitgraph.runtimes.patterns import factors_of_patterns
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, CAST_TO_INTEGERS, How, Seen, attribute

# The name under which tables hold calls of local functions.
FUNCTION = "calls of local functions"
# The factors of a node: keys with their values, sorted. Nodes of one operator with the same ones are judged alike.
Kind = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeTraits:
    """A node, where it is, and its traits.

    label: operator and version, "Relu-14", with the domain before it if it is not ai.onnx. own: the traits of its
    operator, as `operator_traits`. factors: as `splitgraph.runtimes.factors` reads them, sorted by key. detail: of a
    split, None for other nodes. is_call: it calls a local function. seen: what is known of the values of its graph,
    None for a layer. is_layer: it is a layer of an OpenVINO IR. fault: why no release of OpenVINO has such a layer, ""
    for all others.
    """

    scope: Scope
    index: int
    node: NodeProto
    label: str
    own: frozenset[str] = frozenset()
    factors: Kind = ()
    detail: SplitDetail | None = None
    is_call: bool = False
    seen: Seen | None = field(default=None, repr=False, compare=False)
    is_layer: bool = False
    fault: str = ""

    @cached_property
    def location(self) -> str:
        """The location of the node for messages."""
        return f"{self.scope.location}/{node_label(self.node, self.index)}"

    @property
    def kind(self) -> object:
        """What a node has in common with all that targets judge as they judge it."""
        return self.operator, self.factors, self.own, self.detail is None, self.fault

    @property
    def operator(self) -> str:
        """What tables call the operator: its label, or the name of all calls of local functions."""
        return FUNCTION if self.is_call else self.label

    @property
    def takes_part(self) -> bool:
        """Return True for a Slice, or a Gather with indices that are known before the run, of data: a Split may give
        the same.
        """
        known = dict(self.factors)
        is_read = self.node.op_type == "Slice" or known.get("indices") in BEFORE_THE_RUN
        return is_read and self.node.op_type in ("Slice", "Gather") and known.get("data") == "data"

    @property
    def gets_other_forms(self) -> bool:
        """Return True for a node that a conversion writes in another form if it has to, at any opset."""
        return self.detail is not None or self.is_call or self.takes_part or self.node.op_type == "SequenceAt"


def traits_of(model: ModelProto, walked: Walked) -> Iterator[NodeTraits]:
    """Return the traits of every node of a model, in graph order; bodies of functions are looked at as written."""
    functions = {function_key(function) for function in model.functions}
    for root in roots(walked.scopes):
        producers, (inputs, defaults) = Producers(root), _inputs(root)
        origins, readers = _Origins(root, inputs, defaults, walked.graphs), _readers(root)
        for scope in root:
            detail = walked.graphs.get(scope.path) or GraphDetail()
            versions, visits = dict[tuple[str, str], tuple[OperatorVersion | None, str]](), walked.visits(scope)
            seen = producers.seen_from(scope)
            reader = _TraitReader(scope, detail, walked.graphs, seen, inputs, defaults, origins, readers)
            for index, node in enumerate(scope.nodes):
                is_call = bool(functions) and called_function(node) in functions
                operator = (node.domain, node.op_type)
                if operator not in versions:
                    version = version_of(node, scope.imports)
                    versions[operator] = version, operator_label(node, version)
                version, label = versions[operator]
                own, kind = reader.own_traits(index, node, version, visits[index])
                split = detail.splits.get(index)
                if is_call:
                    kind = (("function", "other" if split is None else "VariadicSplit"),)
                yield NodeTraits(scope, index, node, label, own, kind, split, is_call, reader)


def _readers(root: Sequence[Scope]) -> Mapping[str, Collection[str]]:
    """Return the operators that read each value of a root, as `Seen.readers` tells them."""
    readers: dict[str, set[str]] = {}
    for scope in root:
        for name in _outputs(scope):
            readers.setdefault(name, set()).add("")
        for node in scope.nodes:
            for name in node.input:
                readers.setdefault(name, set()).add(_reader(node))
    return readers


_FLOATS = frozenset(DTYPE_NUMBERS[name] for name in ("float16", "bfloat16", "float32", "float64"))


def _reader(node: NodeProto) -> str:
    held = attribute(node, "to") if node.op_type == "Cast" else None
    return node.op_type if held is None or held.i in _FLOATS else CAST_TO_INTEGERS


def _outputs(scope: Scope) -> set[str]:
    """Return the names of the outputs of a graph."""
    return set(scope.proto.output) if scope.is_function else {value.name for value in scope.proto.output}


def _inputs(root: Sequence[Scope]) -> tuple[Collection[str], Collection[str]]:
    """Return the names of the inputs of a root that a caller must give, and of those that have a default."""
    main = root[0]
    if main.is_function:
        return frozenset(main.proto.input), frozenset()
    inputs = {value.name for value in main.proto.input}
    defaults = inputs & {tensor.name for tensor in main.proto.initializer}
    return inputs - defaults, defaults


# Whether a value is computed from no sizes, from fixed ones or from open ones; and whether from elements of inputs.
_NO_SIZES, _FIXED, _OPEN = range(3)
_Origin = tuple[int, bool]
_GIVEN: _Origin = (_NO_SIZES, True)


class _Origins:
    """The origins of the values of a root: each graph is gone through once.

    inputs, defaults: as `_inputs`. details: what is known of all graphs.
    """

    def __init__(
        self,
        root: Sequence[Scope],
        inputs: Collection[str],
        defaults: Collection[str],
        details: Mapping[GraphPath, GraphDetail],
    ) -> None:
        self._main, self._defaults, self._details = root[0].path, defaults, details
        self._given = dict.fromkeys(inputs, _GIVEN)
        self._graphs: dict[GraphPath, dict[str, _Origin]] = {}
        for scope in root:
            self._graphs[scope.path] = self._written_out(scope)
            self._go_through(scope, scope.nodes)

    def of(self, path: GraphPath, name: str) -> _Origin:
        """Return the origin of what a graph reads under a name."""
        known = self._graphs[path].get(name)
        while known is None and path != self._main:
            path = path[:-3]
            known = self._graphs[path].get(name)
        # What nothing gives is no constant.
        return _GIVEN if known is None else known

    def _written_out(self, scope: Scope) -> dict[str, _Origin]:
        """Return the origins of what a graph does not compute: initializers are of nothing. What a body is given is no
        constant, even if it is called like one outside.
        """
        if scope.is_function:
            return dict(self._given)
        known: dict[str, _Origin] = {tensor.name: (_NO_SIZES, False) for tensor in scope.proto.initializer}
        given = self._given if scope.path == self._main else {value.name: _GIVEN for value in scope.proto.input}
        return known | {name: origin for name, origin in given.items() if name not in self._defaults}

    def _go_through(self, scope: Scope, nodes: Sequence[NodeProto]) -> None:
        known, path = self._graphs[scope.path], scope.path
        waiting = {name for node in nodes for name in node.output[:]}
        is_sorted = True
        for node in nodes:
            read = [name for name in node.input[:] if name]
            if not waiting.isdisjoint(read):
                is_sorted = False
                break
            origin = self._joined(path, node, [known.get(name) or self.of(path, name) for name in read])
            known.update(dict.fromkeys(node.output[:], origin))
            waiting.difference_update(node.output[:])
        if not is_sorted:
            self._go_through_unsorted(scope, nodes)

    def _go_through_unsorted(self, scope: Scope, nodes: Sequence[NodeProto]) -> None:
        known = self._graphs[scope.path]
        # In a model that is wrong, a value may depend on itself.
        known.update(dict.fromkeys((name for node in nodes for name in node.output), (_NO_SIZES, False)))
        for index in sorted_order(nodes):
            read = [self.of(scope.path, name) for name in nodes[index].input if name]
            known.update(dict.fromkeys(nodes[index].output, self._joined(scope.path, nodes[index], read)))

    def _joined(self, path: GraphPath, node: NodeProto, read: Sequence[_Origin]) -> _Origin:
        """Return the origin of the outputs of a node. read: of its inputs."""
        if node.op_type in kinds.SIZES:
            # The elements of the input do not matter.
            return self._sizes_computed_with(path, node, _OPEN), False
        if not read:
            # Nothing but a constant is known without an input: the others draw numbers.
            return _NO_SIZES, node.op_type != "Constant"
        sizes = max(each for each, _ in read)
        return self._sizes_computed_with(path, node, sizes), any(inputs for _, inputs in read)

    def _sizes_computed_with(self, path: GraphPath, node: NodeProto, sizes: int) -> int:
        """Return what sizes a node computes with: known ones are fixed, although others beside them may be open."""
        detail = self._details.get(path)
        if sizes != _OPEN or detail is None or not node.output:
            return sizes
        contents = detail.constants.get(node.output[0])
        of_sizes = node.op_type in kinds.SIZES
        source = detail.types.get(node.input[0], UNKNOWN) if of_sizes and node.input else UNKNOWN
        is_known = isinstance(contents, Contents) and {type(None), Dim, Ratio}.isdisjoint(map(type, contents.items))
        has_fixed = source.shape is not None and all(isinstance(dim, int) for dim in source.shape)
        return _FIXED if is_known or has_fixed else _OPEN


@dataclass(slots=True)
class _TraitReader:
    """Reads the traits of the nodes of one graph. graphs: what is known of all graphs. inputs, defaults: as `_inputs`.
    origins: of the values of the root. all_readers: as `_readers`.
    """

    scope: Scope
    detail: GraphDetail
    graphs: Mapping[GraphPath, GraphDetail]
    producers: Producers
    inputs: Collection[str]
    defaults: Collection[str]
    origins: _Origins
    all_readers: Mapping[str, Collection[str]]
    _own: dict[Hashable, tuple[frozenset[str], Kind]] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)
    _how: dict[str, How] = field(default_factory=dict)

    def own_traits(
        self, index: int, node: NodeProto, version: OperatorVersion | None, visit: Visit | None
    ) -> tuple[frozenset[str], Kind]:
        """Return the traits of the operator of a node, and its factors. visit: nodes of one visit have equal ones, if
        their inputs are given in the same way, and their outputs are read by the same operators.
        """
        split = self.detail.splits.get(index)
        if index in self.detail.unread or (split is not None and split.errors):
            return frozenset(), ()
        key = None
        if visit is not None:
            given = [self.how(name) if name else None for name in node.input]
            read_by = (frozenset(self.readers(name)) for name in node.output)
            key = (visit, *given, *read_by, *factors_of_patterns(node, self))
            if key in self._own:
                return self._own[key]
        own = operator_traits(node, version, self.type_of, self._is_before_the_run, self._is_of_shapes)
        read: Factors = factors(node, version, self, split)
        result = own, tuple(sorted(read.items()))
        if key is not None:
            self._own[key] = result
        return result

    def maker(self, name: str) -> NodeProto | None:
        """Return the node that makes a value, None for one that no node makes."""
        return self.producers.node(name)

    def readers(self, name: str) -> Collection[str]:
        """Return the operators that read a value, and "" for an output of a graph."""
        return self.all_readers.get(name, ())

    def how(self, name: str) -> How:
        """Return how the elements of a value are given."""
        known = self._how.get(name)
        if known is None:
            known = self._how[name] = self._find_how(name)
        return known

    def _find_how(self, name: str) -> How:
        node = self.producers.node(name)
        if node is not None and node.op_type == "Constant":
            return "node"
        if self._is_written_out(name):
            return "init"
        if node is not None and node.op_type == "Identity" and node.input and self._is_written_out(node.input[0]):
            # Weights that are shared: what runtimes do with such an Identity is told at the Identity.
            return self.how(node.input[0])
        if node is None:
            # What a body is given is computed, and follows from no sizes.
            return "input" if name in self.inputs else "computed"
        of_shapes, of_inputs = self.origins.of(self.scope.path, name)
        contents = self.contents(name)
        if contents is not None and contents.integers is not None:
            return "sized" if of_shapes else "folded"
        if of_inputs:
            return "computed"
        return "shape" if of_shapes == _OPEN else "sized" if of_shapes else "folded"

    def contents(self, name: str) -> Contents | None:
        """Return the elements of a value, as far as they are known or follow from sizes."""
        tensor = self._detail_of(name).constants.get(name)
        return tensor_contents(tensor) if isinstance(tensor, TensorProto) else tensor

    def _is_of_shapes(self, name: str) -> bool:
        """Return True where the elements of a short list or a number follow from the sizes of the inputs."""
        if self.type_of(name).rank not in (0, 1):
            return False
        how = self.how(name)
        return how in ("shape", "folded") or (how == "sized" and not self._is_before_the_run(name))

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value, UNKNOWN where it is not known."""
        return self._detail_of(name).types.get(name, UNKNOWN)

    def _detail_of(self, name: str) -> GraphDetail:
        """Return what is known of the graph that defines a value: this one, or one around it."""
        if name in self.detail.types:
            return self.detail
        return self.graphs.get(self.producers.key(name)[0]) or self.detail

    def _is_before_the_run(self, name: str) -> bool:
        """Return True where the elements of a value are known before the run."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._has_known_elements(name)
        return known

    def _has_known_elements(self, name: str) -> bool:
        contents = self.detail.constants.get(name)
        if contents is None and name in self.detail.types:
            # Most values are computed here, and unknown.
            node = self.producers.node(name)
            return self._is_written_out(name) if node is None else node.op_type == "Constant"
        contents = self._detail_of(name).constants.get(name)
        if isinstance(contents, Contents):
            return {type(None), Dim}.isdisjoint(map(type, contents.items))
        return contents is not None or self._is_written_out(name)

    def _is_written_out(self, name: str) -> bool:
        """Return True for an initializer, also for one that a caller may replace, and for the output of a Constant."""
        if self.producers.constant(name) is not None or name in self.defaults:
            return True
        node = self.producers.node(name)
        return node is not None and node.op_type == "Constant"
