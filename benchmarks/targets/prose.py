"""What a table of answers does not hold: the names of runtimes, how they were run, and what they do in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Prose(NamedTuple):
    """The runtime's own name, how a model is run in it, and notes by operator and factor. unnamed_dimensions: what it
    does with an input that has a dimension with neither a size nor a name, which no form has; None where nobody tried.
    untrue_shapes: the same of a declared shape of an inner value that does not hold. shared_constants: the same of a
    constant that several nodes read: it need not refuse every model that has one.
    """

    title: str
    how: str
    notes: Mapping[str, str] = MappingProxyType({})
    unnamed_dimensions: str | None = None
    untrue_shapes: str | None = None
    shared_constants: str | None = None


_ONNXRUNTIME = {
    "Split outputs.absent=yes": "the process dies of an output without a name",
    "SplitToSequence keepdims=0 beside a size": "drops the axis, which the specification keeps beside a size",
    "Split parts=overrun": "refuses num_outputs where chunks overrun the dimension",
}

PROSE = {
    "onnxruntime": Prose("ONNX Runtime", "InferenceSession on the CPU", _ONNXRUNTIME),
    "onnxruntime-web": Prose("ONNX Runtime Web", "InferenceSession of the WebAssembly build, in Node", _ONNXRUNTIME),
    "openvino": Prose("OpenVINO", "read_model and compile_model on the CPU, in float32"),
    "opencv": Prose(
        "OpenCV",
        "cv2.dnn.readNetFromONNX and forward; OpenCV 5 with its own choice of engine",
        {
            "Split axis.sign=unwritten": "takes 1 for an axis that is left out",
            "Split parts.empty=yes": "loses empty parts",
            "Split rank=1 returned": "gives tensors of rank 1 with rank 2",
            "Split split=unnamed": "divides by zero on an input without a name",
        },
        shared_constants="refuses",
    ),
    "tract": Prose(
        "tract",
        "its Python package: onnx().load, into_model, into_runnable",
        unnamed_dimensions="refuses",
        untrue_shapes="refuses",
    ),
    "tinygrad": Prose(
        "tinygrad",
        "nn.onnx.OnnxRunner",
        {
            "Split parts=uneven": "cuts 7 into 3, 2, 2 where the specification says 3, 3, 1",
            "Split parts=open": "cuts an uneven dimension as evenly as it goes, and not into chunks",
        },
    ),
    "mnn": Prose(
        "MNN",
        "mnnconvert, then MNN.nn.load_module_from_file",
        {
            "Split parts=uneven": "cuts 7 into 2, 2, 2 and drops the rest",
            "Split parts=open": "cuts an uneven dimension into equal parts and drops the rest",
            "Split parts.empty=yes": "gives memory without values for an empty part",
            "SplitToSequence keepdims=0 beside a size": "drops the axis, which the specification keeps beside a size",
        },
    ),
    "tvm": Prose(
        "Apache TVM",
        "relax.frontend.onnx.from_onnx, compiled for LLVM",
        {"SplitToSequence parts=smaller last": "cuts 6 by a size of 4 into 3 and 3"},
    ),
    "iree": Prose(
        "IREE",
        "iree-import-onnx and iree-compile for the CPU",
        {"Split split=unequal": "ignores the lengths and cuts into equal parts"},
    ),
    "jaxonnxruntime": Prose(
        "jaxonnxruntime",
        "backend.run_model; lengths need not be initializers",
        {"Slice ends.open=yes": "wraps an end of INT64_MAX"},
    ),
    "onnx2torch": Prose(
        "onnx2torch",
        "convert, then run by PyTorch",
        {
            f"Split outputs.{how}=yes": "gives back all parts where only some are outputs of the graph"
            for how in ("mixed", "unused", "absent")
        },
    ),
    "onnx2tf": Prose(
        "onnx2tf",
        "convert, then run by the interpreter of TensorFlow Lite",
        {"Split parts=open": "cuts an uneven dimension into equal parts"},
    ),
    "rknn": Prose(
        "RKNN Toolkit 2",
        "load_onnx and build for rk3588, run in its simulator",
        {
            "Split parts=uneven": "permutes values of parts in the middle of a graph",
            "Split parts.empty=yes": "loses empty parts",
            "Split T=int8": "the simulator dies",
            "Split T=uint8": "the simulator dies",
        },
    ),
    "ncnn": Prose(
        "ncnn",
        "pnnx, then ncnn.Net in float32",
        {
            "Split parts=uneven": "begins with parts that are too small",
            "Split parts=open": "begins with parts that are too small where the dimension is uneven",
            "Gather indices.count=more": "takes one index of several",
            "Split split=absent": "dies of a split without lengths",
        },
    ),
    "aidge": Prose(
        "Aidge",
        "aidge_onnx.load_onnx, run on the CPU",
        {
            "Split parts=uneven": "begins with parts that are too small",
            "Split parts=open": "begins with parts that are too small where the dimension is uneven",
        },
    ),
}
