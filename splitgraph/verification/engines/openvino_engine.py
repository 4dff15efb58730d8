"""Run ONNX models and OpenVINO IR with OpenVINO, and work around the known faults of its CPU plugin.

Measured with OpenVINO 2026.4: the plugin does not check that the remainder (-1) of a VariadicSplit is negative, and
then reads beyond the data. It computes int64 as int32. After it has refused inputs, it returns earlier outputs for the
next inputs of the same shapes. A loop without iterations returns the outputs of an earlier run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.openvino.onnx_import import read_onnx
from splitgraph.verification.engine_settings import CPU_DEVICE, DEFAULT, EngineSettings
from splitgraph.verification.models.model_files import add_outputs
from splitgraph.verification.values import Array, Run, UnsupportedError, Value, dtype_by_name, is_text

_PRECISE = {"INFERENCE_PRECISION_HINT": "f32"}
# OpenVINO keeps the state of these from the run before; an If may contain one.
_LOOPS = frozenset({"If", "Loop", "TensorIterator"})
# Element types that NumPy lacks, by their name in OpenVINO: their name in ml_dtypes, and their bits.
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


def load_onnx(
    path: Path, settings: EngineSettings = DEFAULT, captured: Sequence[str] = ()
) -> tuple[Run, Sequence[str]]:
    """Load an ONNX file; the returned function uses the names of the graph, and runs it on the returned devices.

    captured: inner values that become outputs, too.
    """
    model = onnx.load(str(path), load_external_data=False)
    if captured:
        add_outputs(model, captured)
        path = path.with_suffix(".captured.onnx")
        path.write_bytes(model.SerializeToString())
    names = [value.name for value in model.graph.output]
    read = read_onnx(path, model, settings.custom_ops)
    positions = [next((index for index, port in enumerate(read.outputs) if name in port.names), None) for name in names]
    outputs = {name: index for name, index in zip(names, positions, strict=True) if index is not None}
    if len(outputs) < len(set(names)):
        raise UnsupportedError("OpenVINO lost the name of an output")
    inputs = {name: index for index, port in enumerate(read.inputs) for name in port.names}
    return _compiled(read, inputs, outputs, settings)


def load_ir(
    path: Path,
    outputs: Sequence[str] | None = None,
    move: Callable[[Array, str], Array] | None = None,
    settings: EngineSettings = DEFAULT,
) -> tuple[Run, Sequence[str]]:
    """Load an IR; the returned function takes inputs by the names of the Parameters, and runs on the returned devices.

    outputs: the names of the Results to return, in this order. move: changes the floating-point constants, given their
    elements and their name; None for no change.
    """
    import openvino

    core = openvino.Core()
    for library in settings.custom_ops:
        core.add_extension(library)
    read = core.read_model(str(path))
    if move is not None:
        _move_constants(read, move)
    results = [result.get_friendly_name() for result in read.get_results()]
    wanted = results if outputs is None else outputs
    missing = [name for name in wanted if name not in results]
    if missing:
        raise UnsupportedError(f"OpenVINO lost the result {missing[0]!r}")
    inputs = {parameter.get_friendly_name(): index for index, parameter in enumerate(read.get_parameters())}
    return _compiled(read, inputs, {name: results.index(name) for name in wanted}, settings)


def _move_constants(model: Any, move: Callable[[Array, str], Array]) -> None:
    """Replace the floating-point constants of a model and of its bodies."""
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


def _compiled(
    model: Any, inputs: Mapping[str, int], outputs: Mapping[str, int], settings: EngineSettings
) -> tuple[Run, Sequence[str]]:
    """Compile a model; return the function that runs it, and the devices that it runs on.

    inputs, outputs: the index of each in the model, by the name that the function takes.
    """
    splits, lengths_model = _remainders(model)
    # OpenVINO does not check the lengths of a split, and reads beyond the data. So another model computes them first.
    lengths_before = _Compiled(lengths_model, CPU_DEVICE) if splits else None
    compiled = _Compiled(model, _device(settings.providers))

    def to_tensors(feeds: Mapping[str, Value]) -> dict[int, Any]:
        tensors = {}
        for name, value in feeds.items():
            if name not in inputs:
                raise UnsupportedError(f"OpenVINO made a constant of the input {name!r}, which has a default")
            index = inputs[name]
            tensors[index] = _tensor(value, model.inputs[index].get_element_type())
        return tensors

    def run(feeds: Mapping[str, Value], names: Sequence[str] | None = None) -> list[Value]:
        _check_inputs(feeds.values())
        tensors = to_tensors(feeds)
        if lengths_before is not None:
            measured = lengths_before.infer(tensors)
            # The outputs are pairs: the dimension and the lengths of each split.
            for index, name in enumerate(splits):
                dim, lengths = measured.get_output_tensor(2 * index), measured.get_output_tensor(2 * index + 1)
                _check_remainder(name, dim, lengths)
        request = compiled.infer(tensors)
        return [_array(request.get_output_tensor(outputs[name])) for name in (outputs if names is None else names)]

    return run, settings.providers or (CPU_DEVICE,)


def _device(devices: Sequence[str]) -> str:
    """Return the device to compile for: of several, each node runs on the first one that can."""
    return f"HETERO:{','.join(devices)}" if len(devices) > 1 else devices[0] if devices else CPU_DEVICE


class _Compiled:
    """A model, compiled for a device. It is compiled again if its outputs would depend on an earlier run."""

    def __init__(self, model: Any, device: str) -> None:
        self._model, self._device = model, device
        self._forgets = all(node.get_type_name() not in _LOOPS for node in model.get_ordered_ops())
        self._request = self._new_request()

    def infer(self, tensors: Mapping[int, Any]) -> Any:
        """Run the model on the tensor of each input; return the request that holds the outputs."""
        request = self._request or self._new_request()
        self._request = None  # a request that failed is not used again
        for index, tensor in tensors.items():
            request.set_input_tensor(index, tensor)
        request.infer()
        if self._forgets:
            self._request = request
        return request

    def _new_request(self) -> Any:
        import openvino

        return openvino.Core().compile_model(self._model, self._device, _PRECISE).create_infer_request()


def _check_inputs(values: Iterable[Value]) -> None:
    """Raise UnsupportedError for inputs that OpenVINO would change: it takes tensors only, and no large integers."""
    for value in values:
        if not isinstance(value, np.ndarray):
            raise UnsupportedError("OpenVINO takes only tensors")
        if value.dtype.name in _WIDE and value.size and not _INT32.min <= value.min() <= value.max() <= _INT32.max:
            raise UnsupportedError(f"OpenVINO computes {value.dtype.name} as int32, which an input does not fit")


def _remainders(model: Any) -> tuple[list[str], Any]:
    """Return the VariadicSplits whose remainder may be negative, and a model that computes the dimension and the
    lengths of each, which are checked before the splits run.

    Splits in bodies are skipped: the model does not compute their inputs on its own.
    """
    import openvino
    from openvino import op, opset8

    names, results = [], []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "VariadicSplit" or not _may_have_negative_remainder(node):
            continue
        names.append(node.get_friendly_name())
        length = opset8.constant(np.array([1], np.int64))
        axis = opset8.reshape(node.input_value(1), length, False)
        dim = opset8.gather(opset8.shape_of(node.input_value(0), "i64"), axis, opset8.constant(np.int64(0)))
        for value in (dim, opset8.convert(node.input_value(2), "i64")):
            results.append(op.Result(value.output(0)))
    return names, openvino.Model(results, model.get_parameters(), "remainders") if results else None


def _may_have_negative_remainder(node: Any) -> bool:
    lengths = node.input_value(2).get_node()
    if lengths.get_type_name() != "Constant":
        return True
    return bool((lengths.get_data(dtype=np.int64) == -1).any())


def _check_remainder(name: str, dim: Any, lengths: Any) -> None:
    given = [int(length) for length in lengths.data.ravel()]
    total = int(dim.data.ravel()[0])
    if -1 in given and sum(given) + 1 > total:
        raise UnsupportedError(
            f"OpenVINO reads beyond the data of {name!r}: its lengths {given} exceed the dimension {total}"
        )


def _tensor(value: Array, element_type: Any) -> Any:
    import openvino

    name = element_type.get_type_name()
    if name not in _NARROW:
        plain = value.astype(np.str_) if is_text(value) else value
        return openvino.Tensor(np.array(plain, order="C"))
    bits = _NARROW[name][1]
    tensor = openvino.Tensor(element_type, openvino.Shape(list(value.shape)))
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
    content = tensor.data.reshape(-1).view(np.uint8)
    if bits == 4:
        content = np.stack([content & 15, content >> 4], axis=1).ravel()[: tensor.get_size()]
        if dtype.name == "int4":
            content = np.where(content > 7, content.astype(np.int16) - 16, content).astype(np.int8).view(np.uint8)
    return np.frombuffer(content.tobytes(), dtype).reshape(shape)
