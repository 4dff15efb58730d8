"""onnx's own tests of shape inference and of its version converter, as `record_onnx_suites.py` recorded them: what onnx
answered, and how splitgraph's answer compares.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import onnx
from onnx import ModelProto

import splitgraph
from splitgraph.model.value_type import ValueType

RECORD = Path(__file__).parent / "onnx_suites.jsonl.gz"

# agree: the same types, or more dimensions known. less: something is unknown that onnx knows. other: another type.
# refuses: an error where onnx has none. accepts: no error where onnx has one. invalid: the checker refuses the result.
Outcome = Literal["agree", "less", "other", "refuses", "accepts", "invalid"]

# What onnx calls the element types whose names in splitgraph are those of NumPy.
_NAMES = {"float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Record:
    """One call that a test of onnx made. target: the opset converted to, None for inference. error: why onnx refused;
    "" where it did not. types: what onnx inferred, by value.
    """

    test: str
    model: ModelProto
    target: int | None
    error: str
    types: dict[str, str] = field(default_factory=dict)


def records() -> Iterator[Record]:
    """Every call that onnx's tests made."""
    for line in gzip.decompress(RECORD.read_bytes()).splitlines():
        held = json.loads(line)
        model = ModelProto.FromString(base64.b64decode(held["model"]))
        yield Record(held["test"], model, held.get("target"), held.get("error", ""), held.get("types", {}))


def judge(record: Record) -> tuple[Outcome, str]:
    """How splitgraph's answer compares with onnx's, and what differs."""
    return _judge_inference(record) if record.target is None else _judge_conversion(record, record.target)


def _judge_inference(record: Record) -> tuple[Outcome, str]:
    # Most tests write shapes as initializers that are inputs as well, and onnx takes these for constants.
    analysis = splitgraph.infer(record.model, assume_defaults=True)
    errors = [f"{found.code} {found.message}" for found in analysis.diagnostics if found.severity == "error"]
    if record.error:
        return ("agree", "") if errors else ("accepts", record.error)
    if errors:
        return "refuses", errors[0]
    worst: tuple[Outcome, str] = ("agree", "")
    for name, theirs in record.types.items():
        # What onnx infers of an output that nothing declares is not in the types of the main graph.
        mine = analysis.types.get(name)
        found = _compare(theirs, mine)
        if found == "other":
            return found, f"{name}: {mine}, and {theirs} to onnx"
        if found == "less":
            worst = found, f"{name}: {mine}, and {theirs} to onnx"
    return worst


def _compare(theirs: str, mine: ValueType | None) -> Outcome:
    if theirs in ("", "map", "opaque"):
        return "agree"
    if mine is None or mine.kind == "unknown":
        return "less"
    kind, _, rest = theirs.partition("(")
    if kind in ("sequence", "optional"):
        if mine.kind != kind:
            return "other"
        inner = (
            mine.element
            if kind == "optional" and mine.element is not None
            else ValueType("tensor", mine.dtype, mine.shape)
        )
        return _compare(rest.removesuffix(")"), inner)
    name, _, dims = theirs.removesuffix("]").partition("[")
    dtype = _NAMES.get(name, name)
    if name != "?" and mine.dtype != dtype:
        return "less" if mine.dtype is None else "other"
    if dims == "*":
        return "agree"
    if mine.shape is None:
        return "less"
    wanted = dims.split(",") if dims else []
    if len(wanted) != len(mine.shape):
        return "other"
    outcome: Outcome = "agree"
    for theirs_dim, dim in zip(wanted, mine.shape, strict=True):
        if not theirs_dim.isdigit() or dim == int(theirs_dim):
            continue
        if isinstance(dim, int):
            return "other"
        outcome = "less"
    return outcome


def _judge_conversion(record: Record, target: int) -> tuple[Outcome, str]:
    sources = [held.version for held in record.model.opset_import if held.domain in ("", "ai.onnx")]
    convert = splitgraph.downgrade if sources and target < sources[0] else splitgraph.upgrade
    try:
        rewrite = convert(record.model, target)
    except splitgraph.SplitgraphError as error:
        if record.error:
            return "agree", ""
        return "refuses", "; ".join(f"{found.code} {found.message}" for found in error.diagnostics) or str(error)
    problem = _problem(rewrite.model)
    if problem and not _problem(record.model):
        return "invalid", problem
    return ("accepts", record.error) if record.error else ("agree", "")


def _problem(model: ModelProto) -> str:
    """What onnx's checker says of a model; "" where it is valid."""
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return " ".join(str(error).split())
    return ""
