"""What kind an operator is, against its inference rule: every table says what the rules do, no less and no more."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from node_tests import node_tests
from onnx import NodeProto, helper, numpy_helper

from splitgraph.conversion.sizes.rules import SAYING
from splitgraph.conversion.sizes.rules_ir import LAYERS
from splitgraph.formats.openvino_ir import load_ir
from splitgraph.inference.alone import Alone, Given
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.inference.rules import load_openvino_rules
from splitgraph.inference.rules.onnx.reduction import REDUCTIONS as RULES_OF_REDUCTIONS
from splitgraph.model.schemas.kinds import (
    LAYER_DOMAIN,
    LAYER_SHAPE_INPUTS,
    REDUCTIONS,
    SHAPE_INPUTS,
    may_draw,
    shape_inputs,
)
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import DTYPE_NAMES, UNKNOWN, tensor
from splitgraph.model.values import tensor_contents

RECORDED = Path(__file__).parent / "openvino_ir" / "layers.zip"
IMPORTS = {"": 20, "com.microsoft": 1, LAYER_DOMAIN: 1}
# Axes along which a node computes, and data whose number of elements is known only when they are.
AXES = dict.fromkeys((*REDUCTIONS, "Squeeze", "Unsqueeze"), 1)
_REDUCING = "L1 L2 LogicalAnd LogicalOr Max Mean Min Prod Sum"
AXES_OF_LAYERS = {
    **dict.fromkeys((f"Reduce{kind}" for kind in _REDUCING.split()), 1),
    **dict.fromkeys(("Squeeze", "Transpose", "Unique", "Unsqueeze"), 1),
    "Gather": 2,
}
FOUND = {"Compress": 1, "NonZero": 0, "Unique": 0}
# Nodes with bodies, and what gives sequences, cannot be asked.
NOT_ASKED = {("Loop", 0), ("SplitToSequence", 1)}

Asked = tuple[NodeProto, Mapping[str, int], list[Given | None]]


def _constant(array: Any) -> Given:
    held = numpy_helper.from_array(np.asarray(array))
    return Given(tensor(DTYPE_NAMES[held.data_type], held.dims), tensor_contents(held) or held)


def _data(*shape: int) -> Given:
    return Given(tensor("float32", shape))


def _node(op_type: str, given: Sequence[Given | None], domain: str = "", **attributes: Any) -> Asked:
    names = ["" if each is None else f"x{at}" for at, each in enumerate(given)]
    return helper.make_node(op_type, names, ["y"], domain=domain, **attributes), IMPORTS, [*given]


# What no node test of onnx and no recorded layer has.
OTHERS = [
    _node("DFT", [_data(2, 8, 2), _constant(np.int64(4)), _constant(np.int64(1))]),
    _node("CropAndResize", [_data(1, 3, 8, 8), _data(5, 4), _data(5), _constant([4, 6])], "com.microsoft"),
    _node("IDFT", [_data(2, 8, 2), _constant([1]), _constant([4])], LAYER_DOMAIN),
    _node(
        "GroupConvolutionBackpropData",
        [_data(1, 4, 5, 5), _data(2, 2, 3, 3, 3), _constant([9, 9])],
        LAYER_DOMAIN,
        **dict.fromkeys(("strides", "dilations"), "1, 1"),
        **dict.fromkeys(("pads_begin", "pads_end"), "0, 0"),
    ),
]


def _of_onnx() -> Iterator[Asked]:
    for case in node_tests():
        if len(case.model.graph.node) != 1 or not case.data_sets:
            continue
        data = dict(zip([value.name for value in case.model.graph.input], case.data_sets[0][0], strict=False))
        given: list[Given | None] = []
        for name in case.model.graph.node[0].input:
            array = data.get(name)
            is_read = isinstance(array, (np.ndarray, np.generic)) and array.size <= 64 and array.dtype.kind in "biuf"
            given.append(_constant(array) if is_read else _data(*array.shape) if hasattr(array, "shape") else None)
        yield case.model.graph.node[0], {each.domain: each.version for each in case.model.opset_import}, given


def _of_layers(folder: Path) -> Iterator[Asked]:
    with zipfile.ZipFile(RECORDED) as archive:
        archive.extractall(folder)
    for path in sorted(folder.rglob("*.xml")):
        ir = load_ir(path)
        known = infer_ir(ir).details.graphs[MAIN]
        for node in mirror(ir).model.graph.node:
            given = [Given(known.types.get(name, UNKNOWN), known.constants.get(name)) for name in node.input]
            yield node, IMPORTS, [each if name else None for name, each in zip(node.input, given, strict=True)]


def _said(asked: Iterator[Asked]) -> set[tuple[str, int]]:
    """Operators and inputs whose elements say a shape in one of the nodes."""
    load_openvino_rules()
    alone = Alone()
    return {
        (node.op_type, position)
        for node, imports, given in asked
        for position in range(len(given))
        if alone.says_shapes(node, imports, given, position)
    }


def _entries(table: Mapping[str, Sequence[int]]) -> set[tuple[str, int]]:
    return {(name, position) for name, positions in table.items() for position in positions}


@cache
def _others() -> set[tuple[str, int]]:
    return _said(iter(OTHERS))


def test_the_shape_inputs_of_operators() -> None:
    said = _said(_of_onnx()) | {each for each in _others() if each[0] in SHAPE_INPUTS}
    assert said | NOT_ASKED == _entries(SHAPE_INPUTS) | {*AXES.items(), *FOUND.items()}


def test_the_shape_inputs_of_layers(tmp_path: Path) -> None:
    said = _said(_of_layers(tmp_path)) | {each for each in _others() if each[0] in LAYER_SHAPE_INPUTS}
    assert said | {("Loop", 0)} == _entries(LAYER_SHAPE_INPUTS) | {*AXES_OF_LAYERS.items()}


def test_an_operator_and_a_layer_of_one_name_are_told_apart() -> None:
    assert shape_inputs(helper.make_node("Pad", [], [])) == (1, 3)
    assert shape_inputs(helper.make_node("Pad", [], [], domain=LAYER_DOMAIN)) == (1, 2)
    assert shape_inputs(helper.make_node("Relu", [], [])) == ()


def test_the_reductions() -> None:
    assert {*REDUCTIONS} == {*RULES_OF_REDUCTIONS}


def test_the_input_that_says_a_size_says_a_shape() -> None:
    # How many indices there are is a size; the lengths of sequences are sizes.
    counted = {("Gather", 1), ("ReverseSequence", 1)}
    of_layers = {("GRUSequence", 2), ("LSTMSequence", 3), ("RNNSequence", 2)}
    assert {*LAYERS.saying.items()} <= _entries(LAYER_SHAPE_INPUTS) | counted | of_layers
    assert {*SAYING.items()} <= _entries(SHAPE_INPUTS) | counted | {(name, 4) for name in ("GRU", "LSTM", "RNN")}


def test_the_operators_that_draw_are_those_with_a_seed() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    with_seed = {schema.name for schema in schemas if "seed" in schema.attributes}
    assert {"Bernoulli", "Dropout", "RandomNormalLike"} <= with_seed
    drawing = {name for name in {schema.name for schema in schemas} if may_draw(NodeProto(op_type=name))}
    # A Dropout alone is asked by an input.
    assert drawing == with_seed - {"Dropout"}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (helper.make_node("Dropout", ["x"], ["y"]), False),
        (helper.make_node("Dropout", ["x", "ratio"], ["y"]), False),
        (helper.make_node("Dropout", ["x", "ratio", ""], ["y"]), False),
        (helper.make_node("Dropout", ["x", "", "training"], ["y"]), True),
        (helper.make_node("BiasDropout", ["x", "b"], ["y"], domain="com.microsoft"), True),
        (helper.make_node("BitmaskBiasDropout", ["x", "b"], ["y"], domain="com.microsoft"), True),
        (helper.make_node("RandomUniform", ["shape", "low", "high"], ["y"], domain=LAYER_DOMAIN), True),
        (helper.make_node("Relu", ["x"], ["y"]), False),
    ],
)
def test_what_draws(node: NodeProto, expected: bool) -> None:
    assert may_draw(node) is expected
