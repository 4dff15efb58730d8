"""The layers of make_layers.py that have bodies: branches and iterations."""

from __future__ import annotations

from typing import Any

import openvino as ov
from layer_models import F32, I64, N, const, given, group
from openvino import PartialShape, opset1, opset5, opset8


@group
def branches() -> dict[str, Any]:
    condition, data = given(dtype=bool), given(N, (2, 9))
    first, second = (opset1.parameter(PartialShape([N, N]), F32) for _ in range(2))
    parts = opset1.variadic_split(first, const(1), const([1, -1]))
    then = ov.Model([parts.output(0), parts.output(1)], [first])
    other = ov.Model([opset1.result(opset1.relu(second)), opset1.result(opset1.abs(second))], [second])
    node = opset8.if_op(condition)
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(data.output(0), first, second)
    return {
        "head": node.set_output(then.results[0], other.results[0]),
        "tail": node.set_output(then.results[1], other.results[1]),
    }


@group
def iterated() -> dict[str, Any]:
    data, state = given(2, (3, 9), 8), given(2, 8)
    part, now = opset1.parameter(PartialShape([2, 1, 8]), F32), opset1.parameter(PartialShape([2, 8]), F32)
    added = opset1.add(opset1.squeeze(part, const([1])), now)
    body = ov.Model([opset1.unsqueeze(added, const([1])), added], [part, now], "body")
    node = opset1.tensor_iterator()
    node.set_body(body)
    node.set_sliced_input(part, data.output(0), 0, 1, 1, -1, 1)
    node.set_merged_input(now, state.output(0), body.results[1].output(0))
    return {
        "last": node.get_iter_value(body.results[1].output(0), -1),
        "all": node.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 1),
    }


@group
def iterated_backward() -> dict[str, Any]:
    data, part = given(2, 8, N), opset1.parameter(PartialShape([2, 2, N]), F32)
    body = ov.Model([opset1.relu(part)], [part], "body")
    node = opset1.tensor_iterator()
    node.set_body(body)
    node.set_sliced_input(part, data.output(0), -1, -2, 2, 0, 1)
    return {"all": node.get_concatenated_slices(body.results[0].output(0), -1, -2, 2, 0, 1)}


@group
def split_in_iterations() -> dict[str, Any]:
    data, part = given(2, 8, N), opset1.parameter(PartialShape([2, 1, N]), F32)
    lengths = opset1.parameter(PartialShape([2]), I64)
    body = ov.Model([opset1.variadic_split(part, const(2), lengths).output(0)], [part, lengths], "body")
    node = opset1.tensor_iterator()
    node.set_body(body)
    node.set_sliced_input(part, data.output(0), 0, 1, 1, -1, 1)
    node.set_invariant_input(lengths, const([3, -1]).output(0))
    return {"all": node.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 1)}


@group
def growing() -> dict[str, Any]:
    data, now, step = given(N, 8), opset1.parameter(PartialShape([N, 8]), F32), opset1.parameter(PartialShape([]), I64)
    doubled, number = opset1.concat([now, now], 0), opset1.unsqueeze(step, const([0]))
    body = ov.Model([opset1.result(each) for each in (const(True, bool), doubled, number)], [step, now], "body")
    node = opset5.loop(const(3), const(True, bool))
    node.set_function(body)
    node.set_special_body_ports([0, 0])
    node.set_merged_input(now, data.output(0), body.results[1].output(0))
    return {
        "last": node.get_iter_value(body.results[1].output(0), -1),
        "steps": node.get_concatenated_slices(body.results[2].output(0), 0, 1, 1, -1, 0),
    }
