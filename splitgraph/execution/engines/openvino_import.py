"""Convert an ONNX model to OpenVINO IR with OpenVINO's own reader and writer, in a process of its own.

OpenVINO may crash. The process is `python -m splitgraph.execution.engines.openvino_import FOLDER`: it reads
`model.onnx` and writes `result.xml` and `result.bin`, or `failed.json` with the reason why it cannot.
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
from splitgraph.execution.engines.child_process import run_module
from splitgraph.execution.engines.error_texts import reason_of
from splitgraph.execution.engines.parent_process import end_with_parent
from splitgraph.execution.models.model_files import save_model
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.formats.openvino_runtime import load_into_memory, require_openvino
from splitgraph.openvino.onnx_import import read_onnx
from splitgraph.temporary_folders import temporary_folder

_MODEL, _RESULT, _FAILED = "model.onnx", "result.xml", "failed.json"


class Imported(NamedTuple):
    """An IR made from an ONNX model, and the splits that were rewritten so that OpenVINO reads them correctly."""

    model: OpenVINOModel
    changes: tuple[Change, ...]


def import_onnx(model: onnx.ModelProto, *, timeout: float = 600) -> Imported:
    """Let OpenVINO convert an ONNX model to IR; the model is not changed.

    VariadicSplit layers replace the functions of splitgraph and each `num_outputs` that may be uneven. timeout:
    seconds. Raises ConversionError (SG411) if OpenVINO refuses the model, crashes or takes longer, and SplitgraphError
    without OpenVINO.
    """
    require_openvino()
    try:
        readable, changes = write_uneven_lengths(model)
    except ValueError as error:
        raise _refusal(str(error)) from error
    with temporary_folder() as folder:
        save_model(readable, folder / _MODEL)
        reason = run_module("splitgraph.execution.engines.openvino_import", folder, timeout)
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
