"""Runtimes that fail as real ones do: a Python that runs a program of a test in place of the program of a runtime."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from splitgraph.runtimes.runners.interpreters import LOOP

# Runs models in onnx's evaluator, with the fault of a runtime: `FAULT` is Python that sees the model and the outputs.
PROGRAM = """
import os, signal, sys, time
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

def version():
    return "{version}"

def run(path, inputs, outputs, stage):
    model = onnx.load(path)
    operators = [node.op_type for node in model.graph.node]
    stage("prepare")
    found = dict(zip(outputs, ReferenceEvaluator(model).run(outputs, inputs)))
    stage("run")
{fault}
    return list(found.values())
"""
# It refuses an operator, or computes it wrong.
REFUSES = """
    if {operator!r} in operators:
        raise ValueError("does not read {operator}")
"""
WRONG = """
    class Wrong(ReferenceEvaluator):
        pass
    for node in list(model.graph.node):
        if node.op_type == {operator!r}:
            name = node.output[0]
            node.output[0] = name + ".right"
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1), name + ".one"))
            index = list(model.graph.node).index(node)
            model.graph.node.insert(index + 1, onnx.helper.make_node("Add", [name + ".right", name + ".one"], [name]))
    found = dict(zip(outputs, ReferenceEvaluator(model).run(outputs, inputs)))
"""


def write_program(folder: Path, fault: str = "", version: str = "4.14.0", text: str | None = None) -> Path:
    """Write a program of a runtime. fault: what it does wrong. text: of a whole program."""
    path = folder / "program.py"
    path.write_text(PROGRAM.format(version=version, fault=fault) if text is None else text, encoding="utf-8")
    return path


def fake_python(folder: Path, program: Path) -> str:
    """Write a Python that runs this program whatever it is told to run; for POSIX."""
    python = folder / "python"
    code = f"import os; os.execv({sys.executable!r}, [{sys.executable!r}, '-I', {str(LOOP)!r}, {str(program)!r}])"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}"\n', encoding="utf-8")
    os.chmod(python, python.stat().st_mode | stat.S_IXUSR)
    return str(python)
