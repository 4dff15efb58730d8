"""Slices to Split and back on random partitions of an axis: every model gives the same outputs, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import onnx
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from known_opsets import known
from onnx import NodeProto, helper
from sliced_models import END, assert_same, constant, data, model_of, operators, slice_node

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

PROFILE = settings(derandomize=True, deadline=None, max_examples=examples(150))
OPSETS = st.sampled_from(known(range(1, 25)))


@dataclass(frozen=True)
class Cut:
    """Slices of an axis. bounds: in the order of the nodes. dim: of the model's input. sizes: to run it at."""

    opset: int
    rank: int
    axis: int
    dim: int | str
    bounds: Sequence[tuple[int | str, int | str]]
    sizes: Sequence[int]
    computing: Sequence[NodeProto] = ()

    @property
    def model(self) -> onnx.ModelProto:
        """A model of one Slice for each part."""
        names = [f"y{index}" for index in range(len(self.bounds))]
        nodes = [
            node
            for name, pair in zip(names, self.bounds, strict=True)
            for node in slice_node(name, *pair, axis=self.axis, opset=self.opset)
        ]
        return model_of([*self.computing, *nodes], names, self._shape(self.dim), opset=self.opset)

    def _shape(self, dim: int | str) -> list[int | str]:
        shape: list[int | str] = [2] * self.rank
        shape[self.axis] = dim
        return shape

    @property
    def feeds(self) -> list[dict[str, object]]:
        """Inputs of each size."""
        return [data(*self._shape(size)) for size in self.sizes]  # type: ignore[arg-type]


@st.composite
def bound(draw: st.DrawFn, position: int, dim: int) -> int:
    """A bound in one of its spellings: from the start, from the end, or beyond it."""
    spelled = [position]
    if position < dim:
        spelled.append(position - dim)
    if position == dim:
        spelled += [dim + 3, END]
    if position == 0:
        spelled.append(-dim - 2)
    return draw(st.sampled_from(spelled))


@st.composite
def static_cuts(draw: st.DrawFn) -> Cut:
    """A partition of a static dimension; parts may be empty, nodes are in any order."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=2, max_size=6))
    dim, start, bounds = sum(lengths), 0, []
    for length in lengths:
        bounds.append((draw(bound(start, dim)), draw(bound(start + length, dim))))
        start += length
    opset, rank, axis = draw(OPSETS), draw(st.integers(1, 3)), 0
    axis = draw(st.integers(0, rank - 1))
    return Cut(opset, rank, axis, dim, draw(st.permutations(bounds)), [dim])


@st.composite
def cuts_of_a_rest(draw: st.DrawFn) -> Cut:
    """A partition of which one part takes the rest of a dynamic dimension, which may be too small for the others."""
    before, behind = (draw(st.lists(st.integers(0, 3), max_size=2)) for _ in range(2))
    known_sizes = sum(before) + sum(behind)
    is_large_enough = draw(st.booleans()) or bool(before and behind)
    points: list[int] = [0]
    for length in before:
        points.append(points[-1] + length)
    ends = [-sum(behind[index:]) or END for index in range(len(behind) + 1)]
    bounds = list(zip([*points, *ends[:-1]], [*points[1:], *ends], strict=True))
    dim, least = (f"N + {known_sizes}", known_sizes) if is_large_enough else ("N", 0)
    rank = draw(st.integers(1, 3))
    axis = draw(st.integers(0, rank - 1))
    return Cut(draw(OPSETS), rank, axis, dim, draw(st.permutations(bounds)), range(least, least + 4))


@st.composite
def computed_cuts(draw: st.DrawFn) -> Cut:
    """Equal parts, parts of size N//k with a longer last one, or chunks of ceil(N / k) that may overrun the dimension;
    bounds are computed from the shape.
    """
    parts, form = draw(st.integers(2, 4)), draw(st.sampled_from(["equal", "down", "up"]))
    is_equal = form == "equal"
    rank = draw(st.integers(1, 3))
    axis = draw(st.integers(0, rank - 1))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        constant("axis", [axis]),
        helper.make_node("Gather", ["shape", "axis"], ["dim"], axis=0),
        constant("parts", [parts]),
        constant("added", [parts - 1 if form == "up" else 0]),
        helper.make_node("Add", ["dim", "added"], ["raised"]),
        helper.make_node("Div", ["raised", "parts"], ["at1"]),
    ]
    for index in range(2, parts):
        nodes.append(constant(f"factor{index}", [index]))
        nodes.append(helper.make_node("Mul", ["at1", f"factor{index}"], [f"at{index}"]))
    points: list[int | str] = [0, *(f"at{index}" for index in range(1, parts)), draw(st.sampled_from(["dim", END]))]
    bounds = list(pairwise(points))
    sizes = [parts * size for size in range(1, 4)] if is_equal else range(1, 9)
    opset = draw(OPSETS.filter(lambda opset: opset >= 10))
    dim = f"{parts}*N" if is_equal else "N"
    return Cut(opset, rank, axis, dim, draw(st.permutations(bounds)), sizes, nodes)


def assert_alike(before: onnx.ModelProto, after: onnx.ModelProto, cut: Cut) -> None:
    if cut.opset > 1:  # no evaluator has Split-1
        assert_same(before, after, *cut.feeds)


def splits_of(model: onnx.ModelProto) -> list[NodeProto]:
    return [node for node in model.graph.node if node.op_type == "Split"]


def check(cut: Cut, *, is_joined: bool) -> None:
    """Slices become one Split if they are to, then slices, then a Split; and all give the same."""
    model = cut.model
    joined = splitgraph.convert(model, "split").model
    assert len(splits_of(joined)) == is_joined
    if not is_joined:
        assert joined == model
        return
    assert operators(joined).count("Slice") == 0
    assert_alike(model, joined, cut)
    there = splitgraph.convert(joined, "slice").model
    assert not splits_of(there)
    assert_alike(model, there, cut)
    (split,), again = splits_of(joined), splitgraph.convert(there, "split").model
    for found in splits_of(again):
        # An empty part fits in anywhere.
        assert sorted(found.output) == sorted(split.output)
    assert_alike(model, again, cut)


@PROFILE
@given(static_cuts())
def test_static_partitions(cut: Cut) -> None:
    check(cut, is_joined=True)


@PROFILE
@given(cuts_of_a_rest())
def test_partitions_with_a_rest(cut: Cut) -> None:
    """Their lengths are computed, which Split-13 is the first to read."""
    check(cut, is_joined=cut.opset >= 13 and len(cut.bounds) > 1)


@PROFILE
@given(computed_cuts())
def test_partitions_that_are_computed(cut: Cut) -> None:
    is_equal = "*" in str(cut.dim)
    joined = splitgraph.convert(cut.model, "split").model
    assert len(splits_of(joined)) == (is_equal or cut.opset >= 13)
    assert_alike(cut.model, joined, cut)
    there = splitgraph.convert(joined, "slice").model
    assert_alike(cut.model, there, cut)


@PROFILE
@given(static_cuts(), st.data())
def test_near_misses_of_static_partitions(cut: Cut, chosen: st.DataObject) -> None:
    """Without a part that is not empty, or with one twice, nothing changes."""
    dim = int(cut.dim)
    filled = [index for index, (start, end) in enumerate(cut.bounds) if range(dim)[slice(int(start), int(end))]]
    if not filled:
        return
    which = chosen.draw(st.sampled_from(filled))
    bounds = list(cut.bounds)
    changed = [*bounds[:which], *bounds[which + 1 :]] if chosen.draw(st.booleans()) else [*bounds, bounds[which]]
    near = Cut(cut.opset, cut.rank, cut.axis, cut.dim, changed, cut.sizes)
    if changed:
        rewrite = splitgraph.convert(near.model, "split")
        assert (rewrite.model, rewrite.changes) == (near.model, ())


def test_the_evaluator_runs_slices_of_every_opset() -> None:
    for opset in known(range(1, 25)):
        cut = Cut(opset, 1, 0, 4, [(0, 2), (2, 4)], [4])
        assert [part.tolist() for part in run(load(cut.model), cut.feeds[0])] == [[0, 1], [2, 3]]
