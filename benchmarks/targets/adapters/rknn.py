"""rknn-toolkit2's simulator of an rk3588, without quantization."""

import re

PACKAGES = {"2.5.0": ["rknn-toolkit2==2.5.0"]}


class Refused(Exception):
    """A model that the toolkit does not read, by the status of a call."""


def VERSION():
    import importlib.metadata

    import rknn.api  # noqa: F401 - imported once for all models

    return importlib.metadata.version("rknn-toolkit2")


def run(model, inputs, outputs):
    from rknn.api import RKNN

    toolkit = RKNN(verbose=False)
    toolkit.config(target_platform="rk3588")
    _done(toolkit.load_onnx(model=model, **_sizes(model, inputs)), "load_onnx")
    _done(toolkit.build(do_quantization=False), "build")
    _done(toolkit.init_runtime(), "init_runtime")
    results = toolkit.inference(inputs=list(inputs.values()), data_format=["nchw"] * len(inputs))
    if results is None:
        raise Refused("inference: " + _said())
    return list(results)


def _sizes(model, inputs):
    """The sizes of the inputs, which the toolkit wants for dynamic dimensions only."""
    import onnx

    declared = onnx.load(model, load_external_data=False).graph.input
    if all(dim.HasField("dim_value") for value in declared for dim in value.type.tensor_type.shape.dim):
        return {}
    return {"inputs": list(inputs), "input_size_list": [list(value.shape) for value in inputs.values()]}


def _done(status, step):
    if status:
        raise Refused(f"{step}: {_said()}")


def _said():
    """The first error that the toolkit printed, which the worker writes to a file in this folder."""
    with open("output.txt", errors="replace") as output:
        errors = [line for line in output if re.search(r"\bE\b|rror", line)]
    return re.sub(r"\x1b\[[0-9;]*m", "", errors[0]).strip() if errors else "no error was printed"
