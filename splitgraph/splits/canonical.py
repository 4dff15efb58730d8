"""The canonical split: one axis and the lengths of the parts along it, and the one rule for the types of the parts.

Every split operator of ONNX and OpenVINO is lifted into this form and lowered from it. Each length is an int or a
symbolic Dim, and they sum to the dimension. Where the parts begin is not kept: of n lengths that are all symbols, the
sums take n*n/2 terms. What must hold of the symbols for the split to be valid at all (`N % 3 == 0`) is recorded as
obligations while the lengths are built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Protocol

from splitgraph.dim import Dim, DimLike, Facts, ceildiv, dim_min, sum_dims
from splitgraph.findings.diagnostics import Severity
from splitgraph.model.value_type import MAX_ITEMS, Contents, SequenceInfo, ValueType, tensor

# How the parts were given, so that lowering can pick the plainest form of the target:
# equal parts that must divide the dimension; a number of chunks whose last may be smaller; explicit lengths; the size
# of each chunk.
SplitForm = Literal["equal", "chunks", "lengths", "size"]


class SplitSite(Protocol):
    """A split node as a `lift` reads it; inference provides one for each node that it walks."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs, "" for an omitted one."""

    @property
    def input_count(self) -> int:
        """How many inputs the node lists, omitted ones included."""

    @property
    def facts(self) -> Facts:
        """What is known of the symbols."""

    @property
    def empty_chunks(self) -> str:
        """What num_outputs chunks that overrun the dimension are: "clamp" or "error"."""

    def input(self, index: int) -> ValueType:
        """Return the type of an input; of kind "unknown" when omitted."""

    def has_input(self, index: int) -> bool:
        """Return True when the input is given."""

    def contents(self, index: int) -> Contents | None:
        """Return what is known of the elements of an input."""

    def attribute_names(self) -> Iterable[str]:
        """Return names of the attributes that the node has."""

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute; UNRESOLVED for a reference whose value is not known."""

    def fresh(self) -> Dim:
        """Return a new generated symbol."""

    def require(self, lhs: DimLike, relation: Literal["==", ">="], rhs: DimLike, *, code: str, message: str) -> bool:
        """Record what must hold; report and return False when it never can."""

    def find(self, code: str, message: str, *, severity: Severity = "error") -> object:
        """Report a finding."""

    def tolerate(self, code: str, message: str, run_by: str, reading: str = "alike") -> None:
        """Report as a warning what the specification forbids and what engines run, all in one way."""

    def set_contents(self, index: int, contents: Contents | None) -> None:
        """Say what an output holds."""

    def set_sequence(self, index: int, info: SequenceInfo) -> None:
        """Say what an output that is a sequence holds."""

    def refine_input(self, index: int, contents: Contents) -> None:
        """Say what an input must hold for the node to be valid."""


@dataclass(frozen=True, slots=True)
class CanonicalSplit:
    """Axis and lengths of a split.

    axis: non-negative when the rank is known, as written when only the rank is unknown, None when unknown.
    total: the dimension that is split, None when unknown. lengths: of each part, None when their number is unknown.
    count: the number of parts, None when unknown. size: length of every part but the last, where the form
    gives one ("size"). squeezed: each part has length 1 and loses the axis (SplitToSequence with keepdims=0).
    """

    axis: int | None
    total: DimLike | None
    lengths: tuple[DimLike, ...] | None
    form: SplitForm
    count: DimLike | None
    size: DimLike | None = None
    squeezed: bool = False

    @property
    def static_lengths(self) -> tuple[int, ...] | None:
        """Length of each part when all are known numbers, else None."""
        lengths = self.lengths
        if lengths is None or not all(isinstance(length, int) for length in lengths):
            return None
        return tuple(length for length in lengths if isinstance(length, int))

    def part_type(self, data: ValueType, index: int) -> ValueType:
        """Return the type of one part: the data's, with the part's length on the axis."""
        lengths = self.lengths
        return data.with_shape(None) if lengths is None else self._part_of(data, lengths[index])

    def element_type(self, data: ValueType) -> ValueType:
        """Return the type that all parts have in common; a length in which they may differ is None."""
        lengths = set(self.lengths or ())
        if len(lengths) == 1:
            return self._part_of(data, lengths.pop())
        if self.lengths is None and self.size is not None and self.total is not None and self.size in (1, self.total):
            return self._part_of(data, self.size)
        return self._part_of(data, None)

    def _part_of(self, data: ValueType, length: DimLike | None) -> ValueType:
        if data.shape is None:
            return tensor(data.dtype, None)
        if self.axis is None:
            return tensor(data.dtype, [None] * len(data.shape))
        shape = list(data.shape)
        if self.squeezed:
            del shape[self.axis]
        else:
            shape[self.axis] = length
        return tensor(data.dtype, shape)


# Models repeat the same few splits in every layer, so results that depend on dimensions alone are cached.
_remembered = lru_cache(maxsize=4096)


@_remembered
def clamped_lengths(total: DimLike, size: DimLike, count: int) -> tuple[DimLike, ...]:
    """Return the lengths of `count` chunks of `size`: chunks are cut off at `total`, and the last one takes the
    rest.
    """
    bounds = (*(dim_min(index * size, total) for index in range(count)), total)
    return tuple(end - start for start, end in pairwise(bounds))


def split_equally(site: SplitSite, axis: int | None, total: DimLike | None, count: int) -> CanonicalSplit | None:
    """Split into `count` equal parts; the dimension must be a multiple of `count`."""
    if total is None:
        size: DimLike = site.fresh()
        return CanonicalSplit(axis, None, (size,) * count, "equal", count)
    holds = site.require(
        total % count,
        "==",
        0,
        code="SG206",
        message=f"dimension {total} on axis {axis} does not divide into {count} equal parts",
    )
    if not holds:
        return None
    # If the obligation holds, the last part has this length too, so every part gets the same spelling.
    size = site.facts.simplify(total // count)
    return CanonicalSplit(axis, total, (size,) * count, "equal", count)


def split_into_chunks(site: SplitSite, axis: int | None, total: DimLike | None, count: int) -> CanonicalSplit | None:
    """Split into `count` chunks of ceil(dim / count), the last one smaller (num_outputs of Split-18)."""
    if total is None:
        total = site.fresh()
        known: DimLike | None = None
    else:
        known = total
    size, rest = _chunks_of(total, count)
    if isinstance(rest, int):
        valid = _report_empty_chunks(site, total, count, rest)
        return _clamped_chunks(axis, known, total, size, count) if valid else None
    # Wherever the last chunk is not negative no other one overruns, so the lengths hold without min().
    if not site.facts.prove_ge(rest, 0) and site.facts.prove_ge(-1, rest):
        return _clamped_chunks(axis, known, total, size, count)
    site.require(rest, ">=", 0, code="SG203", message=f"{count} chunks of {size} overrun the dimension {total}")
    return CanonicalSplit(axis, known, (*[size] * (count - 1), rest), "chunks", count)


def _clamped_chunks(
    axis: int | None, known: DimLike | None, total: DimLike, size: DimLike, count: int
) -> CanonicalSplit:
    return CanonicalSplit(axis, known, clamped_lengths(total, size, count), "chunks", count)


@_remembered
def _chunks_of(total: DimLike, count: int) -> tuple[DimLike, DimLike]:
    """Return the size of all chunks but the last, and what they leave for the last. Negative: they overrun the
    dimension.
    """
    size = ceildiv(total, count)
    return size, total - (count - 1) * size


def _report_empty_chunks(site: SplitSite, total: DimLike, count: int, rest: int) -> bool:
    if rest > 0:
        return True
    what = f"num_outputs={count} on a dimension of {total}: chunks of {ceildiv(total, count)} leave {rest} for the last"
    if rest < 0 and site.empty_chunks == "error":
        site.find("SG203", f"{what}, which no runtime is bound to accept")
        return False
    site.find("SG203", f"{what}; runtimes disagree, splitgraph takes trailing parts as empty", severity="warning")
    return True


def split_by_lengths(
    site: SplitSite,
    axis: int | None,
    total: DimLike | None,
    lengths: Sequence[DimLike | None],
    *,
    rest_allowed: bool = False,
) -> CanonicalSplit | None:
    """Split by explicit lengths, which must sum to the dimension. A length is None if only run time knows it.

    A single unknown length is what the other lengths leave of the dimension. Of several unknown lengths, all but the
    last become fresh symbols, and the last one is what these and the known lengths leave. rest_allowed: one length may
    be -1, the rest of the dimension. Returns None if the lengths are not valid.
    """
    if not _check_lengths(site, lengths, rest_allowed):
        return None
    filled = certain_lengths(site.facts, lengths, rest_allowed=rest_allowed)
    unknown = [index for index, length in enumerate(filled) if length is None]
    # Without a known dimension, the last unknown length becomes a fresh symbol, too.
    rest_index = unknown.pop() if unknown and total is not None else None
    for index in unknown:
        filled[index] = site.fresh()
    if total is not None:
        whole = sum_dims(length for length in filled if length is not None)
        if rest_index is None:
            message = f"the lengths {listed(lengths)} sum to {whole}, but the dimension on axis {axis} is {total}"
            fits = site.require(total, "==", whole, code="SG204", message=message)
        else:
            rest = filled[rest_index] = site.facts.simplify(total - whole)
            message = f"the lengths {listed(lengths)} exceed the dimension {total} on axis {axis}"
            fits = site.require(rest, ">=", 0, code="SG204", message=message)
        if not fits:
            return None
    complete = tuple(length for length in filled if length is not None)
    return CanonicalSplit(axis, total, complete, "lengths", len(complete))


def _check_lengths(site: SplitSite, lengths: Sequence[DimLike | None], rest_allowed: bool) -> bool:
    rests = sum(1 for length in lengths if isinstance(length, int) and length == -1)
    if rest_allowed and rests > 1:
        site.find(
            "SG216",
            f"the lengths {listed(lengths)} hold {rests} times -1; one at most may be the rest of the dimension",
        )
        return False
    lowest = -1 if rest_allowed else 0
    if any(isinstance(length, int) and length < lowest for length in lengths):
        site.find("SG205", f"the lengths {listed(lengths)} hold a negative one; each must be at least {lowest}")
        return False
    if rest_allowed and rests == 0:
        return True
    return all(
        site.require(
            length, ">=", 0, code="SG205", message=f"the length {length} is negative for every value of its symbols"
        )
        for length in lengths
        if isinstance(length, Dim)
    )


def certain_lengths(facts: Facts, lengths: Sequence[DimLike | None], *, rest_allowed: bool) -> list[DimLike | None]:
    """Return the lengths. A length is None if it is, or may be, -1: then it is the rest of the dimension."""
    if not rest_allowed:
        return list(lengths)
    rest_given = -1 in lengths
    return [
        None
        if length is None or length == -1 or not (isinstance(length, int) or rest_given or facts.prove_ge(length, 0))
        else length
        for length in lengths
    ]


def split_by_size(
    site: SplitSite, axis: int | None, total: DimLike | None, size: DimLike | None, *, squeezed: bool = False
) -> CanonicalSplit | None:
    """Split into chunks of `size`, the last one smaller (a scalar `split` of SplitToSequence).

    size: None if only run time knows it.
    """
    if isinstance(size, int) and size < 1:
        site.find("SG215", f"the chunk size is {size}; it must be at least 1")
        return None
    if isinstance(size, Dim) and not site.require(
        size, ">=", 1, code="SG215", message=f"the chunk size {size} is never positive"
    ):
        return None
    if total is None or size is None:
        return CanonicalSplit(axis, total, None, "size", None, size, squeezed)
    whole = total // size
    # A size that divides the dimension as a polynomial does so for every value of the symbols.
    count = whole if whole * size == total else ceildiv(total, size)
    if isinstance(count, int) and count <= MAX_ITEMS:
        return CanonicalSplit(axis, total, clamped_lengths(total, size, count), "size", count, size, squeezed)
    return CanonicalSplit(axis, total, None, "size", count, size, squeezed)


def resolve_axis(site: SplitSite, axis: Any, data: ValueType) -> tuple[bool, int | None]:
    """Return whether the axis is valid for the data, and the axis.

    The axis is non-negative if the rank is known, and None if the axis is not an int.
    """
    rank = data.rank
    if rank == 0:
        site.find("SG201", "the input is a scalar, which has no axis to split on")
        return False, None
    if not isinstance(axis, int):
        return True, 0 if rank == 1 else None
    if rank is None:
        return True, axis
    if not -rank <= axis < rank:
        site.find(
            "SG201", f"axis {axis} is out of range for a tensor of rank {rank}; it must be in [{-rank}, {rank - 1}]"
        )
        return False, None
    return True, axis % rank


def dimension_on(data: ValueType, axis: int | None) -> DimLike | None:
    """Return the dimension of the data on the axis, None when rank, axis or dimension is unknown."""
    return None if data.shape is None or axis is None else data.shape[axis]


def split_contents(site: SplitSite, split: CanonicalSplit, data: Contents | None) -> None:
    """Give each part of a 1-D tensor the elements of the data that it has."""
    lengths = split.static_lengths
    if data is None or lengths is None or len(data.shape) != 1 or sum(lengths) != len(data.items):
        return
    start = 0
    for index, length in enumerate(lengths):
        site.set_contents(index, Contents((length,), data.items[start : start + length]))
        start += length


def listed(lengths: Sequence[DimLike | None]) -> str:
    shown = [("?" if length is None else str(length)) for length in lengths]
    return f"[{', '.join(shown if len(shown) <= 12 else [*shown[:8], '...', *shown[-2:]])}]"
