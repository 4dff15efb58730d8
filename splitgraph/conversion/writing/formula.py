"""Formulas that adapters write: what is known at conversion is computed there, and nodes compute the rest at
run time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import counting, dimension
from splitgraph.deferred import np, numpy_helper
from splitgraph.value_type import DTYPE_NUMBERS, MAX_WRITTEN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Up to this number of elements, the model holds a result; beyond, nodes compute it at run time.
_KEPT = 2**16


@dataclass(slots=True, eq=False)
class Term:
    """A tensor in a formula: its elements where they are known, otherwise the name of the value that holds them.

    Python operators are elementwise and broadcast; both sides have one element type, or the right one is a number.
    NumPy computes known elements with the same IEEE arithmetic in the same type as the operators of ONNX.
    """

    formula: Formula
    dtype: str
    elements: Array | None = None
    value: str = ""

    @property
    def name(self) -> str:
        """The name of the value; adds a constant where the elements are known."""
        return self.value if self.elements is None else self.formula.constant(self.elements)

    def __add__(self, other: Term | float) -> Term:
        return self._with("Add", np.add, other)

    def __sub__(self, other: Term | float) -> Term:
        return self._with("Sub", np.subtract, other)

    def __mul__(self, other: Term | float) -> Term:
        return self._with("Mul", np.multiply, other)

    def __truediv__(self, other: Term | float) -> Term:
        """Divides floating-point numbers."""
        return self._with("Div", np.true_divide, other)

    def __floordiv__(self, other: Term | float) -> Term:
        """Divides integers that are not negative."""
        return self._with("Div", np.floor_divide, other)

    def __lt__(self, other: Term | float) -> Term:
        return self._with("Less", np.less, other, "bool")

    def __gt__(self, other: Term | float) -> Term:
        return self._with("Greater", np.greater, other, "bool")

    def __and__(self, other: Term) -> Term:
        return self._with("And", np.logical_and, other)

    def __or__(self, other: Term) -> Term:
        return self._with("Or", np.logical_or, other)

    def __invert__(self) -> Term:
        return self.formula.apply("Not", np.logical_not, [self])

    def equals(self, other: Term | float) -> Term:
        """Tells where integers are equal."""
        return self._with("Equal", np.equal, other, "bool")

    def floor(self) -> Term:
        """Rounds down."""
        return self.formula.apply("Floor", np.floor, [self])

    def ceil(self) -> Term:
        """Rounds up."""
        return self.formula.apply("Ceil", np.ceil, [self])

    def size(self) -> Term:
        """Gives the absolute values."""
        return self.formula.apply("Abs", np.abs, [self])

    def cast(self, dtype: str) -> Term:
        """Casts to another element type."""
        if dtype == self.dtype:
            return self
        to = DTYPE_NUMBERS[dtype]
        return self.formula.apply("Cast", lambda held: held.astype(dtype), [self], dtype, to=to)

    def reshape(self, *sizes: int) -> Term:
        """Gives the elements another shape: -1 stands for the rest, 0 for the dimension at the same place."""
        if self.elements is not None:
            found = [self.elements.shape[place] if size == 0 else size for place, size in enumerate(sizes)]
            return Term(self.formula, self.dtype, self.elements.reshape(found))
        shape = self.formula.term(np.array(sizes, np.int64)).name
        return Term(
            self.formula, self.dtype, None, self.formula.context.write("Reshape", [self.value, shape], "reshaped")
        )

    def clipped(self, low: Term | float, high: Term | float) -> Term:
        """Brings the numbers within bounds; where the bounds cross, the upper one counts."""
        return self.at_least(low).at_most(high)

    def at_least(self, low: Term | float) -> Term:
        """Raises the numbers to a bound; NaN stays."""
        bound = self._other(low)
        return self.formula.where(self < bound, bound, self)

    def at_most(self, high: Term | float) -> Term:
        """Lowers the numbers to a bound; NaN stays."""
        bound = self._other(high)
        return self.formula.where(self > bound, bound, self)

    def _other(self, other: Term | float) -> Term:
        return other if isinstance(other, Term) else self.formula.number(other, self.dtype)

    def _with(self, op_type: str, compute: Callable[..., Any], other: Term | float, dtype: str | None = None) -> Term:
        return self.formula.apply(op_type, compute, [self, self._other(other)], dtype or self.dtype)


def _is_small(known: Sequence[Array]) -> bool:
    """True when the result from these elements needs little memory."""
    try:
        return math.prod(np.broadcast_shapes(*(elements.shape for elements in known))) <= MAX_WRITTEN
    except ValueError:
        # The arrays do not broadcast: Concat joins them, or Gather takes from one of them.
        return math.prod(elements.size for elements in known) <= MAX_WRITTEN


@dataclass(slots=True)
class Formula:
    """Makes terms at one boundary, and the nodes that compute them, in the opset of the context (9 or more)."""

    context: NodeAtBoundary
    _constants: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    def term(self, elements: Array) -> Term:
        """Makes a term of known elements."""
        return Term(self, str(elements.dtype), elements)

    def number(self, value: ArrayLike, dtype: str = "int64") -> Term:
        """Makes a term of one or several known numbers."""
        return self.term(np.array(value, dtype=dtype))

    def given(self, name: str, dtype: str) -> Term:
        """Makes a term of a value of the model, which may be known."""
        elements = self.context.values.elements(name)
        return Term(self, dtype, None, name) if elements is None else self.term(np.asarray(elements))

    def held(self, name: str, dtype: str) -> Term:
        """Makes a term of a value that was written."""
        return Term(self, dtype, None, name)

    def sizes(self, name: str, rank: int) -> list[Term]:
        """Gives the dimensions of a value, each as an int64 scalar."""
        known = self.context.values.type_of(name).shape or (None,) * rank
        found: list[Term] = []
        shape = ""
        for axis, size in enumerate(known):
            if isinstance(size, int):
                found.append(self.number(size))
                continue
            shape = shape or self.context.write("Shape", [name], "shape")
            found.append(self.held(dimension(self.context, shape, axis, "length"), "int64"))
        return found

    def element(self, vector: Term, place: int) -> Term:
        """Gives one element of a 1-D term, as a scalar."""
        if vector.elements is not None:
            return self.term(np.asarray(vector.elements[place]))
        return self.held(dimension(self.context, vector.name, place, "element"), vector.dtype)

    def vector(self, scalars: Sequence[Term | int]) -> Term:
        """Joins int64 scalars to a 1-D term."""
        terms = [term.reshape(1) if isinstance(term, Term) else self.number([term]) for term in scalars]
        return self.apply("Concat", lambda *held: np.concatenate(held), terms, axis=0)

    def counting(self, count: Term) -> Term:
        """Counts 0, 1, 2, ... up to a scalar, which is excluded; int64."""
        if count.elements is not None and count.elements <= MAX_WRITTEN:
            return self.term(np.arange(int(count.elements), dtype=np.int64))
        return self.held(counting(self.context, count.reshape(1).name, "numbers"), "int64")

    def where(self, condition: Term, one: Term, other: Term) -> Term:
        """Chooses elements of `one` where a condition holds, and of `other` where it does not."""
        if condition.elements is not None and condition.elements.ndim == 0:
            return one if condition.elements else other
        return self.apply("Where", np.where, [condition, one, other], one.dtype)

    def gather(self, data: Term, places: Term, axis: int) -> Term:
        """Gathers parts of a tensor along an axis. All places must be less than its length."""
        return self.apply("Gather", lambda held, at: np.take(held, at, axis=axis), [data, places], axis=axis)

    def transposed(self, term: Term, order: Sequence[int]) -> Term:
        """Transposes the dimensions."""
        return self.apply("Transpose", lambda held: held.transpose(order), [term], perm=list(order))

    def shaped(self, term: Term, sizes: Sequence[Term | int]) -> Term:
        """Gives the elements a shape of terms; 0 stands for the dimension at the same place."""
        shape = self.vector(sizes)
        if term.elements is not None and shape.elements is not None:
            return term.reshape(*shape.elements.tolist())
        return self.held(self.context.write("Reshape", [term.name, shape.name], "shaped"), term.dtype)

    def product(self, terms: Sequence[Term]) -> Term:
        """Multiplies int64 scalars."""
        return reduce(lambda one, other: one * other, terms, self.number(1))

    def total(self, term: Term, axes: Sequence[int], hint: str = "total") -> Term:
        """Sums the elements along axes, which disappear."""
        if term.elements is not None:
            return self.term(np.asarray(term.elements.sum(tuple(axes), dtype=term.elements.dtype)))
        if self.context.opset < 13:
            return self.held(
                self.context.write("ReduceSum", [term.name], hint, axes=list(axes), keepdims=0), term.dtype
            )
        inputs = [term.name, self.number(list(axes)).name]
        return self.held(self.context.write("ReduceSum", inputs, hint, keepdims=0), term.dtype)

    def give(self, term: Term) -> None:
        """Makes the node give a term as its only output."""
        del self.context.outputs[1:]
        last = self.context.before[-1] if self.context.before else None
        if last is None or last.outputs != [term.name]:
            self.context.replace("Identity", [term.name])
            return
        self.context.before.pop()
        self.context.replace(last.op_type, last.inputs)
        self.context.attributes.update(last.attributes)

    def apply(
        self,
        op_type: str,
        compute: Callable[..., Any],
        terms: Sequence[Term],
        dtype: str | None = None,
        **attributes: object,
    ) -> Term:
        """Applies an operator: computes the result where all elements are known and few, otherwise emits a node."""
        dtype = dtype or terms[0].dtype
        known = [term.elements for term in terms if term.elements is not None]
        if len(known) == len(terms) and _is_small(known):
            # Infinities and NaN may stand in a branch that Where does not choose.
            with np.errstate(all="ignore"):
                found = np.asarray(compute(*known), dtype=dtype)
            if found.size <= max(_KEPT, *(elements.size for elements in known)):
                return self.term(found)
        name = self.context.write(op_type, [term.name for term in terms], op_type.lower(), **attributes)
        return self.held(name, dtype)

    def constant(self, elements: Array) -> str:
        """Adds a constant and gives its name; equal constants become one."""
        key = (str(elements.dtype), elements.shape, elements.tobytes())
        if key not in self._constants:
            self._constants[key] = self.context.tensor(numpy_helper.from_array(elements), "constant")
        return self._constants[key]
