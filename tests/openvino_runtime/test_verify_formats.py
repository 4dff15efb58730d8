"""verify_models across formats: ONNX and OpenVINO IR, each in an engine that runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper
from verifying import verify_models

import splitgraph
from splitgraph.verification.engines.engine_process import EngineRun, Workplace

from .split_ir import variadic_split


def onnx_split(
    lengths: list[int], *, axis: int = 1, dims: Any = (2, 6), names: str = "ab", dtype: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    held = numpy_helper.from_array(np.array(lengths), "lengths")
    node = helper.make_node("Split", ["x", "lengths"], list(names), name="split", axis=axis)
    inputs = [helper.make_tensor_value_info("x", dtype, dims)]
    outputs = [helper.make_tensor_value_info(name, dtype, [None] * len(dims)) for name in names]
    graph = helper.make_graph([node], "g", inputs, outputs, [held])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


Make = Callable[[Path], Any]
PAIRS: dict[str, tuple[Make, Make, str, str]] = {
    "ONNX and its IR": (
        lambda _: onnx_split([2, 4]),
        lambda at: variadic_split(at, [2, -1]),
        "equal",
        "onnxruntime+openvino",
    ),
    "an IR and its ONNX": (
        lambda at: variadic_split(at, [2, 4]),
        lambda _: onnx_split([2, 4]),
        "equal",
        "openvino+onnxruntime",
    ),
    "two IR": (lambda at: variadic_split(at, [2, 4]), lambda at: variadic_split(at, [-1, 4]), "equal", "openvino"),
    "an interval": (
        lambda at: variadic_split(at, [2, -1], shape="?,3..9"),
        lambda _: onnx_split([2, 5], dims=["N", "M"]),
        "different",
        "openvino+onnxruntime",
    ),
    "a symbol and a dynamic dimension": (
        lambda _: splitgraph.convert(onnx_split([2, 4], dims=["N", "M"]), "split").model,
        lambda at: variadic_split(at, [2, 4], shape="?,?"),
        "equal",
        "onnxruntime+openvino",
    ),
    "other names, by order": (
        lambda _: onnx_split([2, 4]),
        lambda at: variadic_split(at, [2, 4], names=("p", "q"), name="other"),
        "equal",
        "onnxruntime+openvino",
    ),
    "another order, by name": (
        lambda _: onnx_split([2, 4]),
        lambda at: variadic_split(at, [2, 4], order=(1, 0)),
        "equal",
        "onnxruntime+openvino",
    ),
    "other names in another order": (
        lambda _: onnx_split([2, 4]),
        lambda at: variadic_split(at, [2, 4], names=("p", "q"), order=(1, 0)),
        "different",
        "onnxruntime+openvino",
    ),
    "one of several names": (
        lambda _: onnx_split([2, 4]),
        lambda at: variadic_split(at, [2, 4], names=("p,b", "a,q"), order=(0, 1)),
        "different",
        "onnxruntime+openvino",
    ),
    "other lengths": (
        lambda at: variadic_split(at, [2, 4]),
        lambda at: variadic_split(at, [4, 2]),
        "different",
        "openvino",
    ),
    "another axis": (
        lambda at: variadic_split(at, [1, 3], shape="4,4"),
        lambda at: variadic_split(at, [1, 3], shape="4,4", axis=0),
        "different",
        "openvino",
    ),
    "bfloat16": (
        lambda at: variadic_split(at, [2, 4], dtype="bf16"),
        lambda at: variadic_split(at, [2, -1], dtype="bf16"),
        "equal",
        "openvino",
    ),
    "float8": (
        lambda at: variadic_split(at, [2, 4], dtype="f8e4m3"),
        lambda at: variadic_split(at, [2, -1], dtype="f8e4m3"),
        "equal",
        "openvino",
    ),
    "int4": (
        lambda at: variadic_split(at, [1, 4], dtype="i4", shape="3,5"),
        lambda at: variadic_split(at, [1, -1], dtype="i4", shape="3,5"),
        "equal",
        "openvino",
    ),
    "lengths known at run time": (
        lambda at: variadic_split(at, None, shape="?,?"),
        lambda at: variadic_split(at, None, shape="2..8,?"),
        "equal",
        "openvino",
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.sample(5)
def test_verdict(name: str, tmp_path: Path) -> None:
    before, after, verdict, engine = PAIRS[name]
    found = verify_models(before(tmp_path), after(tmp_path))
    assert (found.verdict, found.engine) == (verdict, engine), found
    assert (found.first_difference is None) is (verdict == "equal")


def test_two_engines_are_allowed_what_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They compute in other orders; one engine has no reason to."""

    def nearly_the_same(
        self: Workplace, name: str, attempts: list[Any], seconds: float, **options: object
    ) -> EngineRun:
        run = EngineRun()
        for attempt in attempts:
            parts = [np.full((2, size), 1 + attempt.case, np.float32) for size in (2, 4)]
            run.outputs[0][attempt.case, attempt.attempt] = parts
            run.outputs[1][attempt.case, attempt.attempt] = [part * np.float32(1.0005) for part in parts]
        return run

    monkeypatch.setattr(Workplace, "run", nearly_the_same)
    ir = variadic_split(tmp_path, [2, 4])
    for before, after, verdict in (
        (onnx_split([2, 4]), ir, "equal"),
        (ir, onnx_split([2, 4]), "equal"),
        (ir, ir, "different"),
        (onnx_split([2, 4]), onnx_split([2, 4]), "different"),
    ):
        assert verify_models(before, after).verdict == verdict


def halves() -> onnx.ModelProto:
    model = onnx_split([], dims=["N", "M"])
    del model.graph.node[0].input[1]
    model.graph.node[0].attribute.append(helper.make_attribute("num_outputs", 2))
    return model


def halves_as_openvino_reads_them(at: Path) -> Any:
    """With OpenVINO's Split, which fails where they are uneven."""
    onnx.save(halves(), at / "halves.onnx")
    openvino.serialize(openvino.Core().read_model(at / "halves.onnx"), at / "halves.xml")
    return splitgraph.load(at / "halves.xml")


def halves_with_lengths(at: Path) -> Any:
    splitgraph.save(halves(), at / "lengths.xml")
    return splitgraph.load(at / "lengths.xml")


UNEVEN: dict[str, tuple[Make, dict[str, int], str, str]] = {
    "at any size": (lambda _: halves(), {}, "different", "onnxruntime+openvino"),
    "at uneven sizes only": (lambda _: halves(), {"M": 5}, "different", "onnxruntime+openvino"),
    "at even sizes only": (lambda _: halves(), {"M": 6}, "equal", "onnxruntime+openvino"),
    "two IR": (halves_with_lengths, {}, "different", "openvino"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", UNEVEN)
def test_an_ir_that_fails_where_the_model_before_runs(name: str, tmp_path: Path) -> None:
    make, sizes, verdict, engine = UNEVEN[name]
    found = verify_models(make(tmp_path), halves_as_openvino_reads_them(tmp_path), bind=sizes)
    assert (found.verdict, found.engine) == (verdict, engine), found
    if verdict == "different":
        assert found.first_difference is not None
        assert found.first_difference.case is not None
        assert "must be evenly divisible by 'num_splits'" in found.first_difference.reason
        assert not found.diagnostics


@pytest.mark.usefixtures("in_process")
def test_what_only_the_second_ir_takes_is_no_difference(tmp_path: Path) -> None:
    found = verify_models(halves_as_openvino_reads_them(tmp_path), halves_with_lengths(tmp_path))
    assert (found.verdict, found.cases) == ("equal", 3)


def test_an_output_that_is_in_one_model_only(tmp_path: Path) -> None:
    found = verify_models(onnx_split([2, 4]), variadic_split(tmp_path, [2, 2, 2], names="abc", outputs=3))
    assert (found.verdict, found.engine) == ("different", "")
    assert found.first_difference is not None
    assert (found.first_difference.name, found.first_difference.case) == ("c", None)
    assert "the first model has 2 outputs, the second 3" in found.first_difference.reason


@pytest.mark.usefixtures("in_process")
def test_an_input_with_a_default_may_be_a_constant_afterwards(tmp_path: Path) -> None:
    model = onnx_split([2, 4])
    model.graph.input.append(helper.make_tensor_value_info("lengths", TensorProto.INT64, [2]))
    found = verify_models(model, variadic_split(tmp_path, [2, 4]), samples=3)
    assert found.verdict == "equal"


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_an_engine_that_does_not_run_ir(engine: Any, tmp_path: Path) -> None:
    found = verify_models(onnx_split([2, 4]), variadic_split(tmp_path, [2, 4]), engine=engine)
    assert (found.verdict, found.engine, found.diagnostics[0].code) == ("not-run", "", "SG501")
    assert f"{engine} does not run OpenVINO IR" in found.diagnostics[0].message


def test_both_formats_in_openvino(tmp_path: Path) -> None:
    found = verify_models(onnx_split([2, 4]), variadic_split(tmp_path, [2, 4]), engine="openvino")
    assert (found.verdict, found.engine, found.max_abs_diff) == ("equal", "openvino", 0.0)


def test_onnx_functions_in_openvino() -> None:
    plain = onnx_split([2, 4], dims=["N", "M"])
    found = verify_models(plain, splitgraph.convert(plain, "variadic-split").model, engine="openvino")
    assert (found.verdict, found.engine) == ("equal", "openvino")


def test_splits_are_proved_equal_across_formats(tmp_path: Path) -> None:
    found = verify_models(onnx_split([2, 4]), variadic_split(tmp_path, [2, -1]))
    assert found.proofs == ("main/split",)


def split_1() -> onnx.ModelProto:
    held = numpy_helper.from_array(np.array([2, 4], np.float32), "lengths")
    model = onnx_split([2, 4])
    model.graph.initializer[0].CopyFrom(held)
    model.opset_import[0].version = 1
    return model


FAULTS: dict[str, tuple[Make, str]] = {
    "strings": (lambda at: variadic_split(at, [2, 4], dtype="string"), "when it splits strings"),
    "float4 along an inner axis": (
        lambda at: variadic_split(at, [2, 4], dtype="f4e2m1"),
        "when it splits float4e2m1 along",
    ),
    "lengths as the input of Split-1": (lambda _: split_1(), "ignores the lengths input of Split-1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_known_faults_are_those_of_the_engine(name: str, tmp_path: Path) -> None:
    make, reason = FAULTS[name]
    model = make(tmp_path)
    found = verify_models(model, model, engine="openvino")
    assert found.verdict == "not-run", found
    assert (found.diagnostics[0].code, reason in found.diagnostics[0].message) == ("SG503", True), found.diagnostics


GIVEN: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "a negative rest": ({"lengths": np.array([8, -1])}, "reads beyond the data of 'split': its lengths [8, -1] exceed"),
    "numbers beyond int32": ({"lengths": np.array([2**32 + 2, 4])}, "computes int64 as int32"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_openvino_loses_at_run_time_is_no_difference(name: str, tmp_path: Path) -> None:
    given, reason = GIVEN[name]
    model = variadic_split(tmp_path, None, shape="2,?")
    feeds = {"x": np.zeros((2, 6), np.float32), **given}
    found = verify_models(model, model, inputs=feeds)
    assert found.verdict == "not-run", found
    assert found.diagnostics[0].code == "SG503"
    assert reason in found.diagnostics[0].message
