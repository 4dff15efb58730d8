"""What runs the models of `attacked_sizes.py`: onnxruntime, and OpenVINO for their twins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import onnx

Run = Callable[[Mapping[str, Any]], list[Any]]


class Engine(Protocol):
    """An engine for one case."""

    is_ir: bool

    def source(self, model: onnx.ModelProto) -> Any:
        """Return what is given to `reshape`. Raises RuntimeError if there is no such model."""

    def loaded(self, model: Any) -> Run:
        """Return what runs a model. Raises RuntimeError if it does not load."""


class Runtime:
    """onnxruntime."""

    is_ir = False

    def source(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the model itself."""
        return model

    def loaded(self, model: onnx.ModelProto) -> Run:
        """Return a session of a model."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        try:
            made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise RuntimeError(str(error)) from error

        def run(inputs: Mapping[str, Any]) -> list[Any]:
            try:
                return list(made.run(None, dict(inputs)))
            except Exception as error:
                raise RuntimeError(str(error)) from error

        return run


class OpenVINO:
    """OpenVINO, for IRs in a folder."""

    is_ir = True

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def source(self, model: onnx.ModelProto) -> Path:
        """Return the path of the IR that OpenVINO makes of a model."""
        import openvino

        onnx.save(model, self._folder / "m.onnx")
        self._count += 1
        path = self._folder / f"before{self._count}.xml"
        try:
            openvino.save_model(openvino.convert_model(self._folder / "m.onnx"), path, compress_to_fp16=False)
        except Exception as error:
            raise RuntimeError(f"OpenVINO does not convert the model: {error}") from error
        return path

    def loaded(self, model: Any) -> Run:
        """Return what OpenVINO compiles of an IR."""
        import openvino

        import splitgraph

        path = model
        if not isinstance(model, Path):
            self._count += 1
            path = self._folder / f"after{self._count}.xml"
            splitgraph.save(model, path)
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        core = openvino.Core()
        read = core.read_model(path)

        def run(inputs: Mapping[str, Any]) -> list[Any]:
            # Compiled for each size: attention that ran at a small size is wrong at a larger one in OpenVINO 2026.4.
            return list(core.compile_model(read, "CPU", settings)(dict(inputs)).values())

        return run
