"""Random models that split a tensor as exporters write it: chunk, tensor_split, unbind, split, narrow, strided slices.

`idiom_model(seed)` is a model whose splits are written as TorchScript, dynamo, tf2onnx or Paddle write them, with
static, symbolic or computed bounds, in the main graph, in a branch, in a loop or in a function. Every part is an output
after an operation of its own, so parts in another order, of other sizes or from other places are seen.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

END = 2**63 - 1
FEATURES = 3


@dataclass
class Writer:
    """Nodes that are written one after the other, at one opset."""

    opset: int
    # PyTorch computes bounds as scalars and unsqueezes each; other exporters compute tensors of one element.
    scalar_bounds: bool = False
    nodes: list[NodeProto] = field(default_factory=list)
    count: int = 0

    def write(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; return the name of its output, or of its outputs."""
        self.count += 1
        names = [f"v{self.count}" if outputs == 1 else f"v{self.count}_{index}" for index in range(outputs)]
        self.nodes.append(
            helper.make_node(operator, list(inputs), names, name=f"/{operator}_{self.count}", **attributes)
        )
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: type = np.int64) -> str:
        return str(self.write("Constant", value=numpy_helper.from_array(np.array(value, dtype=dtype))))

    def number(self, value: int, dtype: type = np.int64) -> str:
        """A constant to compute bounds with: a scalar, or a tensor of one element."""
        return self.constant(value if self.scalar_bounds else [value], dtype)

    def dim(self, data: str, axis: int) -> str:
        """A dimension as a number: Shape and Gather, as PyTorch writes x.shape[axis]."""
        return str(self.write("Gather", self.write("Shape", data), self.number(axis)))

    def as_list(self, number: str) -> str:
        """A number as a tensor of one element, which Slice, Split and Concat read."""
        return str(self.unsqueeze(number, 0)) if self.scalar_bounds else number

    def slice(self, data: str, start: str, end: str, axis: int, step: int | None = None) -> str:
        inputs = [data, self.as_list(start), self.as_list(end), self.constant([axis])]
        return str(self.write("Slice", *inputs, *([] if step is None else [self.constant([step])])))

    def squeeze(self, data: str, axis: int) -> str:
        if self.opset < 13:
            return str(self.write("Squeeze", data, axes=[axis]))
        return str(self.write("Squeeze", data, self.constant([axis])))

    def unsqueeze(self, data: str, axis: int) -> str:
        if self.opset < 13:
            return str(self.write("Unsqueeze", data, axes=[axis]))
        return str(self.write("Unsqueeze", data, self.constant([axis])))

    def split(self, data: str, lengths: Sequence[int] | str, parts: int, axis: int) -> list[str]:
        """A Split with given lengths, constant or computed, in the form of the opset."""
        if self.opset < 13:
            made = self.write("Split", data, outputs=parts, axis=axis, split=list(lengths))
        else:
            read = lengths if isinstance(lengths, str) else self.constant(lengths)
            made = self.write("Split", data, read, outputs=parts, axis=axis)
        return [made] if parts == 1 else made


@dataclass(frozen=True)
class Wanted:
    """What is split: x on an axis, of a size that is known when the model is written, or None."""

    x: str
    axis: int
    size: int | None
    parts: int
    choice: random.Random

    def cuts(self, size: int) -> list[int]:
        """Random places to cut at, parts + 1 in number, from 0 to the size; parts may be empty."""
        inner = sorted(self.choice.randint(0, size) for _ in range(self.parts - 1))
        return [0, *inner, size]


def chunk_as_torchscript_wrote_it(w: Writer, wanted: Wanted) -> list[str]:
    """Shape, Gather, Add, Div, and a Mul and a Slice for each part: torch.chunk of a dynamic axis."""
    one = w.number(1)
    parts = w.number(wanted.parts)
    rounded = w.write("Add", w.dim(wanted.x, wanted.axis), w.write("Sub", parts, one))
    step = w.write("Div", rounded, parts)
    bounds = [w.write("Mul", step, w.number(index)) for index in range(wanted.parts + 1)]
    pairs = list(itertools.pairwise(bounds))
    order = list(range(wanted.parts))
    if wanted.choice.random() < 0.3:
        wanted.choice.shuffle(order)
    made = {index: w.slice(wanted.x, *pairs[index], wanted.axis) for index in order}
    return [made[index] for index in range(wanted.parts)]


def chunk_with_shared_bounds(w: Writer, wanted: Wanted) -> list[str]:
    """The same, where each part's end is computed beside its Slice and the next part reads it."""
    parts = w.number(wanted.parts)
    rounded = w.write("Add", w.dim(wanted.x, wanted.axis), w.number(wanted.parts - 1))
    step = w.write("Div", rounded, parts)
    begin, made = w.number(0), []
    for index in range(wanted.parts):
        last = index == wanted.parts - 1 and wanted.choice.random() < 0.5
        end = w.number(END) if last else w.write("Mul", step, w.number(index + 1))
        made.append(w.slice(wanted.x, begin, end, wanted.axis))
        begin = end
    return made


def running_offsets(w: Writer, wanted: Wanted) -> list[str]:
    """Begin and end are sums that grow: a loop over lengths that the exporter unrolled."""
    step = w.write("Div", w.dim(wanted.x, wanted.axis), w.number(wanted.parts))
    begin, made = w.number(0), []
    for index in range(wanted.parts):
        end = w.number(END) if index == wanted.parts - 1 else w.write("Add", begin, step)
        made.append(w.slice(wanted.x, begin, end, wanted.axis))
        begin = end
    return made


def constant_slices(w: Writer, wanted: Wanted) -> list[str]:
    """Slices with constant bounds, spelled from the start, from the end or as the end."""
    if wanted.size is None:
        return tail_slices(w, wanted)
    cuts, made = wanted.cuts(wanted.size), []
    for begin, end in itertools.pairwise(cuts):
        spelled = wanted.choice.choice([end, end - wanted.size]) if end < wanted.size else END
        start = wanted.choice.choice([begin, begin - wanted.size])
        made.append(w.slice(wanted.x, w.number(start), w.number(spelled), wanted.axis))
    return made


def tail_slices(w: Writer, wanted: Wanted) -> list[str]:
    """x[:k], x[k:-m], x[-m:]: bounds from both ends of an axis of any size."""
    head, tail = wanted.choice.randint(1, 3), wanted.choice.randint(1, 3)
    bounds = [(0, head), (head, -tail), (-tail, END)]
    if wanted.choice.random() < 0.5:
        bounds = [(0, -tail), (-tail, END)]
    return [w.slice(wanted.x, w.number(a), w.number(b), wanted.axis) for a, b in bounds]


def halves_by_rotation(w: Writer, wanted: Wanted) -> list[str]:
    """x[..., : d // 2] and x[..., d // 2 :], as rotary embeddings are exported."""
    half = w.write("Div", w.dim(wanted.x, wanted.axis), w.number(2))
    first = w.slice(wanted.x, w.number(0), half, wanted.axis)
    return [first, w.slice(wanted.x, half, w.number(END), wanted.axis)]


def strided_slices(w: Writer, wanted: Wanted) -> list[str]:
    """x[i::n]: slices with steps, which no Split can stand for."""
    step = min(wanted.parts, 4)
    return [w.slice(wanted.x, w.number(i), w.number(END), wanted.axis, step) for i in range(step)]


def reversed_slices(w: Writer, wanted: Wanted) -> list[str]:
    """x[::-1] beside two parts."""
    back = w.slice(wanted.x, w.number(-1), w.number(-END), wanted.axis, -1)
    return [back, *tail_slices(w, wanted)]


def split_with_lengths(w: Writer, wanted: Wanted) -> list[str]:
    """A Split of constant lengths, as every exporter writes x.split([…])."""
    if wanted.size is None:
        return chunk_with_shared_bounds(w, wanted)
    cuts = wanted.cuts(wanted.size)
    lengths = [b - a for a, b in itertools.pairwise(cuts)]
    return w.split(wanted.x, lengths, wanted.parts, wanted.choice.choice([wanted.axis, wanted.axis - 3]))


def split_with_computed_lengths(w: Writer, wanted: Wanted) -> list[str]:
    """Lengths from the shape: the rest after a fixed head, or equal parts and the rest."""
    if w.opset < 13:
        return chunk_as_torchscript_wrote_it(w, wanted)
    size = w.dim(wanted.x, wanted.axis)
    if wanted.choice.random() < 0.5:
        head = w.number(wanted.choice.randint(0, 2))
        return w.split(
            wanted.x, w.write("Concat", *map(w.as_list, [head, w.write("Sub", size, head)]), axis=0), 2, wanted.axis
        )
    parts = wanted.parts
    step = w.write("Div", size, w.number(parts))
    rest = w.write("Sub", size, w.write("Mul", step, w.number(parts - 1)))
    return w.split(
        wanted.x, w.write("Concat", *map(w.as_list, [*[step] * (parts - 1), rest]), axis=0), parts, wanted.axis
    )


def equal_split(w: Writer, wanted: Wanted) -> list[str]:
    """Parts without lengths: num_outputs, which may be uneven, or equal parts of a size that divides."""
    if w.opset >= 18:
        return list(w.write("Split", wanted.x, outputs=wanted.parts, axis=wanted.axis, num_outputs=wanted.parts))
    if wanted.size is not None and wanted.size % wanted.parts == 0:
        return list(w.write("Split", wanted.x, outputs=wanted.parts, axis=wanted.axis))
    return chunk_as_torchscript_wrote_it(w, wanted)


def sequence_of_chunks(w: Writer, wanted: Wanted) -> list[str]:
    """SplitToSequence and a SequenceAt for each part: torch.split of an unknown number of parts."""
    if wanted.size is None or w.opset < 11:
        return halves_by_rotation(w, wanted)
    cuts = wanted.cuts(wanted.size)
    lengths = [b - a for a, b in itertools.pairwise(cuts)]
    sequence = w.write("SplitToSequence", wanted.x, w.constant(lengths), axis=wanted.axis)
    return [w.write("SequenceAt", sequence, w.constant(index)) for index in range(len(lengths))]


def unbind(w: Writer, wanted: Wanted) -> list[str]:
    """One element of the axis for each output: Split and Squeeze, Gather, Slice and Squeeze, or a sequence."""
    if wanted.size is None:
        return tail_slices(w, wanted)
    size, axis = wanted.size, wanted.axis
    way = wanted.choice.randrange(4)
    if way == 0:
        return [w.squeeze(part, axis) for part in w.split(wanted.x, [1] * size, size, axis)]
    if way == 1:
        return [w.write("Gather", wanted.x, w.constant(index), axis=axis) for index in range(size)]
    if way == 2 and w.opset >= 11:
        sequence = w.write("SplitToSequence", wanted.x, axis=axis, keepdims=0)
        return [w.write("SequenceAt", sequence, w.constant(index)) for index in range(size)]
    bounds = [(index, index + 1) for index in range(size)]
    return [w.squeeze(w.slice(wanted.x, w.number(a), w.number(b), axis), axis) for a, b in bounds]


def strided_slice_of_tensorflow(w: Writer, wanted: Wanted) -> list[str]:
    """Bounds in int32 that are cast and gathered, as tf2onnx wrote StridedSlice."""
    if wanted.size is None:
        return halves_by_rotation(w, wanted)
    made = []
    cuts = wanted.cuts(wanted.size)
    for begin, end in itertools.pairwise(cuts):
        start = w.write("Cast", w.number(begin, np.int32), to=TensorProto.INT64)
        stop = w.write("Cast", w.number(end, np.int32), to=TensorProto.INT64)
        made.append(w.slice(wanted.x, start, stop, wanted.axis))
    return made


def narrow_by_shape(w: Writer, wanted: Wanted) -> list[str]:
    """Parts at bounds that Shape, Slice and Squeeze compute, as Paddle writes paddle.split of a dynamic axis."""
    shape = w.write("Shape", wanted.x)
    size = w.slice(shape, w.number(wanted.axis), w.number(wanted.axis + 1), 0)
    size = w.squeeze(size, 0) if w.scalar_bounds else size
    head = w.number(wanted.choice.randint(1, 2))
    first = w.slice(wanted.x, w.number(0), head, wanted.axis)
    return [first, w.slice(wanted.x, head, size, wanted.axis)]


Idiom = Callable[[Writer, Wanted], list[str]]
IDIOMS: tuple[Idiom, ...] = (
    chunk_as_torchscript_wrote_it,
    chunk_with_shared_bounds,
    running_offsets,
    constant_slices,
    tail_slices,
    halves_by_rotation,
    strided_slices,
    reversed_slices,
    split_with_lengths,
    split_with_computed_lengths,
    equal_split,
    sequence_of_chunks,
    unbind,
    strided_slice_of_tensorflow,
    narrow_by_shape,
)
PLACES = ("main", "main", "main", "branch", "loop", "function")


@dataclass(frozen=True)
class IdiomModel:
    """A model, what it holds, and sizes of its dynamic axis at which it runs."""

    proto: onnx.ModelProto
    idioms: tuple[str, ...]
    place: str
    sizes: tuple[int, ...]

    def feeds(self, size: int) -> dict[str, Any]:
        """Inputs of this size: every element is different."""
        shape = [
            size if not dim.dim_value else dim.dim_value for dim in self.proto.graph.input[0].type.tensor_type.shape.dim
        ]
        elements = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        return {"x": elements, "flag": np.array(size % 2 == 0)}


def idiom_model(seed: int) -> IdiomModel:
    """Make the model of a seed. Parts are 2 to 12; the axis is static, or symbolic."""
    choice = random.Random(seed)
    opset = choice.choice([11, 11, 13, 14, 16, 17, 18, 18, 19, 21])
    axis = choice.choice([0, 1, 2])
    parts = choice.randint(2, 12) if choice.random() < 0.5 else choice.randint(2, 4)
    size = choice.choice([None, None, parts * choice.randint(1, 3), choice.randint(parts, 20)])
    place = choice.choice(PLACES)
    picked = [choice.choice(IDIOMS) for _ in range(choice.choice([1, 1, 2]))]
    w = Writer(opset, scalar_bounds=choice.random() < 0.5)
    outputs: dict[str, int] = {}
    for idiom in picked:
        rank = 2 if idiom is unbind and size is not None else 3
        for index, part in enumerate(idiom(w, Wanted("x", axis, size, parts, choice))):
            outputs[w.write("Mul", part, w.constant(index + 2, np.float32))] = rank
    if choice.random() < 0.5:
        w.nodes = _another_order(w.nodes, choice)
    shape: list[int | str] = [FEATURES - 1, FEATURES, FEATURES + 1]
    shape[axis] = "N" if size is None else size
    # num_outputs fits where no part overruns, so sizes are multiples of parts or nearly so.
    sizes = (size,) if size is not None else (parts * 2, parts * 3 - 1)
    proto = _model(w, outputs, shape, place)
    return IdiomModel(proto, tuple(idiom.__name__ for idiom in picked), place, sizes)


def _another_order(nodes: Sequence[NodeProto], choice: random.Random) -> list[NodeProto]:
    """The nodes in a random order in which each value is made before it is read."""
    waiting, made, ordered = list(nodes), {"", "x"}, []
    while waiting:
        ready = [node for node in waiting if made.issuperset(node.input)]
        node = choice.choice(ready)
        waiting.remove(node)
        made.update(node.output)
        ordered.append(node)
    return ordered


def _model(w: Writer, outputs: Mapping[str, int], shape: Sequence[int | str], place: str) -> onnx.ModelProto:
    """A model of the nodes. outputs: the rank of each."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    functions: list[onnx.FunctionProto] = []
    imports = [helper.make_opsetid("", w.opset)]
    nodes, ranks = w.nodes, dict(outputs)
    if place == "branch":
        nodes, ranks = _branches(w, outputs)
    elif place == "loop":
        nodes, ranks = _loop(w, outputs)
    elif place == "function":
        functions = [helper.make_function("my.parts", "Parts", ["x"], list(outputs), w.nodes, imports)]
        nodes = [helper.make_node("Parts", ["x"], list(outputs), name="/Parts", domain="my.parts")]
        imports = [*imports, helper.make_opsetid("my.parts", 1)]
    # The flag is always read, so every model takes the same inputs.
    nodes = [*nodes, helper.make_node("Not", ["flag"], ["flag_out"], name="/Not")]
    typed = [_float(name, rank) for name, rank in ranks.items()]
    typed.append(helper.make_tensor_value_info("flag_out", TensorProto.BOOL, []))
    graph = helper.make_graph(nodes, "idioms", [x, flag], typed)
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)


def _float(name: str, rank: int) -> onnx.ValueInfoProto:
    """A value of this rank, whose dims are not declared."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)


def _branches(w: Writer, outputs: Mapping[str, int]) -> tuple[list[NodeProto], dict[str, int]]:
    """The splits in one branch of an If. The other branch gives values of the same ranks."""
    ends = {f"{name}_other": rank for name, rank in outputs.items()}
    other = [helper.make_node("Neg", ["x"], ["minus"], name="/Neg")]
    for name, rank in ends.items():
        if rank == 3:
            other.append(helper.make_node("Identity", ["minus"], [name], name=f"/{name}"))
        else:
            axes = {"axes": [0, 1, 2]} if w.opset < 18 else {}
            other.append(helper.make_node("ReduceMax", ["minus"], [f"{name}_whole"], name=f"/{name}/max", **axes))
            other.append(helper.make_node("Flatten", [f"{name}_whole"], [name], name=f"/{name}"))
    then = helper.make_graph(w.nodes, "then", [], [_float(*item) for item in outputs.items()])
    otherwise = helper.make_graph(other, "else", [], [_float(*item) for item in ends.items()])
    results = {f"{name}_out": rank for name, rank in outputs.items()}
    return [
        helper.make_node("If", ["flag"], list(results), name="/If", then_branch=then, else_branch=otherwise)
    ], results


def _loop(w: Writer, outputs: Mapping[str, int]) -> tuple[list[NodeProto], dict[str, int]]:
    """The splits in the body of a Loop that runs twice; each part is a scan output."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["still"], name="/keep"), *w.nodes],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), *(_float(*item) for item in outputs.items())],
    )
    trips = helper.make_node("Constant", [], ["trips"], name="/trips", value=numpy_helper.from_array(np.array(2)))
    always = helper.make_node("Constant", [], ["always"], name="/always", value=numpy_helper.from_array(np.array(True)))
    results = {f"{name}_all": rank + 1 for name, rank in outputs.items()}
    return [
        trips,
        always,
        helper.make_node("Loop", ["trips", "always"], list(results), name="/Loop", body=body),
    ], results
