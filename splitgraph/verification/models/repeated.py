"""Models that run another one on parts of a batch, or on its items in another order, and put the results together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.dim import Dim, substitute_if_defined, symbol, symbols_of
from splitgraph.inference import infer_model
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import model_imports, reads, scopes
from splitgraph.model.value_type import Shape
from splitgraph.model.values import int64_tensor, value_type, write_dim

# Its bounds are attributes below this opset.
_SLICE_WITH_INPUTS = 10


class Items(NamedTuple):
    """The items from `start` up to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which items of a batch the runs of a model take, and which results they give. size: of the batch. takes: the
    items of each run, in their order. gives: runs, each with those of its items whose results count, in the order of
    the results.
    """

    size: int
    takes: Sequence[Sequence[Items]]
    gives: Sequence[tuple[int, Items]]


def groups(size: int, own: int) -> Arrangement:
    """Return the arrangement of a batch in groups of `own` items. The last ones are taken together with others, if they
    are fewer; their first item fills a batch that is too small.
    """
    if size < own:
        return Arrangement(size, [[Items(0, size), *[Items(0, 1)] * (own - size)]], [(0, Items(0, size))])
    starts = [*range(0, size - own + 1, own), *([size - own] if size % own else [])]
    gives = [(number, Items(0, own)) for number in range(size // own)]
    rest = [(len(starts) - 1, Items(own - size % own, own))] if size % own else []
    return Arrangement(size, [[Items(start, start + own)] for start in starts], [*gives, *rest])


def some_groups(size: int, own: int) -> tuple[Arrangement, Arrangement]:
    """Return the arrangement of a large batch in which only the first, the middle and the last groups of `own` items
    run, and that in which all items run, and the results of the same ones count.
    """
    taken = [Items(start, start + own) for start in (0, size // 2, size - own)]
    gives = [(number, Items(0, own)) for number in range(len(taken))]
    return Arrangement(size, [[items] for items in taken], gives), Arrangement(
        size, [[Items(0, size)]], [(0, items) for items in taken]
    )


def exchanged(size: int) -> Arrangement:
    """Return the arrangement in which the first two items change places, and their results change back."""
    order = [Items(1, 2), Items(0, 1), *([Items(2, size)] if size > 2 else [])]
    return Arrangement(size, [order], [(0, items) for items in order])


class Along(NamedTuple):
    """Where the items of a value are: along which axis, and how many places each one has; None if that is not known."""

    axis: int
    places: int | None = 1


def outputs_along(after: ModelProto, name: str, size: int) -> dict[str, Along]:
    """Return where the items of each output are that has any. after: with the symbol `name` for a batch of `size`."""
    types = infer_model(after, fill=False).types
    found: dict[str, Along] = {}
    for value in after.graph.output:
        shape = types[value.name].shape if value.name in types else value_type(value.type).shape
        axis = axis_of(shape, name)
        if axis is not None and shape is not None:
            dim = shape[axis]
            whole = substitute_if_defined(dim, {name: size}) if isinstance(dim, Dim) else None
            found[value.name] = Along(axis, whole // size if isinstance(whole, int) else None)
            continue
        # A dimension that only the run tells is likely the one with the items; the comparison finds out.
        unknown = next((at for at, dim in enumerate(shape or ()) if dim is None or isinstance(dim, Dim)), None)
        if unknown is not None:
            found[value.name] = Along(unknown, None)
    return found


def values_along(after: ModelProto, name: str) -> dict[str, Along]:
    """Return where the items of inner values are, of those that have an axis of them alone."""
    found: dict[str, Along] = {}
    for value, known in infer_model(after, fill=False).types.items():
        axes = [at for at, dim in enumerate(known.shape or ()) if isinstance(dim, Dim) and name in symbols_of(dim)]
        if len(axes) == 1 and known.shape is not None and known.shape[axes[0]] == symbol(name):
            found[value] = Along(axes[0])
    return found


def arranged(
    model: ModelProto, arrangement: Arrangement, inputs: Mapping[str, int], values: Mapping[str, Along]
) -> ModelProto:
    """Return a model that runs another one as an arrangement of a batch says. inputs: the axis of the items in each
    input that has them. values: those that are put together from all runs, outputs and inner values; of another output,
    the first run counts.
    """
    copies = _Copies(model, arrangement)
    for value in copies.graph.input:
        if value.name in inputs:
            write_dim(arrangement.size, value.type.tensor_type.shape.dim[inputs[value.name]])
            copies.take(value.name, Along(inputs[value.name]))
    results = {value.name for value in model.graph.output}
    # Each run has these, also if nothing in them depends on its items.
    joined = {name for name in results if name in values and values[name].places is not None}
    for tensor in [*copies.graph.initializer]:
        name = tensor.name
        if name in joined - copies.pieces.keys():
            copies.hold(tensor)
            copies.give(name, values[name])
    for node in model.graph.node:
        if not copies.repeat(node, is_result=not joined.isdisjoint(node.output)):
            continue
        for name in filter(None, node.output):
            if name in values:
                copies.give(name, values[name])
            elif name in results:
                copies.first(name)
    for value in copies.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copies.model


def passed_on(model: ModelProto) -> set[str]:
    """Return the outputs that nothing computes: the model's own inputs or weights. None, if all are so."""
    given = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
    outputs = {value.name for value in model.graph.output}
    return set() if outputs <= given else outputs & given


def without_outputs(model: ModelProto, names: Collection[str]) -> ModelProto:
    """Return a model without these outputs."""
    if not names:
        return model
    made = ModelProto()
    made.CopyFrom(model)
    kept = [value for value in model.graph.output if value.name not in names]
    del made.graph.output[:]
    made.graph.output.extend(kept)
    return made


@dataclass(slots=True)
class _Copies:
    """A model whose nodes are written once for each run. model, graph: what is made. pieces: what each run has of a
    value that depends on the items.
    """

    before: ModelProto
    arrangement: Arrangement
    model: ModelProto = field(default_factory=ModelProto, init=False)
    pieces: dict[str, list[str]] = field(default_factory=dict, init=False)
    _names: FreshNames = field(init=False)
    _opset: int = field(init=False)

    def __post_init__(self) -> None:
        self.model.CopyFrom(self.before)
        self._names = FreshNames(used_names(self.before, tuple(scopes(self.before))))
        self._opset = model_imports(self.before).get("", 1)
        del self.graph.node[:], self.graph.value_info[:]

    @property
    def graph(self) -> GraphProto:
        """The graph of the model."""
        return self.model.graph

    def take(self, name: str, along: Along) -> None:
        """Write what each run takes of a whole value."""
        assert along.places is not None
        self.pieces[name] = [
            self._joined([self._part(name, items, along) for items in taken], along.axis)
            for taken in self.arrangement.takes
        ]

    def hold(self, tensor: TensorProto) -> None:
        """Give weights another name, by which each run has them."""
        name, tensor.name = tensor.name, self._names.new(f"{tensor.name}_held")
        self.pieces[name] = [tensor.name] * len(self.arrangement.takes)

    def repeat(self, node: NodeProto, *, is_result: bool) -> bool:
        """Write a node for each run if it depends on the items, or gives a result of each run, and return whether it
        does.
        """
        known = [name for name in reads(node) if name in self.pieces]
        if not known and not is_result:
            self.graph.node.add().CopyFrom(node)
            return False
        for name in filter(None, node.output):
            self.pieces[name] = [self._names.new(f"{name}_{run}") for run in range(len(self.arrangement.takes))]
        for run in range(len(self.arrangement.takes)):
            copy = self.graph.node.add()
            copy.CopyFrom(node)
            copy.name = self._names.new(f"{node.name or node.op_type}_{run}")
            _rename(copy, {name: self.pieces[name][run] for name in (*known, *filter(None, node.output))})
        return True

    def give(self, name: str, along: Along) -> None:
        """Put a value together from what the runs have of it; later nodes read it so."""
        parts = [self._part(self.pieces[name][run], items, along) for run, items in self.arrangement.gives]
        self._written(name, self._joined(parts, along.axis))
        if along.places is not None:
            self.take(name, along)

    def first(self, name: str) -> None:
        """Let an output be what the first run has."""
        self._written(name, self.pieces[name][0])

    def _written(self, name: str, value: str) -> None:
        self.graph.node.append(make_node("Identity", [value], [name], self._names.new(f"{name}_given")))

    def _part(self, name: str, items: Items, along: Along) -> str:
        """Write a slice; return its name."""
        if along.places is None:
            return name
        bounds = [items.start * along.places, items.end * along.places, along.axis]
        output = self._names.new(f"{name}_part")
        if self._opset < _SLICE_WITH_INPUTS:
            start, end, axis = bounds
            node = make_node("Slice", [name], [output], output, axes=[axis], starts=[start], ends=[end])
        else:
            constants = [self._names.new(f"{output}_{hint}") for hint in ("start", "end", "axis")]
            for constant, number in zip(constants, bounds, strict=True):
                self.graph.initializer.append(int64_tensor(constant, [number]))
            node = make_node("Slice", [name, *constants], [output], output)
        self.graph.node.append(node)
        return output

    def _joined(self, pieces: Sequence[str], axis: int) -> str:
        """Write a Concat; return its name."""
        if len(pieces) == 1:
            return pieces[0]
        output = self._names.new(f"{pieces[0]}_joined")
        self.graph.node.append(make_node("Concat", pieces, [output], output, axis=axis))
        return output


def _rename(node: NodeProto, renamed: Mapping[str, str]) -> None:
    """Rename what a node reads and gives, also in its subgraphs."""
    node.input[:] = [renamed.get(name, name) for name in node.input]
    node.output[:] = [renamed.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {output for inner in graph.node for output in inner.output}
            outer = {name: new for name, new in renamed.items() if name not in own}
            for inner in graph.node:
                _rename(inner, outer)
            for value in graph.output:
                value.name = outer.get(value.name, value.name)


def axis_of(shape: Shape | None, name: str) -> int | None:
    """Return the first axis whose dimension has a symbol."""
    return next(
        (axis for axis, dim in enumerate(shape or ()) if isinstance(dim, Dim) and name in symbols_of(dim)), None
    )
