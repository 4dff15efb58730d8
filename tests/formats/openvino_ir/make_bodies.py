"""Makes bodies.zip with the installed OpenVINO: an If, a TensorIterator and a Loop with splits in their bodies.

Run by hand: python tests/formats/openvino_ir/make_bodies.py
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as op

HERE = Path(__file__).parent


def integers(values: object) -> ov.Node:
    return op.constant(np.array(values, np.int64))


def if_model() -> ov.Model:
    rows = ov.Dimension(2, 8)
    condition, x = op.parameter([], np.bool_, name="condition"), op.parameter(ov.PartialShape([rows, 6]), name="x")
    taken = op.parameter(ov.PartialShape([rows, 6]))
    split = op.variadic_split(taken, integers(1), integers([2, -1]))
    split.set_friendly_name("then_split")
    then_body = ov.Model([op.result(split.output(0))], [taken], "then")
    other = op.parameter(ov.PartialShape([rows, 6]))
    else_body = ov.Model([op.result(op.split(other, integers(1), 3).output(1))], [other], "else")
    layer = op.if_op(condition.output(0))
    layer.set_then_body(then_body)
    layer.set_else_body(else_body)
    layer.set_input(x.output(0), taken, other)
    output = layer.set_output(then_body.results[0], else_body.results[0])
    return ov.Model([op.result(output)], [condition, x], "if")


def tensor_iterator_model() -> ov.Model:
    x, part, total = op.parameter([4, 3, 6], name="x"), op.parameter([1, 3, 6]), op.parameter([1, 3, 2])
    split = op.split(part, integers(2), 3)
    summed, first = op.result(op.add(split.output(2), total)), op.result(split.output(0))
    layer = op.tensor_iterator()
    layer.set_body(ov.Model([summed, first], [part, total], "body"))
    layer.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    layer.set_merged_input(total, op.constant(np.zeros((1, 3, 2), np.float32)).output(0), summed.output(0))
    last = layer.get_iter_value(summed.output(0), -1)
    parts = layer.get_concatenated_slices(first.output(0), 0, 1, 1, -1, 0)
    return ov.Model([op.result(last), op.result(parts)], [x], "tensor_iterator")


def loop_model() -> ov.Model:
    x, iteration, carried = op.parameter([3, 6], name="x"), op.parameter([1], np.int64), op.parameter([3, 6])
    split = op.variadic_split(carried, integers(1), op.constant(np.array([5, 1], np.int32)))
    again = op.result(op.constant(np.array([True])))
    swapped, second = op.result(op.concat([split.output(1), split.output(0)], 1)), op.result(split.output(1))
    layer = op.loop(integers(3), op.constant(np.array(True)))
    layer.set_function(ov.Model([again, swapped, second], [iteration, carried], "body"))
    layer.set_special_body_ports([0, 0])
    layer.set_merged_input(carried, x.output(0), swapped.output(0))
    last = layer.get_iter_value(swapped.output(0), -1)
    parts = layer.get_concatenated_slices(second.output(0), 0, 1, 1, -1, 1)
    return ov.Model([op.result(last), op.result(parts)], [x], "loop")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(HERE / "bodies.zip", "w", 8) as archive:
        for make in (if_model, tensor_iterator_model, loop_model):
            path = Path(folder) / f"{make.__name__.removesuffix('_model')}.xml"
            ov.save_model(make(), path, compress_to_fp16=False)
            for file in (path, path.with_suffix(".bin")):
                # A ZipInfo of its own date: the archive must not depend on when it is made.
                archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes(), 8)


if __name__ == "__main__":
    main()
