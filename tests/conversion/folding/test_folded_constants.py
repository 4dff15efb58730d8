"""What is the same in every run becomes a constant, and what is not does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from folded_models import assert_equal_at, constants, fold, model, operators, why
from onnx import TensorProto, helper, numpy_helper

import splitgraph

SHAPES = "(float[2, 3] x) => (float[a, b] y)"

# What must not change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        # Nothing is known.
        "(float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }",
        # A declared shape of an inner value or an output is no size of an input: a run may have another one.
        "(float[N, 4] x) => (int64[2] s) <float[2, 4] h> { h = Relu (x) s = Shape (h) }",
        "(float[N, 4] x) => (float[2, 4] y, int64[2] s) { y = Relu (x) s = Shape (y) }",
        # Random numbers; and functions that runtimes round in their own ways.
        "(float[2] x) => (float[2] y) { r = RandomNormal <shape = [2]> () y = Add (x, r) }",
        "(float[2] x) => (float[2] y) <float[2] a = {1, 2}> { s = Sin (a) y = Add (x, s) }",
        "(float[2] x) => (float[2] y) <float[2] a = {1, 2}> { s = ReduceSum (a) y = Add (x, s) }",
        # A Range whose numbers depend on how a runtime adds up.
        "(float[4] x) => (float[4] y) <float a = {0}, float b = {0.35}, float c = {0.1}> "
        "{ r = Range (a, b, c) y = Add (x, r) }",
        # Integers that overflow, are divided by 0 or with a sign: runtimes differ or stop.
        "(int32[2] x) => (int32[2] y) <int32[2] a = {2147483647, 1}> { s = Add (a, a) y = Add (x, s) }",
        "(int64[2] x) => (int64[2] y) <int64[2] a = {1, 2}, int64[2] b = {0, 1}> { s = Div (a, b) y = Add (x, s) }",
        "(int64[2] x) => (int64[2] y) <int64[2] a = {9007199254740993, 5000000000000000000}> "
        "{ s = Mul (a, a) y = Add (x, s) }",
        "(int8[2] x) => (int8[2] y) <float[2] a = {300, 1}> { s = Cast <to = 3> (a) y = Add (x, s) }",
        # Which zero is the larger one is nowhere said.
        "(float[2] x) => (float[2] y) <float[2] a = {0, 1}, float[2] b = {-0.0, 2}> { s = Max (a, b) y = Add (x, s) }",
        # Weights that are quantized stay so.
        "(float[2] x) => (float[2] y) <int8[2] a = {1, 2}, float b = {0.5}> "
        "{ s = DequantizeLinear (a, b) y = Add (x, s) }",
        # Runtimes round float16 where they like.
        "(float16[2] x) => (float16[2] y) <float16[2] a = {1, 2}> { s = Add (a, a) y = Add (x, s) }",
        # The position that the loop has reached is another one each time.
        "(float[2] x, int64 m) => (float[2] y) <bool t = {1}> { y = Loop <body = b (int64 i, bool c, float[2] s) => "
        "(bool d, float[2] e) { d = Identity (c) f = Cast <to = 1> (i) e = Add (s, f) }> (m, t, x) }",
    ],
)
def test_what_is_not_the_same_in_every_run_stays(body: str) -> None:
    before = model(body)
    rewrite = fold(before)
    assert (rewrite.model, rewrite.changes) == (before, ())


def test_a_default_that_a_caller_may_replace_is_no_constant() -> None:
    body = "(float[1] x, int64[1] a) => (float[b] y) <int64[1] a = {2}> { s = Add (a, a) y = Expand (x, s) }"
    before = model(body)
    assert fold(before).model == before
    assumed = fold(before, assume_defaults=True).model
    assert (operators(assumed), constants(assumed)["s"]) == (["Expand"], [4])


def test_an_accepted_error_says_nothing_of_its_node() -> None:
    before = model(
        "(float[2] x) => (float[2] y) <int64[2] a = {1, 2}, int64[3] b = {1, 2, 3}> "
        "{ s = Add (a, b) t = Shape (s) u = Cast <to = 1> (t) y = Add (x, u) }"
    )
    codes = sorted({found.code for found in splitgraph.infer(before).diagnostics if found.severity == "error"})
    assert codes, "the node is wrong"
    assert splitgraph.convert(before, fold=True, accept=codes).model == before


def test_a_model_with_errors_is_refused() -> None:
    before = model("(float[2] x) => (float[3] y) { y = Relu (z) }")
    with pytest.raises(splitgraph.ConversionError, match="the model is wrong"):
        splitgraph.convert(before, fold=True)


def test_lengths_that_a_split_says_itself_are_no_constant() -> None:
    """With other lengths the model fails; the result would go on."""
    before = model(
        "(float[5] x, int64[1] n) => (float[a] y, float[b] z) { m = Neg (n) k = Neg (m) y, z = Split (x, l) "
        "l2 = Shape (y) }"
    )
    del before.graph.node[:]
    before.graph.node.extend(
        [
            helper.make_node("Abs", ["n"], ["l"]),
            helper.make_node("Split", ["x", "l"], ["y"], axis=0),
            helper.make_node("Relu", ["y"], ["z"]),
        ]
    )
    assert "Abs" in operators(fold(before).model)


def test_strings_and_sequences_stay() -> None:
    before = model("(float[N] x) => (float[N] y) <int64 i = {0}> { s = SequenceConstruct (x) y = SequenceAt (s, i) }")
    assert fold(before).model == before


def test_a_function_of_the_model_with_the_name_of_an_operator_is_its_own() -> None:
    function = """<domain: "", opset_import: ["": 17]> Neg (a) => (b) { b = Identity (a) }"""
    before = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[2] a = {{1, 2}}> {{
        s = Neg (a) y = Add (x, s) }} {function}"""
    )
    assert "Neg" in operators(splitgraph.convert(before, fold=True).model)


def test_another_word_is_no_option() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="fold is 1"):
        splitgraph.convert(model("(float[N] x) => (float[N] y) { y = Relu (x) }"), fold=1)  # type: ignore[arg-type]


# What becomes a constant ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Sizes that are fixed, and arithmetic with them.
        (
            f"{SHAPES} <int64[1] i = {{0}}, int64[1] m = {{-1}}> "
            "{ s = Shape (x) n = Gather (s, i) t = Concat <axis = 0> (m, n) y = Reshape (x, t) }",
            {"t": [-1, 2]},
        ),
        # One of the sizes is free, and what is asked for is not.
        (
            "(float[N, 3] x) => (float[a, b] y) <int64[1] i = {1}, int64[1] m = {-1}> "
            "{ s = Shape (x) n = Gather (s, i) t = Concat <axis = 0> (n, m) y = Reshape (x, t) }",
            {"t": [3, -1]},
        ),
        # Floats of which nothing is rounded, or in one way only; a NaN and a negative zero stay what they are.
        (
            "(float[2] x) => (float[2] y) <float[2] a = {0.1, 3}, float[2] b = {7, 3}> "
            "{ s = Div (a, b) y = Add (x, s) }",
            {"s": [float(np.float32(0.1) / np.float32(7)), 1.0]},
        ),
        (
            "(float[3] x) => (float[3] y) <float a = {0}, float b = {3}, float c = {1}> { r = Range (a, b, c) "
            "y = Add (x, r) }",
            {"r": [0.0, 1.0, 2.0]},
        ),
        # Conditions.
        (
            "(float[2] x) => (float[2] y) <int64[2] a = {1, 2}, int64 b = {2}, float z = {5}> "
            "{ e = Equal (a, b) y = Where (e, x, z) }",
            {"e": [False, True]},
        ),
    ],
)
def test_what_is_the_same_in_every_run_is_a_constant(body: str, expected: dict[str, Any]) -> None:
    before = model(body)
    after = fold(before).model
    found = constants(after)
    assert {name: found[name] for name in expected} == expected
    assert len(after.graph.node) == 1
    assert_equal_at(before, after, [{"N": 2}, {"N": 1}, {"N": 7}])


def test_negative_zeros_and_nan_survive() -> None:
    before = model("(float[3] x) => (float[3] y) <float[3] a = {0, 0, 0}> { s = Mul (a, b) y = Add (x, s) }")
    before.graph.initializer.append(numpy_helper.from_array(np.array([-1, np.nan, 2], np.float32), "b"))
    after = fold(before).model
    made = numpy_helper.to_array(next(tensor for tensor in after.graph.initializer if tensor.name == "s"))
    assert np.signbit(made).tolist()[::2] == [True, False]
    assert np.isnan(made[1])


def test_masks_of_more_elements_than_inference_follows_are_evaluated() -> None:
    before = model(
        "(float[16, 16] x) => (float[16, 16] y) <int64[2] s = {16, 16}, float z = {-9}> "
        "{ o = ConstantOfShape <value = bool {1}> (s) m = Trilu <upper = 0> (o) y = Where (m, x, z) }"
    )
    after = fold(before).model
    assert operators(after) == ["Where"]
    assert constants(after)["m"] == np.tri(16, dtype=bool).tolist()


def test_a_scalar_stays_a_scalar() -> None:
    before = model("(float[2] x) => (float[2] y) <float a = {2}> { s = Neg (a) y = Mul (x, s) }")
    (made,) = fold(before).model.graph.initializer
    assert list(made.dims) == []


def test_constant_nodes_of_the_main_graph_are_initializers() -> None:
    before = model(
        "(float[2] x) => (float[2] y) { a = Constant <value = float[2] {1, 2}> () b = Constant <value_float = 3.0> () "
        "c = Constant <value_ints = [2]> () s = Add (x, a) t = Mul (s, b) y = Reshape (t, c) }"
    )
    rewrite = fold(before)
    assert operators(rewrite.model) == ["Add", "Mul", "Reshape"]
    assert constants(rewrite.model) == {"a": [1.0, 2.0], "b": 3.0, "c": [2]}


# Where constants have to be nodes -------------------------------------------------------------------------------------


def test_what_a_graph_outputs_is_made_by_a_node() -> None:
    after = fold(model("(float[2, 3] x) => (int64[2] s, float[2, 3] y) { s = Shape (x) y = Relu (x) }")).model
    assert operators(after) == ["Constant", "Relu"]


def test_in_bodies_constants_are_nodes() -> None:
    before = model(
        "(float[2, 3] x, bool c) => (float[a, b] y) { y = If <then_branch = t () => (float[d, e] u) "
        "<int64[2] p = {3, 2}> { u = Reshape (x, p) }, else_branch = f () => (float[h, i] v) "
        "{ s = Shape (x) v = Expand (x, s) w = Neg (s) }> (c) }"
    )
    body = fold(before).model.graph.node[0].attribute[1].g
    assert [node.op_type for node in body.node] == ["Constant", "Expand"] or body.node[0].op_type == "Expand"
    assert not body.initializer


def test_in_functions_constants_are_nodes_and_other_calls_have_other_sizes() -> None:
    function = """<domain: "f", opset_import: ["": 17]> Double (a) => (b)
        { t = Constant <value_ints = [1, 2]> () u = Add (t, t) s = Shape (a) n = ReduceSum <keepdims = 0> (s)
          v = Mul (u, n) b = Tile (a, v) }"""
    before = model(
        "(float[1, 2] x, float[3, 1] z) => (float[a, b] y, float[c, d] w) { y = f.Double (x) w = f.Double (z) }",
        functions=function,
    )
    after = splitgraph.convert(before, fold=True).model
    (made,) = after.functions
    assert [node.op_type for node in made.node] == ["Constant", "Shape", "ReduceSum", "Mul", "Tile"]
    assert_equal_at(before, after, [{}])


@pytest.mark.parametrize("ir_version", [3, 4])
def test_below_ir_version_4_constants_are_nodes(ir_version: int) -> None:
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [2, 3])]
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ConstantFill", ["s"], ["c"])][:1]
    nodes.append(helper.make_node("Tile", ["x", "s"], ["y"]))
    graph = helper.make_graph(nodes, "g", inputs, [info("y", TensorProto.FLOAT, ["a", "b"])])
    before = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=ir_version)
    after = fold(before).model
    assert operators(after) == (["Constant", "Tile"] if ir_version < 4 else ["Tile"])
    assert [value.name for value in after.graph.input] == ["x"]


# How much a model may grow --------------------------------------------------------------------------------------------


def growing(count: int, size: int) -> onnx.ModelProto:
    """Weights that nodes make: a file of a few bytes."""
    names = [f"w{place}" for place in range(count)]
    made = " ".join(f"s{place} = ConstantOfShape <value = float {{{place + 2}}}> (n)" for place in range(count))
    added = " ".join(f"v{place} = Add (x, s{place}) w{place} = Relu (v{place})" for place in range(count))
    outputs = ", ".join(f"float[{size}] {name}" for name in names)
    return model(f"(float[{size}] x) => ({outputs}) <int64[1] n = {{{size}}}> {{ {made} {added} }}")


def test_a_model_grows_by_64_kib_at_most() -> None:
    small = fold(growing(3, 4096)).model
    assert "ConstantOfShape" not in operators(small)
    large = growing(5, 4096)
    after = fold(large).model
    assert operators(after).count("ConstantOfShape") >= 1
    assert after.ByteSize() <= large.ByteSize() + 2**16 + 1000


def test_what_replaces_as_large_a_constant_is_no_growth() -> None:
    weights = [numpy_helper.from_array(np.arange(8192, dtype=np.float32) + place, f"w{place}") for place in range(4)]
    nodes = "".join(
        f"n{place} = Neg (w{place}) a{place} = Add ({'x' if not place else f'a{place - 1}'}, n{place}) "
        for place in range(4)
    )
    before = model(f"(float[8192] x) => (float[8192] a3) {{ {nodes} }}")
    before.graph.initializer.extend(weights)
    assert operators(fold(before).model) == ["Add"] * 4


def test_equal_tables_are_one() -> None:
    before = model(
        "(float[512] x) => (float[512] y) <int64[1] n = {512}> { s = ConstantOfShape <value = float {3}> "
        "(n) t = ConstantOfShape <value = float {3}> (n) p = Add (x, s) r = Relu (p) y = Add (r, t) }"
    )
    after = fold(before).model
    assert operators(after) == ["Add", "Relu", "Add"]
    assert len(after.graph.initializer) == 1


# Weights in other files -----------------------------------------------------------------------------------------------


def test_external_data_is_not_read_and_its_shape_is_known(tmp_path: Path) -> None:
    before = model(
        "(float[2] x) => (float[c] y, float[d] z) { s = Shape (w) y = Expand (x, s) v = Neg (w) z = Add (x, v) }"
    )
    before.graph.initializer.append(numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    path = tmp_path / "m.onnx"
    onnx.save(before, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    after = splitgraph.convert(onnx.load(path, load_external_data=False), fold=True).model
    assert "Shape" not in operators(after)
    assert "Neg" in operators(after)


# What is said and kept ------------------------------------------------------------------------------------------------


def test_each_node_that_goes_is_told_with_the_reason() -> None:
    before = model(f"{SHAPES} {{ s = Shape (x) t = Neg (s) u = Neg (t) y = Reshape (x, u) }}")
    before.graph.node[2].name = "sizes"
    assert why(fold(before)) == {"main/sizes": "its elements are the same in every run"}


def test_names_and_metadata_of_other_nodes_are_kept() -> None:
    before = model(
        f"{SHAPES} <int64 i = {{1}}> {{ s = Shape (x) g = Gather (s, i) c = Cast <to = 1> (g) y = Mul (x, c) }}"
    )
    before.graph.node[3].name = "product"
    before.graph.node[3].doc_string = "kept"
    before.graph.node[3].metadata_props.add(key="k", value="v")
    (node,) = fold(before).model.graph.node
    assert node == before.graph.node[3]


def test_nodes_that_stand_for_constants_have_the_metadata_of_what_they_replace() -> None:
    before = model("(float[2, 3] x) => (int64[2] s) { s = Shape (x) }")
    before.graph.node[0].metadata_props.add(key="k", value="v")
    (node,) = fold(before).model.graph.node
    assert (node.op_type, [entry.value for entry in node.metadata_props]) == ("Constant", ["v"])


@pytest.mark.parametrize("options", [{"opset": 13}, {"to": "split"}, {"opset": 18, "to": "split"}, {"ir_version": 9}])
def test_it_comes_before_what_else_is_asked_for(options: dict[str, Any]) -> None:
    before = model(f"{SHAPES} {{ s = Shape (x) y = Expand (x, s) t = Relu (y) }}")
    rewrite = splitgraph.convert(before, fold=True, **options)
    assert "Shape" not in operators(rewrite.model)
    assert rewrite.from_opset[""] == 17
    assert rewrite.to_opset[""] == options.get("opset", 17)


def test_an_ir_is_folded_by_openvino() -> None:
    ir = splitgraph.load(next(Path(__file__).parents[3].glob("models/**/*.xml"), None) or pytest.skip("no IR here"))
    with pytest.raises(splitgraph.SplitgraphError, match="OpenVINO folds an IR itself"):
        splitgraph.convert(ir, fold=True)
