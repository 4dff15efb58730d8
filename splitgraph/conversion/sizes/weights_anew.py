"""Writes weights of another size with the operators of ONNX, in any format, from what they are along their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, NamedTuple

from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.formulas import SizeFormulas, Value
from splitgraph.conversion.sizes.needs import Counted, Cut, InputPlace, Repeated, Triangle
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import DimLike
from splitgraph.model.deferred import np
from splitgraph.model.value_type import Shape, ValueType

_INT64 = "int64"


class _Ways(NamedTuple):
    """What a list or grid of weights is along its axes, as in `Follower`."""

    cut: Cut | None
    repeated: Mapping[int, Repeated]
    pattern: Triangle | Sequence[Counted] | None


@dataclass(frozen=True, slots=True)
class WeightWriter(Generic[Value]):
    """Writes weights for one node. draft: what stands before the node. wanted: the new sizes."""

    draft: SizeFormulas[Value]
    wanted: Wanted

    def expanded(
        self, follower: Follower, place: InputPlace, value: Value, known: ValueType, axes: Mapping[int, DimLike]
    ) -> Value:
        """Write what an input reads with other sizes along axes. known: its type. Raises NotWritable."""
        own: Shape = known.shape or ()
        wanted: list[Any] = [self.wanted.after(axes.get(axis, dim)) for axis, dim in enumerate(own)]  # type: ignore[arg-type]
        levels, dtype = follower.decided.levels.get(place), known.dtype or _INT64
        if levels is None:
            repeated, pattern = follower.decided.repeated.get(place, {}), follower.decided.patterns.get(place)
            return self._expanded(_Ways(follower.decided.cuts.get(place), repeated, pattern), value, own, wanted, dtype)
        parts, axis = [], levels.axis
        for start, dim, grid in levels.parts:
            size = prod(grid.cut.sizes)
            part = self.draft.part_of(value, axis, start, start + size)
            old = (*own[:axis], size, *own[axis + 1 :])
            sizes = [*wanted[:axis], self.wanted.after(dim), *wanted[axis + 1 :]]
            parts.append(self._expanded(_Ways(grid.cut, grid.repeated, grid.counted or None), part, old, sizes, dtype))
        return self.draft.write("Concat", parts, "levels", axis=axis)

    def _expanded(self, ways: _Ways, value: Value, own: Shape, whole: Sequence[DimLike], dtype: str) -> Value:
        """Write the same for one list or grid of weights. own, whole: its shape before and after."""
        draft, wanted, cut = self.draft, whole, ways.cut
        if cut is not None:
            wanted = cut.parts(whole, [self.wanted.after(dim) for dim in cut.dims])
            own = cut.parts(own, cut.sizes)
            value = draft.write("Reshape", [value, draft.list_of(own, "parts")], "in_parts")  # type: ignore[arg-type]
        value, own = self._of_pattern(ways, value, own, wanted, dtype)
        target = [1 if before == after else after for before, after in zip(own, wanted, strict=True)]
        if any(size != 1 for size in target):
            value = draft.repeated(value, target)
        if cut is None:
            return value
        return draft.write("Reshape", [value, draft.elements(whole, (len(whole),), _INT64)], "whole")

    def _of_pattern(
        self, ways: _Ways, value: Value, own: Shape, wanted: Sequence[DimLike], dtype: str
    ) -> tuple[Value, Shape]:
        """Write what the weights are made of; returns it with its shape, in which 1 is to be repeated."""
        counted = next((each for each in ways.repeated.values() if each.step), None)
        if isinstance(ways.pattern, Triangle):
            return self._triangle(ways.pattern, wanted), (*(1 for _ in wanted[:-2]), *wanted[-2:])
        if ways.pattern is not None:
            for count in ways.pattern:
                value = self._with_count(value, count, wanted, dtype)
                own = (*own[: count.axis], wanted[count.axis], *own[count.axis + 1 :])
        elif counted is not None:
            made = self._counted(counted, wanted[counted.axis], len(wanted), dtype)
            return made, tuple(dim if axis == counted.axis else 1 for axis, dim in enumerate(wanted))
        return self._first_of(value, own, ways.repeated)

    def with_sizes(self, value: Value, known: ValueType, entries: Mapping[int, DimLike]) -> Value:
        """Write a constant with sizes in place of some of its numbers."""
        shape = tuple(size for size in known.shape or () if isinstance(size, int))
        dims = [self.wanted.after(entries.get(entry, 0)) for entry in range(prod(shape))]
        made = self.draft.elements(dims, shape, known.dtype or _INT64)
        if len(entries) == len(dims):
            return made
        mask = np.array([entry in entries for entry in range(len(dims))]).reshape(shape)
        return self.draft.write("Where", [self.draft.constant(mask, "places"), made, value], "numbers")

    def _first_of(self, value: Value, shape: Shape, axes: Iterable[int]) -> tuple[Value, Shape]:
        """Write the first of what is all the same along axes; returns it and its shape."""
        for axis in axes:
            value = self.draft.write("Gather", [value, self.draft.list_of([0], "first")], "first_of", axis=axis)
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        return value, shape

    def _counted(self, repeated: Repeated, size: DimLike, rank: int, dtype: str) -> Value:
        """Write numbers that are counted along an axis."""
        draft = self.draft
        value = draft.counted(size)
        if repeated.first(size) != 0:
            # Not as a Range downwards: onnxruntime 1.32 makes an empty one of it.
            first = draft.elements([repeated.first(size)], (), _INT64)
            value = draft.write("Sub" if repeated.step == -1 else "Add", [first, value], "from_end")
        if repeated.step not in (1, -1):
            step = draft.elements([self.wanted.after(repeated.step)], (), _INT64)
            value = draft.write("Mul", [value, step], "in_steps")
        if dtype != _INT64:
            value = draft.cast(value, dtype)
        if rank == 1:
            return value
        shape = [-1 if axis == repeated.axis else 1 for axis in range(rank)]
        return draft.write("Reshape", [value, draft.list_of(shape, "shape")], "along_axis")

    def _with_count(self, value: Value, counted: Counted, shape: Sequence[DimLike], dtype: str) -> Value:
        """Write the first of indices or positions, with a count in one entry."""
        draft = self.draft
        first = draft.write("Gather", [value, draft.list_of([0], "first")], "first_of", axis=counted.axis)
        number = self._counted(Repeated(counted.axis, 0, 1), shape[counted.axis], len(shape), dtype)
        entry = np.array([int(at == counted.entry) for at in range(int(shape[counted.along]))], dtype)
        entry = entry.reshape([-1 if at == counted.along % len(shape) else 1 for at in range(len(shape))])
        count = draft.write("Mul", [number, draft.constant(entry, "entry")], "count")
        return draft.write("Add", [first, count], "indices")

    def _triangle(self, triangle: Triangle, shape: Sequence[DimLike]) -> Value:
        """Write one value up to a diagonal, and another above it."""
        draft = self.draft
        rows, columns = (draft.counted(size) for size in shape[-2:])
        along = [draft.list_of([1] * (len(shape) - 2) + last, "shape") for last in ([-1, 1], [1, -1])]
        last = draft.write("Add", [rows, draft.constant(np.array(triangle.diagonal), "diagonal")], "last")
        columns, last = (
            draft.write("Reshape", [value, shape], "along_axis")
            for value, shape in ((columns, along[1]), (last, along[0]))
        )
        above = draft.write("Greater", [columns, last], "above")
        if triangle.above.dtype == bool:
            return above if triangle.above else draft.write("Not", [above], "below")
        values = (draft.constant(value, hint) for value, hint in ((triangle.above, "far"), (triangle.below, "near")))
        return draft.write("Where", [above, *values], "triangle")
