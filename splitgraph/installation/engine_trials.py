"""Try each engine in a process of its own: an engine that crashes, hangs or cannot be imported ends nothing else."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splitgraph.processes.folders import temporary_folder
from splitgraph.processes.kept_processes import run_once
from splitgraph.processes.worker_process import ProcessEnded

# Each engine with the module that it is made of.
ENGINES: Mapping[str, str] = {"reference": "onnx", "onnxruntime": "onnxruntime", "openvino": "openvino"}
# Importing an engine on a busy machine takes seconds.
SECONDS = 60.0

Status = Literal["works", "broken", "not installed"]


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What is known of an engine.

    version: of its package; None where it could not be imported. newest_opset: the newest opset of ai.onnx at which it
    runs a Split; None where it does not work. devices: what it can run on; the providers of onnxruntime. reason: why it
    is broken, "" where it is not.
    """

    name: str
    status: Status
    version: str | None = None
    newest_opset: int | None = None
    devices: tuple[str, ...] = ()
    reason: str = ""


def try_engine(name: str, seconds: float = SECONDS) -> EngineReport:
    """Run a small model in an engine, for at most so many seconds. Raises OSError if no temporary file can be made."""
    if importlib.util.find_spec(ENGINES[name]) is None:
        # The reference evaluator is part of onnx, which splitgraph requires.
        if name == "reference":
            return EngineReport(name, "broken", reason="onnx is not installed")
        return EngineReport(name, "not installed")
    with temporary_folder() as folder:
        abnormal = ""
        try:
            run_once("splitgraph.execution.engines.capabilities:main", (name, folder), folder, seconds)
        except ProcessEnded as ended:
            abnormal = str(ended)
        found = _found(folder / "found.json")
    newest = found.get("newest_opset")
    version, devices = found.get("version"), tuple(found.get("devices", ()))
    if newest is not None and not abnormal:
        return EngineReport(name, "works", version, newest, devices)
    reason = abnormal or found.get("reason") or "runs no model"
    if abnormal and found.get("opset") is not None:
        reason = f"{abnormal}, with a Split of opset {found['opset']}"
    return EngineReport(name, "broken", version, None, devices, reason)


def _found(path: Path) -> dict[str, Any]:
    """What the process of the engine wrote; nothing where it ended before, or while it wrote."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found
