"""The extensions with which OpenVINO reads a call of our function VariadicSplit_<n> as its own VariadicSplit."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterable
from typing import Any

from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.formats.openvino_runtime import require_openvino
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.splits.variadic_split_1 import DOMAIN, function_name, is_variadic_function

# OpenVINO knows an operator by its whole name only; a thousand extensions take it some milliseconds.
_COUNTS = range(1, 1025)


def extensions(model_or_counts: ModelProto | Iterable[int] | None = None) -> list[Any]:
    """The extensions for `ov.Core().add_extension(...)` or `ov.convert_model(..., extension=...)`.

    model_or_counts: a ModelProto, for the VariadicSplit functions that it has; or the numbers of outputs; None: any
    number up to 1024. Raises SplitgraphError without OpenVINO, or for a number that is none.
    """
    require_openvino()
    frontend = importlib.import_module("openvino.frontend.onnx")
    names = [function_name(count) for count in _counts(model_or_counts)]
    return [frontend.OpExtension("VariadicSplit", name, DOMAIN, {}, {}) for name in names]


def _counts(given: ModelProto | Iterable[int] | None) -> list[int]:
    if given is None:
        return list(_COUNTS)
    if isinstance(given, ModelProto):
        return [len(function.output) for function in given.functions if is_variadic_function(function)]
    try:
        counts = [operator.index(count) for count in given]
    except TypeError as error:
        text = f"extensions() takes a ModelProto or numbers of outputs, not {type(given).__name__}"
        raise SplitgraphError(text) from error
    wrong = next((count for count in counts if count < 1), None)
    if wrong is not None:
        raise SplitgraphError(f"a split has at least one output, not {wrong}")
    return counts
