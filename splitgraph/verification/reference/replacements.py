"""Implementations of operators of ai.onnx that replace those of onnx's reference evaluator.

`kernels`, `recurrent`, `resizing` and `older` run versions that the evaluator ignores or lacks. The classes here mend
single faults of others, such as a Loop whose condition is omitted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_average_pool
from onnx.reference.ops.op_grid_sample import GridSample
from onnx.reference.ops.op_roi_align import RoiAlign

from splitgraph.verification.reference.kernels import ONNX_KERNEL_VERSIONS, Array, run_onnx
from splitgraph.verification.reference.older import OLDER_VERSIONS, run_older
from splitgraph.verification.reference.recurrent import RECURRENT_VERSIONS, run_recurrent
from splitgraph.verification.reference.resizing import RESIZE_VERSIONS, run_resize
from splitgraph.verification.values import UnsupportedError, as_text, is_text

# Runs a version of an operator: its inputs and attributes, None for an absent one, and how many outputs it has.
_RunVersion = Callable[[str, int, Sequence[Array | None], Mapping[str, Any], int], tuple[Any, ...]]


def implementation(op_type: str, since_version: int) -> type[OpRun] | None:
    """Return the implementation of an ai.onnx operator; None to use that of the evaluator."""
    return _BY_VERSION.get((op_type, since_version)) or _BY_NAME.get(op_type)


class _Kernel(OpRun):
    """Runs an operator on a kernel of splitgraph; each subclass has an operator version."""

    version: ClassVar[tuple[str, int]]
    run_version: ClassVar[_RunVersion]

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        op_type, since_version = self.version
        arrays = [as_text(value) if isinstance(value, np.ndarray) and is_text(value) else value for value in inputs]
        count = len(self.onnx_node.output)
        return type(self).run_version(op_type, since_version, arrays, attributes, count)[:count]


def _kernel_class(op_type: str, since_version: int, run_version: _RunVersion) -> type[_Kernel]:
    schema = onnx.defs.get_schema(op_type, since_version)
    members = {"version": (op_type, since_version), "op_schema": schema, "run_version": staticmethod(run_version)}
    return type(f"{op_type}_{since_version}", (_Kernel,), members)


class _Div(OpRun):
    """Div of whole numbers is rounded towards 0. onnx 1.20 rounds it down."""

    def _run(self, dividend: Any, divisor: Any) -> tuple[Any, ...]:
        if np.issubdtype(dividend.dtype, np.integer):
            # What is left is divisible.
            return ((dividend - np.fmod(dividend, divisor)) // divisor,)
        return (np.divide(dividend, divisor).astype(dividend.dtype),)


class _Softplus(OpRun):
    """Softplus of large numbers is finite. onnx 1.20 overflows."""

    def _run(self, values: Any) -> tuple[Any, ...]:
        return ((np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))).astype(values.dtype),)


class _Loop(OpRun):
    """Loop as specified: an omitted condition is true, and scan outputs get a new first axis."""

    def need_context(self) -> bool:
        return True

    def _run(self, trip_count: Any = None, cond: Any = None, *carried: Any, context: Any = None, **_: Any) -> Any:
        body: Any = self.body  # type: ignore[attr-defined]  # OpRun sets the attributes of the node
        state = list(carried)
        scans: list[list[Any]] = [[] for _ in range(len(body.output_names) - 1 - len(state))]
        limit = None if trip_count is None else int(np.asarray(trip_count).reshape(()))
        alive = cond is None or bool(np.asarray(cond).reshape(()))
        iteration = 0
        while alive and (limit is None or iteration < limit):
            feeds = dict(context or {})
            arguments = [np.array(iteration, dtype=np.int64), np.array(True), *state]
            feeds.update(zip(body.input_names, arguments, strict=True))
            results = body.run(None, feeds)
            alive = bool(np.asarray(results[0]).reshape(()))
            state = results[1 : 1 + len(state)]
            for scan, value in zip(scans, results[1 + len(state) :], strict=True):
                scan.append(value)
            iteration += 1
        stacked = [_stack(scan, index) for scan, index in zip(scans, body.output_types[1 + len(state) :], strict=True)]
        return (*state, *stacked)


def _stack(values: list[Any], declared: Any) -> Any:
    if values:
        return np.stack(values)
    tensor = declared.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise UnsupportedError("a loop without iterations gives a scan output of undeclared type")
    shape = [dim.dim_value for dim in tensor.shape.dim]
    return np.empty((0, *shape), dtype=onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


class _Scan(OpRun):
    """Scan since opset 9, with axes and directions.

    The evaluator has neither, and onnx 1.20 returns the last row.
    """

    def need_context(self) -> bool:
        return True

    def _run(self, *inputs: Any, context: Any = None, num_scan_inputs: int = 0, **attributes: Any) -> tuple[Any, ...]:
        body: Any = attributes["body"]
        state, scanned = list(inputs[: len(inputs) - num_scan_inputs]), inputs[len(inputs) - num_scan_inputs :]
        rows = _oriented(
            [
                np.moveaxis(data, axis, 0)
                for data, axis in zip(scanned, _each(attributes, "scan_input_axes"), strict=False)
            ],
            _each(attributes, "scan_input_directions"),
        )
        if len({len(data) for data in rows}) != 1:
            raise ValueError(f"Scan over inputs of different lengths {[len(data) for data in rows]}")
        scans: list[list[Any]] = [[] for _ in body.output_names[len(state) :]]
        for arguments in zip(*rows, strict=True):
            feeds = {**(context or {}), **dict(zip(body.input_names, (*state, *arguments), strict=True))}
            results = body.run(None, feeds)
            state = results[: len(state)]
            for scan, value in zip(scans, results[len(state) :], strict=True):
                scan.append(value)
        types = body.output_types[len(state) :]
        stacked = [_stack(scan, declared) for scan, declared in zip(scans, types, strict=True)]
        turned = _oriented(stacked, _each(attributes, "scan_output_directions"))
        axes = _each(attributes, "scan_output_axes")
        return (*state, *(np.moveaxis(data, 0, axis) for data, axis in zip(turned, axes, strict=False)))


def _each(attributes: Mapping[str, Any], name: str) -> Iterator[int]:
    """Return the numbers of an attribute, one for each input or output; zeros if it is absent."""
    given = attributes.get(name)
    return iter(given) if given else itertools.repeat(0)


def _oriented(values: Sequence[Any], directions: Iterator[int]) -> list[Any]:
    """Reverse the first axis of the values whose direction is 1."""
    return [data[::-1] if direction else data for data, direction in zip(values, directions, strict=False)]


class _Gather(OpRun):
    """Gather. onnx 1.20 returns no dimensions if there are no indices."""

    def _run(self, data: Array, indices: Array, axis: int = 0, **_: Any) -> tuple[Array]:
        return (np.asarray(np.take(data, indices.astype(np.int64), axis=axis)),)


class _Cast1(OpRun):
    """Cast-1, whose `to` is the name of a type."""

    def _run(self, data: Array, to: str = "", **_: Any) -> tuple[Array]:
        return (data.astype(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(to.upper()))),)


class _BatchNormalization(OpRun):
    """BatchNormalization before opset 14. The evaluator computes it with statistics of the batch.

    In versions 1 and 6 an attribute enables training, in versions 7 and 9 more than one output. With spatial=0 each
    element of a channel has its own mean.
    """

    def _run(
        self,
        data: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        epsilon: float = 1e-5,
        is_test: int | None = None,
        spatial: int | None = None,
        **_: Any,
    ) -> tuple[Array]:
        if is_test == 0 or sum(map(bool, self.onnx_node.output)) > 1:
            raise UnsupportedError(f"{self.op_type} is in training mode, which the reference engine does not support")
        shape = (1, -1, *data.shape[2:]) if spatial == 0 else (1, -1, *[1] * (data.ndim - 2))
        scale, bias, mean, variance = (array.reshape(shape) for array in (scale, bias, mean, variance))
        return ((scale * (data - mean) / np.sqrt(variance + epsilon) + bias).astype(data.dtype),)


class _RoiAlign10(RoiAlign):
    """RoiAlign-10, which has no coordinate_transformation_mode: it does not shift by half a pixel."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        moved = attributes | {"coordinate_transformation_mode": "output_half_pixel"}
        return super()._run(*inputs, **moved)  # type: ignore[no-untyped-call]  # onnx's kernels have no types


class _GridSample16(GridSample):
    """GridSample-16, whose modes have other names. onnx 1.23 knows those of version 20 only."""

    modes: ClassVar[Mapping[str | None, str]] = {None: "linear", "bilinear": "linear", "bicubic": "cubic"}

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        mode = attributes.get("mode")
        named = attributes | {"mode": self.modes.get(mode, mode)}
        return super()._run(*inputs, **named)  # type: ignore[no-untyped-call]  # onnx's kernels have no types


class _AveragePool(OpRun):
    """AveragePool. onnx 1.23 takes NaN for padding, and counts the padding of version 1."""

    theirs: ClassVar[Callable[..., tuple[Array]]]

    def _run(self, data: Array, **attributes: Any) -> tuple[Array]:
        given = attributes | {"count_include_pad": attributes.get("count_include_pad") or 0}
        missing = np.isnan(data)
        (means,) = type(self).theirs(self, np.where(missing, 0, data).astype(data.dtype), **given)
        if missing.any():
            (shares,) = type(self).theirs(self, missing.astype(data.dtype), **given)
            means = np.where(shares > 0, np.nan, means).astype(data.dtype)
        return (means,)


class _LRN(OpRun):
    """LRN. onnx 1.23 walks over the batch in place of the channels."""

    def _run(
        self, data: Array, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int = 1
    ) -> tuple[Array]:
        channels, left = data.shape[1], (size - 1) // 2
        ends = [(left, size - 1 - left) if axis == 1 else (0, 0) for axis in range(data.ndim)]
        squares = np.pad(data * data, ends)
        total = sum((squares[:, place : place + channels] for place in range(size)), np.zeros_like(data))
        return ((data / (bias + alpha / size * total) ** beta).astype(data.dtype),)


class _Optional(OpRun):
    """Optional. It returns the element itself or None, which the other operators of the evaluator expect."""

    def _run(self, element: Any = None, **_: Any) -> tuple[Any]:
        return (element,)

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


class _Flattened(OpRun):
    """Softmax, LogSoftmax and Hardmax before opset 13: over all dimensions from `axis` on together."""

    normalise: ClassVar[Callable[[Array], Array]]

    def _run(self, data: Array, axis: int | None = None, **_: Any) -> tuple[Array]:
        wanted = 1 if axis is None else axis
        rows = data.reshape((int(np.prod(data.shape[:wanted], dtype=np.int64)), -1)) if data.size else data
        result = type(self).normalise(rows) if data.size else data
        return (result.astype(data.dtype).reshape(data.shape),)


def _softmax(rows: Array) -> Array:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax(rows: Array) -> Array:
    shifted = rows - rows.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


_FLATTENING: Mapping[str, Callable[[Array], Array]] = {
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "Hardmax": lambda rows: np.asarray(np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]),
}
# Operators on kernels of splitgraph: in these versions, by this function.
_ON_KERNELS: Sequence[tuple[Mapping[str, Sequence[int]], _RunVersion]] = (
    (ONNX_KERNEL_VERSIONS, run_onnx),
    (RECURRENT_VERSIONS, run_recurrent),
    (RESIZE_VERSIONS, run_resize),
    (OLDER_VERSIONS, run_older),
)
_BY_VERSION: Mapping[tuple[str, int], type[OpRun]] = (
    {
        (op_type, version): _kernel_class(op_type, version, run_version)
        for kernels, run_version in _ON_KERNELS
        for op_type, versions in kernels.items()
        for version in versions
        if version <= onnx.defs.onnx_opset_version()
    }
    # Older versions broadcast by an attribute.
    | {("Div", version): type("Div", (_Div,), {}) for version in (7, 13, 14)}
    | {
        (op_type, version): type(
            op_type,
            (_Flattened,),
            {"normalise": staticmethod(normalise), "op_schema": onnx.defs.get_schema(op_type, version)},
        )
        for op_type, normalise in _FLATTENING.items()
        for version in (1, 11)
    }
    | {
        ("AveragePool", version): type(
            "AveragePool",
            (_AveragePool, kind),
            {"theirs": kind._run, "op_schema": onnx.defs.get_schema("AveragePool", version)},
        )
        for kind, versions in (
            (op_average_pool.AveragePool_1, (1,)),
            (op_average_pool.AveragePool_7, (7, 10)),
            (op_average_pool.AveragePool_11, (11,)),
            (op_average_pool.AveragePool_19, (19, 22)),
        )
        for version in versions
        if version <= onnx.defs.onnx_opset_version()
    }
    | {
        (op_type, version): type(op_type, (kind,), {"op_schema": onnx.defs.get_schema(op_type, version)})
        for op_type, kind, versions in (
            ("Cast", _Cast1, (1,)),
            ("RoiAlign", _RoiAlign10, (10,)),
            ("GridSample", _GridSample16, (16,)),
            ("BatchNormalization", _BatchNormalization, (1, 6, 7, 9)),
            ("LRN", _LRN, (1, 13)),
        )
        for version in versions
    }
)
_BY_NAME: Mapping[str, type[OpRun]] = {
    "Gather": type("Gather", (_Gather,), {}),
    "Softplus": type("Softplus", (_Softplus,), {}),
    "Loop": type("Loop", (_Loop,), {}),
    "Optional": type("Optional", (_Optional,), {}),
    "Scan": type("Scan", (_Scan,), {}),
}
