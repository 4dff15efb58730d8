"""What kind an operator is, against its inference rule: every table says what the rules do, no less and no more."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from node_tests import node_tests
from onnx import NodeProto, helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.reference import ReferenceEvaluator

from splitgraph.conversion.sizes.rules import SAYING
from splitgraph.conversion.sizes.rules_ir import LAYERS
from splitgraph.formats.openvino_ir import load_ir
from splitgraph.inference.alone import Alone, Given, Source
from splitgraph.inference.context import RULES
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.inference.rules import load_openvino_rules, load_rules
from splitgraph.model.schemas import kinds, table
from splitgraph.model.schemas.kinds import LAYER_DOMAIN, LAYER_SHAPE_INPUTS, SHAPE_INPUTS, may_draw, shape_inputs
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import DTYPE_NAMES, UNKNOWN, tensor
from splitgraph.model.values import tensor_contents

RECORDED = Path(__file__).parent / "openvino_ir" / "layers.zip"
IMPORTS = {"": 20, "com.microsoft": 1, LAYER_DOMAIN: 1}
# Axes along which a node computes, and data whose number of elements is known only when they are.
AXES = dict.fromkeys((*kinds.REDUCES, "Squeeze", "Unsqueeze"), 1)
AXES_OF_LAYERS = {
    **dict.fromkeys(kinds.LAYER_REDUCTIONS, 1),
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


def _is_asked(case: TestCase) -> bool:
    return len(case.model.graph.node) == 1 and bool(case.data_sets)


def _of_onnx() -> Iterator[Asked]:
    for case in filter(_is_asked, node_tests()):
        data = dict(zip([value.name for value in case.model.graph.input], case.data_sets[0][0], strict=False))
        given: list[Given | None] = []
        for name in case.model.graph.node[0].input:
            array = data.get(name)
            is_number = isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "biuf"
            if is_number and array.size <= 64:
                given.append(_constant(array))
            else:
                dtype = str(array.dtype) if is_number else "float32"
                given.append(Given(tensor(dtype, array.shape)) if hasattr(array, "shape") else None)
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


# The kinds -----------------------------------------------------------------------------------------------------------


class _Case(NamedTuple):
    """A node test of onnx. arrays: of the inputs, None for what is omitted or no tensor. result: the first output."""

    asked: Asked
    arrays: Sequence[Any]
    result: Any
    model: onnx.ModelProto

    @property
    def op_type(self) -> str:
        return self.asked[0].op_type


# What no node test has. Operators of old models are of opset 1.
_OLD: Mapping[str, Mapping[str, float]] = {
    **{name: {"alpha": 2.0, "beta": 0.5} for name in ("Affine", "ParametricSoftplus", "ScaledTanh")},
    "Scale": {"scale": 2.0},
}
WITHOUT_TESTS = [
    _node("Cast", [_data(2, 3)], to=onnx.TensorProto.INT32),
    _node("CastLike", [_data(2, 3), _data(1)]),
    *(_node(name, [_data(2, 3)]) for name in ("RandomNormalLike", "RandomUniformLike")),
    *((_node(name, [_data(2, 3)], **attributes)[0], {"": 1}, [_data(2, 3)]) for name, attributes in _OLD.items()),
]
# An optional may hold no tensor; the kernel of the only node test has one element.
ALSO_KEPT = {"OptionalGetElement", "QLinearConv"}
# These have the shape of the first input and compute each element from one, but have a parameter for each channel, or
# know where an element stands.
APART = {
    "BitCast",
    "DequantizeLinear",
    "Dropout",
    "EyeLike",
    "QuantizeLinear",
    "ScatterElements",
    "ScatterND",
    "SwiGLU",
}
APART |= {"TensorScatter", "Trilu"}


@cache
def _cases() -> list[_Case]:
    found = []
    for case, asked in zip((case for case in node_tests() if _is_asked(case)), _of_onnx(), strict=True):
        names = [value.name for value in case.model.graph.input]
        (inputs, outputs), *_ = case.data_sets
        held = dict(zip(names, inputs, strict=False))
        arrays = [held.get(name) for name in asked[0].input]
        if not asked[0].domain and hasattr(outputs[0], "shape") and arrays and hasattr(arrays[0], "shape"):
            found.append(_Case(asked, arrays, outputs[0], case.model))
    return found


def _keeps_shape(alone: Alone, asked: Asked, rank: int) -> bool | None:
    """Whether the first result has the shape of the first input; None if all sizes are 1."""
    shape = asked[2][0].type.shape if asked[2][0] is not None else None
    axes = [axis for axis, size in enumerate(shape or ()) if size not in (0, 1)]
    made = [alone.made(*asked, 0, axis) for axis in axes] if len(shape or ()) == rank else [None]
    same = (
        each is not None and each.is_same and Source(0, at) in each.sources
        for at, each in zip(axes, made, strict=False)
    )
    return all(same) if axes else None


def _broadcasts(alone: Alone, asked: Asked) -> bool | None:
    """Whether each input makes one size of the first result where all others have 1; None for a single input."""
    node, imports, given = asked
    count = len(given)
    if count < 2 or None in given:
        return None
    shapes = [[2 + at if axis == count - 1 - at else 1 for axis in range(count)] for at in range(count)]
    types = [Given(tensor(each.type.dtype, shape)) for each, shape in zip(given, shapes, strict=True) if each]
    made = [alone.made(node, imports, types, 0, count - 1 - at) for at in range(count)]
    return all(each is not None and each.sources == (Source(at, count - 1 - at),) for at, each in enumerate(made))


def _true_of_all(answers: Iterator[tuple[str, bool | None]]) -> set[str]:
    """The names with an answer, all of whose answers are True."""
    found: dict[str, bool] = {}
    for name, answer in answers:
        if answer is not None:
            found[name] = found.get(name, True) and answer
    return {name for name, answer in found.items() if answer}


def _here(names: Set[str]) -> set[str]:
    """Those of some operators that the installed onnx has, and those that none has any more."""
    return {*names} & {*_OLD, *(schema.name for schema in onnx.defs.get_all_schemas_with_history())}


def test_an_operator_has_one_kind() -> None:
    listed = [name for text in kinds._KINDS.values() for name in text.split()]
    assert len(listed) == len({*listed})
    assert {*kinds.MOVED_BY_DEFAULT} == kinds._of(1, "placed by default")


def test_every_operator_has_a_kind_or_an_inference_rule() -> None:
    load_rules()
    rows = [line.split("\t") for line in table.TABLE.read_text(encoding="utf-8").splitlines()]
    known = {name for text in kinds._KINDS.values() for name in text.split()} | {*RULES}
    missing = {row[1] for row in rows if row[0] == "" and "deprecated" not in row[2]} - known
    assert not missing, (
        f"name {sorted(missing)} in a row of _KINDS in splitgraph/model/schemas/kinds.py, or write an inference rule"
    )


def test_what_keeps_the_shape_of_the_first_input() -> None:
    alone = Alone()
    asked = [(case.asked, case.result.ndim) for case in _cases()] + [(each, 2) for each in WITHOUT_TESTS]
    kept = _true_of_all((each[0].op_type, _keeps_shape(alone, each, rank)) for each, rank in asked)
    assert kept - kinds.BROADCASTS == _here(kinds.KEEPS_SHAPE | ALSO_KEPT)


def test_what_broadcasts() -> None:
    alone = Alone()
    assert _true_of_all((case.op_type, _broadcasts(alone, case.asked)) for case in _cases()) == _here(kinds.BROADCASTS)


def test_what_reduces() -> None:
    alone, reduced = Alone(), set[str]()
    for name in sorted({case.op_type for case in _cases()}):
        asked = _node(name, [_data(2, 3, 4), _constant([1])], keepdims=1)
        made = [alone.made(*asked, 0, axis) for axis in range(3)]
        if made[1] is None and [each and each.sources for each in made[::2]] == [(Source(0, 0),), (Source(0, 2),)]:
            reduced.add(name)
    assert reduced == _here(kinds.REDUCES)


def test_what_computes_each_element_from_one() -> None:
    mixing, tried = set[str](), set[str]()
    for case in _cases():
        data = case.arrays[0]
        if case.op_type not in kinds.KEEPS_SHAPE | kinds.BROADCASTS or data.size < 2 or case.op_type == "Scatter":
            continue
        evaluator = ReferenceEvaluator(case.model)
        feeds = {name: array for name, array in zip(case.asked[0].input, case.arrays, strict=True) if name}
        tried.add(case.op_type)
        for place in {0, data.size // 2, data.size - 1}:
            changed = data.copy()
            changed.flat[place] = data.flat[(place + 1) % data.size]
            with np.errstate(all="ignore"):
                one, other = (
                    np.asarray(evaluator.run(None, {**feeds, case.asked[0].input[0]: each})[0])
                    for each in (data, changed)
                )
            elsewhere = np.ones(data.shape, bool)
            elsewhere.flat[place] = False
            differs = (one != other) & ~((one != one) & (other != other))
            if (differs & np.broadcast_to(elsewhere, one.shape)).any():
                mixing.add(case.op_type)
    assert tried - mixing - APART == _here(kinds.BY_ELEMENT) - {"Cast", "CastLike", *_OLD}


def test_what_moves_gives_elements_of_its_inputs() -> None:
    for case in _cases():
        if case.op_type in kinds.MOVED:
            read = case.arrays[:1] if case.op_type in kinds.PICKED else case.arrays
            elements = {item for array in read if array is not None for item in np.asarray(array).ravel().tolist()}
            made = {*case.result.ravel().tolist()}
            assert made <= (elements if case.op_type in kinds.PICKED else elements | {0, 1}), case.asked[0]


def _numbers(case: _Case) -> np.ndarray | None:
    """The elements of the first input, if there are two or more of them and they are numbers or truths."""
    data = np.asarray(case.arrays[0])
    return (
        data if data.size > 1 and data.dtype.kind in "biuf" and np.asarray(case.result).dtype.kind in "biuf" else None
    )


def _result_of(case: _Case, data: np.ndarray) -> np.ndarray:
    """What onnx's evaluator gives for another first input."""
    feeds = {name: array for name, array in zip(case.asked[0].input, case.arrays, strict=True) if name}
    with np.errstate(all="ignore"):
        return np.asarray(ReferenceEvaluator(case.model).run(None, {**feeds, case.asked[0].input[0]: data})[0])


def test_what_changes_only_the_shape() -> None:
    def keeps_order(case: _Case) -> bool | None:
        data, made = _numbers(case), np.asarray(case.result)
        if data is None or made.dtype != data.dtype or not np.array_equal(made.ravel(), data.ravel()):
            return None if data is None else False
        # The numbers of a test may be such that an operator keeps them: onnx 1.20 gives Celu none below 0.
        other = ~data if data.dtype.kind in "bu" else -1 - data
        return np.array_equal(_result_of(case, other).ravel(), other.ravel())

    # An optional holds one tensor.
    found = _true_of_all((case.op_type, keeps_order(case)) for case in _cases()) - {"OptionalGetElement"}
    assert found == _here(kinds.RESHAPES)


def test_what_gives_all_elements_in_another_layout() -> None:
    def gives_all(case: _Case) -> bool | None:
        data = _numbers(case)
        return None if data is None else {*data.ravel().tolist()} == {*np.asarray(case.result).ravel().tolist()}

    found = _true_of_all((case.op_type, gives_all(case)) for case in _cases() if case.op_type in kinds.PICKED)
    # These take axes apart, or reverse parts of one.
    assert found - {"DepthToSpace", "ReverseSequence", "SpaceToDepth"} == _here(kinds.LAYOUT)


def test_what_gives_sizes_whatever_the_elements_are() -> None:
    def gives_sizes(case: _Case) -> bool | None:
        data = _numbers(case)
        # onnx's evaluator has no Scatter, and no decoder of its own.
        if data is None or case.op_type in kinds.MADE | {"ImageDecoder", "Scatter"}:
            return None
        return all(
            np.array_equal(_result_of(case, each), case.result) for each in (np.zeros_like(data), np.ones_like(data))
        )

    found = _true_of_all((case.op_type, gives_sizes(case)) for case in _cases())
    assert found - {"OptionalHasElement"} == _here(kinds.SIZES)


def test_what_is_made_has_no_size_of_an_input() -> None:
    alone = Alone()
    found = _true_of_all((case.op_type, not alone.carried(*case.asked)) for case in _cases())
    made = {
        name
        for (shape, numbers), text in kinds._KINDS.items()
        if (shape, numbers) == ("", "made")
        for name in text.split()
    }
    # Without an input, with a body, or with sizes that elements decide; strings, and images that are decoded.
    others = {"AffineGrid", "If", "ImageDecoder", "Loop", "NonMaxSuppression", "NonZero", "OptionalHasElement", "Scan"}
    assert found - others - {"StringSplit"} - kinds.SIZES == _here(made) - {"Constant", "SequenceEmpty"}


def test_what_computes_along_the_spatial_axes_leaves_channels_apart() -> None:
    tried = set[str]()
    for case in _cases():
        data = _numbers(case)
        if data is None or case.op_type not in kinds.SPATIAL:
            continue
        tried.add(case.op_type)
        before = _result_of(case, data)
        for place in {0, data.size // 2, data.size - 1}:
            changed = data.copy()
            changed.flat[place] += 1
            differs = _result_of(case, changed) != before
            differs[np.unravel_index(place, data.shape)[:2]] = False
            assert not differs.any(), case.asked[0]
    assert tried >= {"AveragePool", "GridSample", "InstanceNormalization", "MaxPool", "MaxUnpool", "Resize"}


def test_the_input_that_says_a_size_says_a_shape() -> None:
    # How many indices there are is a size; the lengths of sequences are sizes.
    counted = {("Gather", 1), ("ReverseSequence", 1)}
    of_layers = {("GRUSequence", 2), ("LSTMSequence", 3), ("RNNSequence", 2)}
    # An Identity stands for the reader of a constant that is a result.
    of_layers |= {("Identity", 0)}
    assert {*LAYERS.saying.items()} <= _entries(LAYER_SHAPE_INPUTS) | counted | of_layers
    assert {*SAYING.items()} <= _entries(SHAPE_INPUTS) | counted | {(name, 4) for name in ("GRU", "LSTM", "RNN")}


def test_what_says_where_an_element_stands_reduces_its_axis_to_integers() -> None:
    schemas = [schema for schema in onnx.defs.get_all_schemas() if "select_last_index" in schema.attributes]
    assert {schema.name for schema in schemas} == kinds.ARG_REDUCES
    for name in kinds.ARG_REDUCES:
        asked = _node(name, [_data(2, 3, 4)], axis=1, keepdims=1)
        made = [Alone().made(*asked, 0, axis) for axis in range(3)]
        assert [each and each.sources for each in made] == [(Source(0, 0),), None, (Source(0, 2),)], name


def test_what_reads_and_writes_at_positions_has_indices_and_updates() -> None:
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain]
    inputs = {schema.name: [each.name for each in schema.inputs] for schema in schemas}
    at_positions = {name: read[2:] for name, read in inputs.items() if read[1:2] == ["indices"]}
    assert {name for name, others in at_positions.items() if not others} == kinds.READS_AT
    assert {name for name, others in at_positions.items() if others == ["updates"]} == kinds.WRITES_AT


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
