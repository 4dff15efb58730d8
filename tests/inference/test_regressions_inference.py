"""What inference once got wrong, found by random models that were run."""

from __future__ import annotations

import struct

import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.dim import Facts, Obligation, dim_max, symbol
from splitgraph.inference import infer_model, walk_state


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def test_bounds_are_those_of_the_symbol_that_is_shown() -> None:
    """Symbols are numbered anew when they are shown; the bounds once were those of another symbol of that number."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x, float[M] y) => (int64[1, A] alone, float[1, 1, B] p) {
            alone = NonZero (x)
            both = NonZero (y)
            axis = Constant <value_ints: ints = [0]> ()
            row = Unsqueeze (both, axis)
            twice = Cast <to: int = 1> (row)
            p = MaxPool <kernel_shape: ints = [5]> (twice)
        }"""
    )
    for value in model.graph.output:
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.INT64, None))
    analysis = infer_model(model)
    assert str(analysis.types["both"]) == "int64[1, unk0]"
    assert analysis.symbols["unk0"] == (4, None)


def test_parts_of_unlike_lengths_share_no_symbol() -> None:
    """A sequence's elements may differ where its type says nothing; a symbol there once made them look alike."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4, N] x) => (float[M, N] y) {
            size = Constant <value_int: int = 3> ()
            parts = SplitToSequence <axis: int = 0> (x, size)
            same = Identity (parts)
            rows = SplitToSequence <axis: int = 1> (x, size)
            y = ConcatFromSequence <axis: int = 0> (same)
        }"""
    )
    analysis = infer_model(model)
    assert [str(analysis.types[name]) for name in ("parts", "same", "rows")] == [
        "sequence(float32[?, N])",
        "sequence(float32[?, N])",
        "sequence(float32[4, ?])",
    ]
    assert str(analysis.types["y"]) == "float32[4, N]"


def test_a_computed_reshape_target_that_can_be_0_copies() -> None:
    """`M % 2` is 0 for a tensor that has elements, and then copies; it once was taken for the dimension."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[M, 3] x) => (float[A, B] y) {
            shape = Shape (x)
            four = Constant <value_int: int = 4> ()
            target = Mod (shape, four)
            y = Reshape (x, target)
        }"""
    )
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    analysis = infer_model(model)
    assert analysis.ok
    assert str(analysis.types["y"]) == "float32[M, 3]"
    assert analysis.obligations == ()


def test_the_remainder_of_a_maximum_is_not_that_of_its_symbol() -> None:
    """`max(K, 2) % 4 == 0` once moved the bounds of K, again and again, until K == 4 was a contradiction."""
    largest = dim_max(symbol("K"), 2)
    facts = Facts()
    assert facts.require(Obligation(largest % 4, "==", 0)) == "assumed"
    assert facts.require(Obligation(largest // 4, "==", 1)) == "assumed"
    assert not facts.prove_ne(symbol("K"), 4)


def test_calls_beyond_a_bound_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 25 functions that call each other twice once kept inference busy for hours."""
    monkeypatch.setattr(walk_state, "most_calls", lambda model: 2)
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[4] x, float[6] y, float[8] z) => (float[A] a, float[B] b, float[C] c) {
            a, rest = f.halves (x)
            same, again = f.halves (x)
            b, more = f.halves (y)
            c, most = f.halves (z)
        }
        <domain: "f", opset_import: ["" : 18]>
        halves (data) => (left, right) { left, right = Split <num_outputs: int = 2> (data) }"""
    )
    analysis = infer_model(model)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG303", "warning")]
    found = [str(analysis.types[name]) for name in ("rest", "again", "more", "most")]
    assert found == ["float32[2]", "float32[2]", "float32[3]", "unknown"]
    # What all calls have in common is not what those have that were followed.
    assert analysis.details.graphs["F", 0].types["data"].shape is None


@pytest.mark.parametrize(
    ("data", "condition", "expected"),
    [
        ("float[4] x", "[1, 0, 1]", "float32[2]"),
        ("float[2] x", "[1, 0, 0]", "float32[1]"),
        ("float[2] x", "[1, 0, 1]", "float32[?]"),
        ("float[0] x", "[1]", "float32[?]"),
        ("float[N] x", "[0, 0]", "float32[0]"),
        ("float[N] x", "[0, 1]", "float32[?]"),
    ],
)
def test_a_condition_beyond_the_last_element_keeps_nothing_for_certain(
    data: str, condition: str, expected: str
) -> None:
    """onnxruntime passes over what lies beyond; it once was counted."""
    model = model_of(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g ({data}) => (float[K] y) {{
            numbers = Constant <value_ints: ints = {condition}> ()
            held = Cast <to: int = 9> (numbers)
            y = Compress <axis: int = 0> (x, held)
        }}"""
    )
    model.graph.output[0].ClearField("type")
    assert str(infer_model(model).types["y"]) == expected


@pytest.mark.parametrize("dim", ["M", "1"])
@pytest.mark.parametrize(
    ("stride", "expected"), [(1, "float32[...]"), (2, "float32[1, 3, 0]"), (3, "float32[1, 3, ?]")]
)
def test_a_window_larger_than_a_dimension_that_can_only_be_one(stride: int, expected: str, dim: str) -> None:
    """What does not fit is judged alike where it is written as a number and where it is known to be one."""
    model = model_of(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[{dim}] a, float[1, 3, {dim}] x) => (float[K] y) {{
            one = Constant <value_ints: ints = [1]> ()
            same = Reshape (a, one)
            y = MaxPool <kernel_shape: ints = [3], strides: ints = [{stride}]> (x)
        }}"""
    )
    model.graph.output[0].ClearField("type")
    analysis = infer_model(model)
    assert analysis.ok is (stride > 1)
    assert str(analysis.types["y"]) == expected


@pytest.mark.parametrize("opset", [0, -1, 29_000, 2**40])
def test_an_opset_that_nobody_knows(opset: int) -> None:
    model = model_of('<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { y = Relu (x) }')
    model.opset_import[0].version = opset
    assert [found.code for found in infer_model(model).diagnostics] == ["SG103"]


def test_constants_in_another_file_are_not_taken_for_those_here() -> None:
    """Two of the same type, of which the second has raw data by mistake: it once had the first one's elements."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[6] x) => (float[a, b] y, float[c, d] z) { y = Reshape (x, here) z = Reshape (x, there) }"""
    )
    for name in ("here", "there"):
        model.graph.initializer.add(
            name=name, data_type=onnx.TensorProto.INT64, dims=[2], raw_data=struct.pack("<2q", 2, 3)
        )
    model.graph.initializer[1].data_location = onnx.TensorProto.EXTERNAL
    types = infer_model(model).types
    assert (str(types["y"]), str(types["z"])) == ("float32[2, 3]", "float32[c, d]")


NOTHING = "p = Split <axis = 0> (x, none)"
FOUND = "i = NonZero (v) x = Transpose (i)"
SIZES_OF_NOTHING = {
    "before": (f"{NOTHING} DIVISION", "float[C, 4] x"),
    "after": (f"DIVISION {NOTHING}", "float[C, 4] x"),
    "a generated symbol, before": (f"{FOUND} {NOTHING} DIVISION", "float[M] v"),
    "a generated symbol, after": (f"{FOUND} DIVISION {NOTHING}", "float[M] v"),
}
DIVISIONS = {
    "reshape": "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (minus, s) z = Reshape (y, t)",
    "arithmetic": "s = Shape <start = 0, end = 1> (x) u = Shape <start = 0, end = 1> (y) d = Div (u, s)"
    " q = Expand (one, d) h = Shape (q) k = Sub (h, one) z = Expand (minus, k) e = Slice (y, none, d)",
}


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
@pytest.mark.parametrize(("order", "given"), SIZES_OF_NOTHING.values(), ids=SIZES_OF_NOTHING)
def test_division_by_a_dimension_that_is_found_to_be_0(order: str, given: str, division: str) -> None:
    """It ended in a ZeroDivisionError."""
    constants = "int64[1] none = {0}, int64[1] minus = {-1}, int64[1] one = {1}"
    text = f"g ({given}, float[A, 4] y) => () <{constants}> {{ {order.replace('DIVISION', division)} }}"
    analysis = infer_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))
    assert analysis.types["z"].dtype in ("float32", "int64")
