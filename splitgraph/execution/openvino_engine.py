"""OpenVINO's CPU plugin as an engine, for ONNX models and IR, with what is known of its faults kept from the models.

Measured with OpenVINO 2026.4: it does not check that the rest of a VariadicSplit is not negative, and reads beyond the
data; it computes int64 as int32; where it has refused inputs, it gives what it gave before when it gets inputs of the
same shapes again; and a loop that does not run at all gives what it gave before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.values import UnsupportedError, Value, dtype_by_name, is_text
from splitgraph.openvino.onnx_import import read_onnx

Array = npt.NDArray[Any]
Run = Callable[[Mapping[str, Value]], list[Value]]

_PRECISE = {"INFERENCE_PRECISION_HINT": "f32"}
# Of which OpenVINO keeps the state of the run before; an If may hold one.
_LOOPS = frozenset({"If", "Loop", "TensorIterator"})
# Element types that numpy lacks, by OpenVINO's name: how ml_dtypes calls them, and their bits.
_NARROW: Mapping[str, tuple[str, int]] = {
    "bf16": ("bfloat16", 16),
    "f8e4m3": ("float8_e4m3fn", 8),
    "f8e5m2": ("float8_e5m2", 8),
    "f8e8m0": ("float8_e8m0fnu", 8),
    "f4e2m1": ("float4_e2m1fn", 4),
    "i4": ("int4", 4),
    "u4": ("uint4", 4),
}
_MOVABLE = frozenset({"f16", "f32", "f64"})
_WIDE = frozenset({"int64", "uint64", "uint32"})
_INT32 = np.iinfo(np.int32)


def load_onnx(path: Path) -> Run:
    """Load an ONNX file; values go in and out by the names of the graph."""
    model = onnx.load(str(path), load_external_data=False)
    names = [value.name for value in model.graph.output]
    read = read_onnx(path, model)
    found = [next((index for index, port in enumerate(read.outputs) if name in port.names), None) for name in names]
    if None in found:
        raise UnsupportedError("OpenVINO lost the name of an output")
    inputs = {name: index for index, port in enumerate(read.inputs) for name in port.names}
    return _compiled(read, inputs, [index for index in found if index is not None])


def load_ir(path: Path, outputs: Sequence[str] | None = None, move: Callable[[Array, str], Array] | None = None) -> Run:
    """Load an IR; values go in by the names of its Parameters, and out by those of its Results, in the order given.

    move: what to make of the floating-point constants, by their elements and their names; None for nothing.
    """
    import openvino

    read = openvino.Core().read_model(str(path))
    if move is not None:
        _move_constants(read, move)
    results = [result.get_friendly_name() for result in read.get_results()]
    wanted = results if outputs is None else outputs
    missing = [name for name in wanted if name not in results]
    if missing:
        raise UnsupportedError(f"OpenVINO lost the result {missing[0]!r}")
    inputs = {parameter.get_friendly_name(): index for index, parameter in enumerate(read.get_parameters())}
    return _compiled(read, inputs, [results.index(name) for name in wanted])


def _move_constants(model: Any, move: Callable[[Array, str], Array]) -> None:
    """Put others in place of the floating-point constants of a model and of its bodies."""
    import openvino

    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind == "Constant" and node.get_element_type().get_type_name() in _MOVABLE:
            made = openvino.opset1.constant(move(np.array(node.data), node.get_friendly_name()))
            for reader in node.output(0).get_target_inputs():
                reader.replace_source_output(made.output(0))
        elif kind in _LOOPS:
            for index in range(2 if kind == "If" else 1):
                _move_constants(node.get_function(index) if kind == "If" else node.get_function(), move)


def _compiled(model: Any, inputs: Mapping[str, int], outputs: Sequence[int]) -> Run:
    """The function that runs a model; inputs: where each name goes. outputs: which of its outputs to give."""
    splits, watch = _rests(model)
    guard = _Compiled(watch) if splits else None
    compiled = _Compiled(model)

    def run(feeds: Mapping[str, Value]) -> list[Value]:
        _refuse_what_is_lost(feeds.values())
        tensors = {}
        for name, value in feeds.items():
            if name not in inputs:
                raise UnsupportedError(f"OpenVINO made a constant of the input {name!r}, which has a default")
            index = inputs[name]
            tensors[index] = _tensor(value, model.inputs[index].get_element_type())
        if guard is not None:
            found = guard.infer(tensors)
            for index, name in enumerate(splits):
                _check_rest(name, *(found.get_output_tensor(2 * index + part) for part in (0, 1)))
        request = compiled.infer(tensors)
        return [_array(request.get_output_tensor(index)) for index in outputs]

    return run


class _Compiled:
    """A compiled model, which is compiled anew where what it gives would depend on what was run before."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._forgets = all(node.get_type_name() not in _LOOPS for node in model.get_ordered_ops())
        self._request = self._new_request()

    def infer(self, tensors: Mapping[int, Any]) -> Any:
        """The request that holds the outputs, by the tensor of each input."""
        request = self._request or self._new_request()
        self._request = None  # until it has not failed
        for index, tensor in tensors.items():
            request.set_input_tensor(index, tensor)
        request.infer()
        if self._forgets:
            self._request = request
        return request

    def _new_request(self) -> Any:
        import openvino

        return openvino.Core().compile_model(self._model, "CPU", _PRECISE).create_infer_request()


def _refuse_what_is_lost(values: Iterable[Value]) -> None:
    for value in values:
        if not isinstance(value, np.ndarray):
            raise UnsupportedError("OpenVINO takes tensors only")
        if value.dtype.name in _WIDE and value.size and not _INT32.min <= value.min() <= value.max() <= _INT32.max:
            raise UnsupportedError(f"OpenVINO computes {value.dtype.name} as int32, which an input does not fit")


def _rests(model: Any) -> tuple[list[str], Any]:
    """The VariadicSplits whose rest may turn out negative, and a model that gives two outputs for each: dimension and
    lengths, to be looked at before the splits themselves run.

    Those in bodies are left: what they read is no value of the model.
    """
    import openvino
    from openvino import op, opset8

    names, results = [], []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "VariadicSplit" or not _may_have_negative_rest(node):
            continue
        names.append(node.get_friendly_name())
        one = opset8.constant(np.array([1], np.int64))
        axis = opset8.reshape(node.input_value(1), one, False)
        dim = opset8.gather(opset8.shape_of(node.input_value(0), "i64"), axis, opset8.constant(np.int64(0)))
        for value in (dim, opset8.convert(node.input_value(2), "i64")):
            results.append(op.Result(value.output(0)))
    return names, openvino.Model(results, model.get_parameters(), "rests") if results else None


def _may_have_negative_rest(node: Any) -> bool:
    lengths = node.input_value(2).get_node()
    if lengths.get_type_name() != "Constant":
        return True
    return bool((lengths.get_data(dtype=np.int64) == -1).any())


def _check_rest(name: str, dim: Any, lengths: Any) -> None:
    given = [int(length) for length in lengths.data.ravel()]
    total = int(dim.data.ravel()[0])
    if -1 in given and sum(given) + 1 > total:
        raise UnsupportedError(
            f"OpenVINO reads beyond the data of {name!r}: its lengths {given} leave less than nothing of {total}"
        )


def _tensor(value: Array, element_type: Any) -> Any:
    import openvino

    name = element_type.get_type_name()
    if name not in _NARROW:
        plain = value.astype(np.str_) if is_text(value) else value
        return openvino.Tensor(np.array(plain, order="C"))
    bits = _NARROW[name][1]
    tensor = openvino.Tensor(element_type, openvino.Shape(list(value.shape)))
    if value.size:
        content = np.ascontiguousarray(value).view(np.uint8).ravel()
        if bits == 4:
            padded = np.concatenate([content & 15, np.zeros(content.size % 2, np.uint8)])
            content = padded[0::2] | padded[1::2] << 4
        tensor.data.reshape(-1).view(np.uint8)[:] = content
    return tensor


def _array(tensor: Any) -> Value:
    name, shape = tensor.get_element_type().get_type_name(), tuple(tensor.get_shape())
    if name == "string":
        return np.array(tensor.str_data)
    if name not in _NARROW:
        return np.array(tensor.data)
    dtype, bits = dtype_by_name(_NARROW[name][0]), _NARROW[name][1]
    size = int(np.prod(shape, dtype=np.int64))
    if not size:
        return np.empty(shape, dtype)
    content = tensor.data.reshape(-1).view(np.uint8)
    if bits == 4:
        content = np.stack([content & 15, content >> 4], axis=1).ravel()[:size]
        if dtype.name == "int4":
            content = np.where(content > 7, content.astype(np.int16) - 16, content).astype(np.int8).view(np.uint8)
    return np.frombuffer(content.tobytes(), dtype).reshape(shape)
