"""jaxonnxruntime on JAX's CPU device. Its default, only initializers as static arguments, refuses nearly all Splits."""

PACKAGES = {"0.3.0": ["jaxonnxruntime==0.3.0", "jax==0.10.2", "absl-py"]}


def VERSION():
    import importlib.metadata

    import jaxonnxruntime.backend  # noqa: F401 - imported once for all models

    return importlib.metadata.version("jaxonnxruntime")


def run(model, inputs, outputs):
    import numpy as np
    import onnx
    from jaxonnxruntime import backend, config

    config.update("jaxort_only_allow_initializers_as_static_args", False)
    return [np.array(value) for value in backend.run_model(onnx.load(model), list(inputs.values()))]
