"""What the last walk saw of a model: which node computes a value, its shape, and the elements that are known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.needs import InputPlace
from splitgraph.conversion.sizes.weights import constant_tensor
from splitgraph.dim import Dim, DimLike
from splitgraph.inference.alone import Given
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.names import Definitions
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.places import LocatedNode
from splitgraph.model.scopes import GraphPath, Scope
from splitgraph.model.value_type import UNKNOWN, Contents


class Stuck(Exception):
    """A size cannot be followed. The argument says why. help: what to do, if that is not what SG420 says."""

    def __init__(self, why: str, help: str | None = None) -> None:
        super().__init__(why)
        self.help = help


class Producer(LocatedNode):
    """The node that computes a value."""

    __slots__ = ()

    def place(self, position: int) -> InputPlace:
        return InputPlace(self.scope.path, self.position, position)


class LastWalk:
    """One root of a model, as the last walk saw it. defaults: the inputs that have one."""

    def __init__(self, root: Sequence[Scope], graphs: Mapping[GraphPath, GraphDetail], follower: Follower) -> None:
        self.scopes = {scope.path: scope for scope in root}
        self.follower = follower
        self.defaults = set[str]()
        self._definitions = Definitions(root)
        self._graphs = graphs
        self._producers: dict[tuple[GraphPath, str], Producer] = {}
        self._tensors: dict[tuple[GraphPath, str], TensorProto] = {}
        for scope in root:
            for index, node in enumerate(scope.nodes):
                self._producers.update({(scope.path, name): Producer(scope, index) for name in node.output if name})
            if not scope.is_function:
                inputs = {value.name for value in scope.proto.input}
                self.defaults |= inputs & {each.name for each in scope.proto.initializer}
                self._tensors.update(
                    {(scope.path, each.name): each for each in scope.proto.initializer if each.name not in inputs}
                )

    def home(self, path: GraphPath, name: str) -> GraphPath:
        """Return the graph that defines a value that is read in another one."""
        return self._definitions.home(path, name)

    def producer(self, home: GraphPath, name: str) -> Producer | None:
        return self._producers.get((home, name))

    def tensor(self, home: GraphPath, name: str) -> TensorProto | None:
        """Return the weights of a name, or what a Constant gives."""
        producer = self.producer(home, name)
        if producer is None:
            return self._tensors.get((home, name))
        return constant_tensor(producer.node) if producer.node.op_type == "Constant" else None

    def shape(self, path: GraphPath, name: str) -> tuple[DimLike, ...]:
        """Return the dimensions of a value. Raises Stuck if one is not known."""
        detail = self._graphs.get(self.home(path, name))
        shape = None if detail is None or name not in detail.types else detail.types[name].shape
        if shape is None or None in shape:
            raise Stuck(f"the shape of {name!r} is not known")
        return shape  # type: ignore[return-value]

    def given(self, place: InputPlace, name: str, *, at_old_sizes: bool) -> Given | None:
        """Return what the last walk knew of an input, at the old sizes or as it is."""
        if not name:
            return None
        detail = self._graphs.get(self.home(place.path, name))
        if detail is None or name not in detail.types:
            return Given(UNKNOWN)
        kind = detail.types[name]
        before: Callable[[DimLike], DimLike] = self.follower.wanted.before if at_old_sizes else lambda dim: dim
        if kind.shape is not None:
            expanded = self.follower.decided.expanded.get(place, {})
            dims = [expanded.get(axis, dim) for axis, dim in enumerate(kind.shape)]
            kind = kind.with_shape([None if dim is None else before(dim) for dim in dims])
        elements = self.follower.seen.edits.get(place[:2], {}).get(place.position, detail.constants.get(name))
        if isinstance(elements, Contents):
            items = tuple(before(item) if isinstance(item, Dim) else item for item in elements.items)
            elements = Contents(elements.shape, items)
        return Given(kind, elements)
