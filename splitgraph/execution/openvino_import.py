"""From ONNX to OpenVINO IR by OpenVINO's own frontend and writer, in a process of its own, as it may crash.

The child is `python -m splitgraph.execution.openvino_import FOLDER`: it reads `model.onnx`, writes `result.xml` and
`result.bin`, and where it cannot, `failed.json` with the reason.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import onnx

from splitgraph.diagnostics import ConversionError, diagnostic
from splitgraph.execution.child import run_module, save_model
from splitgraph.execution.engines import reason_of
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.formats.openvino_runtime import load_into_memory, require_openvino
from splitgraph.openvino.onnx_import import read_onnx

_MODEL, _RESULT, _FAILED = "model.onnx", "result.xml", "failed.json"


def import_onnx(model: onnx.ModelProto, *, timeout: float = 600) -> OpenVINOModel:
    """The IR that OpenVINO makes of an ONNX model, with real VariadicSplit layers in place of our functions; the model
    is not changed.

    timeout: seconds. Raises ConversionError (SG411) when OpenVINO refuses the model, crashes or takes longer,
    SplitgraphError without OpenVINO.
    """
    require_openvino()
    with tempfile.TemporaryDirectory(prefix="splitgraph-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        save_model(model, folder / _MODEL)
        reason = run_module("splitgraph.execution.openvino_import", folder, timeout)
        failed = folder / _FAILED
        if failed.exists():
            reason = json.loads(failed.read_text("utf-8"))
        if reason:
            text = f"OpenVINO cannot read the model: {reason}"
            raise ConversionError(text, [diagnostic("SG411", text, "main")])
        return load_into_memory(folder / _RESULT)


def main(folder: Path) -> None:
    """Convert the model in a folder."""
    import openvino

    path = folder / _MODEL
    try:
        read = read_onnx(path, onnx.load(str(path), load_external_data=False))
        result = folder / _RESULT
        openvino.serialize(read, str(result), str(result.with_suffix(".bin")))
    except Exception as error:
        (folder / _FAILED).write_text(json.dumps(reason_of(error)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
