"""Programs in terms of sizes: run in NumPy at any sizes, and recorded as an ONNX model at one.

A program calls the methods of a `Tape` with sizes as plain integers. Each call computes its result with NumPy and
appends a node, in which the integers are constants. So the program itself says what the model has to give at any other
sizes, and nothing of splitgraph takes part in that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from attacked_sizes_kernels import KERNELS
from onnx import helper, numpy_helper

F = np.float32
_END = 2**31 - 1


class Value:
    """A value of a program: its name in the model, and its elements at the sizes of this run."""

    def __init__(self, tape: Tape, name: str, array: Any) -> None:
        self.tape, self.name, self.array = tape, name, np.asarray(array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of this run."""
        return tuple(self.array.shape)

    def __add__(self, other: Any) -> Value:
        return self.tape.op("Add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.tape.op("Sub", self, other)

    def __mul__(self, other: Any) -> Value:
        return self.tape.op("Mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        return self.tape.op("Div", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.tape.op("MatMul", self, other)


class Tape:
    """One run of a program.

    sizes: by the names that inputs use. opset: the forms of nodes. style: how a Reshape says its target: "numbers",
    "first", "second" or "last" for a -1 at this entry, "zeros" for 0 where a dimension is that of the data. named: the
    sizes that are names in the model already. nodes: constants as nodes instead of initializers.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        *,
        opset: int = 17,
        style: str = "numbers",
        named: Iterable[str] = (),
        nodes: bool = False,
        seed: int = 0,
        parent: Tape | None = None,
    ) -> None:
        self.sizes, self.opset, self.style, self.named = dict(sizes), opset, style, frozenset(named)
        self.constants_are_nodes, self.parent = nodes, parent
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.inputs: dict[str, Value] = {}
        self.input_dims: dict[str, tuple[int | str, ...]] = {}
        self.functions: list[onnx.FunctionProto] = []
        self._weights = np.random.default_rng(7)
        self._elements = np.random.default_rng(seed + 1)
        self._count = 0

    def input(self, name: str, *dims: int | str, kind: Any = F, below: int | None = None) -> Value:
        """Return an input. dims: names of sizes, and numbers. below: integers from 0 to this number."""
        shape = [self.sizes[dim] if isinstance(dim, str) else dim for dim in dims]
        if below is not None:
            array = self._elements.integers(0, below, shape)
        elif kind is bool:
            array = self._elements.random(shape) < 0.5
        else:
            array = self._elements.standard_normal(shape)
        self.input_dims[name] = dims
        self.inputs[name] = Value(self, name, np.asarray(array).astype(kind if below is None else np.int64))
        return self.inputs[name]

    def weight(self, *shape: int) -> Value:
        """Return weights, which are the same at all sizes if their shape is."""
        return self.constant(0.5 * self._weights.standard_normal(shape), F)

    def constant(self, elements: Any, kind: Any = np.int64) -> Value:
        """Return a constant of the model."""
        array = np.asarray(elements, kind)
        name = self.fresh("c")
        if self.constants_are_nodes:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.constants[name] = numpy_helper.from_array(array, name)
        return Value(self, name, array)

    def op(self, kind: str, *inputs: Any, many: bool = False, domain: str = "", **attributes: Any) -> Any:
        """Return what a node gives: one value, or a list of them if there are many. None is a missing input."""
        given = [each if each is None or isinstance(each, Value) else self.constant(each, F) for each in inputs]
        found = KERNELS[kind](*[None if each is None else each.array for each in given], **attributes)
        return self.record(kind, given, found if many else [found], domain=domain, many=many, **attributes)

    def record(
        self, kind: str, given: Sequence[Value | None], found: Sequence[Any], *, many: bool = True, **attributes: Any
    ) -> Any:
        """Append a node whose results are known."""
        results = [Value(self, self.fresh(kind.lower()), each) for each in found]
        names = ["" if each is None else each.name for each in given]
        attributes = {key: each for key, each in attributes.items() if each is not None and each != ""}
        label = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [each.name for each in results], name=label, **attributes))
        return results if many else results[0]

    def fresh(self, stem: str) -> str:
        """Return a name that the model does not have."""
        top = self
        while top.parent is not None:
            top = top.parent
        top._count += 1
        return f"{stem}_{top._count}"

    # What has other forms in other opsets, or constants that say sizes.

    def reshape(self, data: Value, *dims: int, style: str | None = None) -> Value:
        """Reshape to these sizes, written as the style says. Raises Unwritable if the style does not say that."""
        target = [int(dim) for dim in dims]
        style = style or self.style
        free = {"first": 0, "second": 1, "third": 2, "last": len(dims) - 1}.get(style)
        if free is not None and free < len(target):
            target[free] = -1
        elif style == "zeros":
            target = [0 if at < len(data.shape) and data.shape[at] == dim else dim for at, dim in enumerate(target)]
        found = data.array.reshape([int(dim) for dim in dims])
        return self.record("Reshape", [data, self.constant(target)], [found], many=False)

    def computed_reshape(self, data: Value, *parts: Value) -> Value:
        """Reshape to a target that the model concatenates."""
        target = self.op("Concat", *parts, axis=0)
        found = data.array.reshape([int(dim) for dim in target.array])
        return self.record("Reshape", [data, target], [found], many=False)

    def size_of(self, data: Value, axis: int) -> Value:
        """Return one entry of the shape, as a list of one."""
        shape = self.op("Shape", data)
        return self.op("Gather", shape, self.constant([axis]), axis=0)

    def transpose(self, data: Value, *perm: int) -> Value:
        """Return the data with axes in another order."""
        return self.op("Transpose", data, perm=perm)

    def slice(self, data: Value, axis: int, start: int, end: int | None = None, step: int = 1) -> Value:
        """Return a slice; None for an end behind all data."""
        at: list[Any] = [slice(None)] * len(data.shape)
        at[axis] = slice(start, end, step)
        found = data.array[tuple(at)]
        last = end if end is not None else -_END if step < 0 else _END
        if self.opset < 10:
            return self.record("Slice", [data], [found], many=False, axes=[axis], starts=[start], ends=[last])
        parts = [self.constant([each]) for each in (start, last, axis, step)]
        return self.record("Slice", [data, *(parts if step != 1 else parts[:3])], [found], many=False)

    def gather(self, data: Value, indices: Any, axis: int) -> Value:
        """Return the items of constant indices."""
        found = indices if isinstance(indices, Value) else self.constant(indices)
        return self.op("Gather", data, found, axis=axis)

    def split(self, data: Value, axis: int, *lengths: int) -> list[Value]:
        """Return parts of these lengths."""
        found = np.split(data.array, np.cumsum(lengths)[:-1], axis)
        if self.opset < 13:
            made = self.record("Split", [data], found, axis=axis, split=list(lengths))
        else:
            made = self.record("Split", [data, self.constant(list(lengths))], found, axis=axis)
        return list(made)

    def reduce(self, kind: str, data: Value, *axes: int, keepdims: int = 1) -> Value:
        """Return a ReduceMean and its like."""
        found = KERNELS[kind](data.array, axes, keepdims)
        if self.opset < (13 if kind == "ReduceSum" else 18):
            return self.record(kind, [data], [found], many=False, axes=list(axes), keepdims=keepdims)
        return self.record(kind, [data, self.constant(list(axes))], [found], many=False, keepdims=keepdims)

    def squeeze(self, data: Value, *axes: int) -> Value:
        """Remove axes of size 1; without axes, all of them."""
        found = np.squeeze(data.array, tuple(axes) if axes else None)
        if self.opset < 13 or not axes:
            return self.record("Squeeze", [data], [found], many=False, axes=list(axes) or None)
        return self.record("Squeeze", [data, self.constant(list(axes))], [found], many=False)

    def unsqueeze(self, data: Value, *axes: int) -> Value:
        """Insert axes of size 1."""
        found = np.expand_dims(data.array, tuple(axes))
        if self.opset < 13:
            return self.record("Unsqueeze", [data], [found], many=False, axes=list(axes))
        return self.record("Unsqueeze", [data, self.constant(list(axes))], [found], many=False)

    def expand(self, data: Value, *dims: int) -> Value:
        """Broadcast to these sizes."""
        shape = np.broadcast_shapes(data.shape, dims)
        found = np.broadcast_to(data.array, shape)
        return self.record("Expand", [data, self.constant(dims)], [found], many=False)

    def pad(self, data: Value, axis: int, before: int, after: int) -> Value:
        """Add zeros on one axis."""
        pads = [[0, 0] for _ in data.shape]
        pads[axis] = [before, after]
        found = np.pad(data.array, pads)
        flat = [each[0] for each in pads] + [each[1] for each in pads]
        if self.opset < 11:
            return self.record("Pad", [data], [found], many=False, pads=flat)
        return self.record("Pad", [data, self.constant(flat)], [found], many=False)

    def cast(self, data: Value, kind: Any) -> Value:
        """Return the data in another element type."""
        to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.record("Cast", [data], [data.array.astype(kind)], many=False, to=to)

    def filled(self, *dims: int, element: float = 0.0) -> Value:
        """Return what a ConstantOfShape gives."""
        value = numpy_helper.from_array(np.array([element], F))
        found = np.full(dims, element, F)
        return self.record("ConstantOfShape", [self.constant(dims)], [found], many=False, value=value)

    def count_to(self, limit: int) -> Value:
        """Return 0, 1, 2 … as a Range whose limit is a constant."""
        parts = [self.constant(each) for each in (0, limit, 1)]
        return self.record("Range", parts, [np.arange(limit)], many=False)

    def linear(self, data: Value, width: int) -> Value:
        """Multiply the last axis with weights."""
        return data @ self.weight(data.shape[-1], width)

    def relu(self, data: Value) -> Value:
        """Return the positive part."""
        return self.op("Relu", data)

    def softmax(self, data: Value, axis: int = -1) -> Value:
        """Normalize along an axis; before opset 13 only along the last one."""
        return self.op("Softmax", data, axis=axis if self.opset >= 13 else len(data.shape) - 1)

    # Bodies.

    def inner(self) -> Tape:
        """Return a tape for a body of this one, which shares its weights and names."""
        made = Tape(self.sizes, opset=self.opset, style=self.style, nodes=self.constants_are_nodes, parent=self)
        made._weights = self._weights
        return made

    def body(self, tape: Tape, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
        """Return a body that a tape has recorded."""
        ends = [tape.op("Identity", each) for each in outputs]
        return helper.make_graph(
            tape.nodes,
            name,
            [_untyped(each) for each in inputs],
            [_untyped(each) for each in ends],
            list(tape.constants.values()),
        )

    def scan(self, step: Callable[..., tuple[Value, Value]], state: Value, data: Value, axis: int = 0) -> list[Value]:
        """Run a step over an axis. Return the last state and what each step gave, joined along the axis."""
        graph, held, given = None, state.array, []
        for item in np.moveaxis(data.array, axis, 0):
            tape = self.inner() if graph is None else _Quiet(self)
            before, each = Value(tape, self.fresh("s"), held), Value(tape, self.fresh("i"), item)
            after, result = step(tape, before, each)
            held = after.array
            given.append(result.array)
            graph = graph or self.body(tape, "step", [before, each], [after, result])
        axes = {"scan_input_axes": [axis], "scan_output_axes": [axis]} if axis else {}
        found = [held, np.stack(given, axis)]
        return list(self.record("Scan", [state, data], found, body=graph, num_scan_inputs=1, **axes))

    def loop(self, trips: int, step: Callable[..., Value], state: Value) -> Value:
        """Run a step for a constant number of times. Return the last state."""
        graph, held = None, state.array
        for number in range(trips):
            tape = self.inner() if graph is None else _Quiet(self)
            count = Value(tape, self.fresh("n"), np.int64(number))
            go = Value(tape, self.fresh("g"), np.bool_(True))
            before = Value(tape, self.fresh("s"), held)
            after = step(tape, before, count)
            held = after.array
            graph = graph or self.body(tape, "turn", [count, go, before], [go, after])
        inputs = [self.constant(trips), self.constant(True, bool), state]
        return self.record("Loop", inputs, [held], body=graph, many=False)

    def branch(self, condition: Value, then: Callable[[Tape], Value], other: Callable[[Tape], Value]) -> Value:
        """Return what one of two bodies gives."""
        graphs, found = {}, []
        for name, make in (("then_branch", then), ("else_branch", other)):
            tape = self.inner()
            result = make(tape)
            graphs[name] = self.body(tape, name, [], [result])
            found.append(result.array)
        chosen = found[0] if bool(condition.array) else found[1]
        return self.record("If", [condition], [chosen], many=False, **graphs)

    def call(self, name: str, make: Callable[..., Value], *inputs: Value) -> Value:
        """Return what a function of the model gives; its constants are nodes."""
        tape = self.inner()
        tape.constants_are_nodes = True
        given = [Value(tape, self.fresh("p"), each.array) for each in inputs]
        result = make(tape, *given)
        imports = [helper.make_opsetid("", self.opset)]
        function = helper.make_function(
            "local", name, [each.name for each in given], [result.name], tape.nodes, imports
        )
        self.functions.append(function)
        return self.record(name, inputs, [result.array], many=False, domain="local")

    def model(self, outputs: Sequence[Value]) -> onnx.ModelProto:
        """Return the model of this run."""
        inputs = [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(value.array.dtype),
                [
                    size if isinstance(dim, int) or dim not in self.named else dim
                    for dim, size in zip(self.input_dims[name], value.shape, strict=True)
                ],
            )
            for name, value in self.inputs.items()
        ]
        ends = [self.op("Identity", value) for value in outputs]
        for node, value in zip(self.nodes[-len(ends) :], ends, strict=True):
            value.name = node.output[0] = f"y{ends.index(value)}"
        results = [
            helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.array.dtype), None)
            for value in ends
        ]
        graph = helper.make_graph(self.nodes, "main", inputs, results, list(self.constants.values()))
        imports = [helper.make_opsetid("", self.opset), *([helper.make_opsetid("local", 1)] if self.functions else [])]
        return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=self.functions)


class _Quiet(Tape):
    """A tape that computes later steps of a body with the weights of the first, and whose nodes nobody reads."""

    def __init__(self, parent: Tape) -> None:
        super().__init__(parent.sizes, opset=parent.opset, parent=parent)
        self._weights = _NoWeights()  # type: ignore[assignment]


class _NoWeights:
    def standard_normal(self, shape: object) -> Any:
        raise TypeError(f"weights of {shape} in a body: make them outside of it")


def _untyped(value: Value) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.array.dtype)
    return helper.make_tensor_value_info(value.name, kind, [None] * len(value.shape))
