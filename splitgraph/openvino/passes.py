"""Passes over an `ov.Model` that write its splits in the other form, in place, bodies of If, TensorIterator and Loop
included.

Import them from `splitgraph.openvino`: this module imports openvino, whose class they extend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from openvino import opset1, opset8
from openvino.passes import ModelPass

from splitgraph.conversion.rewrite import Change
from splitgraph.findings.diagnostics import Diagnostic, diagnostic

# Operators with bodies, and how many each has.
_BODIES = {"If": 2, "TensorIterator": 1, "Loop": 1}
_KEEP = "Nothing to do: OpenVINO runs both. Give the dimension a fixed size (ov.Model.reshape) to have it converted."


class _SplitPass(ModelPass):  # type: ignore[misc]  # openvino's passes are untyped
    """A pass over the splits of one type.

    changes, diagnostics: of the last run: every split that was rewritten, and a warning (SG408) for every one that the
    other form cannot express, which is left as it is.
    """

    _replaced = ""
    _written = ""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []
        self.diagnostics: list[Diagnostic] = []

    def run_on_model(self, model: Any) -> bool:
        """Rewrite the splits of a model; return True if there were any to rewrite."""
        self.changes.clear()
        self.diagnostics.clear()
        return self._run(model, "main")

    def _run(self, model: Any, path: str) -> bool:
        count = len(self.changes)
        for node in model.get_ordered_ops():
            location = f"{path}/{node.get_friendly_name()}"
            for name, body in _bodies(node):
                self._run(body, f"{location}/{name}")
            if node.get_type_name() == self._replaced:
                self._replace(node, location)
        if len(self.changes) == count:
            return False
        model.validate_nodes_and_infer_types()
        return True

    def _replace(self, node: Any, location: str) -> None:
        made = self._make(node)
        if isinstance(made, str):
            text = f"{made}; the {self._replaced} is left as it is"
            self.diagnostics.append(diagnostic("SG408", text, location, severity="warning", help=_KEEP))
            return
        _take_place(node, made)
        why = f"pass {type(self).__name__}"
        self.changes.append(Change(location, f"{self._replaced}-1", f"{self._written}-1", why))

    def _make(self, node: Any) -> Any:
        """Return the node that replaces a split, or the reason why there is none."""
        raise NotImplementedError


class SplitToVariadicSplit(_SplitPass):
    """Turns every Split into a VariadicSplit: with constant lengths where the dimension is static, computed ones
    (ShapeOf, Gather, Divide, Broadcast) where it is dynamic.
    """

    _replaced, _written = "Split", "VariadicSplit"

    def _make(self, node: Any) -> Any:
        data, axis = node.input_value(0), node.input_value(1)
        count = node.get_output_size()
        size = _static_dim(data, _constant_axis(node))
        if size is not None:
            if size % count:
                return f"a dimension of {size} has no {count} equal parts"
            lengths = _constant([size // count] * count)
        else:
            lengths = _constant([-1]) if count == 1 else _equal_lengths(data, axis, count)
        return opset1.variadic_split(data, axis, lengths)


class VariadicSplitToSplit(_SplitPass):
    """Turns every VariadicSplit with equal parts of a static dimension into a Split; the others stay."""

    _replaced, _written = "VariadicSplit", "Split"

    def _make(self, node: Any) -> Any:
        data, axis = node.input_value(0), _constant_axis(node)
        if axis is None:
            return "the axis or the rank is known only at run time, so the parts may have any lengths"
        size = _static_dim(data, axis)
        if size is None:
            return "Split makes equal parts of whatever a dimension is, and cannot pin one that is dynamic"
        lengths = _lengths(node, axis, size)
        if lengths is None:
            return "the lengths are known only at run time"
        if min(lengths) < 0 or sum(lengths) != size:
            return f"the lengths {list(lengths)} do not sum to the dimension, which is {size}"
        if len(set(lengths)) > 1:
            return f"Split makes equal parts, and these are {', '.join(map(str, lengths))}"
        given = node.input_value(1)
        is_scalar = given.get_partial_shape().rank.is_static and not len(given.get_partial_shape())
        return opset1.split(data, given if is_scalar else _constant(axis), len(lengths))


def _bodies(node: Any) -> Iterator[tuple[str, Any]]:
    count = _BODIES.get(node.get_type_name(), 0)
    if count == 2:
        yield "then_body", node.get_function(0)
        yield "else_body", node.get_function(1)
    elif count:
        yield "body", node.get_function()


def _constant(values: Sequence[int] | int) -> Any:
    return opset1.constant(np.array(values, np.int64))


def _numbers(value: Any) -> list[int] | None:
    """Return the elements of a constant, None for a computed value."""
    node = value.get_node()
    if node.get_type_name() != "Constant":
        return None
    return [int(number) for number in np.ravel(node.get_data(dtype=np.int64))]


def _constant_axis(node: Any) -> int | None:
    """Return the axis from 0 on. Return None if the axis or the rank is known only at run time, or if there is no such
    axis.
    """
    numbers, shape = _numbers(node.input_value(1)), node.input_value(0).get_partial_shape()
    if numbers is None or len(numbers) != 1 or shape.rank.is_dynamic:
        return None
    axis, rank = numbers[0], shape.rank.get_length()
    return axis % rank if -rank <= axis < rank else None


def _static_dim(value: Any, axis: int | None) -> int | None:
    if axis is None:
        return None
    dim = value.get_partial_shape()[axis]
    return int(dim.get_length()) if dim.is_static else None


def _lengths(node: Any, axis: int, size: int) -> list[int] | None:
    """Return the lengths with the rest in place of a -1; computed lengths as OpenVINO inferred them."""
    given = _numbers(node.input_value(2))
    if given is not None:
        rest = size - sum(given) - 1
        return [rest if length == -1 else length for length in given]
    dims = [node.get_output_partial_shape(index)[axis] for index in range(node.get_output_size())]
    return [int(dim.get_length()) for dim in dims] if all(dim.is_static for dim in dims) else None


def _equal_lengths(data: Any, axis: Any, count: int) -> Any:
    shape = opset8.shape_of(data, "i64")
    dim = opset8.gather(shape, axis, _constant(0))
    return opset8.broadcast(opset1.divide(dim, _constant(count)), _constant([count]))


def _take_place(old: Any, new: Any) -> None:
    """Replace a node by another, which gets its name, runtime information, tensor names and readers."""
    new.set_friendly_name(old.get_friendly_name())
    _copy_runtime_info(old, new)
    for before, after in zip(old.outputs(), new.outputs(), strict=True):
        _copy_runtime_info(before, after)
        names = before.get_names()
        for target in before.get_target_inputs():
            target.replace_source_output(after)
        after.add_names(names)


def _copy_runtime_info(before: Any, after: Any) -> None:
    # By set_rt_info: the mapping itself takes texts and numbers only, and OpenVINO keeps attributes of its own there.
    for key, value in before.get_rt_info().items():
        after.set_rt_info(value, key)
