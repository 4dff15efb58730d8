"""The processes of engines, kept for the next run, and started before a verification needs one.

It imports neither NumPy nor onnx: a process can start while this one still imports them.
"""

from __future__ import annotations

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path

from splitgraph.options import Running
from splitgraph.processes.kept_processes import KeptProcesses
from splitgraph.verification.engine_settings import DEFAULT, EngineSettings

ENGINES = KeptProcesses("splitgraph.verification.worker:main")


def key_of(engine: str, settings: EngineSettings) -> str:
    """Return the purpose of a process: the engine, or two of them joined by "+", and its settings."""
    return json.dumps([engine, settings.as_json()])


def start_engine(running: Running) -> None:
    """Start the process that will run two ONNX models first, if that is onnxruntime on the CPU, and return at once.

    It imports the engine while this process makes inputs and finds what differs. Other engines are asked less often,
    and start when they are.
    """
    is_plain = not (running.custom_ops or running.providers)
    if is_plain and running.engine in ("auto", "onnxruntime") and find_spec("onnxruntime") is not None:
        ENGINES.prepare("onnxruntime", key=key_of("onnxruntime", DEFAULT), folder=Path(tempfile.gettempdir()))
