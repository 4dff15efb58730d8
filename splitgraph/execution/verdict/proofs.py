"""Prove that splits are equal for every value of every dimension, without running anything."""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.dim import Dim, Facts, Obligation, symbols_of
from splitgraph.inference.analysis import Analysis, SplitReport
from splitgraph.value_type import UNKNOWN

Key = tuple[str, tuple[str, ...]]


def prove_equal_splits(before: Analysis, after: Analysis) -> tuple[str, ...]:
    """Return the locations of the splits of `before` that `after` has too, with symbolically equal lengths.

    Such a split is in the same graph in both models, reads a value of the same name, and has the same outputs and the
    same axis. Its lengths are equal wherever the split of `before` is valid: N//2 and (N + 1)//2 are equal for an even
    N. A symbol counts only if it is a dimension of the same graph input in both models, because another symbol of the
    same name may have another meaning.
    """
    shared = _input_symbols(before) & _input_symbols(after)
    symbols = {name for _, _, name in shared}
    others = {_key(split): split for split in after.splits}
    known = {str(each): each for each in before.obligations if each.symbols <= symbols}
    return tuple(
        split.location
        for split in before.splits
        if (other := others.get(_key(split))) is not None and _is_equal(split, other, symbols, known)
    )


def _key(split: SplitReport) -> Key:
    path = split.location.removesuffix(split.name)  # the name of a node may contain slashes
    return path, tuple(name for name, _ in split.outputs)


def _is_equal(split: SplitReport, other: SplitReport, symbols: set[str], known: Mapping[str, Obligation]) -> bool:
    if split.axis is None or not split.lengths or _form(split) != _form(other):
        return False
    facts = Facts()
    for text in split.obligations:
        if text in known:
            facts.require(known[text])
    return all(
        left is not None
        and right is not None
        and symbols_of(left) | symbols_of(right) <= symbols
        and facts.prove_eq(left, right)
        for left, right in zip(split.lengths, other.lengths, strict=True)
    )


def _form(split: SplitReport) -> tuple[object, ...]:
    outputs = tuple((value.kind, value.rank) for _, value in split.outputs)
    return split.input_name, split.axis, len(split.lengths), outputs


def _input_symbols(analysis: Analysis) -> set[tuple[str, int, str]]:
    """Return (input, position, symbol) for each dimension of a graph input that is a single symbol."""
    found = set()
    for value in analysis.model.graph.input:
        declared = analysis.types.get(value.name, UNKNOWN)
        for position, dim in enumerate(declared.shape or ()):
            if isinstance(dim, Dim) and symbols_of(dim) == {str(dim)}:
                found.add((value.name, position, str(dim)))
    return found
