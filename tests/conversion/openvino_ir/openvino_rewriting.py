"""Models built, rewritten and run with OpenVINO itself: prints, for each model and target, what came out.

A process of its own: `python openvino_rewriting.py FOLDER`. "equal" and the layers of the result, or "refused" and why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset8 as ops

import splitgraph
from splitgraph.conversion.openvino_ir import convert_ir

Case = tuple[str, ov.Model, dict[str, np.ndarray]]


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def model_of(parts: Any, inputs: list[Any]) -> ov.Model:
    """Each part with its length added to it, so that parts cannot be exchanged unnoticed."""
    results = []
    for index, part in enumerate(parts.outputs()):
        made = ops.add(part, ops.constant(np.float32(index)))
        made.output(0).get_tensor().set_names({f"part_{index}"})
        results.append(made)
    return ov.Model(results, inputs)


def split(shape: list[Any], axis: int, count: int, dtype: Any = np.int64) -> Any:
    x = ops.parameter(ov.PartialShape(shape), np.float32, name="x")
    made = ops.split(x, ops.constant(dtype(axis)), count)
    made.set_friendly_name("the split")
    return model_of(made, [x])


def variadic(shape: list[Any], axis: Any, lengths: Any) -> Any:
    x = ops.parameter(ov.PartialShape(shape), np.float32, name="x")
    return model_of(ops.variadic_split(x, ops.constant(axis), ops.constant(lengths)), [x])


def in_branches() -> ov.Model:
    """An If whose branches split in two ways."""
    condition, x = ops.parameter([], bool, name="condition"), ops.parameter([2, 6], np.float32, name="x")
    bodies = []
    for equal in (True, False):
        inner = ops.parameter([2, 6], np.float32, name="inner")
        lengths = ops.constant(np.array([3, -1]))
        made = ops.split(inner, ops.constant(1), 2) if equal else ops.variadic_split(inner, ops.constant(1), lengths)
        bodies.append((ov.Model([ops.result(ops.relu(made.output(0)))], [inner]), inner))
    chosen = ops.if_op(condition)
    for place, (body, _) in zip(("then", "else"), bodies, strict=True):
        getattr(chosen, f"set_{place}_body")(body)
    chosen.set_input(x.output(0), bodies[0][1], bodies[1][1])
    out = chosen.set_output(bodies[0][0].results[0], bodies[1][0].results[0])
    return ov.Model([ops.result(out)], [condition, x])


def in_iterations() -> ov.Model:
    """A TensorIterator that splits each row."""
    x = ops.parameter([5, 1, 6], np.float32, name="x")
    row = ops.parameter([1, 1, 6], np.float32, name="row")
    made = ops.split(row, ops.constant(2), 3)
    result = ops.result(ops.add(made.output(0), made.output(2)))
    body = ov.Model([result], [row])
    iterator = ops.tensor_iterator()
    iterator.set_body(body)
    iterator.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    out = iterator.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0)
    return ov.Model([ops.result(out)], [x])


def two_splits() -> ov.Model:
    x = ops.parameter(ov.PartialShape([-1, 4]), np.float32, name="x")
    rows = ops.split(x, ops.constant(0), 2)
    columns = ops.variadic_split(rows.output(1), ops.constant(np.array([-1])), ops.constant(np.array([2, 2], np.int32)))
    return ov.Model([ops.relu(rows.output(0)), *(ops.relu(part) for part in columns.outputs())], [x])


def cases() -> Iterator[Case]:
    interval = ov.Dimension(2, 8)
    yield "static", split([2, 6], 1, 3), {"x": numbers(2, 6)}
    yield "dynamic", split([2, -1], 1, 3, np.int32), {"x": numbers(2, 9)}
    yield "interval", split([interval, 4], -2, 2, np.int32), {"x": numbers(4, 4)}
    yield "one part", split([2, -1], 1, 1), {"x": numbers(2, 5)}
    yield "equal, axis [1]", variadic([2, 6], np.array([1]), np.array([3, -1], np.int32)), {"x": numbers(2, 6)}
    yield "equal, axis scalar", variadic([2, 6], np.int32(-1), np.array([2, 2, 2])), {"x": numbers(2, 6)}
    yield "uneven", variadic([2, 6], np.int64(1), np.array([4, -1])), {"x": numbers(2, 6)}
    yield "uneven dynamic", variadic([2, -1], np.int64(1), np.array([4, -1])), {"x": numbers(2, 7)}
    yield "a rest alone", variadic([2, -1], np.int64(1), np.array([-1])), {"x": numbers(2, 7)}
    yield "a rest alone, interval", variadic([interval, 4], np.int32(0), np.array([-1], np.int32)), {"x": numbers(3, 4)}
    yield "a rest alone, axis [1]", variadic([-1, -1], np.array([-1]), np.array([-1])), {"x": numbers(2, 5)}
    yield "a rest alone, static", variadic([2, 6], np.int64(1), np.array([-1])), {"x": numbers(2, 6)}
    yield (
        "a rest alone, scalar axis from the end",
        variadic([-1, 3, 2], np.int64(-3), np.array([-1])),
        {"x": numbers(4, 3, 2)},
    )
    yield "one length pinned", variadic([2, -1], np.int64(1), np.array([7])), {"x": numbers(2, 7)}
    yield "two lengths pinned", variadic([-1, 2], np.int64(0), np.array([3, 3])), {"x": numbers(6, 2)}
    yield "two splits", two_splits(), {"x": numbers(6, 4)}
    yield "If", in_branches(), {"condition": np.array(True), "x": numbers(2, 6)}
    yield "TensorIterator", in_iterations(), {"x": numbers(5, 1, 6)}


def layers(model: Any) -> list[str]:
    """The types of the splits of a model, those of bodies included."""
    found = []
    for element in model.root.iter("layer"):
        if element.get("type") in ("Split", "VariadicSplit"):
            found.append(element.get("type"))
    return found


def main(folder: Path) -> None:
    core, told = ov.Core(), {}
    for name, model, feeds in cases():
        path = folder / f"{len(told)}.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        before = run(core, path, feeds)
        for to in ("variadic-split", "split"):
            try:
                rewritten = convert_ir(splitgraph.load(path), to).model
            except splitgraph.ConversionError as error:
                told[f"{name} to {to}"] = ["refused", [found.code for found in error.diagnostics]]
                continue
            after = folder / f"{path.stem}.{to}.xml"
            splitgraph.save(rewritten, after)
            results = run(core, after, feeds)
            same = len(before) == len(results) and all(map(np.array_equal, before, results))
            told[f"{name} to {to}"] = ["equal" if same else "different", layers(rewritten)]
    print(json.dumps(told))


def run(core: ov.Core, path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled({index: feeds[port.any_name] for index, port in enumerate(compiled.inputs)})
    return [results[index] for index in range(len(compiled.outputs))]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
