"""The node tests that onnx makes in memory, for all tests that use them."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from onnx.backend.test.case.test_case import TestCase


@cache
def node_tests() -> tuple[TestCase, ...]:
    """Every node test of the installed onnx that has a model.

    onnx takes seconds to make them, so that each process makes them once. Their models and data must not be changed.
    """
    # Some cases overflow or divide by zero on purpose while onnx makes them.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return tuple(case for case in collect_testcases(None) if case.model is not None)
