"""Writes sizes as formulas that a run computes from the shapes of the inputs, in any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from splitgraph.conversion.sizes.wanted import SizePlace
from splitgraph.dim import Dim, DimLike
from splitgraph.dim.atoms import FLOOR, MAX, MOD, NESTED_MAX, PRODUCT, SUM, SYMBOL, Atom
from splitgraph.model.value_type import DTYPE_NUMBERS

# A value of the format, as its writer knows it.
Value = TypeVar("Value")


class NotWritable(Exception):
    """A size cannot be computed by nodes. The argument says why."""


class SizeFormulas(Generic[Value]):
    """Writes sizes as lists of one number. A format says how a number, a dimension and an operation are written."""

    def __init__(self, places: Mapping[str, SizePlace], computed: dict[DimLike, Value]) -> None:
        """places: where a run finds each dimension. computed: the sizes that the graph has computed, which are not
        computed again.
        """
        self.places = places
        self._computed = computed

    def write(self, op_type: str, inputs: Sequence[Value], hint: str, **attributes: Any) -> Value:
        """Write an operator of ONNX with one output."""
        raise NotImplementedError

    def constant(self, array: Any, hint: str) -> Value:
        """Write a constant, a NumPy array."""
        raise NotImplementedError

    def list_of(self, numbers: Sequence[int], hint: str) -> Value:
        """Write a list of numbers."""
        raise NotImplementedError

    def elements(self, items: Sequence[DimLike], shape: tuple[int, ...], dtype: str) -> Value:
        """Write sizes as a tensor of a shape. Raises NotWritable."""
        raise NotImplementedError

    def counted(self, size: DimLike) -> Value:
        """Write 0 … size - 1. Raises NotWritable."""
        bounds = [self.elements([bound], (), "int64") for bound in (0, size, 1)]
        return self.write("Range", bounds, "counted")

    def repeated(self, value: Value, times: Sequence[DimLike]) -> Value:
        """Write a value that is repeated so many times along each axis; along those with other times than 1, it has one
        element.
        """
        return self.write("Expand", [value, self.elements(times, (len(times),), "int64")], "repeated")

    def part_of(self, value: Value, axis: int, start: int, end: int) -> Value:
        """Write the part of a value between two places along an axis."""
        return self.write("Slice", [value, *(self.list_of([each], "bound") for each in (start, end, axis))], "level")

    def cast(self, value: Value, dtype: str) -> Value:
        """Write a value as another type."""
        return self.write("Cast", [value], "cast", to=DTYPE_NUMBERS[dtype])

    def dimension(self, name: str) -> Value:
        """Write the dimension of an input with this name. Raises NotWritable."""
        raise NotImplementedError

    def operate(self, operator: str, parts: Sequence[Value], hint: str) -> Value:
        """Write an operation on sizes: Add, Sub, Mul, Div (rounded down) or Max. Raises NotWritable."""
        return self.write(operator, parts, hint)

    def place_of(self, name: str) -> SizePlace:
        """Return where a run finds a dimension. Raises NotWritable."""
        place = self.places.get(name)
        if place is None:
            raise NotWritable(f"no input has the dimension {name}, so that no node can compute it")
        return place

    def size(self, dim: DimLike) -> Value:
        """Write a size. Raises NotWritable."""
        if isinstance(dim, int):
            return self.list_of([dim], "number")
        known = self._computed.get(dim)
        if known is None:
            known = self._computed[dim] = self._sum(dim)
        return known

    def _sum(self, dim: Dim) -> Value:
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom) for atom in monomial]
            if coefficient != 1:
                factors.append(self.size(coefficient))
            term = self._chain("Mul", factors, "product")
            total = term if total is None else self.operate("Add", [total, term], "sum")
        assert total is not None
        return self.operate("Add", [total, self.size(dim.const)], "sum") if dim.const else total

    def _chain(self, operator: str, parts: Sequence[Value], hint: str) -> Value:
        result = parts[0]
        for part in parts[1:]:
            result = self.operate(operator, [result, part], hint)
        return result

    def _atom(self, atom: Atom) -> Value:
        if atom.kind == SYMBOL:
            return self.dimension(atom.name)
        parts = [self.size(part) for part in atom.parts]
        if atom.kind == FLOOR:
            return self.operate("Div", parts, "quotient")
        if atom.kind == MOD:
            multiple = self.operate("Mul", [self.operate("Div", parts, "quotient"), parts[1]], "multiple")
            return self.operate("Sub", [parts[0], multiple], "rest")
        if atom.kind in (MAX, NESTED_MAX):
            return self.operate("Max", parts, "larger")
        assert atom.kind in (SUM, PRODUCT)
        return self._chain("Add" if atom.kind == SUM else "Mul", parts, "sum")


def plain_target(items: Sequence[DimLike], data: Sequence[object], *, zeros_copy: bool) -> list[DimLike]:
    """Return the target of a Reshape with 0 for a dimension of the data, if zeros copy, and -1 for the only other
    one.
    """
    plain = [
        0 if zeros_copy and isinstance(item, Dim) and axis < len(data) and data[axis] == item else item
        for axis, item in enumerate(items)
    ]
    symbolic = [axis for axis, item in enumerate(items) if isinstance(item, Dim)]
    if len(symbolic) == 1 and -1 not in items and (0 not in items or zeros_copy):
        plain[symbolic[0]] = -1
    return plain
