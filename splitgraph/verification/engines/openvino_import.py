"""Convert an ONNX model to OpenVINO IR with OpenVINO's own reader and writer, in a process of its own.

OpenVINO may crash. Its process reads `model.onnx` in a folder and writes `result.xml` and `result.bin` there.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import onnx

from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.splits.openvino_lengths import write_uneven_lengths
from splitgraph.findings.diagnostics import ConversionError, diagnostic
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.formats.openvino_runtime import load_into_memory, require_openvino
from splitgraph.openvino.onnx_import import read_onnx
from splitgraph.processes.folders import temporary_folder
from splitgraph.processes.kept_processes import run_once
from splitgraph.processes.worker_process import ProcessEnded
from splitgraph.verification.engines.error_texts import reason_of
from splitgraph.verification.models.model_files import save_model

_MODEL, _RESULT = "model.onnx", "result.xml"


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
        try:
            reason = run_once("splitgraph.verification.engines.openvino_import:main", folder, folder, timeout)
        except ProcessEnded as ended:
            reason = str(ended)
        if reason:
            raise _refusal(reason)
        return Imported(load_into_memory(folder / _RESULT), changes)


def _refusal(reason: str) -> ConversionError:
    text = f"OpenVINO cannot read the model: {reason}"
    return ConversionError(text, [diagnostic("SG411", text, "main")])


def main(folder: Path) -> str:
    """Convert the model in a folder; return "" or why OpenVINO cannot."""
    import openvino

    path = folder / _MODEL
    try:
        read = read_onnx(path, onnx.load(str(path), load_external_data=False))
        result = folder / _RESULT
        openvino.serialize(read, str(result), str(result.with_suffix(".bin")))
    except Exception as error:
        return reason_of(error)
    return ""
