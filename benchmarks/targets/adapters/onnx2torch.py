"""onnx2torch: a torch module of the model, run on the CPU."""

PACKAGES = {"1.5.15": ["onnx2torch==1.5.15", "torch==2.13.0"]}


def VERSION():
    import importlib.metadata

    import onnx2torch  # noqa: F401 - imported once for all models

    return importlib.metadata.version("onnx2torch")


def run(model, inputs, outputs):
    import onnx2torch
    import torch

    torch.set_num_threads(1)
    with torch.no_grad():
        results = onnx2torch.convert(model)(*[torch.from_numpy(value) for value in inputs.values()])
    return [value.numpy() for value in (results if isinstance(results, (list, tuple)) else [results])]
