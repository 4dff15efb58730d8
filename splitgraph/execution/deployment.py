"""Whether onnxruntime loads a model as a deployment would load it: with all of its optimisations.

Models are compared without any, so that what is compared is the model. The optimiser has faults of its own, though,
and a model that it fails on is of little use under its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splitgraph.diagnostics import Diagnostic, diagnostic

# From the default on, each with less optimisation than the one before; models are compared at the last.
LEVELS = ("ORT_ENABLE_ALL", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL")

_DATA_FOLDER = "session.model_external_initializers_file_folder_path"

# The reason why each level failed, from the default on, until one did not.
Failures = Mapping[str, str]


def session_at(level: str, path: Path, folder: Path | None) -> Any:
    """A session of onnxruntime for the file that was prepared of a model. folder: of its external data, None for its
    own. Raises whatever onnxruntime does.
    """
    import onnxruntime

    prepared = prepared_path(path)

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    source: str | bytes = str(prepared)
    if folder is not None:
        # It looks for external data in the folder of the file, or for a model that is no file in this one.
        options.add_session_config_entry(_DATA_FOLDER, str(folder))
        source = prepared.read_bytes()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def prepared_path(path: Path) -> Path:
    """Where the file is that onnxruntime is given of a model: beside it, as external data is looked for there."""
    return path.with_suffix(".ort.onnx")


def deployment_note(failures: Mapping[int, Failures]) -> Diagnostic | None:
    """The warning that the second model does not load under onnxruntime's default; None where it does.

    failures: of each model (0 before, 1 after); of the first only where the second has some.
    """
    own = failures.get(1)
    if not own:
        return None
    works = next(level for level in LEVELS if level not in own)
    told = f"onnxruntime loads the result at {works}, but not at its default, {LEVELS[0]}: {own[LEVELS[0]]}"
    if LEVELS[0] in failures.get(0, {}):
        told += ". It fails on the model before in the same way, so the rewrite is not the cause"
    help = f"Set SessionOptions.graph_optimization_level to {works}, or try another version of onnxruntime."
    return diagnostic("SG508", told, severity="warning", help=help)
