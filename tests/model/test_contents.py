"""What a file merely declares is not made: a model of a hundred bytes takes no memory for the numbers in it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto, helper, numpy_helper

import splitgraph
from splitgraph.model.value_type import MAX_ITEMS, MAX_UNKNOWN, MAX_WRITTEN

FLOAT, INT64, INT8, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8, TensorProto.BOOL
MANY, MORE, MOST = 10**7, 2 * 10**9, 2**62
SMALL = 2_000
PEAK = 30_000_000

node = helper.make_node


def data(*shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info("x", FLOAT, shape)


def integers(*shape: int, name: str = "i") -> ValueInfoProto:
    return helper.make_tensor_value_info(name, INT64, shape)


def held(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def scalar(name: str, number: int) -> TensorProto:
    return numpy_helper.from_array(np.array(number, np.int64), name)


def model(
    nodes: NodeProto | Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto] = (),
    constants: Sequence[TensorProto] = (),
    opset: int = 18,
) -> ModelProto:
    nodes = [nodes] if isinstance(nodes, NodeProto) else list(nodes)
    outputs = [ValueInfoProto(name=nodes[-1].output[0])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def shaped_by(
    *made: NodeProto, inputs: Sequence[ValueInfoProto] = (), constants: Sequence[TensorProto] = ()
) -> ModelProto:
    """A Reshape by what the last node gives."""
    return model([*made, node("Reshape", ["x", made[-1].output[0]], ["y"])], [data(3), *inputs], constants)


BOMBS = {
    **{
        f"{operator} of {count}": model(node(operator, ["x", "i"], ["y"]), [data("N"), integers(count)])
        for operator in ("SplitToSequence", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Tile", "Pad", "Gather")
        for count in (MANY, MORE, MOST)
    },
    "lengths of a known dimension": model(node("SplitToSequence", ["x", "i"], ["y"]), [data(MORE), integers(MANY)]),
    "parts of length 1": model(node("SplitToSequence", ["x"], ["y"]), [data(MORE)]),
    "parts of a size": model(node("SplitToSequence", ["x", "i"], ["y"]), [data(MORE)], [scalar("i", 1)]),
    "lengths of a split": model(node("Split", ["x", "i"], ["y", "z"]), [data("N"), integers(MORE)]),
    "number of outputs": model(node("Split", ["x"], ["y"], num_outputs=MORE), [data(3)]),
    "constant without elements": model(
        node("Reshape", ["x", "i"], ["y"]), [data(3)], [TensorProto(name="i", data_type=INT64, dims=[MORE])]
    ),
    "Range": shaped_by(
        node("Range", ["a", "b", "c"], ["i"]), constants=[scalar("a", 0), scalar("b", MORE), scalar("c", 1)]
    ),
    "ConstantOfShape": shaped_by(node("ConstantOfShape", ["i"], ["j"]), constants=[held("i", MORE)]),
    "Expand of a constant": shaped_by(node("Expand", ["a", "i"], ["j"]), constants=[held("a", 1), held("i", MORE)]),
    "Tile of a constant": shaped_by(node("Tile", ["a", "i"], ["j"]), constants=[held("a", 1), held("i", MORE)]),
    "Pad of a constant": shaped_by(node("Pad", ["a", "i"], ["j"]), constants=[held("a", 1), held("i", MORE, 1)]),
    "a row that is gathered often": model(
        [
            node("ConstantOfShape", ["s"], ["rows"]),
            node("ConstantOfShape", ["n"], ["i"], value=helper.make_tensor("zero", INT64, [1], [0])),
            node("Gather", ["rows", "i"], ["y"]),
        ],
        [],
        [held("s", 1, MAX_ITEMS), held("n", MAX_ITEMS)],
    ),
    "joined shapes": shaped_by(
        node("Concat", ["i", "a"], ["j"], axis=0), inputs=[integers(4000)], constants=[held("a", 1)]
    ),
    "OneHot": model(node("OneHot", ["i", "d", "v"], ["y"]), [integers(3)], [scalar("d", MORE), held("v", 0, 1)]),
    "TopK": model(node("TopK", ["x", "k"], ["y", "z"]), [data(MORE)], [held("k", MORE)]),
    "ReverseSequence": model(node("ReverseSequence", ["x", "i"], ["y"]), [data(MANY, MANY), integers(MANY)]),
    "GatherND": model(node("GatherND", ["x", "i"], ["y"]), [data(3), integers(MANY)]),
    "ScatterND": model(
        node("ScatterND", ["x", "i", "u"], ["y"]), [data(3), integers(MANY), ValueInfoProto(name="u")], opset=11
    ),
    "Slice": model(
        node("Slice", ["x", "a", "b", "c", "d"], ["y"]),
        [data(MORE)],
        [held("a", -1), held("b", -MORE - 9), held("c", 0), held("d", -1)],
    ),
    "ArgMax": model(node("ArgMax", ["x"], ["y"], select_last_index=1), [data(MORE)], opset=13),
    "Pad by much": model(node("Pad", ["x", "p"], ["y"], mode="edge"), [data(3)], [held("p", MORE, MORE)]),
    "Where": model(
        node("Where", ["c", "x", "b"], ["y"]),
        [data(1), helper.make_tensor_value_info("c", BOOL, [MORE]), helper.make_tensor_value_info("b", FLOAT, [1])],
    ),
    "windows with holes": model(node("MaxPool", ["x"], ["y"], kernel_shape=[MANY], dilations=[2]), [data(1, 1, MORE)]),
    "many windows with holes": model(
        node("MaxPool", ["x"], ["y"], kernel_shape=[3], dilations=[2]), [data(1, 1, MORE)]
    ),
    "a mean of windows": model(
        node("AveragePool", ["x"], ["y"], kernel_shape=[3], strides=[2], ceil_mode=1, pads=[1, 1]),
        [data(1, 1, MORE)],
        opset=19,
    ),
    "sums of windows": model(
        node("LpPool", ["x"], ["y"], kernel_shape=[MANY], dilations=[2]), [data(1, MANY, MORE)], opset=19
    ),
    "blocks": model(
        node("DequantizeLinear", ["q", "x"], ["y"], axis=0, block_size=2),
        [helper.make_tensor_value_info("q", INT8, [MORE]), data(MORE // 2)],
        opset=21,
    ),
    "a kernel that is moved": model(
        node("DeformConv", ["x", "w", "o"], ["y"]),
        [data(1, 1, MANY, MANY)]
        + [
            helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in (("w", [1, 1, MANY, MANY]), ("o", [1]))
        ],
        opset=19,
    ),
    "sparse tensor": model(
        node(
            "Constant",
            [],
            ["y"],
            sparse_value=SparseTensorProto(
                values=numpy_helper.from_array(np.ones(1, np.float32), "v"), indices=held("i", 5), dims=[MORE]
            ),
        )
    ),
    "MelWeightMatrix": model(
        node("MelWeightMatrix", ["a", "b", "c", "d", "e"], ["y"]),
        [],
        [
            *(scalar(name, MORE) for name in "abc"),
            *(numpy_helper.from_array(np.array(value, np.float32), name) for name, value in (("d", 1.0), ("e", 2.0))),
        ],
    ),
}

VERBS: dict[str, Callable[[ModelProto], object]] = {
    "infer": splitgraph.infer,
    "opset 26": lambda m: splitgraph.convert(m, opset=26),
    **{
        f"opset {number}": (lambda m, number=number: splitgraph.convert(m, opset=number))
        for number in (20, 12, 9, 8, 1)
    },
    "split": lambda m: splitgraph.convert(m, "split", explicit_lengths=True),
    "variadic-split": lambda m: splitgraph.convert(m, "variadic-split"),
}


# What allocates is slow while it is traced. To opset 1 every boundary downward is tried.
@pytest.mark.parametrize(
    "verbs",
    [("infer", "opset 26", "opset 12", "opset 1", "split"), pytest.param(tuple(VERBS), marks=pytest.mark.slow)],
    ids=["most", "all"],
)
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.sample(14)
def test_declared_numbers_take_no_memory(name: str, verbs: Sequence[str]) -> None:
    bomb = BOMBS[name]
    assert len(bomb.SerializeToString()) < SMALL
    for verb in verbs:
        run = VERBS[verb]
        tracemalloc.start()
        try:
            run(bomb)
        except splitgraph.ConversionError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < PEAK, verb


RANKS = [
    (node("Unsqueeze", ["x", "i"], ["y"]), MAX_UNKNOWN - 1, MAX_UNKNOWN),
    (node("Unsqueeze", ["x", "i"], ["y"]), MAX_UNKNOWN, None),
    (node("Unsqueeze", ["x", "i"], ["y"]), MORE, None),
    (node("Reshape", ["x", "i"], ["y"]), MAX_UNKNOWN, MAX_UNKNOWN),
    (node("Reshape", ["x", "i"], ["y"]), MAX_UNKNOWN + 1, None),
    (node("Expand", ["x", "i"], ["y"]), MAX_UNKNOWN, MAX_UNKNOWN),
    (node("Expand", ["x", "i"], ["y"]), MORE, None),
]


@pytest.mark.parametrize(("made", "count", "rank"), RANKS)
def test_dimensions_of_which_only_the_number_is_known(made: NodeProto, count: int, rank: int | None) -> None:
    found = splitgraph.infer(model(made, [data("N"), integers(count)]))
    assert found.ok and found.types["y"].rank == rank


@pytest.mark.parametrize("count", [2, MAX_UNKNOWN, MAX_UNKNOWN + 1, MORE])
def test_lengths_of_which_only_the_number_is_known(count: int) -> None:
    found = splitgraph.infer(model(node("SplitToSequence", ["x", "i"], ["y"]), [data("N"), integers(count)]))
    (split,) = found.splits
    assert found.ok and len(split.lengths) == (count if count <= MAX_UNKNOWN else 0)
    assert (found.types["y"].kind, found.types["y"].shape) == ("sequence", (None,))


@pytest.mark.parametrize("count", [2, MAX_ITEMS, MAX_ITEMS + 1, MORE])
def test_parts_of_one_size(count: int) -> None:
    found = splitgraph.infer(model(node("SplitToSequence", ["x"], ["y"]), [data(count)]))
    (split,) = found.splits
    assert split.lengths == ((1,) * count if count <= MAX_ITEMS else ())
    assert found.types["y"].shape == (1,)


def test_sequences_of_many_parts_share_their_types() -> None:
    """A file may have many of them."""
    nodes = [node("SplitToSequence", ["x"], [f"y{i}"], axis=i % 2) for i in range(200)]
    bomb = model(nodes, [data(MAX_ITEMS, MAX_ITEMS - 1)])
    tracemalloc.start()
    splitgraph.infer(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < PEAK


@pytest.mark.parametrize(
    ("values", "size", "is_written"),
    [(1, MAX_WRITTEN, True), (1, MAX_WRITTEN + 1, False), (20_000, MAX_WRITTEN + 1, True)],
)
def test_zeros_of_a_sparse_constant(values: int, size: int, is_written: bool) -> None:
    sparse = SparseTensorProto(
        values=numpy_helper.from_array(np.ones(values, np.float32), "v"), indices=held("i", *range(values)), dims=[size]
    )
    made = model(node("Constant", [], ["y"], sparse_value=sparse), opset=12)
    if is_written:
        (constant,) = splitgraph.downgrade(made, 9).model.graph.node
        assert numpy_helper.to_array(constant.attribute[0].t).sum() == values
        return
    with pytest.raises(splitgraph.ConversionError, match="are no zeros"):
        splitgraph.downgrade(made, 9)
