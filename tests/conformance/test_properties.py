"""Properties of inference and conversion on random splits: symbolic and concrete, there and back, twice and once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from known_opsets import known
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.dim import evaluate, parse_expression
from splitgraph.inference.analysis import Analysis

from .matrix_checks import convert, differences, execute

PROFILE = settings(derandomize=True, deadline=None, max_examples=examples(150))
SIZES = range(25)


@dataclass(frozen=True)
class RandomSplit:
    """A Split of a random version: its opset, the dimension that is cut, the rank, the axis, and how it is cut."""

    opset: int
    dim: int | str
    rank: int
    axis: int
    count: int
    lengths: tuple[int, ...] | None

    @property
    def model(self) -> onnx.ModelProto:
        """The model: x cut into part0, part1, ..."""
        names = [f"part{index}" for index in range(self.count)]
        node = helper.make_node("Split", ["x"], names, name="split", axis=self.axis)
        initializers = []
        if self.lengths is not None and self.opset >= 13:
            node.input.append("lengths")
            initializers.append(numpy_helper.from_array(np.array(self.lengths, np.int64), "lengths"))
        elif self.lengths is not None:
            node.attribute.append(helper.make_attribute("split", self.lengths))
        elif self.opset >= 18:
            node.attribute.append(helper.make_attribute("num_outputs", self.count))
        shape: list[int | str] = ["B", 3, "C"][: self.rank]
        shape[self.axis % self.rank] = self.dim
        declared = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * self.rank) for name in names]
        graph = helper.make_graph([node], "random", declared, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def data(self, size: int) -> dict[str, np.ndarray]:
        """Data whose dimension that is cut is the expression's value for a size."""
        shape = [2, 3, 4][: self.rank]
        shape[self.axis % self.rank] = evaluate(parse_expression(str(self.dim)), {"N": size})
        return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


OPSETS = st.sampled_from(known([1, 2, 9, 10, 11, 12, 13, 17, 18, 21, 28]))
DIMS = st.one_of(
    st.integers(0, 14), st.sampled_from(["N", "2*N", "3*N", "N + 1", "N + 5", "2*N + 1", "(N + 1)//2", "6*N + 4"])
)


@st.composite
def splits(draw: Any, *, opsets: st.SearchStrategy[int] = OPSETS) -> RandomSplit:
    opset, dim, rank = draw(opsets), draw(DIMS), draw(st.integers(1, 3))
    axis = draw(st.integers(-rank if opset >= 11 else 0, rank - 1))
    lengths: tuple[int, ...] | None = None
    if draw(st.booleans()):
        lengths = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=5)))
        # Mostly lengths that fit a static dimension.
        dim = sum(lengths) if isinstance(dim, int) and draw(st.integers(0, 3)) else dim
    count = draw(st.integers(1, 6)) if lengths is None else len(lengths)
    return RandomSplit(opset, dim, rank, axis, count, lengths)


def holds(obligation: str, size: int) -> bool:
    """Whether an obligation is met for a size of N."""
    relation = "==" if "==" in obligation else ">="
    left, right = (evaluate(parse_expression(side), {"N": size}) for side in obligation.split(relation))
    return left == right if relation == "==" else left >= right


def valid_sizes(analysis: Analysis) -> list[int]:
    """The sizes of N for which every split of the model is valid."""
    return [n for n in SIZES if all(holds(text, n) for report in analysis.splits for text in report.obligations)]


def lengths_at(analysis: Analysis, split: RandomSplit, size: int) -> list[int]:
    """The inferred lengths of the parts for a size of N, from the types of the values."""
    values = (analysis.types[f"part{index}"].shape for index in range(split.count))
    return [evaluate(shape[split.axis % split.rank], {"N": size}) for shape in values if shape is not None]


@PROFILE
@given(splits())
def test_symbolic_lengths_at_a_size_are_the_lengths_of_that_size(split: RandomSplit) -> None:
    symbolic = splitgraph.infer(split.model)
    if not isinstance(split.dim, str):
        return
    valid = set(valid_sizes(symbolic)) if symbolic.ok else set()
    for size in (0, 1, 2, 3, 4, 5, 6, 7, 12):
        concrete = splitgraph.infer(split.model, bind={"N": size})
        # Chunks that overrun are no error but a warning, so the obligation may say more than the concrete model.
        if size in valid:
            assert concrete.ok
            assert lengths_at(symbolic, split, size) == lengths_at(concrete, split, size)
        elif concrete.ok:
            assert "SG203" in [found.code for found in concrete.diagnostics]


@PROFILE
# At 9 lengths that only a run gives are gathered, at positions that inference does not follow.
@given(splits(), OPSETS.filter(lambda opset: opset != 9))
def test_conversion_keeps_the_lengths(split: RandomSplit, target: int) -> None:
    before = splitgraph.infer(split.model)
    try:
        converted = convert(split.model, split.opset, target).model
    except splitgraph.ConversionError as error:
        assert error.diagnostics and all(found.location == "main/split" for found in error.diagnostics)
        # An invalid model is refused; a valid one only for lengths that run time knows, below opset 9.
        assert not before.ok or (target < 9 and isinstance(split.dim, str))
        return
    after = splitgraph.infer(converted)
    assert after.ok
    for size in valid_sizes(before):
        assert lengths_at(after, split, size) == lengths_at(before, split, size)


@PROFILE
@given(splits(), OPSETS)
def test_conversion_keeps_the_parts(split: RandomSplit, target: int) -> None:
    before = splitgraph.infer(split.model)
    try:
        converted = convert(split.model, split.opset, target).model
    except splitgraph.ConversionError:
        return
    feeds = [split.data(size) for size in valid_sizes(before)[:4] if evaluate_fits(split, size)]
    assert not list(differences(execute(split.model, feeds), execute(converted, feeds)))


def evaluate_fits(split: RandomSplit, size: int) -> bool:
    """Whether the dimension is small enough to run."""
    return evaluate(parse_expression(str(split.dim)), {"N": size}) < 200


@PROFILE
@given(splits(), OPSETS)
def test_converting_twice_is_converting_once(split: RandomSplit, target: int) -> None:
    try:
        once = convert(split.model, split.opset, target).model
    except splitgraph.ConversionError:
        return
    twice = convert(once, target, target)
    assert twice.model == once
    assert not twice.changes


@PROFILE
@given(splits(opsets=st.sampled_from([11, 13, 18])))
def test_there_and_back_gives_the_same_form(split: RandomSplit) -> None:
    if not splitgraph.infer(split.model).ok:
        return
    variadic = splitgraph.convert(split.model, "variadic-split").model
    assert form_of(splitgraph.convert(variadic, "split").model) == form_of(split.model)


@PROFILE
@given(splits())
def test_slices_give_the_same_parts(split: RandomSplit) -> None:
    before = splitgraph.infer(split.model)
    try:
        slices = splitgraph.convert(split.model, "slice").model
    except splitgraph.ConversionError:
        return
    assert "Split" not in [node.op_type for node in slices.graph.node]
    feeds = [split.data(size) for size in valid_sizes(before)[:4] if evaluate_fits(split, size)]
    assert not list(differences(execute(split.model, feeds), execute(slices, feeds)))
    joined = splitgraph.convert(slices, "split").model
    assert not list(differences(execute(split.model, feeds), execute(joined, feeds)))


def form_of(model: onnx.ModelProto) -> tuple[list[str], int, set[str]]:
    """Outputs, number of inputs and names of the attributes of the only Split of a model."""
    (node,) = (node for node in model.graph.node if node.op_type == "Split")
    return list(node.output), len(node.input), {attribute.name for attribute in node.attribute}


@PROFILE
@given(st.integers(0, 80), st.integers(1, 20))
def test_num_outputs_is_chunks_of_the_dimension_divided_and_rounded_up(dim: int, count: int) -> None:
    rows = np.arange(dim)
    size = -(-dim // count)
    chunks = [rows[index * size : (index + 1) * size] for index in range(count)]
    split = RandomSplit(18, dim, 1, 0, count, None)
    assert list(splitgraph.infer(split.model).splits[0].lengths) == [len(chunk) for chunk in chunks]
    lowered = convert(split.model, 18, 13).model
    (found,) = execute(lowered, [{"x": rows.astype(np.float32)}])
    for chunk, part in zip(chunks, found.values(), strict=True):
        np.testing.assert_array_equal(chunk.astype(np.float32), part)


@PROFILE
@given(st.integers(1, 12), st.integers(0, 60))
def test_symbolic_num_outputs_is_the_reading_of_numpy(count: int, dim: int) -> None:
    split = RandomSplit(18, "N", 1, 0, count, None)
    analysis = splitgraph.infer(split.model)
    if not all(holds(text, dim) for text in analysis.splits[0].obligations):
        return
    size = -(-dim // count)
    expected = [len(np.arange(dim)[index * size : (index + 1) * size]) for index in range(count)]
    assert lengths_at(analysis, split, dim) == expected
