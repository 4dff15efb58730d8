"""MNN: its converter, and the module API."""

import os

PACKAGES = {"3.6.1": ["MNN==3.6.1", "numpy"]}


class Refused(Exception):
    """A model that the runtime does not read, without an error of its own."""


def VERSION():
    import MNN

    return MNN.version()


def run(model, inputs, outputs):
    import _tools as tools  # MNN's converter, by the name that its wheel gives it
    import MNN.nn

    tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", model, "--MNNModel", "model.mnn", "--bizCode", "x"])
    if not os.path.exists("model.mnn"):
        raise Refused("the converter wrote no file")
    module = MNN.nn.load_module_from_file("model.mnn", list(inputs), list(outputs))
    return [_array(value) for value in module.forward([_variable(value) for value in inputs.values()])]


def _variable(value):
    """An input of a type that MNN has: int64 and bool become int32."""
    import MNN.expr as expr
    import numpy as np

    if value.dtype in (np.int64, np.bool_):
        value = value.astype(np.int32)
    kinds = {"float32": expr.float, "int32": expr.int, "uint8": expr.uint8, "int8": expr.int8, "float64": expr.double}
    if value.dtype.name not in kinds:
        raise Refused(f"MNN's Python has no {value.dtype}")
    variable = expr.placeholder(list(value.shape), expr.NCHW, kinds[value.dtype.name])
    variable.write(np.ascontiguousarray(value))
    return variable


def _array(value):
    import MNN.expr as expr
    import numpy as np

    if value.data_format == expr.NC4HW4:
        value = expr.convert(value, expr.NCHW)
    return np.array(value.read()).reshape(value.shape)
