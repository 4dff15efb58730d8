"""Runs the worker of exporter idioms over a range of seeds, and starts it again where an engine ends its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def results(first: int, end: int) -> Iterator[dict[str, Any]]:
    """What each seed gives. A seed at which the process ends is wrong: no model of these crashes an engine."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1]), *filter(None, sys.path)]),
    }
    while first < end:
        command = [sys.executable, str(HERE / "idiom_worker.py"), str(first), str(end)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            for text in process.stdout:
                line = json.loads(text)
                if line["state"] == "done":
                    first = line["seed"] + 1
                    yield line
        if process.returncode:
            ended = f"the process ended with {process.returncode}"
            yield {"seed": first, "ran": False, "equal": 0, "refused": [], "wrong": [ended], "joined": 0}
            first += 1
