"""Prove that splits are equal for every value of every dimension, without running anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from splitgraph.conversion.splits.joined_slices import find_partitions
from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbols_of
from splitgraph.inference import walk_model
from splitgraph.inference.analysis import Analysis, SplitReport
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import node_label
from splitgraph.model.value_type import UNKNOWN

ProofKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Split:
    """A split node, or slices that together are all parts of a value.

    path: of the graph. kinds: kind and rank of each output. obligations: of a split node, as texts.
    """

    location: str
    path: str
    input_name: str
    axis: int | None
    lengths: Sequence[DimLike | None]
    outputs: tuple[str, ...]
    kinds: tuple[tuple[str, int | None], ...]
    obligations: tuple[str, ...] = ()

    @property
    def key(self) -> ProofKey:
        return self.path, self.outputs


def prove_equal_splits(before: Analysis, after: Analysis) -> tuple[str, ...]:
    """Return the locations of the splits of `before` that `after` has too, with symbolically equal lengths.

    Such a split is in the same graph in both models, reads a value of the same name, and has the same outputs and the
    same axis. On one side, it may be slices that are all parts of the value; its location is that of the first of them.
    The lengths are equal wherever the split of `before` is valid: N//2 and (N + 1)//2 are equal for an even N. A symbol
    counts only if it is a dimension of the same graph input in both models, because another symbol of the same name may
    have another meaning.
    """
    shared = _input_symbols(before) & _input_symbols(after)
    symbols = {name for _, _, name in shared}
    known = {str(obligation): obligation for obligation in before.obligations if obligation.symbols <= symbols}
    ours, others = ({split.key: split for split in map(_reported, side.splits)} for side in (before, after))
    ours.update(_sliced(before, others.keys() - ours.keys(), ()))
    others.update(_sliced(after, ours.keys() - others.keys(), known.values()))
    return tuple(
        split.location
        for key, split in ours.items()
        if (counterpart := others.get(key)) is not None and _is_equal(split, counterpart, symbols, known)
    )


def _reported(split: SplitReport) -> _Split:
    path = split.location.removesuffix(split.name)  # the name of a node may contain slashes
    kinds = tuple((value.kind, value.rank) for _, value in split.outputs)
    names = tuple(name for name, _ in split.outputs)
    return _Split(split.location, path, split.input_name, split.axis, split.lengths, names, kinds, split.obligations)


def _sliced(
    analysis: Analysis, wanted: Collection[ProofKey], known: Collection[Obligation]
) -> Iterator[tuple[ProofKey, _Split]]:
    """Find the splits that slices of a model stand for, among those that the other model has as a node."""
    if not wanted or not isinstance(analysis.model, ModelProto):
        return
    walked = walk_model(analysis.model)
    for scope in walked.scopes:
        facts = walked.facts.get(scope.path, Facts()).child()
        for obligation in known:
            facts.require(obligation)
        for partition in find_partitions(walked, scope, facts):
            outputs = tuple(scope.nodes[part.index].output[0] for part in partition.parts)
            first = min(part.index for part in partition.parts)
            path = f"{scope.location}/"
            location = f"{path}{node_label(scope.nodes[first], first)}"
            kinds = (("tensor", partition.data.rank),) * len(outputs)
            split = _Split(location, path, partition.name, partition.axis, partition.lengths, outputs, kinds)
            if split.key in wanted and not any(part.squeezed for part in partition.parts):
                yield split.key, split


def _is_equal(split: _Split, counterpart: _Split, symbols: set[str], known: Mapping[str, Obligation]) -> bool:
    if split.axis is None or not split.lengths or _form(split) != _form(counterpart):
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
        for left, right in zip(split.lengths, counterpart.lengths, strict=True)
    )


def _form(split: _Split) -> tuple[object, ...]:
    return split.input_name, split.axis, len(split.lengths), split.kinds


def _input_symbols(analysis: Analysis) -> set[tuple[str, int, str]]:
    """Return (input, position, symbol) for each dimension of a graph input that is a single symbol."""
    symbols = set()
    for value in analysis.model.graph.input:
        declared = analysis.types.get(value.name, UNKNOWN)
        for position, dim in enumerate(declared.shape or ()):
            if isinstance(dim, Dim) and symbols_of(dim) == {str(dim)}:
                symbols.add((value.name, position, str(dim)))
    return symbols
