"""A model that runs another one for each group of items, and joins the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.inference import infer_model
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, ValueInfoProto
from splitgraph.model.scopes import model_imports, scopes
from splitgraph.model.values import int64_tensor, value_type, write_dim

# Its bounds are attributes below this opset.
_SLICE_WITH_INPUTS = 10


def repeated(before: ModelProto, after: ModelProto, name: str, groups: int, wanted: Wanted) -> ModelProto:
    """Return a model that splits its inputs into groups of items, runs the model before on each, and joins the outputs
    along the dimension that has the symbol `name` in the model after.
    """
    copies = _Copies(before)
    axes, size, inputs = _axes_of_outputs(after, name), wanted.old[name], wanted.axes[name]
    runs = [
        copies.run({each: copies.part(each, group * size, (group + 1) * size, axis) for each, axis in inputs.items()})
        for group in range(groups)
    ]
    for value in copies.graph.output:
        axis = axes.get(value.name)
        copies.give(value, [each[value.name] for each in (runs if axis is not None else runs[:1])], axis or 0)
    for value in copies.graph.input:
        if value.name in inputs:
            write_dim(size * groups, value.type.tensor_type.shape.dim[inputs[value.name]])
    return copies.model


def apart(
    larger: ModelProto, after: ModelProto, name: str, groups: int, wanted: Wanted
) -> tuple[ModelProto, ModelProto]:
    """Return two models that give the same if no item reaches another: the model at a larger size, and one that runs it
    twice, with other items behind the first group and with another first group. Both read the other items, too.
    """
    plain, mixed = _Copies(larger), _Copies(larger)
    axes, first = _axes_of_outputs(after, name), wanted.old[name]
    total = groups * first
    inputs = wanted.axes[name]
    others = {each: mixed.names.new(f"{each}_other") for each in inputs}
    for copies in (plain, mixed):
        for value in list(copies.graph.input):
            if value.name in others:
                copies.graph.input.add().CopyFrom(value)
                copies.graph.input[-1].name = others[value.name]
    alone = plain.run({})
    for value in plain.graph.output:
        plain.give(value, [alone[value.name]])
    heads, tails = (
        mixed.run(
            {
                each: mixed.joined([mixed.part(one, 0, first, axis), mixed.part(other, first, total, axis)], axis)
                for each, one, other, axis in of
            }
        )
        for of in (
            [(each, each, others[each], axis) for each, axis in inputs.items()],
            [(each, others[each], each, axis) for each, axis in inputs.items()],
        )
    )
    sizes = infer_model(larger, fill=False).types
    for value in mixed.graph.output:
        axis, shape = axes.get(value.name), sizes[value.name].shape if value.name in sizes else None
        size = None if axis is None or shape is None else shape[axis]
        if axis is None or not isinstance(size, int):
            mixed.give(value, [heads[value.name]])
            continue
        length = size // groups
        pieces = [mixed.part(heads[value.name], 0, length, axis), mixed.part(tails[value.name], length, size, axis)]
        mixed.give(value, pieces, axis)
    return plain.model, mixed.model


def without_passed_on(model: ModelProto) -> ModelProto:
    """Return a model without the outputs that nothing computes: its own inputs or weights. They stay if all are so."""
    given = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.output if value.name not in given]
    if not kept or len(kept) == len(model.graph.output):
        return model
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.output[:]
    made.graph.output.extend(kept)
    return made


class _Copies:
    """A model whose nodes are written several times, with other inputs. model, graph: what is made; names: for more."""

    def __init__(self, model: ModelProto) -> None:
        self.model = ModelProto()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self.names = FreshNames(used_names(model, tuple(scopes(model))))
        self._nodes = model.graph.node
        self._opset = model_imports(model).get("", 1)
        self._count = 0
        del self.graph.node[:], self.graph.value_info[:]

    def run(self, inputs: Mapping[str, str]) -> Mapping[str, str]:
        """Write the nodes once more, with other values for inputs; return the names of the outputs."""
        number, self._count = self._count, self._count + 1
        renamed = dict(inputs)
        for node in self._nodes:
            renamed.update((output, self.names.new(f"{output}_{number}")) for output in node.output if output)
        for node in self._nodes:
            copy = self.graph.node.add()
            copy.CopyFrom(node)
            copy.name = self.names.new(f"{node.name or node.op_type}_{number}")
            _rename(copy, renamed)
        return {value.name: renamed.get(value.name, value.name) for value in self.graph.output}

    def part(self, name: str, start: int, end: int, axis: int = 0) -> str:
        """Write a slice; return its name."""
        output = self.names.new(f"{name}_part")
        if self._opset < _SLICE_WITH_INPUTS:
            node = make_node("Slice", [name], [output], output, axes=[axis], starts=[start], ends=[end])
        else:
            bounds = [self.names.new(f"{output}_{hint}") for hint in ("start", "end", "axis")]
            for bound, number in zip(bounds, (start, end, axis), strict=True):
                self.graph.initializer.append(int64_tensor(bound, [number]))
            node = make_node("Slice", [name, *bounds], [output], output)
        self.graph.node.append(node)
        return output

    def joined(self, pieces: Sequence[str], axis: int = 0) -> str:
        """Write a Concat; return its name."""
        output = self.names.new(f"{pieces[0]}_joined")
        self.graph.node.append(make_node("Concat", pieces, [output], output, axis=axis))
        return output

    def give(self, value: ValueInfoProto, pieces: Sequence[str], axis: int = 0) -> None:
        """Write an output: the pieces one after the other."""
        value.type.tensor_type.ClearField("shape")
        whole = pieces[0] if len(pieces) == 1 else self.joined(pieces, axis)
        self.graph.node.append(make_node("Identity", [whole], [value.name], self.names.new(f"{value.name}_given")))


def _axes_of_outputs(model: ModelProto, name: str) -> dict[str, int]:
    """Return the axis of each output whose dimension has a symbol, or is not known."""
    types = infer_model(model, fill=False).types
    found: dict[str, int] = {}
    for value in model.graph.output:
        shape = types[value.name].shape if value.name in types else value_type(value.type).shape
        axis = axis_of(shape, name)
        unknown = (at for at, dim in enumerate(shape or ()) if dim is None or isinstance(dim, Dim))
        # A dimension that only the run tells is likely the one with the items; the comparison finds out.
        axis = next(unknown, None) if axis is None else axis
        if axis is not None:
            found[value.name] = axis
    return found


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


def axis_of(shape: Sequence[DimLike | None] | None, name: str) -> int | None:
    """Return the first axis whose dimension has a symbol."""
    return next(
        (axis for axis, dim in enumerate(shape or ()) if isinstance(dim, Dim) and name in symbols_of(dim)), None
    )
