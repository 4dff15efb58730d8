"""The traits of a split: the words in which a table says what a runtime reads.

A node has several: how it is written ("split-18-uneven"), and what is unusual about it ("axis-omitted", "rank-1"). Each
operator is a trait, too, with its version and without ("Relu-13", "Relu"). A runtime reads a node if it reads all of
them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Literal

from splitgraph.model.value_type import ValueType
from splitgraph.splits.canonical import CanonicalSplit

# How the lengths (or the bounds of a Slice) are given: not at all, as an attribute, as a constant, computed from
# constants, from fixed dimensions, from dynamic dimensions, from the elements of an input.
Given = Literal["", "attribute", "constant", "folded", "fixed", "computed", "input"]

# The traits that say how a split is written. Each node has one of them.
FORMS = {
    "split-1": "Split-1",
    "split-2-equal": "Split-2 or Split-11 without lengths",
    "split-2-even-lengths": "Split-2 or Split-11 with equal lengths as an attribute",
    "split-2-lengths": "Split-2 or Split-11 with lengths as an attribute",
    "split-13-equal": "Split-13 without lengths",
    "split-13-constant": "Split-13 with constant lengths",
    "split-13-folded": "Split-13 with lengths computed from constants",
    "split-13-fixed": "Split-13 with lengths computed from fixed dimensions",
    "split-13-computed": "Split-13 with lengths computed at run time",
    "split-13-input": "Split-13 with lengths that depend on the elements of an input",
    "split-18-even": "Split-18 with num_outputs that divides the dimension",
    "split-18-uneven": "Split-18 with num_outputs that does not divide the dimension",
    "split-18-either": "Split-18 with num_outputs that may not divide the dimension",
    "split-18-constant": "Split-18 with constant lengths",
    "split-18-folded": "Split-18 with lengths computed from constants",
    "split-18-fixed": "Split-18 with lengths computed from fixed dimensions",
    "split-18-computed": "Split-18 with lengths computed at run time",
    "split-18-input": "Split-18 with lengths that depend on the elements of an input",
    "sequence-lengths": "SplitToSequence with a list of lengths",
    "sequence-size": "SplitToSequence with the size of a part",
    "sequence-each": "SplitToSequence into parts of length 1",
    "slice-attributes": "Slice-1 with attributes",
    "slice-constant": "Slice-10 or newer with constant bounds",
    "slice-folded": "Slice-10 or newer with bounds computed from constants",
    "slice-fixed": "Slice-10 or newer with bounds computed from fixed dimensions",
    "slice-computed": "Slice-10 or newer with bounds computed at run time",
    "slice-input": "Slice-10 or newer with bounds that depend on the elements of an input",
    "gather-range": "Gather with constant indices",
    "string-split": "StringSplit",
    "variadic-split": "VariadicSplit as a local function",
}

# Unusual properties of a node. Types other than float32 and ranks have traits of their own ("float16", "rank-1").
MODIFIERS = {
    "axis-omitted": "axis left out",
    "axis-negative": "axis counted from the end",
    "dimension-unknown": "dynamic dimension along the axis",
    "shape-unknown": "dynamic dimensions along other axes",
    "rank-unknown": "data of unknown rank",
    "rank-1": "data of rank 1",
    "part-empty": "part of length 0",
    "part-empty-joined": "part of length 0 that a Concat reads",
    "parts-overrun": "num_outputs that leaves nothing for the last part",
    "parts-beyond": "num_outputs whose parts would go beyond the dimension",
    "data-empty": "data without elements",
    "input-unnamed": "lengths left out by an empty name",
    "output-omitted": "output without a name",
    "output-unread": "output that nothing reads",
    "outputs-mixed": "only some of the parts are graph outputs",
    "part-single": "only one part",
    "uneven-size": "last part smaller than the others",
    "keepdims-0": "keepdims=0",
    "lengths-overridable": "lengths that a caller may replace",
    "lengths-value-ints": "lengths in a Constant with value_ints",
    "lengths-int32": "lengths in int32",
    "bounds-int32": "bounds in int32",
    "bounds-steps": "steps written out",
    "bounds-open": "end of INT64_MAX",
    "bounds-negative": "bounds counted from the end",
    "gather-list": "indices as a list",
    "constant-empty": "constant without elements",
    "position-negative": "position in a sequence that counts from the end",
    "local-function": "local function",
}
# Chunks that leave nothing for the last part, or less: runtimes disagree about these, but not about their lengths.
OVERRUNS = frozenset({"parts-overrun", "parts-beyond"})
TITLES = {**FORMS, **MODIFIERS}


def title(trait: str) -> str:
    """Return what a trait is in words; an operator with its version, and an element type, are named as they are."""
    return TITLES.get(trait, trait)


def described(traits: Collection[str]) -> str:
    """Return several traits in words: the form of the split, then what is unusual about it."""
    # num_outputs that may not divide the dimension says that the dimension is dynamic.
    shown = set(traits) - ({"dimension-unknown"} if "split-18-either" in traits else set())
    return ", ".join(title(trait) for trait in sorted(shown, key=lambda trait: (trait not in FORMS, trait)))


def split_form(since: int, given: Given, split: CanonicalSplit, divisible: bool) -> str:
    """Return the trait that says how a Split is written. since: its version. divisible: as in `SplitDetail`."""
    if since == 1:
        return "split-1"
    if since < 13:
        lengths = set(split.lengths or ())
        return "split-2-equal" if not given else "split-2-even-lengths" if len(lengths) == 1 else "split-2-lengths"
    if given:
        return f"split-{since}-{given}"
    if since == 13:
        return "split-13-equal"
    if divisible or split.count == 1:
        return f"split-{since}-even"
    return f"split-{since}-uneven" if isinstance(split.total, int) else f"split-{since}-either"


def data_traits(data: ValueType, axis: int | None) -> set[str]:
    """Return the traits of the data that is split along an axis."""
    traits = set() if data.dtype in ("float32", None) else {data.dtype}
    if data.shape is None:
        return {*traits, "rank-unknown", "dimension-unknown"}
    if len(data.shape) == 1:
        traits.add("rank-1")
    if any(dim == 0 for dim in data.shape):
        traits.add("data-empty")
    if axis is not None and axis < 0:
        axis += len(data.shape)
    unknown = [position for position, dim in enumerate(data.shape) if not isinstance(dim, int)]
    if axis is None or axis in unknown:
        traits.add("dimension-unknown")
    if any(position != axis for position in unknown):
        traits.add("shape-unknown")
    return traits


def part_traits(split: CanonicalSplit, outputs: Sequence[str], joined: Container[str]) -> set[str]:
    """Return the traits of the parts. outputs: their names, "" for an omitted one. joined: values that only Concat
    reads.
    """
    traits = set()
    if "" in outputs:
        traits.add("output-omitted")
    if split.lengths is not None and len(split.lengths) == 1:
        traits.add("part-single")
    if split.total != 0 and split.lengths is not None and len(split.lengths) == len(outputs):
        empty = [name for name, length in zip(outputs, split.lengths, strict=True) if length == 0]
        if empty and split.form == "chunks":
            traits.add("parts-overrun")
            first, total = split.lengths[0], split.total
            if isinstance(first, int) and isinstance(total, int) and first * (len(outputs) - 1) > total:
                traits.add("parts-beyond")
        elif empty:
            traits.add("part-empty-joined" if all(name in joined for name in empty) else "part-empty")
    return traits
