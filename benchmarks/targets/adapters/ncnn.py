"""ncnn, on what pnnx makes of the model, in float32 throughout."""

import importlib.util
import os

PACKAGES = {"20261020": ["pnnx==20261020", "ncnn==1.0.20261020", "torch==2.13.0"]}
SHARES = "pnnx"


class Refused(Exception):
    """A model that ncnn does not read, by the status of a call."""


def VERSION():
    import importlib.metadata

    import ncnn  # noqa: F401 - imported once for all models

    return importlib.metadata.version("ncnn")


def run(model, inputs, outputs):
    import numpy as np

    _pnnx().convert(model, inputs)
    if not os.path.exists("m.ncnn.param"):
        raise Refused("pnnx wrote no file for ncnn")
    if any(value.dtype != np.float32 for value in inputs.values()):
        raise Refused("ncnn takes float32 only")
    extractor = _net().create_extractor()
    return _extract(extractor, inputs, len(outputs))


def _pnnx():
    """The adapter beside this one, which holds the call of pnnx."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pnnx.py")
    spec = importlib.util.spec_from_file_location("pnnx_adapter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _net():
    import ncnn

    net = ncnn.Net()
    for option in ("use_fp16_storage", "use_fp16_packed", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    if net.load_param("m.ncnn.param") or net.load_model("m.ncnn.bin"):
        raise Refused("ncnn does not load what pnnx wrote")
    _KEPT.append(net)  # an extractor does not keep its net
    return net


_KEPT = []


def _extract(extractor, inputs, count):
    import ncnn
    import numpy as np

    for index, value in enumerate(inputs.values()):
        extractor.input(f"in{index}", ncnn.Mat(np.ascontiguousarray(value)).clone())
    results = []
    for index in range(count):
        status, value = extractor.extract(f"out{index}")
        if status:
            raise Refused(f"ncnn gives no out{index}: status {status}")
        results.append(np.array(value))
    return results
