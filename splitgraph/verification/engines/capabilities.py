"""Find out what an engine can run, in its process.

`found.json` is written anew at each step, so that the file shows what was known when the engine crashed:

    {"version": "1.32.0", "devices": ["CPUExecutionProvider"], "opset": 27, "newest_opset": null, "reason": ""}

opset: what is being tried, from the newest that splitgraph knows downwards. newest_opset: the first of them at which a
Split gave the right results. reason: why the last one that was tried did not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from splitgraph.model.schemas.table import newest_in_table
from splitgraph.verification.engines import onnxruntime_engine
from splitgraph.verification.engines.engine import load_engine
from splitgraph.verification.engines.error_texts import reason_of
from splitgraph.verification.values import Array, Value

# The lengths of a split are an input from this opset on: one model serves all opsets that are tried.
_OLDEST_TRIED = 13
# Every engine reads this IR version; the opset is what is measured.
_IR_VERSION = 8

_GIVEN: Array = np.arange(6, dtype=np.float32).reshape(3, 2)


def main(message: tuple[str, Path]) -> None:
    """Try an engine, and write `found.json` in a folder. message: the name of the engine, and the folder."""
    engine, folder = message
    abilities: dict[str, Any] = {"version": None, "devices": [], "opset": None, "newest_opset": None, "reason": ""}

    def keep(**known: Any) -> None:
        abilities.update(known)
        (folder / "found.json").write_text(json.dumps(abilities), "utf-8")

    keep()
    try:
        version, devices = _ABOUT[engine]()
    except Exception as error:
        keep(reason=f"{type(error).__name__}: {reason_of(error)}")
        return
    keep(version=version, devices=devices)
    for opset in range(newest_in_table(), _OLDEST_TRIED - 1, -1):
        keep(opset=opset)
        reason = _reason_against(engine, opset, folder)
        keep(reason=reason)
        if not reason:
            keep(newest_opset=opset)
            return


def _reason_against(engine: str, opset: int, folder: Path) -> str:
    """Run a Split of this opset; return "" where its results are right, otherwise what is wrong."""
    path = folder / f"opset{opset}.onnx"
    path.write_bytes(_model(opset).SerializeToString())
    try:
        outputs = _RUN[engine](path)
    except Exception as error:
        return reason_of(error)
    expected = [_GIVEN[:1], _GIVEN[1:]]
    is_right = len(outputs) == 2 and all(map(np.array_equal, outputs, expected))
    return "" if is_right else f"a Split of opset {opset} gives wrong results"


def _model(opset: int) -> onnx.ModelProto:
    """x: float32[3, 2] is split into its first row and the others."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])
    parts = [helper.make_tensor_value_info(f"part{rows}", TensorProto.FLOAT, [rows, 2]) for rows in (1, 2)]
    lengths = helper.make_tensor("lengths", TensorProto.INT64, [2], [1, 2])
    node = helper.make_node("Split", ["x", "lengths"], ["part1", "part2"], axis=0)
    graph = helper.make_graph([node], "tried", [given], parts, [lengths])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR_VERSION)


def _run_onnxruntime(path: Path) -> list[Value]:
    # As it is: `load_engine` would give a newer opset the number of an older one.
    path.rename(path.with_suffix(".ort.onnx"))
    session = onnxruntime_engine.session_at(onnxruntime_engine.LEVELS[0], path, None)
    return list(session.run(None, {"x": _GIVEN}))


def _about_onnxruntime() -> tuple[str, list[str]]:
    import onnxruntime

    return onnxruntime.__version__, list(onnxruntime.get_available_providers())


def _about_openvino() -> tuple[str, list[str]]:
    import openvino

    return openvino.__version__.partition("-")[0], list(openvino.Core().available_devices)


_ABOUT: Mapping[str, Callable[[], tuple[str, list[str]]]] = {
    "reference": lambda: (onnx.__version__, ["CPU"]),
    "onnxruntime": _about_onnxruntime,
    "openvino": _about_openvino,
}
_RUN: Mapping[str, Callable[[Path], list[Value]]] = {
    "reference": lambda path: load_engine("reference", path).run({"x": _GIVEN}, None),
    "onnxruntime": _run_onnxruntime,
    "openvino": lambda path: load_engine("openvino", path).run({"x": _GIVEN}, None),
}
