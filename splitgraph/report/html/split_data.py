"""The splits of a model as pages and SVG pictures draw them: names of parts, lengths, and how wide to draw each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.graph.scopes import node_label
from splitgraph.inference.analysis import Analysis, SplitReport

Document = dict[str, Any]
Bounds = Mapping[str, tuple[int, int | None]]

# The size of every symbol while bars are cut: many divisors, so that equal parts look equal.
NOMINAL = 240
# How each operator is drawn.
KINDS = {"Split": "split", "VariadicSplit": "variadic", "SplitToSequence": "sequence", "StringSplit": "string"}


def operator_label(split: SplitReport) -> str:
    """Return the operator with its version, "Split-18"; the operators of OpenVINO have no version of an opset."""
    return split.op if split.domain else f"{split.op}-{split.since_version}"


def part_weight(length: int | Dim | None, bounds: Bounds) -> float | None:
    """Return how wide a part is drawn, relative to the others; None for an unknown length.

    A symbolic length is computed with a nominal size for each symbol, within the symbol's bounds. So the picture
    shows `(N + 1)//2 | N//2` as two parts of about the same width.
    """
    if length is None or isinstance(length, int):
        # A split with an error may have a negative length.
        return length if length is None else max(0, length)
    try:
        return max(0, evaluate(length, {name: _nominal(bounds.get(name, (0, None))) for name in symbols_of(length)}))
    except (ZeroDivisionError, OverflowError):
        # At the nominal sizes a divisor is 0, or the number is far too large for a dimension.
        return None


def _nominal(bounds: tuple[int, int | None]) -> int:
    low, high = bounds
    size = max(low, NOMINAL)
    return size if high is None else min(size, high)


def bar_weights(lengths: Iterable[int | Dim | None], bounds: Bounds) -> list[float]:
    """Return the width of each part of a bar, relative to the others. An unknown part gets the mean of the known
    ones.
    """
    found = [part_weight(length, bounds) for length in lengths]
    known = [weight for weight in found if weight is not None]
    mean = sum(known) / len(known) if known else 1.0
    return [float(mean if weight is None else weight) for weight in found]


def rest_parts(analysis: Analysis) -> dict[str, int]:
    """Return the part of each VariadicSplit whose length is written as -1 (the rest of the dimension), by location.

    Splits in the bodies of model-local functions are left out: a call may give them other lengths.
    """
    found: dict[str, int] = {}
    if analysis.details is None:
        return found
    for scope in analysis.details.scopes:
        detail = analysis.details.graphs.get(scope.path)
        for index, split in ({} if detail is None or scope.in_function else detail.splits).items():
            node = scope.nodes[index]
            has_rest = split.rest_possible and split.split is not None
            items = getattr(detail.constants.get(node.input[2]), "items", ()) if has_rest else ()
            if -1 in items:
                found[f"{scope.location}/{node_label(node, index)}"] = items.index(-1)
    return found
