"""The node tests that onnx makes in memory, for all tests that use them."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx.backend.test.case import base
from onnx.backend.test.case.test_case import TestCase
from onnx.reference.ops import op_pool_common

_pool = op_pool_common.pool


@cache
def node_tests() -> tuple[TestCase, ...]:
    """Every node test of the installed onnx that has a model.

    Each process makes them once. Their models and data must not be changed.
    """
    # Some cases overflow or divide by zero on purpose while onnx makes them. Most of its time onnx pools window by
    # window, and reads its own sources for a documentation that nobody asked for.
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        patch.object(op_pool_common, "pool", _pool_at_once),
        patch.object(base, "process_snippet", lambda op_name, name, export: (name, "")),
    ):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return tuple(case for case in collect_testcases(None) if case.model is not None)


def _pool_at_once(
    padded: Any,
    x_shape: Any,
    kernel: Any,
    strides: Any,
    out_shape: Any,
    kind: str,
    *more: Any,
    p: int = 1,
    **named: Any,
) -> Any:
    """onnx's `pool`, of all windows together where there is neither padding nor dilation."""
    if more or named or any(step != 1 for step in strides):
        return _pool(padded, x_shape, kernel, strides, out_shape, kind, *more, p=p, **named)
    windows, inner = sliding_window_view(padded, kernel, tuple(range(2, padded.ndim))), tuple(range(-len(kernel), 0))
    if kind == "LPPOOL":
        return (np.abs(windows) ** p).sum(inner) ** (1.0 / p)
    return windows.mean(inner) if kind == "AVG" else windows.max(inner)
