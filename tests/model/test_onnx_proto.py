"""onnx's messages without onnx: the same classes whoever imports first; nothing is imported that is not needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODELS = sorted(Path(__file__).parents[2].joinpath("models").glob("*.onnx"))
HEAVY = "[name for name in ('onnx', 'numpy', 'onnxruntime', 'openvino', 'onnx_graphsurgeon') if name in sys.modules]"


def run(program: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("first", ["splitgraph.model.onnx_proto", "onnx"])
def test_the_classes_are_those_of_onnx(first: str) -> None:
    program = f"""
import {first}
import onnx
from splitgraph.model import onnx_proto
print(all(getattr(onnx_proto, name) is getattr(onnx, name) for name in onnx_proto.__all__ if name != "IR_VERSION"))
print(onnx_proto.IR_VERSION == onnx.IR_VERSION)
print(type(onnx.helper.make_node("Split", ["x"], ["a", "b"])) is onnx_proto.NodeProto)
import onnx.onnx_ml_pb2 as messages
print(messages.ModelProto is onnx_proto.ModelProto, onnx.onnx_ml_pb2 is messages)
"""
    assert run(program).split() == ["True"] * 5


def test_infer_imports_neither_onnx_nor_numpy(tmp_path: Path) -> None:
    """All models of the folder in one process; none has an operator that only onnx's inference knows."""
    program = f"""
import sys
import splitgraph
for path in sys.argv[2:]:
    splitgraph.save(splitgraph.infer(path).model, sys.argv[1])
print({HEAVY})
"""
    assert MODELS
    assert run(program, str(tmp_path / "inferred.onnx"), *map(str, MODELS)) == "[]"


def test_upgrade_imports_neither(tmp_path: Path) -> None:
    """What is exported is upgraded with integers alone."""
    program = f"""
import sys
import splitgraph
for path in sys.argv[2:]:
    splitgraph.save(splitgraph.upgrade(path, 18).model, sys.argv[1])
print({HEAVY})
"""
    older = [str(path) for path in MODELS if path.name.endswith((".opset13.onnx", ".opset17.onnx"))]
    assert len(older) > 10
    assert run(program, str(tmp_path / "upgraded.onnx"), *older) == "[]"


def test_the_command_imports_neither() -> None:
    program = f"""
import sys
from splitgraph.cli import main
print(main(["infer", sys.argv[1]]), {HEAVY})
"""
    model = next(path for path in MODELS if path.name == "gpt2.opset17.onnx")
    assert run(program, str(model)).splitlines()[-1] == "0 []"


def test_without_onnx_the_message_says_so() -> None:
    program = """
import importlib.util
importlib.util.find_spec = lambda name: None
try:
    import splitgraph.model.onnx_proto
except ImportError as error:
    print(error)
"""
    assert run(program) == "splitgraph needs the package onnx, which is not installed"


def test_an_import_in_another_thread_is_waited_for() -> None:
    program = """
import sys, threading
def late():
    while "onnx.onnx_ml_pb2" not in sys.modules:
        pass
    from splitgraph.model.onnx_proto import ModelProto
    found.append(ModelProto)
found = []
thread = threading.Thread(target=late)
thread.start()
import onnx
thread.join()
print(found == [onnx.ModelProto])
"""
    assert run(program) == "True"
