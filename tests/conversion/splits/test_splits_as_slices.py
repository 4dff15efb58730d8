"""Splits as slices: what is refused or kept, then the bounds of each form, then what is written, by execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known
from onnx import TensorProto, helper
from sliced_models import END, FLOAT, assert_same, constant, data, held, model_of, operators, value

import splitgraph
from splitgraph.conversion.builders import Emission
from splitgraph.dim import DimLike, parse_dim
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import GraphProto, NodeProto
from splitgraph.model.value_type import tensor
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.lowering import LowerRequest, NotRepresentable
from splitgraph.splits.slices import BoundsForm, constant_bounds, open_bounds, write_slices
from splitgraph.splits.variadic_split_1 import variadic_function

N = parse_dim("N")


def split_model(
    shape: Sequence[int | str | None] | None,
    parts: int = 2,
    *,
    lengths: Any = None,
    opset: int = 18,
    dtype: int = FLOAT,
    outputs: Sequence[str] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one Split. lengths: its second input; None gives equal parts. outputs: by default all are read."""
    names = [f"y{index}" for index in range(parts)]
    inputs, initializers = ["x"], []
    if lengths is not None:
        inputs.append("lengths")
        initializers.append(held("lengths", lengths))
    elif opset >= 18:
        attributes["num_outputs"] = parts
    node = helper.make_node("Split", inputs, list(outputs or names), name="split", **{"axis": 0, **attributes})
    read = [name for name in names if not outputs or name in outputs]
    return model_of([node], read, shape, opset=opset, dtype=dtype, initializers=initializers)


def blockers(model: onnx.ModelProto) -> list[tuple[str, str]]:
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(model, "slice")
    return [(found.code, found.message) for found in raised.value.diagnostics]


# Refused and kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [2, 8])
def test_computed_bounds_below_opset_9_are_refused(opset: int) -> None:
    ((code, message),) = blockers(split_model(("N", 4), opset=opset))
    assert code == "SG402"
    assert "ConstantOfShape" in message


@pytest.mark.parametrize("opset", [2, 10])
def test_a_negative_axis_of_unknown_rank_is_refused_below_opset_11(opset: int) -> None:
    ((code, message),) = blockers(split_model(None, opset=opset, axis=-1, split=[2, 2]))
    assert code == "SG402"
    assert "no negative axis" in message


def calling(axis: Any, *, dtype: int = FLOAT, opset: int = 18) -> onnx.ModelProto:
    """A call of VariadicSplit_2; None for an axis that is a graph input."""
    call = helper.make_node(
        "VariadicSplit_2", ["x", "axis", "lengths"], ["y0", "y1"], name="split", domain="org.splitgraph"
    )
    inputs = [value("axis", [], TensorProto.INT64)] if axis is None else []
    initializers = [held("lengths", [1, -1]), *([held("axis", axis)] if axis is not None else [])]
    made = model_of([call], ["y0", "y1"], (4, 4), opset=opset, dtype=dtype, inputs=inputs, initializers=initializers)
    made.opset_import.append(helper.make_opsetid("org.splitgraph", 1))
    made.functions.append(variadic_function(2, opset))
    return made


def test_bfloat16_below_opset_13_is_refused() -> None:
    ((code, message),) = blockers(calling(0, dtype=TensorProto.BFLOAT16, opset=12))
    assert (code, message) == ("SG403", "Slice-11 does not take bfloat16")


def test_an_axis_known_at_run_time_is_kept() -> None:
    model = calling(None)
    rewrite = splitgraph.convert(model, "slice")
    assert rewrite.model == model
    assert [(found.code, found.severity) for found in rewrite.diagnostics] == [("SG408", "warning")]


def test_explicit_lengths_are_refused() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="slices have bounds and no lengths"):
        splitgraph.convert(split_model((4, 4)), "slice", explicit_lengths=True)


def test_a_sequence_that_is_read_as_a_whole_is_kept() -> None:
    node = helper.make_node("SplitToSequence", ["x"], ["q"], name="split")
    model = model_of([node], [])
    model.graph.output.append(helper.make_tensor_sequence_value_info("q", FLOAT, None))
    rewrite = splitgraph.convert(model, "slice")
    assert rewrite.model == model
    assert [found.code for found in rewrite.diagnostics] == ["SG408"]


# Bounds --------------------------------------------------------------------------------------------------------------


def canonical(*lengths: DimLike) -> CanonicalSplit:
    return CanonicalSplit(0, None, lengths, "lengths", len(lengths))


@pytest.mark.parametrize(
    ("lengths", "constant", "with_open_ones"),
    [
        ((2, 4), [(0, 2), (2, 6)], [(0, 2), (2, 6)]),
        ((0, 2, 0), [(0, 0), (0, 2), (2, 2)], [(0, 0), (0, 2), (2, 2)]),
        ((2, N), None, [(0, 2), (2, END)]),
        ((N, 3), None, [(0, -3), (-3, END)]),
        ((2, N - 5, 3), None, [(0, 2), (2, -3), (-3, END)]),
        ((N, 1, 2), None, [(0, -3), (-3, -2), (-2, END)]),
        ((1, 2, N), None, [(0, 1), (1, 3), (3, END)]),
        ((2, N, 0), None, [(0, 2), (2, END), (0, 0)]),
        ((N, 0, 1), None, [(0, -1), (-1, -1), (-1, END)]),
        ((N // 2, N - N // 2), None, None),
    ],
)  # fmt: skip
def test_bounds(lengths: tuple[DimLike, ...], constant: Any, with_open_ones: Any) -> None:
    assert constant_bounds(canonical(*lengths)) == constant
    assert open_bounds(canonical(*lengths)) == with_open_ones


@pytest.mark.parametrize(
    ("lengths", "bounds", "written"),
    [
        ((2, 4), ("constant",), ["Slice", "Slice"]),
        ((2, N - 2), ("constant",), None),
        ((2, N - 2), ("constant", "open"), ["Slice", "Slice"]),
        ((2, N - 2), ("constant", "computed"), ["Shape", "Gather", "Sub", "Concat", *["Slice", "Slice", "Add"] * 1]),
        ((N // 2, N - N // 2), ("constant", "open"), None),
        ((2, 4), (), None),
    ],
)
def test_only_the_forms_that_are_allowed_are_written(
    lengths: tuple[DimLike, ...], bounds: Sequence[BoundsForm], written: list[str] | None
) -> None:
    emission = Emission(FreshNames(()), 13, False, "split", lambda attribute: False, GraphProto())
    node = NodeProto(op_type="Split", input=["x"], output=["a", "b"])
    request = LowerRequest(node, canonical(*lengths), tensor("float32", (N, 4)), emission)
    if written is None:
        with pytest.raises(NotRepresentable):
            write_slices(request, bounds)
        return
    write_slices(request, bounds)
    found = [each.op_type for each in emission.nodes]
    assert found[-2:] == ["Slice", "Slice"]
    assert ("Shape" in found) == ("computed" in bounds)


# Written -------------------------------------------------------------------------------------------------------------


STATIC = {"equal": ((6, 4), None, 2), "uneven": ((6, 4), [1, 5], 2), "an empty part": ((6, 4), [2, 0, 4], 3)}
DYNAMIC = {"equal": (("N", 4), None, 2), "three": (("N", 4), None, 3)}


@pytest.mark.parametrize("opset", known([2, 9, 10, 11, 13, 18, 24]))
@pytest.mark.parametrize("name", STATIC)
def test_constant_bounds(name: str, opset: int) -> None:
    shape, lengths, parts = STATIC[name]
    given = {"split": lengths} if lengths and opset < 13 else {}
    model = split_model(shape, parts, lengths=lengths if opset >= 13 else None, opset=opset, **given)
    rewrite = splitgraph.convert(model, "slice")
    assert operators(rewrite.model) == ["Slice"] * parts
    since = max(version for version in (1, 10, 11, 13) if version <= opset)
    assert [(change.location, change.after) for change in rewrite.changes] == [("main/split", f"Slice-{since}")]
    assert_same(model, rewrite.model, data(6, 4))


@pytest.mark.parametrize("opset", known([9, 10, 11, 13, 18, 24]))
@pytest.mark.parametrize("name", DYNAMIC)
def test_computed_bounds(name: str, opset: int) -> None:
    shape, lengths, parts = DYNAMIC[name]
    model = split_model(shape, parts, lengths=lengths, opset=opset)
    rewrite = splitgraph.convert(model, "slice")
    assert operators(rewrite.model)[-parts:] == ["Slice" if opset >= 10 else "Gather"] * parts
    sizes = (6, 12) if opset < 18 else (5, 6, 7)
    assert_same(model, rewrite.model, *(data(size, 4) for size in sizes))


@pytest.mark.parametrize("lengths", [[2, -1], [-1, 3], [2, -1, 3], [0, -1, 0]])
def test_a_rest_has_open_bounds(lengths: list[int]) -> None:
    nodes = [
        constant("axis", 0),
        constant("lengths", lengths),
        helper.make_node(
            f"VariadicSplit_{len(lengths)}", ["x", "axis", "lengths"], [f"y{i}" for i in range(len(lengths))],
            name="split", domain="org.splitgraph",
        ),
    ]  # fmt: skip
    model = model_of(nodes, [f"y{index}" for index in range(len(lengths))], ("N", 4))
    model.opset_import.append(helper.make_opsetid("org.splitgraph", 1))
    model.functions.append(variadic_function(len(lengths), 18))
    after = splitgraph.convert(model, "slice").model
    assert operators(after) == ["Slice"] * len(lengths)
    assert not after.functions
    assert [each.domain for each in after.opset_import] == [""]
    assert_same(model, after, *(data(size, 4) for size in (5, 6, 8)))


def test_the_only_part_is_an_identity() -> None:
    model = split_model((6, 4), 1)
    rewrite = splitgraph.convert(model, "slice")
    assert operators(rewrite.model) == ["Identity"]
    assert [change.after for change in rewrite.changes] == ["Identity"]
    assert_same(model, rewrite.model, data(6, 4))


@pytest.mark.parametrize("outputs", [("", "y1", "y2"), ("y0", "unread", "y2")])
def test_parts_that_nobody_reads_are_not_written(outputs: tuple[str, ...]) -> None:
    model = split_model((6, 4), 3, outputs=outputs)
    after = splitgraph.convert(model, "slice").model
    assert [node.output[0] for node in after.graph.node] == [name for name in outputs if name.startswith("y")]
    assert_same(model, after, data(6, 4))


def test_the_first_slice_keeps_name_documentation_and_metadata() -> None:
    model = split_model((6, 4))
    model.graph.node[0].doc_string = "halves"
    model.graph.node[0].metadata_props.add(key="layer", value="3")
    first, second = splitgraph.convert(model, "slice").model.graph.node
    assert (first.name, first.doc_string, first.metadata_props[0].value) == ("split", "halves", "3")
    assert second.name == "split_part1"


def test_constants_of_a_function_and_of_an_old_ir_version_are_nodes() -> None:
    model = split_model((6, 4), opset=11)
    model.ir_version = 3
    after = splitgraph.convert(model, "slice").model
    assert not after.graph.initializer
    assert operators(after) == ["Slice", "Slice"]
    assert_same(model, after, data(6, 4))


def test_the_axis_that_a_call_of_a_function_gives() -> None:
    body = helper.make_node("Split", ["a"], ["b", "c"], name="split", num_outputs=2)
    body.attribute.append(onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="along"))
    imports = [helper.make_opsetid("", 18)]
    calls = [helper.make_node("halve", ["x"], [f"y{axis}", f"z{axis}"], domain="own", along=axis) for axis in (0, 1)]
    model = model_of(calls, ["y0", "z0", "y1", "z1"], (4, 6))
    model.functions.append(helper.make_function("own", "halve", ["a"], ["b", "c"], [body], imports, ["along"]))
    model.opset_import.append(helper.make_opsetid("own", 1))
    after = splitgraph.convert(model, "slice").model
    assert "Split" not in [node.op_type for node in after.functions[0].node]
    assert_same(model, after, data(4, 6))


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_sequence_becomes_slices_of_the_parts_that_are_read(keepdims: int) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["q"], name="split", axis=1, keepdims=keepdims),
        constant("last", -1),
        helper.make_node("SequenceAt", ["q", "last"], ["y0"], name="at"),
    ]
    model = model_of(nodes, ["y0"])
    after = splitgraph.convert(model, "slice").model
    assert operators(after) == ["Slice", *([] if keepdims else ["Squeeze"]), "Identity"]
    assert_same(model, after, data(6, 4))


def test_with_an_opset_at_once() -> None:
    model = split_model((6, 4), opset=18)
    rewrite = splitgraph.convert(model, "slice", opset=9)
    assert operators(rewrite.model) == ["Slice", "Slice"]
    assert [(change.before, change.after) for change in rewrite.changes] == [("Split-18", "Slice-1")]
    assert_same(model, rewrite.model, data(6, 4))


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.bool_, np.complex64])
def test_types_of_the_data(dtype: Any) -> None:
    model = split_model((6, 4), dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    after = splitgraph.convert(model, "slice").model
    assert_same(model, after, {"x": np.arange(24).reshape(6, 4).astype(dtype)})
