"""Formulas that adapters write: what is known at conversion is computed there, and nodes compute the rest at run time.

Everything is written for the opset of the node, with operators that mean the same on both sides of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.computed_elements import computed
from splitgraph.conversion.notation.given_results import give_results, take_readers
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import GraphProto
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import DTYPE_NUMBERS, MAX_WRITTEN

FLOATS = ("float16", "float32", "float64")
# The number of bits of each integer type that old opsets know.
INTEGER_BITS = {f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
GREATEST_INT64 = 2**63 - 1
# The types that NumPy knows, and that ConstantOfShape makes below opset 20.
_PLAIN = {*INTEGER_BITS, "bool", *FLOATS}


@dataclass(slots=True, eq=False)
class Term:
    """A tensor in a formula: its elements where they are known, otherwise the name of the value that holds them.

    Python operators are elementwise and broadcast. Both sides have one element type, or one side is a number.
    """

    formula: Formula
    dtype: str
    elements: Array | None = None
    value: str = ""

    @property
    def name(self) -> str:
        """The name of the value; add a constant where the elements are known."""
        return self.value if self.elements is None else self.formula.constant(self.elements)

    def __add__(self, other: Term | float) -> Term:
        return self.formula.apply("Add", self, self.like(other))

    def __sub__(self, other: Term | float) -> Term:
        return self.formula.apply("Sub", self, self.like(other))

    def __rsub__(self, other: float) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.formula.apply("Mul", self, self.like(other))

    def __matmul__(self, other: Term) -> Term:
        return self.formula.apply("MatMul", self, other)

    def __truediv__(self, other: Term | float) -> Term:
        """Divide; the quotient of integers is rounded towards 0."""
        return self.formula.apply("Div", self, self.like(other))

    def __rtruediv__(self, other: float) -> Term:
        return self.like(other) / self

    def __mod__(self, other: Term | float) -> Term:
        """Return the remainder of integers, with the sign of the divisor."""
        return self.formula.apply("Mod", self, self.like(other))

    def __neg__(self) -> Term:
        return self.formula.apply("Neg", self)

    def __abs__(self) -> Term:
        return self.formula.apply("Abs", self)

    def __lt__(self, other: Term | float) -> Term:
        return self.formula.apply("Less", self, self.like(other))

    def __gt__(self, other: Term | float) -> Term:
        return self.formula.apply("Greater", self, self.like(other))

    def __and__(self, other: Term) -> Term:
        return self.formula.apply("And", self, other)

    def __or__(self, other: Term) -> Term:
        return self.formula.apply("Or", self, other)

    def __xor__(self, other: Term) -> Term:
        return self.formula.apply("Xor", self, other)

    def __invert__(self) -> Term:
        return self.formula.apply("Not", self)

    def equals(self, other: Term | float) -> Term:
        """Tell where elements are equal."""
        return self.formula.apply("Equal", self, self.like(other))

    def floor(self) -> Term:
        """Round down."""
        return self.formula.apply("Floor", self)

    def ceil(self) -> Term:
        """Round up."""
        return self.formula.apply("Ceil", self)

    def sqrt(self) -> Term:
        """Take square roots."""
        return self.formula.apply("Sqrt", self)

    def exp(self) -> Term:
        """Take powers of e."""
        return self.formula.apply("Exp", self)

    def like(self, number: Term | float) -> Term:
        """Make a number a term of the same element type."""
        return number if isinstance(number, Term) else self.formula.number(number, self.dtype)

    def cast(self, dtype: str) -> Term:
        """Cast to another element type."""
        if dtype == self.dtype:
            return self
        if self.elements is not None and dtype in _PLAIN:
            with np.errstate(all="ignore"):
                return self.formula.term(self.elements.astype(dtype))
        return self.formula.apply("Cast", self, gives=dtype, to=DTYPE_NUMBERS[dtype])

    def clipped(self, low: Term | float, high: Term | float) -> Term:
        """Bring the numbers within bounds; where the bounds cross, the upper one counts."""
        return self.at_least(low).at_most(high)

    def at_least(self, low: Term | float) -> Term:
        """Raise the numbers to a bound; NaN stays."""
        return self.formula.where(self < low, low, self)

    def at_most(self, high: Term | float) -> Term:
        """Lower the numbers to a bound; NaN stays."""
        return self.formula.where(self > high, high, self)

    def from_front(self, size: Term | int) -> Term:
        """Count negative indices into a dimension of `size` elements from the front."""
        return self.formula.where(self < 0, self + size, self)

    def take(self, places: Term | int | Sequence[int], axis: int = 0) -> Term:
        """Gather parts along an axis, by indices. An int drops the axis. All places must be less than its length."""
        return self.formula.apply("Gather", self, self.formula.integers(places), axis=axis)

    def reshape(self, *sizes: int) -> Term:
        """Give the elements another shape: -1 stands for the rest, 0 for the dimension at the same place."""
        if self.elements is not None:
            shape = [self.elements.shape[place] if size == 0 else size for place, size in enumerate(sizes)]
            return Term(self.formula, self.dtype, self.elements.reshape(shape))
        return self.formula.apply("Reshape", self, self.formula.number(sizes))

    def shape(self) -> Term:
        """Return the shape, int64[rank], which a node computes also where it is known."""
        return self.formula.apply("Shape", self, gives="int64")

    def shaped(self, sizes: Term | Sequence[Term | int]) -> Term:
        """Give the elements a shape of terms; 0 stands for the dimension at the same place."""
        shape = sizes if isinstance(sizes, Term) else self.formula.vector(sizes)
        if self.elements is not None and shape.elements is not None:
            return self.reshape(*shape.elements.tolist())
        return self.formula.apply("Reshape", self, shape)

    def with_shape(self, shape: Term, *, dense: bool) -> Term:
        """Give the elements a shape in which 0 means a dimension of 0. dense: the data has no dimension of 0, so that
        no shape for it has a 0.

        From opset 14 on this is Reshape with allowzero=1. Below, Expand first gives empty data a dimension of 0
        wherever the shape has one, so that Reshape copies it. Needs opset 8.
        """
        formula = self.formula
        if dense:
            return formula.apply("Reshape", self, shape)
        if formula.opset >= 14:
            return formula.apply("Reshape", self, shape, allowzero=1)
        return formula.apply("Reshape", self.reshape(-1).expanded(formula.one_or_zero(shape)), shape)

    def expanded(self, shape: Term) -> Term:
        """Repeat the elements to a shape."""
        return self.formula.apply("Expand", self, shape)

    def transposed(self, *order: int) -> Term:
        """Transpose the dimensions."""
        return self.formula.apply("Transpose", self, perm=list(order))

    def unsqueezed(self, *axes: int) -> Term:
        """Insert dimensions of 1 at axes of the result."""
        return self._along("Unsqueeze", axes, 13)

    def squeezed(self, *axes: int) -> Term:
        """Remove dimensions of 1."""
        return self._along("Squeeze", axes, 13)

    def reduced(self, reduction: str, axes: Sequence[int], *, keepdims: bool = False) -> Term:
        """Reduce along axes, for example by ReduceSum."""
        if self.elements is not None and reduction in ("ReduceSum", "ReduceProd"):
            compute = self.elements.sum if reduction == "ReduceSum" else self.elements.prod
            total = compute(tuple(axes), dtype=self.elements.dtype, keepdims=keepdims)
            return self.formula.term(np.asarray(total))
        return self._along(reduction, axes, 13 if reduction == "ReduceSum" else 18, keepdims=int(keepdims))

    def _along(self, op_type: str, axes: Sequence[int], input_since: int, **attributes: Any) -> Term:
        if self.formula.opset < input_since:
            return self.formula.apply(op_type, self, axes=list(axes), **attributes)
        return self.formula.apply(op_type, self, self.formula.number(list(axes)), **attributes)

    def sliced(self, start: Term | int, end: Term | int = GREATEST_INT64, axis: int | None = None) -> Term:
        """Return a slice along an axis, or along the only one. Terms are int64[1]. Needs opset 10."""
        bounds = [start, end] if axis is None else [start, end, axis]
        return self.formula.apply(
            "Slice", self, *(self.formula.integers(bound if isinstance(bound, Term) else [bound]) for bound in bounds)
        )


@dataclass(slots=True)
class Formula:
    """Makes terms at one boundary, and the nodes that compute them, in the opset of the node (9 or more)."""

    node: NodeAtBoundary
    _constants: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    _shapes: dict[str, Term] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        """The opset of the nodes that are written."""
        return self.node.dialect or self.node.opset

    def term(self, elements: Array) -> Term:
        """Make a term of known elements."""
        return Term(self, str(elements.dtype), elements)

    def number(self, value: Any, dtype: str = "int64") -> Term:
        """Make a term of one or several known numbers. A number of a type that NumPy does not know is a value."""
        if dtype in _PLAIN:
            return self.term(np.array(value, dtype=dtype))
        if not dtype:
            raise Inexact("the element type of its input is unknown", "declare it in value_info")
        if dtype == "string":
            tensor = numpy_helper.from_array(np.array("", object))
        else:
            tensor = helper.make_tensor("", DTYPE_NUMBERS[dtype], [], [value])
        return self.value(self.node.tensor(tensor, "constant"), dtype)

    def integers(self, numbers: Term | int | Sequence[int]) -> Term:
        """Make a term of integers, unless they are one."""
        return numbers if isinstance(numbers, Term) else self.number(numbers)

    def value(self, name: str, dtype: str) -> Term:
        """Make a term of a value, whose elements count as unknown."""
        return Term(self, dtype, None, name)

    def input(self, index: int, dtype: str = "") -> Term:
        """Make a term of an input of the node, whose elements count as unknown. dtype: the only one that the schema
        allows, if there is only one.
        """
        return self.value(self.node.inputs[index], self.node.input_type(index).dtype or dtype)

    def given(self, index: int, dtype: str = "") -> Term:
        """Make a term of an input of the node, which may be known."""
        elements = self.node.elements(index)
        return self.input(index, dtype) if elements is None else self.term(np.asarray(elements))

    def size(self, index: int, axis: int) -> Term:
        """Return one dimension of an input of the node, as an int64 scalar."""
        shape = self.node.input_type(index).shape
        size = None if shape is None else shape[axis]
        return self.number(size) if isinstance(size, int) else self.shape(self.node.inputs[index]).take(axis)

    def sizes(self, name: str, rank: int) -> list[Term]:
        """Return the dimensions of a value, each as an int64 scalar."""
        known = self.node.values.type_of(name).shape or (None,) * rank
        return [
            self.number(size) if isinstance(size, int) else self.shape(name).take(axis)
            for axis, size in enumerate(known)
        ]

    def shape(self, name: str) -> Term:
        """Return the shape of a value, int64[rank]."""
        known = static_shape(self.node, name)
        if known is not None:
            return self.number(known)
        if name not in self._shapes:
            self._shapes[name] = self.value(name, "").shape()
        return self._shapes[name]

    def vector(self, parts: Sequence[Term | int]) -> Term:
        """Join int64 numbers of one element each to a 1-D term."""
        terms = [part.reshape(1) if isinstance(part, Term) else self.number([part]) for part in parts]
        return self.joined(terms)

    def joined(self, terms: Sequence[Term], axis: int = 0) -> Term:
        """Concatenate along an axis."""
        return terms[0] if len(terms) == 1 else self.apply("Concat", *terms, axis=axis)

    def counting(self, count: Term | int, *, is_row: bool = False) -> Term:
        """Count 0, 1, 2, ... up to a number, which is excluded; int64. is_row: the number has shape [1], not []."""
        count = self.integers(count)
        if count.elements is not None and count.elements.max() <= MAX_WRITTEN:
            return self.number(np.arange(int(count.elements.max())))
        if min(self.opset, self.node.to_opset) >= 11:
            return self.apply("Range", self.number(0), count.reshape() if is_row else count, self.number(1))
        return self.positions(self.filled(count if is_row else count.reshape(1), 1))

    def positions(self, mask: Term) -> Term:
        """Return the positions where a 1-D mask is not 0, int64."""
        return self.apply("NonZero", mask, gives="int64").reshape(-1)

    def filled(self, shape: Term, value: int, dtype: str = "int64") -> Term:
        """Make a tensor of one value."""
        if dtype not in _PLAIN and (self.opset < 20 or dtype != "bfloat16"):
            raise Inexact(f"ConstantOfShape does not make {dtype} {self.node.side}")
        tensor = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [value])
        return self.apply("ConstantOfShape", shape, gives=dtype, value=tensor)

    def where(self, condition: Term, chosen: Term | float, otherwise: Term | float) -> Term:
        """Choose elements of `chosen` where a condition holds, and of `otherwise` elsewhere. One of them is a term."""
        if not isinstance(chosen, Term):
            assert isinstance(otherwise, Term)
            chosen = otherwise.like(chosen)
        otherwise = chosen.like(otherwise)
        if condition.elements is not None and condition.elements.ndim == 0:
            return chosen if condition.elements else otherwise
        return self.apply("Where", condition, chosen, otherwise, gives=chosen.dtype)

    def product(self, terms: Sequence[Term]) -> Term:
        """Multiply int64 scalars."""
        return reduce(lambda left, right: left * right, terms, self.number(1))

    def put(self, rest: Term, places: Term, updates: Term) -> Term:
        """Put updates at places of a 1-D term. Needs opset 11."""
        if rest.elements is None or places.elements is None or updates.elements is None:
            return self.apply("ScatterElements", rest, places, updates, axis=0)
        whole = rest.elements.copy()
        whole[places.elements] = updates.elements
        return self.term(whole)

    def mask_of_axes(self, axes: Term, rank: Term) -> Term:
        """Return a boolean for each of `rank` (int64[1]) dimensions: whether the axes name it. Axes may be negative,
        and there may be none. Needs opset 11, and the axes in one dimension.
        """
        return self.put(self.filled(rank, 0), axes, self.filled(self.shape(axes.name), 1)).cast("bool")

    def one_or_zero(self, shape: Term) -> Term:
        """Return 1 for each length of a shape that is not 0 (it may be -1), and 0 for the others."""
        # From opset 13 on onnx and onnxruntime remove a cast to bool and back, and keep the numbers.
        return abs(self.apply("Sign", shape)) if self.opset >= 13 else shape.cast("bool").cast("int64")

    def apply(self, op_type: str, *terms: Term, gives: str = "", **attributes: Any) -> Term:
        """Apply an operator: compute the result where all elements are known and few, otherwise write a node.

        gives: the element type of the result; that of the first term unless given.
        """
        dtype = gives or ("bool" if op_type in kinds.COMPARED else terms[0].dtype)
        known = [term.elements for term in terms if term.elements is not None]
        result = computed(op_type, known, dtype, attributes) if len(known) == len(terms) else None
        if result is not None:
            return self.term(result)
        return self.write(op_type, terms, dtype, **attributes)[0]

    def write(self, op_type: str, terms: Sequence[Term | None], *dtypes: str, **attributes: Any) -> list[Term]:
        """Write a node with an output for each element type. None stands for an input that is left out."""
        names = ["" if term is None else term.name for term in terms]
        outputs = self.node.write_many(op_type, names, [op_type.lower()] * len(dtypes), **attributes)
        return [self.value(name, dtype) for name, dtype in zip(outputs, dtypes, strict=True)]

    def constant(self, elements: Array) -> str:
        """Add a constant and give its name; equal constants become one."""
        key = (str(elements.dtype), elements.shape, elements.tobytes())
        if key not in self._constants:
            self._constants[key] = self.node.tensor(numpy_helper.from_array(elements), "constant")
        return self._constants[key]

    def loop(
        self,
        trips: Term,
        states: Sequence[Term],
        step: Callable[..., Sequence[Term]],
        shapes: Sequence[Sequence[int | None] | None],
    ) -> list[Term]:
        """Write a Loop that makes `trips` steps. A step takes the number of the step and the states, and gives the new
        states, and what is stacked.

        shapes: of the states and of what is stacked; runtimes need them.
        """
        node = self.node
        number, going = (self.value(node.new_name("number"), "int64"), self.value(node.new_name("going"), "bool"))
        inside = [self.value(node.new_name("state"), state.dtype) for state in states]
        start, constants, known_shapes = len(node.before), dict(self._constants), dict(self._shapes)
        results = [self.apply("Identity", going), *step(number, *inside)]
        # What was written since then belongs into the body, also the constants that are nodes.
        body = [written.message() for written in node.before[start:]]
        del node.before[start:]
        self._constants, self._shapes = constants, known_shapes
        inputs = [
            _declared(term, dims) for term, dims in zip((number, going, *inside), ((), (), *shapes), strict=False)
        ]
        outputs = [_declared(term, dims) for term, dims in zip(results, ((), *shapes), strict=True)]
        graph: GraphProto = helper.make_graph(body, "step", inputs, outputs)
        first = [trips, self.number(True, "bool"), *states]
        return self.write("Loop", first, *(term.dtype for term in results[1:]), body=graph)

    def give(self, *results: Term | None) -> None:
        """Make the node give terms as its outputs, and no others. None stands for an output that nobody names.

        The written node that computes the first term takes the place of the node itself, with its name and
        documentation. Where that is not possible, and for other terms, an Identity gives the output.
        """
        give_results(self.node, ["" if term is None else term.name for term in results])

    def follow(self, index: int, compute: Callable[[Term], Term]) -> None:
        """Compute an output of the node from what the node gives there, with nodes behind the node."""
        node = self.node
        start, wanted = len(node.before), node.redirect(index, "given")
        given = node.outputs[index]
        result = compute(self.value(given, node.values.type_of(wanted).dtype or ""))
        for written in take_readers(node, start, {given}):
            written.outputs = [wanted if name == result.name else name for name in written.outputs]
            node.after.append(written)


def _declared(term: Term, dims: Sequence[int | None] | None) -> Any:
    """Declare a value of a subgraph."""
    return helper.make_tensor_value_info(term.name, DTYPE_NUMBERS[term.dtype], dims)


def wide_float(dtype: str) -> str:
    """Return the type in which floating-point numbers are computed: float64 for float64, float32 for the others."""
    return "float64" if dtype == "float64" else "float32"


def static_shape(node: NodeAtBoundary, name: str) -> tuple[int, ...] | None:
    """Return the shape of a value, None unless every dimension is known."""
    shape = node.values.type_of(name).shape
    if shape is None:
        return None
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return tuple(sizes) if len(sizes) == len(shape) else None


def has_no_zero(node: NodeAtBoundary, name: str) -> bool:
    """Return True when every dimension of a value is known and not 0."""
    shape = static_shape(node, name)
    return shape is not None and 0 not in shape
