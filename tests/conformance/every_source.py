"""One model as every kind of source, the verbs that take it, and what runs a result: for `test_every_source.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import splitgraph

# Of the kinds whose weights count: 512 x 1024 float32 are 2 MB, more than what a skeleton leaves in the message.
SMALL, LARGE = (4, 8), (512, 1024)
FILES = ("small", "weights", "external", "ir")
IN_MEMORY = ("proto", "graphsurgeon", "onnx_ir", "openvino")


def model_of(shape: tuple[int, int]) -> onnx.ModelProto:
    """x @ w, then a Split with lengths; the second part is added to a weight of its own."""
    rows, columns = shape
    half = columns // 2
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], name="matmul"),
        helper.make_node("Split", ["xw", "lengths"], ["a", "rest"], name="split", axis=1),
        helper.make_node("Add", ["rest", "bias"], ["b"], name="add"),
    ]
    weights = {
        "w": (np.arange(rows * columns, dtype=np.float32).reshape(shape) % 7) - 3,
        "bias": np.arange(columns - half, dtype=np.float32),
        "lengths": np.array([half, columns - half]),
    }
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", rows])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", half]) for name in ("a", "b")]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "weights", [x], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def feed_of(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    return np.arange(3 * shape[0], dtype=np.float32).reshape(3, shape[0]) % 5


def write_files(folder: Path) -> None:
    """Every kind of file, each in a folder of its own name."""
    import openvino

    for kind in FILES:
        (folder / kind).mkdir(parents=True)
    onnx.save(model_of(SMALL), folder / "small" / "m.onnx")
    onnx.save(model_of(LARGE), folder / "weights" / "m.onnx")
    onnx.save(model_of(LARGE), folder / "external" / "m.onnx", save_as_external_data=True, location="m.data")
    made = openvino.Core().read_model(model_of(LARGE).SerializeToString())
    openvino.save_model(made, folder / "ir" / "m.xml", compress_to_fp16=False)


def path_of(folder: Path, kind: str) -> Path:
    return folder / kind / ("m.xml" if kind == "ir" else "m.onnx")


def in_memory(kind: str) -> Any:
    """The large model as an object of this kind."""
    proto = model_of(LARGE)
    if kind == "graphsurgeon":
        import onnx_graphsurgeon

        return onnx_graphsurgeon.import_onnx(proto)
    if kind == "onnx_ir":
        import onnx_ir

        return onnx_ir.from_proto(proto)
    if kind == "openvino":
        import openvino

        return openvino.Core().read_model(proto.SerializeToString())
    return proto


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a server of the folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def check_result(path: Path) -> None:
    """Read a written model and run it: the outputs are those of the original."""
    if path.suffix == ".xml":
        import openvino

        compiled = openvino.Core().compile_model(str(path), "CPU")
        got = list(compiled([feed_of(LARGE)]).values())
        wanted = expected(LARGE)
    else:
        # The small model has the same nodes; its input tells which one it is.
        proto = onnx.load(path)
        onnx.checker.check_model(str(path))
        rows = proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value
        shape_of = SMALL if rows == SMALL[0] else LARGE
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        got, wanted = session.run(None, {"x": feed_of(shape_of)}), expected(shape_of)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def expected(shape: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
    """The outputs, computed by NumPy; all numbers are small integers, so every order of sums gives the same bits."""
    constants = {each.name: numpy_helper.to_array(each) for each in model_of(shape).graph.initializer}
    first, rest = np.split(feed_of(shape) @ constants["w"], [constants["lengths"][0]], axis=1)
    return [first, rest + constants["bias"]]


Call = Callable[[Any], Any]
# The functions that give a model; what an IR has no form for is refused.
GIVING: Mapping[str, Call] = {
    "infer": splitgraph.infer,
    "upgrade": lambda source: splitgraph.upgrade(source, 18),
    "downgrade": lambda source: splitgraph.downgrade(source, 11),
    "split": lambda source: splitgraph.convert(source, "split"),
    "lengths": lambda source: splitgraph.convert(source, "split", explicit_lengths=True),
    "variadic-split": lambda source: splitgraph.convert(source, "variadic-split"),
    "slice": lambda source: splitgraph.convert(source, "slice"),
    "opset": lambda source: splitgraph.convert(source, opset=21),
    "target": lambda source: splitgraph.convert(source, target="ncnn"),
}
# OpenVINO's Split has no lengths either.
NOT_OF_IR = ("upgrade", "downgrade", "lengths", "slice", "opset", "target", "check")
# The same on the command line.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "infer": ("infer",),
    "upgrade": ("upgrade", "--opset", "18"),
    "downgrade": ("downgrade", "--opset", "11"),
    "split": ("convert", "--to", "split"),
    "lengths": ("convert", "--to", "split", "--explicit-lengths"),
    "variadic-split": ("convert", "--to", "variadic-split"),
    "slice": ("convert", "--to", "slice"),
    "opset": ("convert", "--opset", "21"),
    "target": ("convert", "--target", "ncnn"),
}
