"""Replace operators of the reference evaluator of onnx that are wrong or not strict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

from splitgraph.execution.reference.kernels import ONNX_KERNEL_VERSIONS, Array, run_onnx
from splitgraph.execution.values import UnsupportedError, as_text, is_text


def implementation(op_type: str, since_version: int) -> type[OpRun] | None:
    """Return the implementation of an ai.onnx operator; None to use that of the evaluator."""
    return _BY_VERSION.get((op_type, since_version)) or _BY_NAME.get(op_type)


class _Kernel(OpRun):
    """Runs a split operator on `kernels`; each subclass has an operator version."""

    version: ClassVar[tuple[str, int]]

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        op_type, since_version = self.version
        arrays = [as_text(value) if isinstance(value, np.ndarray) and is_text(value) else value for value in inputs]
        return run_onnx(op_type, since_version, arrays, attributes, len(self.onnx_node.output))


def _kernel_class(op_type: str, since_version: int) -> type[_Kernel]:
    schema = onnx.defs.get_schema(op_type, since_version)
    members = {"version": (op_type, since_version), "op_schema": schema}
    return type(f"{op_type}_{since_version}", (_Kernel,), members)


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
        scale, bias, mean, variance = (each.reshape(shape) for each in (scale, bias, mean, variance))
        return ((scale * (data - mean) / np.sqrt(variance + epsilon) + bias).astype(data.dtype),)


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
_BY_VERSION: Mapping[tuple[str, int], type[OpRun]] = (
    {
        (op_type, version): _kernel_class(op_type, version)
        for op_type, versions in ONNX_KERNEL_VERSIONS.items()
        for version in versions
        if version <= onnx.defs.onnx_opset_version()
    }
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
        (op_type, version): type(op_type, (kind,), {"op_schema": onnx.defs.get_schema(op_type, version)})
        for op_type, kind, versions in (
            ("Cast", _Cast1, (1,)),
            ("BatchNormalization", _BatchNormalization, (1, 6, 7, 9)),
        )
        for version in versions
    }
)
_BY_NAME: Mapping[str, type[OpRun]] = {
    "Gather": type("Gather", (_Gather,), {}),
    "Loop": type("Loop", (_Loop,), {}),
    "Optional": type("Optional", (_Optional,), {}),
    "Scan": type("Scan", (_Scan,), {}),
}
