"""onnx2tf: converted to TensorFlow Lite. It writes into the file that it reads, so that it gets a copy."""

from __future__ import annotations

import shutil
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx2tf
import tensorflow


def version() -> str:
    """The version of the package."""
    return metadata.version("onnx2tf")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model; the interpreter lists the outputs in an order of its own, and their names end in their numbers."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, Path(folder, "model.onnx"))
        try:
            onnx2tf.convert(
                input_onnx_file_path=str(copy),
                output_folder_path=f"{folder}/converted",
                keep_shape_absolutely_input_names=list(inputs),
                non_verbose=True,
            )
        except ConnectionError as error:
            raise BufferError("onnx2tf looks for images on the network") from error
        interpreter = tensorflow.lite.Interpreter(str(next(Path(folder, "converted").glob("*float32.tflite"))))
        details = interpreter.get_input_details()
        for detail, array in zip(details, inputs.values(), strict=True):
            interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(details, inputs.values(), strict=True):
            interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
        interpreter.invoke()
        found = sorted(interpreter.get_output_details(), key=lambda each: (len(each["name"]), each["name"]))
        return [interpreter.get_tensor(each["index"]) for each in found]
