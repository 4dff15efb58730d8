"""What runtimes were seen to do with nodes that an older table judged wrong, by the table as it is."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import pytest

from splitgraph.runtimes.check import examine, judge_node
from splitgraph.runtimes.target import find_target, targets

ONNXRUNTIME = ["onnxruntime@1.15.1", "onnxruntime@1.17.3", "onnxruntime@1.20.1", "onnxruntime@1.32.0"]
OPENVINO = ["openvino@2023.3.0", "openvino@2024.6.0", "openvino@2026.4.1"]
# The first dimension of their inputs is 5 or 2; weights are initializers, as exporters write them.
WEIGHTS = "float[1, 16, 3] w = {{{}}}, float[1, 16, 4] r = {{{}}}".format(", ".join("0" * 48), ", ".join("0" * 64))
SMALL = "float[1, 4, 3] w = {{{}}}, float[1, 4, 4] r = {{{}}}".format(", ".join("0" * 12), ", ".join("0" * 16))
SCALE = "float[8] s = {1, 1, 1, 1, 1, 1, 1, 1}"
RECURRENT: Mapping[str, tuple[str, int, str, str]] = {
    "LSTM-14 with Y": ("y = LSTM <hidden_size = 4> (x, w, r)", 14, "float[5, 2, 3] x", WEIGHTS),
    "RNN-14 with Y": ("y = RNN <hidden_size = 4> (x, w, r)", 14, "float[5, 2, 3] x", SMALL),
}
OTHERS: Mapping[str, tuple[str, int, str, str]] = {
    "LayerNormalization-17 with one output": ("y = LayerNormalization (x, s)", 17, "float[2, 3, 8] x", SCALE),
    "Softmax-13 with an axis in the middle": ("y = Softmax <axis = 1> (x)", 13, "float[2, 3, 8] x", ""),
    "Softmax-11 with the last axis": ("y = Softmax <axis = 2> (x)", 11, "float[2, 3, 8] x", ""),
}


def verdict(model: tuple[str, int, str, str], target: str) -> str:
    """What is known of a node in the middle of a graph."""
    body, opset, data, weights = model
    body = body if "[n]" in body else f"[n] {body}"
    held = f"<{weights}>" if weights else ""
    text = (
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({data.replace(" x", " x0")}) => (float[] z) {held} '
        f"{{ h = Constant <value = float {{0.5}}> () x = Add (x0, h) {body} z = Mul (y, h) }}"
    )
    (node,) = (node for node in examine(onnx.parser.parse_model(text)).nodes if node.node.name == "n")
    return judge_node(node, find_target(target)).verdict


@pytest.mark.parametrize("target", [*ONNXRUNTIME, *OPENVINO])
@pytest.mark.parametrize("model", RECURRENT)
def test_a_recurrent_operator_with_its_first_output_runs(model: str, target: str) -> None:
    """All cases with Y had layout=1, and the output was blamed."""
    assert verdict(RECURRENT[model], target) == "reads"


@pytest.mark.parametrize("target", [*ONNXRUNTIME[-1:], *OPENVINO])
@pytest.mark.parametrize("model", OTHERS)
def test_other_nodes_that_run(model: str, target: str) -> None:
    assert verdict(OTHERS[model], target) == "reads"


@pytest.mark.parametrize("target", [*OPENVINO, "opencv@4.14.0", "opencv@5.0.0"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("opset", [11, 12])
def test_softmax_that_flattens_gives_other_numbers(opset: int, axis: int, target: str) -> None:
    """All cases had the last axis."""
    assert verdict((f"y = Softmax <axis = {axis}> (x)", opset, "float[2, 3, 8] x", ""), target) == "wrong"


def test_no_measured_runtime_is_said_to_run_what_no_case_was_like() -> None:
    model = ("y = Softmax <axis = 1> (x)", 13, "float[2, 3, 2, 2, 2, 2, 2, 2, 2] x", "")
    for target in targets().values():
        if target.operators.measured:
            assert verdict(model, target.key) != "reads", target.key


@pytest.mark.parametrize(("axis", "expected"), [("", "wrong"), ("<axis = 1>", "reads")])
def test_an_axis_that_is_left_out_is_another_thing_than_one_that_is_written(axis: str, expected: str) -> None:
    """MNN takes the default of the newest version."""
    assert verdict((f"y = Softmax {axis} (x)", 11, "float[2, 3, 8] x", ""), "mnn@3.6.1") == expected


@pytest.mark.parametrize(
    ("index", "reader", "expected"),
    [
        ("", "Cast <to = 1>", "refuses"),
        ("", "Cast <to = 7>", "reads"),
        ("<int64 i = {1}>", "Cast <to = 1>", "reads"),
    ],
)
def test_a_size_that_a_constant_node_picks_becomes_no_float_in_opencv_5(index: str, reader: str, expected: str) -> None:
    held = "" if index else "i = Constant <value_int = 1> () "
    body = f"s = Shape (x) {held}[n] d = Gather (s, i) f = {reader} (d) y = Expand (x, s)"
    model = (body, 17, "float[2, 3, 8] x", index.strip("<>"))
    assert verdict(model, "opencv@5.0.0") == expected


@pytest.mark.parametrize("target", ["opencv@5.0.0", "mnn@3.6.1", "openvino@2026.4.1", "onnxruntime@1.32.0"])
@pytest.mark.parametrize(
    "body",
    [
        # torch writes the sizes behind those that an index replaces, of which there may be none.
        "s = Shape (x) a = Constant <value_ints = [3]> () [n] p = Slice (s, a, b) q = Concat <axis = 0> (s, p) "
        "y = Expand (x, q)",
        "a = Constant <value_ints = [2]> () [n] p = Slice (x, a, b, i) y = Concat <axis = 1> (x, p)",
    ],
)
def test_nothing_that_a_concat_joins_is_read(body: str, target: str) -> None:
    """A part of data without elements was blamed, which is another thing: it is an output of the graph."""
    lists = f"b = Constant <value_ints = [{2**63 - 1}]> () i = Constant <value_ints = [1]> () "
    assert verdict((lists + body, 17, "float[2, 2, 8] x", ""), target) == "reads"


@pytest.mark.parametrize(("target", "expected"), [("opencv@5.0.0", "wrong"), ("mnn@3.6.1", "refuses")])
def test_a_part_without_elements_that_is_not_joined_is_not_read(target: str, expected: str) -> None:
    lists = f"a = Constant <value_ints = [2]> () b = Constant <value_ints = [{2**63 - 1}]> () "
    body = "i = Constant <value_ints = [1]> () [n] p = Slice (x, a, b, i) y = Relu (p)"
    assert verdict((lists + body, 17, "float[2, 2, 8] x", ""), target) == expected


@pytest.mark.parametrize(("target", "expected"), [("opencv@4.14.0", "refuses"), ("opencv@5.0.0", "reads")])
def test_a_shared_vector_is_a_matrix_in_opencv_4(target: str, expected: str) -> None:
    """Its only case was an output of the graph, and nothing broadcast it."""
    weight = "float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}"
    assert verdict(("[n] p = Identity (w) y = Mul (x, p)", 16, "float[2, 3, 8] x", weight), target) == expected
    assert (
        verdict(("[n] p = Identity (w) y = LayerNormalization (x, p)", 17, "float[2, 3, 8] x", weight), target)
        == "reads"
    )


MEASURED = ["onnxruntime@1.15.1", "opencv@5.0.0", "tract@0.23.9", "mnn@3.6.1", "openvino@2023.3.0", "tvm@0.27.0"]
RANGE = "s = Shape (x) i = Constant <value_int = 0> () d = Gather (s, i) r = Range (i, d, one) "
# What is computed of sizes, beside the type of the data.
OF_SIZES: Mapping[str, tuple[str, str, str]] = {
    "positions of rank 4 from an open size": (
        RANGE + "p = Unsqueeze (r, axes) [n] y = Gather <axis = 0> (x, p)",
        "float[N, 4] x",
        "int64 one = {1}, int64[3] axes = {0, 1, 3}",
    ),
    "positions of rank 3 from a fixed size": (
        RANGE + "p = Unsqueeze (r, axes) [n] y = Gather <axis = 0> (x, p)",
        "float[5, 4] x",
        "int64 one = {1}, int64[2] axes = {0, 2}",
    ),
    "positions that are computed from constants": (
        "p = Add (i, j) [n] g = Gather (t, p) y = Add (x, g)",
        "float[2, 3] x",
        "int64[2, 3] i = {0, 1, 0, 1, 0, 1}, int64 j = {0}, float[2, 3] t = {1, 2, 3, 4, 5, 6}",
    ),
    "an element of each row, for an open number of rows": (
        "s = Shape (x) p = Expand (i, s) [n] y = GatherElements <axis = 1> (x, p)",
        "float[N, 3] x",
        "int64[1, 3] i = {0, 2, 1}",
    ),
    "an element of each row, for a fixed number of rows": (
        "s = Shape (x) p = Expand (i, s) [n] y = GatherElements <axis = 1> (x, p)",
        "float[2, 3] x",
        "int64[1, 3] i = {0, 2, 1}",
    ),
    "the rest of a fixed size": (
        "s = Shape (x) j = Constant <value_int = 0> () d = Gather (s, j) [n] m = Mod (d, three) a = Unsqueeze (m, o) "
        "y = Expand (x, a)",
        "float[4, 1] x",
        "int64 three = {3}, int64[1] o = {0}",
    ),
}


@pytest.mark.parametrize("target", MEASURED)
@pytest.mark.parametrize("model", OF_SIZES)
def test_what_is_computed_of_sizes_is_read(model: str, target: str) -> None:
    """No case had indices like these, or a size that was known; and cases of TVM made a list of a size by Reshape."""
    body, data, weights = OF_SIZES[model]
    assert verdict((body, 17, data, weights), target) == "reads"


@pytest.mark.parametrize("target", [target for target in MEASURED if not target.startswith("tvm")])
def test_rows_are_written_at_positions_of_an_open_size(target: str) -> None:
    """The only case made a matrix of fixed sizes of the positions, which tract refuses."""
    body = RANGE + "p = Unsqueeze (r, axes) [n] y = ScatterND (x, p, u)"
    weights = "int64 one = {1}, int64[1] axes = {1}, float[2, 3] u = {1, 2, 3, 4, 5, 6}"
    assert verdict((body, 17, "float[N, 3] x", weights), target) == "reads"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("i = Cast <to = 7> (x) [n] m = Mod (i, four) y = Cast <to = 1> (m)", "wrong"),
        ("i = Cast <to = 7> (x) j = Add (i, four) [n] m = Mod (j, four) y = Cast <to = 1> (m)", "wrong"),
        ("i = Cast <to = 7> (x) [n] m = Mod <fmod = 1> (i, four) y = Cast <to = 1> (m)", "reads"),
        ("i = Cast <to = 6> (x) [n] m = Mod (i, int) y = Cast <to = 1> (m)", "reads"),
    ],
)
def test_the_rest_of_what_is_cast_to_int64_has_the_sign_of_the_data_in_tract(body: str, expected: str) -> None:
    weights = "int64 four = {4}, int32 int = {4}"
    assert verdict((body, 17, "float[2, 6] x", weights), "tract@0.23.9") == expected
    assert verdict((body, 17, "float[2, 6] x", weights), "onnxruntime@1.32.0") == "reads"


def test_a_matrix_that_is_turned_may_have_an_open_number_of_columns_in_tract() -> None:
    """They were taken for what the product reads."""
    weight = "float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] c = {1, 2}"
    assert verdict(("y = Gemm <transA = 1> (x, w, c)", 17, "float[3, N] x", weight), "tract@0.23.9") == "reads"


@pytest.mark.parametrize(("length", "expected"), [(0, "wrong"), (1, "reads")])
def test_a_number_made_of_no_size_is_garbage_in_mnn(length: int, expected: str) -> None:
    sizes = "{2}" if length else "{}"
    body = "[n] c = ConstantOfShape <value = float[1] {1}> (l) y = Add (x, c)"
    assert verdict((body, 17, "float[4, 2] x", f"int64[{length}] l = {sizes}"), "mnn@3.6.1") == expected


@pytest.mark.parametrize("target", ["tvm@0.27.0", "onnxruntime@1.32.0"])
@pytest.mark.parametrize(
    ("body", "data", "weights"),
    [
        ("y = HardSigmoid <alpha = 0.2> (x)", "float[2, 3, 4, 4] x", ""),
        ("y = Squeeze (x, a)", "float[2, 1, 3, 2, 4] x", "int64[1] a = {1}"),
        ("y = Conv <kernel_shape = [1, 3], pads = [0, 1, 0, 1]> (x, w)", "float[1, 1, 4, 4] x",
         "float[1, 1, 1, 3] w = {1, 2, 3}"),
    ],
)  # fmt: skip
def test_forms_of_layers_that_no_case_of_tvm_had(body: str, data: str, weights: str, target: str) -> None:
    assert verdict((body, 17, data, weights), target) == "reads"


@pytest.mark.parametrize(("target", "expected"), [("tract@0.23.9", "refuses"), ("opencv@5.0.0", "reads")])
@pytest.mark.parametrize("data", ["float[N, M] x", "float[N, 3, M, 4] x"])
def test_tract_multiplies_no_open_dimension_with_another_one(data: str, target: str, expected: str) -> None:
    assert verdict(("y = Flatten <axis = 2> (x)", 17, data, ""), target) == expected
    assert verdict(("y = Flatten <axis = 2> (x)", 17, data.replace("N", "2"), ""), target) == "reads"


def of_ml(body: str, target: str) -> str:
    """What is known of a node of ai.onnx.ml in the middle of a graph."""
    text = (
        '<ir_version: 8, opset_import: ["": 13, "ai.onnx.ml": 1]> g (float[N, 3] x0) => (float[] z) '
        f"{{ h = Constant <value = float {{0.5}}> () x = Add (x0, h) {body} z = Mul (y, h) }}"
    )
    (node,) = (node for node in examine(onnx.parser.parse_model(text)).nodes if node.node.name == "n")
    return judge_node(node, find_target(target)).verdict


LINEAR = "[n] y = ai.onnx.ml.LinearRegressor <coefficients = [0.1, 0.2, 0.3], intercepts = [0.5]> (x)"
NORMALIZED = '[n] y = ai.onnx.ml.Normalizer <norm = "L2"> (x)'


@pytest.mark.parametrize(
    ("target", "linear", "normalized"),
    [
        *((target, "reads", "reads") for target in (*ONNXRUNTIME, "tract@0.23.9")),
        (OPENVINO[-1], "refuses", "reads"),
        *((target, "refuses", "refuses") for target in (*OPENVINO[:-1], "mnn@3.6.1", "tvm@0.27.0", "opencv@5.0.0")),
    ],
)
def test_operators_of_skl2onnx_are_known(target: str, linear: str, normalized: str) -> None:
    """No case of them was measured, not in onnxruntime either."""
    assert (of_ml(LINEAR, target), of_ml(NORMALIZED, target)) == (linear, normalized)


def of_ends(node: str, data: str, weights: str, target: str) -> str:
    """What is known of a node that reads the input of the graph and gives its output."""
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({data}) => (float[] y) <{weights}> {{ {node} }}'
    (judged,) = (judge_node(node, find_target(target)) for node in examine(onnx.parser.parse_model(text)).nodes)
    return judged.verdict


@pytest.mark.parametrize(("target", "expected"), [("opencv@4.14.0", "wrong"), ("opencv@5.0.0", "reads")])
def test_opencv_loses_an_input_that_is_a_part_of_the_result(target: str, expected: str) -> None:
    """All cases had other nodes before the Concat."""
    node, numbers = "y = Concat <axis = 1> (x, c)", ", ".join("0" * 40)
    one, two = (f"float[{size}, {2 // size}, 4, 5] c = {{{numbers}}}" for size in (1, 2))
    assert of_ends(node, "float[1, 3, 4, 5] x", one, target) == expected
    assert of_ends(node, "float[2, 3, 4, 5] x", two, target) == "reads"


@pytest.mark.parametrize(("target", "expected"), [("mnn@3.6.1", "wrong"), ("onnxruntime@1.15.1", "reads")])
def test_mnn_returns_an_image_for_a_convolution_of_rank_3(target: str, expected: str) -> None:
    weights = "float[3, 4, 2] w = {{{}}}".format(", ".join("0" * 24))
    for operator in ("Conv", "ConvTranspose"):
        held = weights.replace("[3, 4", "[4, 3") if operator == "ConvTranspose" else weights
        assert of_ends(f"y = {operator} (x, w)", "float[2, 4, 9] x", held, target) == expected


@pytest.mark.parametrize("target", ["mnn@3.6.1", "onnxruntime@1.15.1"])
def test_a_gelu_that_is_approximated_is_as_near_as_a_run_has_to_be(target: str) -> None:
    body = "a = Div (x, root) e = Erf (a) b = Add (e, one) [n] c = Mul (x, b) y = Mul (c, half)"
    weights = "float root = {1.4142135}, float one = {1}, float half = {0.5}"
    assert verdict((body, 17, "float[2, 3, 8] x", weights), target) == "reads"


_W = "float[2, 3, 3] w = {" + ", ".join("0" * 18) + "}"
_OPENCV_4 = ["opencv@4.10.0", "opencv@4.14.0"]


@pytest.mark.parametrize("target", _OPENCV_4)
@pytest.mark.parametrize(("pads", "expected"), [([1, 1], "reads"), ([2, 0], "wrong")])
def test_a_convolution_of_rank_3_is_padded_alike_at_both_ends(pads: list[int], expected: str, target: str) -> None:
    """Causal convolutions are padded at one end. Of images, OpenCV 4 reads all pads."""
    body = f"y = Conv <kernel_shape = [3], pads = {pads}, strides = [1], dilations = [1], group = 1> (x, w)"
    assert verdict((body, 11, "float[2, 3, 9] x", _W), target) == expected


_PAIRS = (
    "int64[2, 2] p = {0, 1, 2, 0}, int64[1] zero = {0}, int64[1] last = {-1}, int64[1] end = {-9223372036854775807}"
)


@pytest.mark.parametrize("target", _OPENCV_4)
@pytest.mark.parametrize(
    ("body", "weights", "expected"),
    [
        ("[n] c = ConstantOfShape <value = int64[1] {1}> (k) y = Expand (x, c)", "int64[1] k = {3}", "reads"),
        (
            "s = Shape (x) [n] c = ConstantOfShape <value = float[1] {1}> (s) y = Add (x, c)",
            "int64[1] k = {3}",
            "refuses",
        ),
        (
            "[n] r = Slice (p, last, end, zero, last) t = Cast <to = 1> (r) u = ReduceSum (t) y = Mul (x, u)",
            _PAIRS,
            "reads",
        ),
        ("[n] y = Slice (x, last, end, zero, last)", _PAIRS, "refuses"),
    ],
)
def test_what_is_all_constants_is_computed_when_a_model_is_read(
    body: str, weights: str, expected: str, target: str
) -> None:
    """OpenCV 4 refused these nodes in all cases, of which none had constants alone."""
    assert verdict((body, 13, "float[2, 3, N] x", weights), target) == expected


# What whole models showed: the node, the opset, its data and constants, and what runtimes do with it.
IN_MODELS: Mapping[str, tuple[tuple[str, int, str, str], Mapping[str, str]]] = {
    "a mean over three axes of rank 5": (
        ("y = ReduceMean (x, a)", 18, "float[2, 3, 2, 4, 5] x", "int64[3] a = {2, 3, 4}"),
        {"opencv@4.14.0": "reads", "openvino@2026.4.1": "reads"},
    ),
    "a mean over three axes of rank 4": (
        ("y = ReduceMean (x, a)", 18, "float[2, 3, 4, 5] x", "int64[3] a = {1, 2, 3}"),
        {"opencv@4.14.0": "wrong", "openvino@2026.4.1": "reads"},
    ),
    "columns of an open number in reverse": (
        (
            "[n] y = Slice (x, s, s2, a, s)",
            13,
            "float[N, 3, H, W] x",
            f"int64[1] s = {{-1}}, int64[1] s2 = {{{-(2**63 - 1)}}}, int64[1] a = {{3}}",
        ),
        {"mnn@3.6.1": "refuses", "opencv@5.0.0": "reads"},
    ),
    "scores by a vector": (
        ("[n] s = MatMul (x, v) y = Tanh (s)", 13, "float[N, T, 4] x", "float[4] v = {1, 2, 3, 4}"),
        {"openvino@2026.4.1": "reads", "openvino@2023.3.0": "reads"},
    ),
    "scores by a vector that are scaled": (
        ("[n] y = MatMul (x, v)", 13, "float[N, T, 4] x", "float[4] v = {1, 2, 3, 4}"),
        {"openvino@2026.4.1": "refuses", "openvino@2023.3.0": "reads"},
    ),
    "zeros of the default type for an open size": (
        ("s = Shape (x) [n] c = ConstantOfShape (s) y = Add (x, c)", 13, "float[N, 3] x", ""),
        {"tract@0.23.9": "refuses", "onnxruntime@1.15.1": "reads", "openvino@2023.3.0": "reads"},
    ),
    "the first size alone, as a list": (
        (
            "[n] s = Shape <start = 0, end = 1> (x) l = Concat <axis = 0> (s, t) y = Expand (x, l)",
            17,
            "float[N, 1] x",
            "int64[1] t = {3}",
        ),
        {"openvino@2023.3.0": "wrong", "openvino@2026.4.1": "reads", "opencv@5.0.0": "reads"},
    ),
    "a Dropout that was exported in training": (
        ("y = Dropout (x, r, t)", 13, "float[2, 6] x", "float r = {0.1}, bool t = {1}"),
        {"openvino@2026.4.1": "refuses", "openvino@2023.3.0": "refuses", "tract@0.23.9": "reads"},
    ),
    "a Dropout that was not": (
        ("y = Dropout (x, r, t)", 13, "float[2, 6] x", "float r = {0.1}, bool t = {0}"),
        {"openvino@2026.4.1": "reads", "openvino@2023.3.0": "reads", "mnn@3.6.1": "reads", "opencv@5.0.0": "reads"},
    ),
    "a mask as numbers": (
        ("c = Greater (x, b) [n] y = Cast <to = 1> (c)", 13, "float[2, 6] x", "float b = {0.5}"),
        {"opencv@4.14.0": "reads", "opencv@5.0.0": "reads"},
    ),
    "a list of a fixed size as numbers": (
        ("s = Shape (x) i = Constant <value_ints = [0]> () d = Gather (s, i) [n] y = Cast <to = 1> (d)", 13,
         "float[2, 6] x", ""),
        {"opencv@4.14.0": "reads", "opencv@5.0.0": "reads"},
    ),
    "exponentials below zero": (
        ("y = Celu <alpha = 0.7> (x)", 13, "float[2, 6] x", ""),
        {"tract@0.23.9": "wrong", "onnxruntime@1.15.1": "reads"},
    ),
    "positions that are counted as int32": (
        ("c = Cast <to = 9> (x) i = Cast <to = 6> (c) [n] s = CumSum (i, a) y = Cast <to = 1> (s)", 13,
         "float[2, 6] x", "int64 a = {1}"),
        {"tract@0.23.9": "reads"},
    ),
    "positions that are counted as int64": (
        ("c = Cast <to = 9> (x) i = Cast <to = 7> (c) [n] s = CumSum (i, a) y = Cast <to = 1> (s)", 13,
         "float[2, 6] x", "int64 a = {1}"),
        {"tract@0.23.9": "refuses"},
    ),
    "a size as a list": (
        ("s = Shape (x) i = Constant <value_int = 0> () [n] d = Gather (s, i) l = Unsqueeze (d, z) "
         "t = Concat <axis = 0> (l, l) y = Expand (x, t)", 13, "float[N, 1] x", "int64[1] z = {0}"),
        {"tvm@0.27.0": "reads", "onnxruntime@1.15.1": "reads"},
    ),
    "integers above a bound": (
        ("i = Cast <to = 7> (x) [n] c = Clip (i, b) y = Cast <to = 1> (c)", 17, "float[2, 6] x", "int64 b = {3}"),
        {"opencv@5.0.0": "refuses", "tract@0.23.9": "reads"},
    ),
    "reflected ends of rank 3": (
        ('y = Pad <mode = "reflect"> (x, p)', 13, "float[2, 3, 8] x", "int64[6] p = {0, 0, 2, 0, 0, 2}"),
        {"opencv@4.14.0": "refuses", "onnxruntime@1.15.1": "reads"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "target", "expected"),
    [(model, target, answer) for model, (_, answers) in IN_MODELS.items() for target, answer in answers.items()],
)
def test_what_models_showed(model: str, target: str, expected: str) -> None:
    assert verdict(IN_MODELS[model][0], target) == expected


@pytest.mark.parametrize(("target", "expected"), [("opencv@4.14.0", "wrong"), ("opencv@5.0.0", "reads")])
def test_a_convolution_is_judged_as_what_it_is_where_the_model_returns_it(target: str, expected: str) -> None:
    """The rank of what is returned stood in place of the rank, and the padding at one end was not told."""
    weight = "float[6, 4, 3] w = {{{}}}".format(", ".join("0" * 72))
    text = (
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 4, 9] x) => (float[2, 6, 9] y) <{weight}> '
        "{ r = Relu (x) [n] y = Conv <pads = [2, 0]> (r, w) }"
    )
    (node,) = (node for node in examine(onnx.parser.parse_model(text)).nodes if node.node.name == "n")
    assert judge_node(node, find_target(target)).verdict == expected
