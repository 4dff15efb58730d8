"""Check every model of the catalogue: `python models/check_models.py [FILE...]`.

Each model is checked in a child process, because a C++ abort is one of the answers: onnx's checker with shape
inference, then every engine that the index names, at two sizes, against each other, against the shapes that the model
declares, and against the outputs that the exporting program computed itself, where there are any.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import catalogue
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

TIMEOUT_SECONDS = 120

REFERENCE_WITH_SPLIT_1 = "reference with a Split-1 of ours"


class Split(OpRun):  # onnx finds a kernel by its class name
    """Split-1 for onnx's reference evaluator, which has kernels from Split-2 on."""

    def _run(
        self,
        x: np.ndarray,
        lengths: np.ndarray | None = None,
        axis: int | None = None,
        split: Sequence[int] | None = None,
        num_outputs: None = None,
    ) -> tuple[np.ndarray, ...]:
        parts = split if lengths is None else lengths.astype(np.int64)
        return tuple(np.split(x, np.cumsum(parts)[:-1], axis or 0))


def check(files: Sequence[str], expected: Mapping[str, Path] | None = None) -> int:
    """Check the named models, each in a child process, and return how many failed."""
    failed = 0
    for file in files:
        command = [sys.executable, __file__, "--in-this-process", file]
        if expected and file in expected:
            command += ["--expected", str(expected[file])]
        try:
            child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            failed += 1
            print(f"FAILED  {file}: not done after {TIMEOUT_SECONDS} s")
            continue
        if child.returncode == 0:
            print(f"ok      {file}: {child.stdout.strip()}")
        else:
            failed += 1
            print(f"FAILED  {file}: exit {child.returncode}\n{child.stdout}{child.stderr}")
    return failed


def check_one(row: Mapping[str, Any], expected: Path | None) -> str:
    """Check one model here, and say what was checked.

    Raises:
        AssertionError: the model is not what the index says.
    """
    path = catalogue.FOLDER / row["file"]
    assert path.stat().st_size == row["bytes"], "the file is not the one that the index describes"
    model = onnx.load(path)
    assert catalogue.splits_of(model) == row["splits"], "the splits are not those that the index lists"
    if not row["valid"]:
        return f"refused by the checker, as it must be: {_refusal(model)}"
    onnx.checker.check_model(model, full_check=True)

    engines = row["engines"] or (REFERENCE_WITH_SPLIT_1,)
    for number, case in enumerate(row["cases"]):
        inputs = inputs_for(model, row, case)
        results = {engine: _run(engine, model, inputs) for engine in engines}
        if expected is not None:
            results["exporting program"] = _stored(expected, number, inputs, model)
        _compare(model, case["dims"], results)
    return f"{', '.join(engines)}, {len(row['cases'])} sizes"


def inputs_for(model: onnx.ModelProto, row: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Inputs for one case: the values that it gives, and random ones (seeded by the input's name) for the rest."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name in case["values"]:
            inputs[value.name] = np.array(case["values"][value.name], dtype)
            continue
        shape = [size_of(dim, case["dims"]) for dim in value.type.tensor_type.shape.dim]
        rng = np.random.default_rng(zlib.crc32(value.name.encode()))
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            inputs[value.name] = rng.integers(*row["ranges"][value.name], shape).astype(dtype)
    return inputs


def size_of(dim: onnx.TensorShapeProto.Dimension, dims: Mapping[str, int]) -> int:
    """The size of a dimension: a number, a symbol of the case, or a sum of such symbols."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    return sum(dims[symbol] for symbol in dim.dim_param.split(" + "))


def _refusal(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as refusal:
        return str(refusal).splitlines()[0]
    raise AssertionError("the checker accepts a model that is invalid on purpose")


def _run(engine: str, model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    if engine == "reference":
        return ReferenceEvaluator(model).run(None, inputs)
    if engine == REFERENCE_WITH_SPLIT_1:
        return ReferenceEvaluator(model, new_ops=[Split]).run(None, inputs)
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def _stored(path: Path, number: int, inputs: Mapping[str, np.ndarray], model: onnx.ModelProto) -> list[np.ndarray]:
    with np.load(path) as arrays:
        for name, value in inputs.items():
            assert np.array_equal(arrays[f"{number}.{name}"], value), f"input {name} is not what the exporter was given"
        return [arrays[f"{number}.{output.name}"] for output in model.graph.output]


def _compare(model: onnx.ModelProto, dims: Mapping[str, int], results: Mapping[str, Sequence[Any]]) -> None:
    first, *others = results
    for position, output in enumerate(model.graph.output):
        is_sequence = output.type.HasField("sequence_type")
        declared = output.type.sequence_type.elem_type if is_sequence else output.type
        found = results[first][position] if is_sequence else [results[first][position]]
        for value in found:
            _check_shape(output.name, declared.tensor_type.shape.dim, np.shape(value), dims)
        for other in others:
            compared = results[other][position] if is_sequence else [results[other][position]]
            assert len(compared) == len(found), f"{output.name}: {first} and {other} differ in length"
            for one, two in zip(found, compared, strict=True):
                _check_equal(f"{output.name}: {first} and {other} differ", np.asarray(one), np.asarray(two))


def _check_shape(name: str, declared: Sequence[Any], shape: tuple[int, ...], dims: Mapping[str, int]) -> None:
    assert len(declared) == len(shape), f"{name}: rank {len(shape)}, declared {len(declared)}"
    for dim, size in zip(declared, shape, strict=True):
        known = dim.HasField("dim_value") or set(dim.dim_param.split(" + ")) <= set(dims)
        assert not known or size_of(dim, dims) == size, f"{name}: {shape} is not the declared shape"


def _check_equal(message: str, one: np.ndarray, two: np.ndarray) -> None:
    if np.issubdtype(one.dtype, np.floating):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5, err_msg=message, strict=True)
    else:
        np.testing.assert_array_equal(two, one, err_msg=message, strict=True)


def main() -> int:
    """Parse the command line and check; the exit code is 1 when a model fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="models to check (default: all of the index)")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--expected", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = {row["file"]: row for row in catalogue.read()}
    if options.in_this_process:
        print(check_one(rows[options.files[0]], options.expected))
        return 0
    return 1 if check(options.files or list(rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
