"""Models of the OpenVINO runtime (`ov.Model`) in and out, by OpenVINO's own writer and reader."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.formats.openvino_ir import OpenVINOModel, load_ir, save_ir, weights_path
from splitgraph.formats.recognition import model_error


def require_openvino() -> None:
    """Raise SplitgraphError when OpenVINO is not installed."""
    if importlib.util.find_spec("openvino") is None:
        raise SplitgraphError("OpenVINO is not installed; install it with: pip install openvino")


def is_ov_model(value: object) -> bool:
    """Return True for an `ov.Model`, as the caller has it or as a pass is given it; does not import openvino, since
    whoever has such a model has imported it.
    """
    if "openvino" not in sys.modules:
        return False
    names = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__}
    return ("openvino", "Model") in names


def from_ov_model(model: Any) -> OpenVINOModel:
    """Return the IR of an `ov.Model`, with its weights in memory; the model is not changed.

    Raises ModelError (SG111) for a model that OpenVINO cannot write, SplitgraphError without OpenVINO.
    """
    require_openvino()
    import openvino

    from splitgraph.processes.folders import temporary_folder

    if not is_ov_model(model):
        raise model_error("SG101", f"an ov.Model is needed, not {type(model).__name__}")
    with temporary_folder() as folder:
        path = folder / "model.xml"
        try:
            # A pass is given the model inside of an ov.Model.
            whole = model if isinstance(model, openvino.Model) else openvino.Model(model)
            openvino.serialize(whole, str(path), str(weights_path(path)))
        except (RuntimeError, TypeError) as error:
            raise model_error("SG111", f"the ov.Model cannot be written by OpenVINO: {_first_line(error)}") from error
        return load_into_memory(path)


def load_into_memory(path: Path) -> OpenVINOModel:
    """Read an IR whose files are about to go. Raises ModelError as `load_ir`."""
    read = load_ir(path)
    weights = b"" if read.weights is None else b"".join(read.weights.blocks())
    return OpenVINOModel(read.root, None, None, style=read.style, appended=weights)


def to_ov_model(model: OpenVINOModel) -> Any:
    """Return the `ov.Model` that OpenVINO reads from an IR; it does not depend on the IR's files.

    Raises ModelError (SG111) for an IR that OpenVINO refuses, SplitgraphError without OpenVINO.
    """
    require_openvino()
    import openvino

    from splitgraph.processes.folders import temporary_folder

    with temporary_folder() as folder:
        path = folder / "model.xml"
        save_ir(model, path)
        core = openvino.Core()
        # If the .bin were mapped, it would stay open after its folder is removed.
        core.set_property({"ENABLE_MMAP": False})
        try:
            return core.read_model(str(path))
        except RuntimeError as error:
            raise model_error("SG111", f"is refused by OpenVINO: {_first_line(error)}", model.path or "") from error


def _first_line(error: Exception) -> str:
    """Return what OpenVINO has to say, without where in its source it says so."""
    told = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in told if not line.startswith(("Exception from ", "Check '"))] or told
    return (lines[0] if lines else type(error).__name__)[:300]
