"""RKNN Toolkit 2: built for rk3588 without quantization, run in its simulator, which computes in float16."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import onnx
from rknn.api import RKNN


def version() -> str:
    """The version of the package."""
    return metadata.version("rknn-toolkit2")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model; dynamic dimensions get the sizes of the inputs."""
    toolkit = RKNN(verbose=False)
    toolkit.config(target_platform="rk3588")
    declared = onnx.load(path, load_external_data=False).graph.input
    dims = [dim for each in declared for dim in each.type.tensor_type.shape.dim]
    sizes = {"inputs": list(inputs), "input_size_list": [list(each.shape) for each in inputs.values()]}
    if toolkit.load_onnx(model=path, **(sizes if any(not dim.HasField("dim_value") for dim in dims) else {})):
        raise RuntimeError("load_onnx fails")
    if toolkit.build(do_quantization=False) or toolkit.init_runtime():
        raise RuntimeError("build or init_runtime fails")
    found = toolkit.inference(inputs=list(inputs.values()), data_format=["nchw"] * len(inputs))
    if found is None:
        raise RuntimeError("inference gives nothing")
    return [np.array(each) for each in found]


# float16 has three digits.
TOLERANCE = 1e-2
