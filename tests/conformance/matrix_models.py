"""Models for the conversion matrix: one Split of each version, its parts given in every way, in every kind of graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from known_opsets import known
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from splitgraph.model.schemas.table import newest_in_table

Feeds = dict[str, npt.NDArray[Any]]


TARGETS = known([1, 2, 9, 11, 12, 13, 17, 18, 21, newest_in_table()])
SCOPES = ("main", "if", "loop", "scan", "function")
AXES = ("default", "explicit", "negative")
SHAPES = ("static", "symbolic", "unknown")

# How the parts may be given, by version. "overridable" is an initializer that is also a graph input.
LENGTHS_AS_INPUT = ("initializer", "constant", "graph_input", "overridable", "shape_of_other", "arithmetic")
PARTS: dict[int, tuple[str, ...]] = {
    1: ("attribute", "initializer", "constant", "graph_input", "overridable", "none"),
    2: ("attribute", "none"),
    11: ("attribute", "none"),
    13: (*LENGTHS_AS_INPUT, "none"),
    18: (*LENGTHS_AS_INPUT, "num_outputs"),
}
RUN_TIME_PARTS = frozenset({"graph_input", "overridable"})
COMPUTED_PARTS = frozenset({"shape_of_other", "arithmetic"})

# Source opsets of each version; Scan without a batch exists from opset 9 on.
OPSETS = {1: (1,), 2: (2, 10), 11: (11, 12), 13: (13, 17), 18: known([18, 21, 28])}
# Those that the installed onnx has.
VERSIONS = tuple(version for version in PARTS if OPSETS[version])


@dataclass(frozen=True)
class Case:
    """One point of the matrix, without its target."""

    version: int
    opset: int
    parts: str
    even: bool
    axis: str
    scope: str
    shape: str

    def __str__(self) -> str:
        parity = "even" if self.even else "uneven"
        return (
            f"Split-{self.version}@{self.opset} {self.parts} {parity} axis={self.axis} {self.scope} shape={self.shape}"
        )

    @property
    def dtype(self) -> int:
        """Element type of the data: one that every version takes."""
        return int(TensorProto.FLOAT)

    @property
    def lengths_dtype(self) -> type:
        """Element type of a lengths input: Split-1 wants the data's."""
        return np.float32 if self.version == 1 else np.int64

    @property
    def rank(self) -> int:
        """Rank of the data: 3 where the axis is negative, so that -2 is not the last one."""
        return 3 if self.axis == "negative" else 2

    @property
    def axis_attribute(self) -> int | None:
        """The axis as written, None where it is left out."""
        return {"default": None, "explicit": 1, "negative": -2}[self.axis]

    @property
    def axis_index(self) -> int:
        """The axis, non-negative."""
        return (self.axis_attribute or 0) % self.rank

    @property
    def count(self) -> int:
        """Number of outputs."""
        return 2 if self.parts in COMPUTED_PARTS else 3


def cases() -> Iterator[Case]:
    """Every combination that is a valid model."""
    for version in VERSIONS:
        for parts, even, axis, scope, shape in product(PARTS[version], (True, False), AXES, SCOPES, SHAPES):
            if parts == "none" and not even:
                continue
            if scope == "scan" and version == 1:
                continue
            opsets = [opset for opset in OPSETS[version] if scope != "scan" or opset >= 9]
            # Which opset of the version's is no factor of its own; the other factors choose it.
            turn = AXES.index(axis) + SHAPES.index(shape) + SCOPES.index(scope)
            yield Case(version, opsets[turn % len(opsets)], parts, even, axis, scope, shape)


# What the data and the lengths are ------------------------------------------------------------------------------------


def lengths_of(case: Case) -> list[list[int]]:
    """The lengths that each of the two executions gives; the dimension is their sum."""
    static = case.shape == "static"
    if case.parts == "none" or (case.parts == "num_outputs" and case.even):
        return [[2, 2, 2], [2, 2, 2] if static else [3, 3, 3]]
    if case.parts == "num_outputs":
        return [[3, 3, 1], [3, 3, 1] if static else [3, 3, 2]]
    if case.parts == "shape_of_other":
        return [[3, 3], [3, 3] if static else [2, 2]] if case.even else [[1, 4], [1, 4] if static else [3, 1]]
    if case.parts == "arithmetic":
        return [[3, 3], [3, 3] if static else [2, 2]] if case.even else [[3, 4], [3, 4] if static else [4, 5]]
    fixed = [2, 2, 2] if case.even else [1, 3, 2]
    if case.parts not in RUN_TIME_PARTS:
        return [fixed, fixed]
    if static:
        return [fixed, [2, 2, 2] if case.even else [3, 0, 3]]
    return [fixed, [3, 3, 3] if case.even else [4, 0, 1]]


def data_shape(case: Case, lengths: Sequence[int], run: int) -> list[int]:
    """The shape of what is split; the other dimensions differ between the runs unless they are static."""
    other = 5 if case.shape != "static" and run else 3
    shape = [other, other + 1, other + 2][: case.rank]
    shape[case.axis_index] = sum(lengths)
    return shape


def feeds_of(case: Case) -> list[Feeds]:
    """Inputs for two executions of the model of a case."""
    made: list[Feeds] = []
    for run, lengths in enumerate(lengths_of(case)):
        shape = data_shape(case, lengths, run)
        if case.scope == "scan":
            shape = [2, *shape]
        data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        feeds: Feeds = {"x": data[None, ..., None] if case.shape == "unknown" else data}
        if case.scope == "if":
            feeds["condition"] = np.array(True)
            feeds["other"] = data
        if case.parts == "graph_input" or (case.parts == "overridable" and run):
            feeds["lengths"] = np.array(lengths, dtype=case.lengths_dtype)
        if case.parts == "shape_of_other":
            feeds["y"] = np.zeros((lengths[0], 2), dtype=np.float32)
        made.append(feeds)
    return made


# The model ------------------------------------------------------------------------------------------------------------


@dataclass
class Pieces:
    """What a case's split needs, by the place where it belongs."""

    inner: list[NodeProto]
    inner_initializers: list[TensorProto]
    outer_initializers: list[TensorProto]
    outer_inputs: list[onnx.ValueInfoProto]
    captured: list[str]


def value_info(name: str, dtype: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    """A tensor's declaration; a shape of None is no shape at all."""
    return helper.make_tensor_value_info(name, dtype, shape)


def build(case: Case) -> onnx.ModelProto:
    """The model of a case: what is around the split has names, documentation and metadata to be kept."""
    pieces = split_pieces(case)
    nodes: list[NodeProto] = []
    source = "x"
    if case.shape == "unknown":
        # Dimensions of 1 vanish, and which ones they are is not known before run time.
        nodes.append(documented(helper.make_node("Squeeze", ["x"], ["squeezed"], name="squeeze")))
        source = "squeezed"
    nodes.append(documented(helper.make_node("Identity", [source], ["data"], name="before")))
    functions: list[onnx.FunctionProto] = []
    inputs = [value_info("x", case.dtype, declared_data(case)), *pieces.outer_inputs]
    initializers = list(pieces.outer_initializers)
    results = [f"part{index}" for index in range(case.count)]
    if case.scope == "main":
        initializers += pieces.inner_initializers
        nodes += pieces.inner
    elif case.scope == "if":
        inputs.append(value_info("condition", TensorProto.BOOL, []))
        inputs.append(value_info("other", case.dtype, [None] * case.rank))
        nodes.append(if_node(case, pieces, results))
    elif case.scope == "loop":
        initializers += [
            numpy_helper.from_array(np.array(2), "trips"),
            numpy_helper.from_array(np.array(True), "always"),
        ]
        nodes.append(loop_node(case, pieces, results))
    elif case.scope == "scan":
        nodes.append(scan_node(case, pieces, results))
    else:
        initializers += pieces.inner_initializers
        arguments = ["data", *pieces.captured]
        functions.append(function_of(case, pieces, arguments))
        nodes.append(
            documented(helper.make_node("Cut", ["data", *pieces.captured], results, name="call", domain="local"))
        )
    rank = case.rank + (case.scope in ("loop", "scan"))
    nodes += [
        documented(helper.make_node("Identity", [name], [f"out{index}"], name=f"after{index}"))
        for index, name in enumerate(results)
    ]
    outputs = [value_info(f"out{index}", case.dtype, [None] * rank) for index in range(case.count)]
    graph = helper.make_graph(nodes, "matrix", inputs, outputs, initializers, doc_string="a graph")
    return finish_model(case.opset, graph, functions)


def finish_model(
    opset: int, graph: GraphProto, functions: Sequence[onnx.FunctionProto] = (), ir_version: int | None = None
) -> onnx.ModelProto:
    """A model of the graph with documentation and metadata of its own."""
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("local", 1)] if functions else [])
    lowest = 8 if functions else 4
    version = ir_version or max(lowest, helper.find_min_ir_version_for([helper.make_opsetid("", opset)], True))
    model = helper.make_model(graph, opset_imports=imports, ir_version=version, producer_name="matrix")
    model.functions.extend(functions)
    model.doc_string = "a model"
    model.metadata_props.add(key="author", value="somebody")
    return model


def documented(node: NodeProto) -> NodeProto:
    """The node with documentation and metadata."""
    node.doc_string = f"what {node.name} does"
    node.metadata_props.add(key="origin", value=node.name)
    return node


def declared_data(case: Case) -> list[int | str | None]:
    """The declared shape of the graph input x."""
    shape: list[int | str | None] = []
    if case.shape == "static":
        shape = list(data_shape(case, lengths_of(case)[0], 0))
    else:
        shape = ["B", "C", "D"][: case.rank]
        shape[case.axis_index] = "N"
    if case.scope == "scan":
        shape.insert(0, 2 if case.shape == "static" else "steps")
    return ["P", *shape, "Q"] if case.shape == "unknown" else shape


def inner_shape(case: Case) -> list[int | str | None] | None:
    """The shape of the split's data as a body may declare it; None where it declares none."""
    if case.shape == "unknown":
        return None
    shape = declared_data(case)
    return shape[1:] if case.scope == "scan" else shape


def split_pieces(case: Case) -> Pieces:
    """The split, what computes its lengths, and what these need from around."""
    # Written the way most exporters do: attributes in order of their names.
    attributes: dict[str, Any] = {}
    pieces = Pieces([], [], [], [], [])
    lengths = lengths_of(case)[0]
    if case.axis_attribute is not None:
        attributes["axis"] = case.axis_attribute
    if case.parts == "num_outputs":
        attributes["num_outputs"] = case.count
    if case.parts == "attribute":
        attributes["split"] = lengths
    inputs = ["item" if case.scope in ("loop", "scan", "function") else "data"]
    if case.parts in LENGTHS_AS_INPUT:
        inputs.append("lengths")
        provide_lengths(case, pieces, lengths, inputs[0])
    node = documented(
        helper.make_node("Split", inputs, [f"cut{index}" for index in range(case.count)], name="split", **attributes)
    )
    if case.scope == "main":
        for index in range(case.count):
            node.output[index] = f"part{index}"
    pieces.inner.append(node)
    return pieces


def provide_lengths(case: Case, pieces: Pieces, lengths: Sequence[int], data: str) -> None:
    """Add what the value `lengths` comes from."""
    held = numpy_helper.from_array(np.array(lengths, dtype=case.lengths_dtype), "lengths")
    if case.parts == "constant":
        pieces.inner.append(helper.make_node("Constant", [], ["lengths"], name="lengths_constant", value=held))
    elif case.parts == "initializer":
        # Of the body itself, or captured from the main graph; a function gets it as an argument.
        here = case.even and case.scope != "function"
        (pieces.inner_initializers if here else pieces.outer_initializers).append(held)
        pieces.captured.append("lengths")
    elif case.parts in RUN_TIME_PARTS:
        pieces.outer_inputs.append(value_info("lengths", held.data_type, [case.count]))
        pieces.captured.append("lengths")
        if case.parts == "overridable":
            pieces.outer_initializers.append(held)
    elif case.parts == "shape_of_other":
        pieces.outer_inputs.append(value_info("y", case.dtype, [lengths[0] if case.shape == "static" else "M", 2]))
        pieces.captured.append("y")
        pieces.inner += lengths_from_other(case, data)
    else:
        pieces.inner += lengths_by_arithmetic(case, data)


def vector(name: str, values: Sequence[int]) -> NodeProto:
    """A Constant node with a 1-D int64 tensor."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(values, np.int64), name))


def lengths_from_other(case: Case, data: str) -> list[NodeProto]:
    """[y.shape[0], dim - y.shape[0]]."""
    return [
        vector("axis_of_y", [0]),
        vector("axis_of_data", [case.axis_index]),
        helper.make_node("Shape", ["y"], ["shape_of_y"]),
        helper.make_node("Gather", ["shape_of_y", "axis_of_y"], ["first"], axis=0),
        helper.make_node("Shape", [data], ["shape_of_data"]),
        helper.make_node("Gather", ["shape_of_data", "axis_of_data"], ["dim"], axis=0),
        helper.make_node("Sub", ["dim", "first"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["lengths"], axis=0),
    ]


def lengths_by_arithmetic(case: Case, data: str) -> list[NodeProto]:
    """[dim // 2, dim - dim // 2]."""
    return [
        vector("axis_of_data", [case.axis_index]),
        vector("two", [2]),
        helper.make_node("Shape", [data], ["shape_of_data"]),
        helper.make_node("Gather", ["shape_of_data", "axis_of_data"], ["dim"], axis=0),
        helper.make_node("Div", ["dim", "two"], ["first"]),
        helper.make_node("Sub", ["dim", "first"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["lengths"], axis=0),
    ]


# The graphs around it -------------------------------------------------------------------------------------------------


def body_outputs(case: Case, prefix: str = "cut") -> list[onnx.ValueInfoProto]:
    """Declarations of the parts as outputs of a body, without a shape."""
    return [value_info(f"{prefix}{index}", case.dtype, None) for index in range(case.count)]


def if_node(case: Case, pieces: Pieces, results: Sequence[str]) -> NodeProto:
    """If: the split in one branch, another input for every output in the other."""
    then = helper.make_graph(pieces.inner, "then", [], body_outputs(case), pieces.inner_initializers)
    whole = [
        helper.make_node("Identity", ["other"], [f"whole{index}"], name=f"whole{index}") for index in range(case.count)
    ]
    other = helper.make_graph(whole, "else", [], body_outputs(case, "whole"))
    return documented(
        helper.make_node("If", ["condition"], list(results), name="if", then_branch=then, else_branch=other)
    )


def loop_node(case: Case, pieces: Pieces, results: Sequence[str]) -> NodeProto:
    """Loop: the data is carried, the parts are scan outputs."""
    passed = [
        helper.make_node("Identity", ["going"], ["goes_on"], name="goes_on"),
        helper.make_node("Identity", ["item"], ["next_item"], name="next_item"),
    ]
    body = helper.make_graph(
        [*pieces.inner, *passed],
        "body",
        [
            value_info("iteration", TensorProto.INT64, []),
            value_info("going", TensorProto.BOOL, []),
            value_info("item", case.dtype, inner_shape(case)),
        ],
        [
            value_info("goes_on", TensorProto.BOOL, []),
            value_info("next_item", case.dtype, inner_shape(case)),
            *body_outputs(case),
        ],
        pieces.inner_initializers,
    )
    return documented(helper.make_node("Loop", ["trips", "always", "data"], ["last", *results], name="loop", body=body))


def scan_node(case: Case, pieces: Pieces, results: Sequence[str]) -> NodeProto:
    """Scan over the first dimension, without a state."""
    body = helper.make_graph(
        pieces.inner,
        "body",
        [value_info("item", case.dtype, inner_shape(case))],
        body_outputs(case),
        pieces.inner_initializers,
    )
    return documented(helper.make_node("Scan", ["data"], list(results), name="scan", body=body, num_scan_inputs=1))


def function_of(case: Case, pieces: Pieces, arguments: Sequence[str]) -> onnx.FunctionProto:
    """The model-local function whose body is the split."""
    return helper.make_function(
        "local",
        "Cut",
        ["item", *arguments[1:]],
        [f"cut{index}" for index in range(case.count)],
        pieces.inner,
        [helper.make_opsetid("", case.opset)],
        doc_string="cuts",
    )
