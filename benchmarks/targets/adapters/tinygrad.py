"""tinygrad, computing in Python: its other devices for a CPU need clang."""

PACKAGES = {"0.14.0": ["tinygrad==0.14.0", "numpy"]}
VARIABLES = {"DEV": "PYTHON"}


def VERSION():
    import importlib.metadata

    import tinygrad.nn.onnx  # noqa: F401 - imported once for all models

    return importlib.metadata.version("tinygrad")


def run(model, inputs, outputs):
    from tinygrad import Tensor
    from tinygrad.nn.onnx import OnnxRunner

    results = OnnxRunner(model)({name: Tensor(value) for name, value in inputs.items()})
    return [value.numpy() if isinstance(value, Tensor) else value for value in results.values()]
