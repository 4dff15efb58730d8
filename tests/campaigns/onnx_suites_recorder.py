"""A pytest plugin: records what onnx's own tests hand to shape inference and to the version converter, and the answers.

Loaded with `-p onnx_suites_recorder` by `record_onnx_suites.py`; writes to the file named by ONNX_SUITES_RECORD.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx.shape_inference
import onnx.version_converter
import pytest
from onnx import TypeProto

_infer_shapes = onnx.shape_inference.infer_shapes
_convert_version = onnx.version_converter.convert_version
_records: list[dict[str, Any]] = []
_running = ""


def _infer(model: Any, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False) -> Any:
    return _recorded(
        {"kind": "infer"},
        model,
        lambda: _infer_shapes(model, check_type, strict_mode, data_prop),
        lambda found: {"types": _types(found)},
    )


def _convert(model: Any, target_version: int) -> Any:
    return _recorded(
        {"kind": "convert", "target": target_version},
        model,
        lambda: _convert_version(model, target_version),
        lambda found: {},
    )


def _recorded(record: dict[str, Any], model: Any, run: Any, told: Any) -> Any:
    # Some tests hand over bytes that are no model at all.
    if isinstance(model, onnx.ModelProto):
        record |= {"test": _running, "model": base64.b64encode(model.SerializeToString()).decode()}
        _records.append(record)
    try:
        found = run()
    except Exception as error:
        record["error"] = " ".join(str(error).split())
        raise
    record |= told(found)
    return found


def _types(model: onnx.ModelProto) -> dict[str, str]:
    return {value.name: type_text(value.type) for value in (*model.graph.value_info, *model.graph.output)}


def type_text(given: TypeProto) -> str:
    """A type as text: `float[2,N,?]`, `int64[*]` for an unknown rank, `sequence(...)`; "" for none."""
    kind = given.WhichOneof("value")
    if kind is None:
        return ""
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')}({type_text(getattr(given, kind).elem_type)})"
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return kind.removesuffix("_type")
    held = getattr(given, kind)
    name = onnx.TensorProto.DataType.Name(held.elem_type).lower() if held.elem_type else "?"
    if not held.HasField("shape"):
        return f"{name}[*]"
    dims = [str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in held.shape.dim]
    return f"{name}[{','.join(dims)}]"


def pytest_configure() -> None:
    """Put the recording functions in the place of onnx's before any test imports them."""
    onnx.shape_inference.infer_shapes = _infer
    onnx.version_converter.convert_version = _convert


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note which test is running."""
    global _running
    _running = f"{Path(item.path).stem}::{item.originalname if isinstance(item, pytest.Function) else item.name}"
    return (yield)


def pytest_sessionfinish() -> None:
    """Write one JSON document a line, each model once."""
    unique = {json.dumps(record, sort_keys=True): record for record in _records}
    lines = "".join(json.dumps(record, sort_keys=True) + "\n" for record in unique.values())
    # Without a time in the header, the same records make the same file.
    Path(os.environ["ONNX_SUITES_RECORD"]).write_bytes(gzip.compress(lines.encode(), mtime=0))
