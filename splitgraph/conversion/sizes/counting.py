"""Makes indices and positions that count the places of a dimension count those of its new size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from splitgraph.conversion.sizes.last_walk import LastWalk, Producer, Stuck
from splitgraph.conversion.sizes.needs import Counted, InputPlace, Repeated
from splitgraph.conversion.sizes.weights import NotRead, WeightReader
from splitgraph.dim import DimLike, product, symbols_of
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import GraphPath

# Nodes that hand their elements on, in another layout.
_HANDING_ON = kinds.LAYOUT | {"Cast", "Convert"}


class _Count(NamedTuple):
    """Weights that count a dimension along an axis, in steps, and the input that reads them."""

    reader: InputPlace
    axis: int
    dim: DimLike
    step: DimLike


class Counting:
    """Lets numbers count along new sizes, in one model as the last walk saw it."""

    def __init__(self, last: LastWalk, weights: WeightReader) -> None:
        self._last, self._follower, self._weights = last, last.follower, weights

    def count(self, place: InputPlace, name: str, axis: int, dim: DimLike, entry: int) -> None:
        """Let indices that count all of a dimension along an axis count all of its new size. Raises Stuck for others.

        place: the input that reads the indices. entry: which entry along their last axis counts.
        """
        home = self._last.home(place.path, name)
        producer, tensor = self._last.producer(home, name), self._last.tensor(home, name)
        if tensor is not None:
            if not _counts_along(self._elements(home, name, tensor), axis, entry):
                raise Stuck(f"the indices {name!r} do not count all of {dim}")
            self.expand(place, Counted(axis, entry), dim)
        elif producer is not None and producer.node.op_type == "Concat":
            self._count_in_part(producer, axis, dim, entry)
        elif self._last.shape(place.path, name)[axis] != dim:
            # The model computes the indices, and not for the new size.
            raise Stuck(f"takes elements along {dim} by numbers that {name!r} has")

    def expand(self, place: InputPlace, counted: Counted, dim: DimLike) -> None:
        """Let weights that count along an axis count as far as the new dimension. Raises Stuck if they count along
        another axis, too, in each other's way.
        """
        others = self._follower.decided.patterns.get(place, ())
        # Pairs of numbers count along two axes.
        kept = [each for each in others if isinstance(each, Counted) and each.axis != counted.axis]
        if any(each.axis == counted.along or each.along == counted.axis for each in kept):
            raise Stuck("its numbers count along two axes, and each of them counts along the other")
        self._follower.decided.patterns[place] = (*kept, counted)
        # The entry counts along this axis, so the axis as a whole is not read as one that counts.
        self._follower.decided.repeated.get(place, {}).pop(counted.axis, None)
        self._follower.decided.expanded.setdefault(place, {})[counted.axis] = dim

    def _count_in_part(self, producer: Producer, axis: int, dim: DimLike, entry: int) -> None:
        """Do as `count` for indices that a Concat joins along the last axis: one of its inputs has the entry."""
        path = producer.scope.path
        for position, name in enumerate(producer.node.input):
            size = self._last.shape(path, name)[-1]
            if not isinstance(size, int):
                break
            if entry < size:
                self.count(producer.place(position), name, axis, dim, entry)
                return
            entry -= size

    # Several dimensions ---------------------------------------------------------------------------------------------

    def count_digits(self, place: InputPlace, name: str, digits: Sequence[DimLike]) -> None:
        """Let indices into a merged dimension count each of the dimensions in it, the last one fastest."""
        for reader, axis, dim, step in self._counts(place, name, tuple(digits), 1):
            self._follower.decided.repeated.setdefault(reader, {})[axis] = Repeated(axis, 0, step)
            self._follower.decided.expanded.setdefault(reader, {})[axis] = dim

    def _counts(self, place: InputPlace, name: str, digits: tuple[DimLike, ...], stride: DimLike) -> list[_Count]:
        """Return the weights that have to count so that a value is a place along digits times `stride`: `b*T + t`."""
        home = self._last.home(place.path, name)
        producer, tensor = self._last.producer(home, name), self._last.tensor(home, name)
        if tensor is not None:
            return self._of_weights(place, self._elements(home, name, tensor), name, digits, stride)
        try:
            return self._of_node(producer, name, digits, stride)
        except Stuck:
            if stride == 1 and self._is_of_items(place, name, digits):
                return []
            raise

    def _of_node(
        self, producer: Producer | None, name: str, digits: tuple[DimLike, ...], stride: DimLike
    ) -> list[_Count]:
        kind = "" if producer is None else producer.node.op_type
        if producer is not None and kind in _HANDING_ON:
            return self._counts(producer.place(0), producer.node.input[0], digits, stride)
        if producer is not None and kind in ("Mul", "Multiply"):
            return self._scaled(producer, digits, stride)
        if producer is not None and kind == "Add":
            return self._added(producer, digits, stride)
        if producer is not None and kind == "Range" and self._is_range(producer, product(digits), stride):
            return []
        raise Stuck(f"it is not told what {name!r} counts")

    def _is_range(self, producer: Producer, dim: DimLike, step: DimLike) -> bool:
        """Return True for 0, 1, 2 … as many as a dimension has, or for these in steps. Of a batch of 1, that is a 0."""
        names, wanted = producer.node.input, self._follower.wanted
        given = [self._last.given(producer.place(at), each, at_old_sizes=False) for at, each in enumerate(names)]
        items = [() if each is None else each.items for each in given]
        limit = product([dim, step])
        if (
            wanted.before(dim) == 1
            and symbols_of(dim) <= wanted.batch
            and items == [(0,), (wanted.before(limit),), (step,)]
        ):
            self._follower.decided.entries.setdefault(producer.place(1), {})[0] = limit
            return True
        return items == [(0,), (limit,), (step,)]

    def _is_of_items(self, place: InputPlace, name: str, digits: Sequence[DimLike]) -> bool:
        """Return True for what each item finds among digits of its own, as an ArgMax does: it stays what it is."""
        items = self._follower.wanted.items
        own = self._last.shape(place.path, name)
        return all(symbols_of(dim).isdisjoint(items) for dim in digits) and any(
            not symbols_of(dim).isdisjoint(items) for dim in own
        )

    def _scaled(self, producer: Producer, digits: tuple[DimLike, ...], stride: DimLike) -> list[_Count]:
        node = producer.node
        for factor, rest in ((1, 0), (0, 1)):
            items = self._last.given(producer.place(factor), node.input[factor], at_old_sizes=False)
            known = items.items if items is not None else ()
            if len(known) == 1 and known[0] == stride:
                return self._counts(producer.place(rest), node.input[rest], digits, 1)
        raise Stuck(f"{producer.location} does not multiply by {stride}")

    def _added(self, producer: Producer, digits: tuple[DimLike, ...], stride: DimLike) -> list[_Count]:
        """Return the weights of a sum that count: one operand counts the first digits, and the other the rest."""
        node, reasons = producer.node, [f"{producer.location} does not count [{', '.join(map(str, digits))}]"]
        for number in range(1, len(digits)):
            inner = product([*digits[number:], stride])
            for first, last in ((0, 1), (1, 0)):
                try:
                    outer = self._counts(producer.place(first), node.input[first], digits[:number], inner)
                    return [*outer, *self._counts(producer.place(last), node.input[last], digits[number:], stride)]
                except Stuck as reason:
                    reasons.append(str(reason))
        raise Stuck(reasons[0])

    def _of_weights(
        self, place: InputPlace, array: Any, name: str, digits: tuple[DimLike, ...], stride: DimLike
    ) -> list[_Count]:
        """Return the weights if they are a list that counts one digit, from 0 and in steps of `stride`; a 0 counts a
        batch of 1. Raises Stuck for others.
        """
        wanted, (dim, *others) = self._follower.wanted, digits
        old = wanted.before(dim)
        axis = next((axis for axis, size in enumerate(array.shape) if size == old), None)
        is_one, step = not others and array.size == old, wanted.before(stride)
        if not is_one or axis is None or (array.reshape(-1) != np.arange(array.size) * int(str(step))).any():
            raise Stuck(f"{name!r} does not count {dim}")
        if old == 1 and not symbols_of(dim) <= wanted.batch:
            raise Stuck(f"nothing says that {name!r} counts {dim}, which was 1")
        return [_Count(place, axis, dim, stride)] if wanted.changes(dim) else []

    def _elements(self, home: GraphPath, name: str, tensor: TensorProto) -> Any:
        try:
            return self._weights.elements(home, tensor)
        except NotRead as reason:
            raise Stuck(f"the indices {name!r} {reason}") from None


def _counts_along(indices: Any, axis: int, entry: int) -> bool:
    """Return True if one entry of tuples of indices is 0, 1, 2 … along an axis, and all others are the same there."""
    first = indices.take([0], axis)
    counted = np.zeros_like(first)
    counted[..., entry] = 1
    steps = np.arange(indices.shape[axis]).reshape([-1 if at == axis else 1 for at in range(indices.ndim)])
    return not first[..., entry].any() and bool((indices == first + counted * steps).all())
