"""The opsets of a list that the installed onnx has: the oldest supported onnx ends at 25, the newest at 28."""

from __future__ import annotations

from collections.abc import Iterable

import onnx


def known(opsets: Iterable[int]) -> list[int]:
    """Those of the opsets that the installed onnx has, in their order."""
    return [opset for opset in opsets if opset <= onnx.defs.onnx_opset_version()]


def known_pairs(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of the pairs (from, to) of which the installed onnx has both opsets."""
    return [pair for pair in pairs if known(pair) == list(pair)]
