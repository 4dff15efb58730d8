"""Splits that are shown to be equal for every value of every dimension, without running anything."""

from __future__ import annotations

from splitgraph.dim import Dim, symbols_of
from splitgraph.inference.analysis import Analysis, SplitReport
from splitgraph.value_type import UNKNOWN

Key = tuple[str, tuple[str, ...]]


def prove_equal_splits(before: Analysis, after: Analysis) -> tuple[str, ...]:
    """Locations of the splits of `before` that `after` has too, with symbolically equal lengths.

    Such a split reads a value of the same name, in the graph of the same path, gives the same outputs, and has the same
    axis and lengths. Lengths prove nothing where they hold a symbol that need not mean the same in both models: one
    that is not a dimension of the same graph input in both.
    """
    shared = _input_symbols(before) & _input_symbols(after)
    symbols = {name for _, _, name in shared}
    twins = {_key(split): split for split in after.splits}
    proved = []
    for split in before.splits:
        twin = twins.get(_key(split))
        if twin is not None and _is_known(split, symbols) and _parts(split) == _parts(twin):
            proved.append(split.location)
    return tuple(proved)


def _key(split: SplitReport) -> Key:
    path = split.location.removesuffix(split.name)  # a node's name may hold slashes of its own
    return path, tuple(name for name, _ in split.outputs)


def _parts(split: SplitReport) -> tuple[object, ...]:
    outputs = tuple((value.kind, value.rank) for _, value in split.outputs)
    return split.input_name, split.axis, split.lengths, outputs


def _is_known(split: SplitReport, symbols: set[str]) -> bool:
    if split.axis is None or not split.lengths:
        return False
    return all(isinstance(n, int) or (isinstance(n, Dim) and symbols_of(n) <= symbols) for n in split.lengths)


def _input_symbols(analysis: Analysis) -> set[tuple[str, int, str]]:
    """(input, position, symbol) of each dimension of a graph input that is a symbol by itself."""
    found = set()
    for value in analysis.model.graph.input:
        declared = analysis.types.get(value.name, UNKNOWN)
        for position, dim in enumerate(declared.shape or ()):
            if isinstance(dim, Dim) and symbols_of(dim) == {str(dim)}:
                found.add((value.name, position, str(dim)))
    return found
