"""Verifications on inputs that the caller gave: wrong ones are refused, expected outputs are compared, and what equal
outputs then prove.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from verifying import verify_models

import splitgraph
from splitgraph.findings.diagnostics import SplitgraphError

from .layer_ir import of_layer
from .small_models import constant, model_of, node, value

pytestmark = pytest.mark.usefixtures("in_process")

WEIGHTS = constant("w", np.ones((4, 4)), np.float32)
ADDED = model_of(
    [node("MatMul", ["x", "w"], ["h"]), node("Add", ["h", "b"], ["y"])],
    [value("x"), value("b", (4,))],
    ["y"],
    [WEIGHTS],
)
X, B = np.arange(8, dtype=np.float32).reshape(2, 4), np.arange(4, dtype=np.float32)
SEQUENCE = model_of(
    [node("SequenceLength", ["s"], ["n"])],
    [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
    [value("n", (), TensorProto.INT64)],
)
SHOWN = "the inputs of the model are x: float32"

REFUSED: list[tuple[Any, str]] = [
    (3, "it must be a mapping of arrays by name, or a list of such mappings"),
    ([], "is an empty list"),
    ([3], r"inputs\[0\] is 3; it must be a mapping"),
    ({"z": X}, f"no input 'z'; {SHOWN}"),
    ({"w": X}, f"no input 'w'; {SHOWN}"),
    ({"x": X.astype(np.float64)}, f"'x' is of type float64; the model takes float32; {SHOWN}"),
    ({"x": X[0]}, r"'x' has the shape \[4\]; the model takes float32\[N, 4\]; " + SHOWN),
    ({"x": X[:, :3]}, f"dimension 1 of the input 'x' is 3; the model takes 4; {SHOWN}"),
    ({"x": [1.0]}, "'x' is a list; the model takes an array"),
    ([{"x": X}, {"b": X}], r"case 1: the input 'b' has the shape \[2, 4\]"),
    ("nowhere.npz", "the inputs nowhere.npz do not exist"),
]


@pytest.mark.parametrize(("inputs", "reason"), REFUSED)
def test_refused(inputs: Any, reason: str) -> None:
    with pytest.raises(SplitgraphError, match=reason):
        splitgraph.verify(ADDED, ADDED, inputs=inputs)


def test_refused_sequences() -> None:
    for wrong, reason in ((X, "is a ndarray; the model takes a list"), ([X, B.astype(np.int64)], "is of type int64")):
        with pytest.raises(ValueError, match=reason):
            verify_models(SEQUENCE, SEQUENCE, inputs={"s": wrong})
    assert verify_models(SEQUENCE, SEQUENCE, inputs={"s": [X, B]}).verdict == "equal"


def test_rewrites_refuse_them_too_and_take_them() -> None:
    with pytest.raises(SplitgraphError, match="no input 'z'"):
        splitgraph.upgrade(ADDED, 21, verify=True, inputs={"z": X})
    found = splitgraph.upgrade(ADDED, 21, verify=True, inputs={"x": X, "b": B}).verification
    assert found is not None
    assert (found.verdict, found.cases) == ("equal", 1)


def is_large(limit: int) -> onnx.ModelProto:
    """Adds 1 where an element is above a limit, which random inputs never reach."""
    nodes = [
        node("Greater", ["x", "limit"], ["large"]),
        node("Where", ["large", "one", "zero"], ["more"]),
        node("Add", ["x", "more"], ["y"]),
    ]
    held = [constant(name, number) for name, number in (("limit", limit), ("one", 1), ("zero", 0))]
    integers = TensorProto.INT64
    return model_of(nodes, [value("x", dtype=integers)], [value("y", dtype=integers)], held)


def test_each_given_case_is_compared() -> None:
    before, after = is_large(10**6), is_large(10**12)
    # Without given inputs, the constants of the model are tried, too.
    assert verify_models(before, after).verdict == "different"
    cases = [{"x": X.astype(np.int64)}, {"x": X.astype(np.int64) + 10**9}]
    assert verify_models(before, after, inputs=cases[0]).verdict == "equal"
    found = verify_models(before, after, inputs=cases)
    assert found.first_difference is not None
    assert (found.verdict, found.first_difference.case) == ("different", 1)


def test_other_inputs_are_drawn_and_sizes_follow_the_given_ones() -> None:
    """More cases than samples, if more are given; as many as samples, if some inputs are drawn."""
    assert verify_models(ADDED, ADDED, inputs={"b": B}).cases == 3
    assert verify_models(ADDED, ADDED, inputs=[{"x": X}, {"x": X[:1]}], samples=1).cases == 2
    assert verify_models(ADDED, ADDED, inputs=[{"x": X, "b": B}, {"x": X[:1], "b": B}]).cases == 2


def test_given_inputs_need_not_give_numbers() -> None:
    """A model is equal to itself, also where its outputs are NaN."""
    model = model_of([node("Log", ["x"], ["y"])], [value("x")], ["y"])
    for given in (X + 1, -1 - X):
        found = verify_models(model, model, inputs={"x": given})
        assert (found.verdict, found.cases, found.diagnostics) == ("equal", 1, ())


def test_forms_of_arrays(tmp_path: Path) -> None:
    """Another byte order, NumPy's texts, and bfloat16, which NumPy stores as bytes."""
    assert verify_models(ADDED, ADDED, inputs={"x": X.astype(">f4"), "b": B}).max_abs_diff == 0
    texts = model_of([node("Identity", ["t"], ["u"])], [value("t", ("N",), TensorProto.STRING)], [value("u", None, 8)])
    np.savez(tmp_path / "texts.npz", t=np.array(["a", "ü"]))
    assert verify_models(texts, texts, inputs=tmp_path / "texts.npz").verdict == "equal"
    halves = model_of(
        [node("Identity", ["x"], ["y"])], [value("x", ("N",), TensorProto.BFLOAT16)], [value("y", None, 16)]
    )
    np.savez(tmp_path / "halves.npz", x=np.arange(3).astype(ml_dtypes.bfloat16))
    assert np.load(tmp_path / "halves.npz")["x"].dtype.kind == "V"
    assert verify_models(halves, halves, inputs=tmp_path / "halves.npz").verdict == "equal"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sets of test data for ADDED, with the right outputs."""
    for number, x in enumerate((X, X[:1])):
        place = tmp_path / f"test_data_set_{number}"
        place.mkdir()
        for name, array in {"input_0": x, "input_1": B, "output_0": x @ np.ones((4, 4), np.float32) + B}.items():
            (place / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    return tmp_path


def test_expected_outputs_that_are_given(folder: Path) -> None:
    found = verify_models(ADDED, ADDED, inputs=folder)
    assert (found.verdict, found.cases, found.diagnostics) == ("equal", 2, ())


def test_expected_outputs_that_are_not_given_are_a_warning(folder: Path) -> None:
    """The verdict is about the two models."""
    path = folder / "test_data_set_1" / "output_0.pb"
    path.write_bytes(numpy_helper.from_array(np.full((1, 4), 9, np.float32)).SerializeToString())
    found = verify_models(ADDED, ADDED, inputs=folder)
    (warning,) = found.warnings
    assert (found.verdict, warning.code) == ("equal", "SG509")
    assert "does not give the outputs of test_data_set_1: y: at [0, 0] the test data has 9.0, the model 6.0" in (
        warning.message
    )
    path.write_bytes(numpy_helper.from_array(np.full((1, 3), 9, np.float32)).SerializeToString())
    assert "the test data has the shape [1, 3]" in verify_models(ADDED, ADDED, inputs=folder).warnings[0].message


def test_small_numbers_of_an_output_may_be_rounded_like_its_large_ones(tmp_path: Path) -> None:
    """As in a Fourier transform; another engine gives 0 for a sum that cancels."""
    model = model_of([node("Identity", ["x"], ["y"])], [value("x", (3,))], [value("y", (3,))])
    for name, numbers in (("input_0", [1000, 1e-3, 1]), ("output_0", [1000.9, 0, 1])):
        made = numpy_helper.from_array(np.array(numbers, np.float32))
        (tmp_path / f"{name}.pb").write_bytes(made.SerializeToString())
    assert verify_models(model, model, inputs=tmp_path).warnings == ()
    (tmp_path / "output_0.pb").write_bytes(
        numpy_helper.from_array(np.array([1000, 0.2, 1], np.float32)).SerializeToString()
    )
    assert [each.code for each in verify_models(model, model, inputs=tmp_path).warnings] == ["SG509"]


def test_expected_outputs_say_nothing_where_inputs_are_drawn(folder: Path) -> None:
    for number in (0, 1):
        (folder / f"test_data_set_{number}" / "input_1.pb").unlink()
    assert verify_models(ADDED, ADDED, inputs=folder).warnings == ()


def test_a_default_that_one_model_lacks_takes_no_value(tmp_path: Path) -> None:
    """An IR has no defaults, so that both models are run with those of the ONNX model."""
    model = model_of([node("Add", ["x", "w"], ["y"])], [value("x", (4, 4)), value("w", (4, 4))], ["y"], [WEIGHTS])
    other = of_layer(tmp_path, "ReLU", "opset1", [("f32", "4,4")], 2)
    with pytest.raises(ValueError, match="the input 'w' is in only one of the models"):
        verify_models(model, other, inputs={"w": np.ones((4, 4), np.float32)})
    pytest.importorskip("openvino", reason="only OpenVINO runs an IR")
    assert verify_models(model, other, inputs={"x": np.ones((4, 4), np.float32)}).verdict == "different"


def test_numbers_count_the_inputs_that_have_defaults(tmp_path: Path) -> None:
    """Old models list their weights as inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(ADDED)
    model.ir_version = 3
    model.graph.input.insert(0, value("w", (4, 4)))
    for number, array in ((1, X), (2, B)):
        (tmp_path / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    assert verify_models(model, model, inputs=tmp_path).cases == 1
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_array(np.ones((4, 4), np.float32)).SerializeToString())
    with pytest.raises(ValueError, match="no input 'w'"):
        verify_models(model, model, inputs=tmp_path)
