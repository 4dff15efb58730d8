"""Aidge with its CPU backend."""

PACKAGES = {"0.10.1": ["aidge-core==0.10.1", "aidge-onnx==0.10.1", "aidge-backend-cpu==0.10.1"]}


class Refused(Exception):
    """A model that Aidge reads in part, or an input that its Python does not take."""


def VERSION():
    import importlib.metadata

    import aidge_backend_cpu  # noqa: F401 - imported once for all models
    import aidge_onnx  # noqa: F401

    return importlib.metadata.version("aidge_onnx")


def run(model, inputs, outputs):
    import aidge_backend_cpu  # noqa: F401 - registers the backend
    import aidge_core
    import aidge_onnx
    import numpy as np

    graph = aidge_onnx.load_onnx(model)
    if not aidge_onnx.has_native_coverage(graph):
        raise Refused("an operator has no native implementation")
    if next(iter(inputs.values())).dtype.name not in ("float32", "int32", "int64"):
        raise Refused("tensors of this type cannot be given from Python")
    graph.set_backend("cpu")
    graph.forward_dims([list(value.shape) for value in inputs.values()], allow_data_dependency=True)
    aidge_core.SequentialScheduler(graph).forward(True, [aidge_core.Tensor(value) for value in inputs.values()])
    return [np.array(node.get_operator().get_output(index)) for node, index in graph.get_ordered_outputs()]
