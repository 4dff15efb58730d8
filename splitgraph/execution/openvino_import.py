"""From ONNX to OpenVINO IR by OpenVINO's own frontend and writer, in a process of its own, as it may crash.

The child is `python -m splitgraph.execution.openvino_import FOLDER`: it reads `model.onnx`, writes `result.xml` and
`result.bin`, and where it cannot, `failed.json` with the reason.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import onnx

from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.splits.openvino_lengths import write_uneven_lengths
from splitgraph.diagnostics import ConversionError, diagnostic
from splitgraph.execution.child import run_module
from splitgraph.execution.engines import reason_of
from splitgraph.execution.model_files import save_model
from splitgraph.execution.parent_process import end_with_parent
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.formats.openvino_runtime import load_into_memory, require_openvino
from splitgraph.openvino.onnx_import import read_onnx
from splitgraph.temporary_folders import temporary_folder

_MODEL, _RESULT, _FAILED = "model.onnx", "result.xml", "failed.json"


class Imported(NamedTuple):
    """An IR made of an ONNX model, and the splits that were written otherwise for OpenVINO to read them right."""

    model: OpenVINOModel
    changes: tuple[Change, ...]


def import_onnx(model: onnx.ModelProto, *, timeout: float = 600) -> Imported:
    """The IR that OpenVINO makes of an ONNX model, with real VariadicSplit layers in place of our functions and of
    num_outputs that may be uneven; the model is not changed.

    timeout: seconds. Raises ConversionError (SG411) when OpenVINO refuses the model, crashes or takes longer,
    SplitgraphError without OpenVINO.
    """
    require_openvino()
    try:
        readable, changes = write_uneven_lengths(model)
    except ValueError as error:
        raise _refusal(str(error)) from error
    with temporary_folder() as folder:
        save_model(readable, folder / _MODEL)
        reason = run_module("splitgraph.execution.openvino_import", folder, timeout)
        failed = folder / _FAILED
        if failed.exists():
            reason = json.loads(failed.read_text("utf-8"))
        if reason:
            raise _refusal(reason)
        return Imported(load_into_memory(folder / _RESULT), changes)


def _refusal(reason: str) -> ConversionError:
    text = f"OpenVINO cannot read the model: {reason}"
    return ConversionError(text, [diagnostic("SG411", text, "main")])


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
    end_with_parent()
    main(Path(sys.argv[1]))
