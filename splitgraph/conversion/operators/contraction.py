"""Einsum: below its first opset, written with MatMul, Mul and ReduceSum; Det is written out for small matrices. MatMul
does not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import downward, unchanged

# A matrix of 4 rows takes 40 products, and one of n rows n times as many as one of n - 1 rows.
_MOST_ROWS = 3


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand, and one label for each of its dimensions. The dimensions of an ellipsis have the labels "0", "1",
    ... counted from the last.
    """

    term: Term
    labels: str

    def summed(self, kept: set[str] | str) -> _Operand:
        """Sum over the labels that are not needed."""
        axes = [index for index, label in enumerate(self.labels) if label not in kept]
        if not axes:
            return self
        labels = "".join(label for label in self.labels if label in kept)
        return _Operand(self.term.reduced("ReduceSum", axes), labels)

    def aligned(self, labels: Sequence[str]) -> Term:
        """Put the dimensions in this order, with a 1 for each label that the operand lacks."""
        order, term = [self.labels.index(label) for label in labels if label in self.labels], self.term
        if order != sorted(order):
            term = term.transposed(*order)
        axes = [index for index, label in enumerate(labels) if label not in self.labels]
        return term.unsqueezed(*axes) if axes else term

    def diagonal(self) -> _Operand:
        """Take the diagonals of repeated labels: elements off the diagonal become the neutral element of the sum, and
        one of the two dimensions is summed over.
        """
        repeated = next((label for label, count in Counter(self.labels).items() if count > 1), None)
        if repeated is None:
            return self
        f, first = self.term.formula, self.labels.index(repeated)
        second = self.labels.index(repeated, first + 1)
        square = f.filled(self.term.shape().take([first, second]), 0, "int32")
        mask = f.apply("EyeLike", square)
        axes = [index for index in range(len(self.labels)) if index not in (first, second)]
        mask = mask.cast("bool").unsqueezed(*axes) if axes else mask.cast("bool")
        # -0 + x is x, also for x = -0.
        none = f.number(-0.0 if "float" in self.term.dtype else 0, self.term.dtype)
        term = f.where(mask, self.term, none).reduced("ReduceSum", [second])
        return _Operand(term, self.labels[:second] + self.labels[second + 1 :]).diagonal()


# Einsum, MatMul -----------------------------------------------------------------------------------------------------

unchanged("MatMul", 9, 13)
unchanged("Einsum", 28)


@downward("Einsum", 12)
def write_einsum_with_products(node: NodeAtBoundary) -> None:
    """Write Einsum with older operators: take the diagonals of repeated labels, multiply two operands at a time (as
    matrices, or elementwise where no label is summed), sum over labels that neither another operand nor the result has,
    and transpose the result.
    """
    node.known_dtype()
    f, written = Formula(node), str(node.known_value("equation")).replace(" ", "")
    left, arrow, result = written.partition("->")
    subscripts = left.split(",")
    ranks = [node.known_rank(index) for index in range(len(subscripts))]
    operands = [
        _Operand(f.input(index), _labels(text, rank))
        for index, (text, rank) in enumerate(zip(subscripts, ranks, strict=True))
    ]
    widest = max((sum(label.isdigit() for label in operand.labels) for operand in operands), default=0)
    ellipsis = "".join(str(index) for index in reversed(range(widest)))
    if arrow:
        wanted = result.replace("...", ellipsis)
    else:
        counts = Counter("".join(text.replace("...", "") for text in subscripts))
        wanted = ellipsis + "".join(sorted(label for label, count in counts.items() if count == 1))
    if arrow and ellipsis and "..." not in result:
        raise Inexact(f"the equation {written!r} sums over its ellipsis")
    _check_sizes(node, operands)
    last, *others = [operand.diagonal() for operand in operands]
    for index, factor in enumerate(others):
        last = _multiply(last, factor, set(wanted).union(*(operand.labels for operand in others[index + 1 :])))
    last = last.summed(wanted)
    if set(last.labels) != set(wanted):
        raise Inexact(f"the equation {written!r} gives a label that no operand has")
    f.give(last.aligned(wanted))


def _labels(text: str, rank: int) -> str:
    """Return the labels of an operand; its ellipsis is written out."""
    hidden = rank - len(text.replace("...", ""))
    if not 0 <= hidden <= 9 or (hidden and "..." not in text):
        raise Inexact(f"the subscripts {text!r} do not fit an operand of rank {rank}")
    return text.replace("...", "".join(str(index) for index in reversed(range(hidden))))


def _check_sizes(node: NodeAtBoundary, operands: Sequence[_Operand]) -> None:
    """Raise Inexact unless all dimensions with one label are known to be equal: engines broadcast a dimension of 1."""
    sizes: dict[str, object] = {}
    for operand in operands:
        shape = node.values.type_of(operand.term.name).shape or ()
        for label, size in zip(operand.labels, shape, strict=True):
            if label.isdigit():
                continue
            if label in sizes and (size is None or sizes[label] != size):
                raise Inexact(f"the dimensions of label {label!r} are not known to be equal", "declare the shapes")
            sizes[label] = size


def _multiply(first: _Operand, second: _Operand, kept: set[str]) -> _Operand:
    """Multiply two operands and sum over the labels that only they have."""
    first = first.summed(kept | set(second.labels))
    second = second.summed(kept | set(first.labels))
    summed = [label for label in first.labels if label in second.labels and label not in kept]
    batch = [label for label in dict.fromkeys(first.labels + second.labels) if label.isdigit()]
    batch += [label for label in first.labels if label in second.labels and label in kept and label not in batch]
    rows = [label for label in first.labels if label not in second.labels and label not in batch]
    columns = [label for label in second.labels if label not in first.labels and label not in batch]
    if len(summed) == 1 and len(rows) <= 1 and len(columns) <= 1 and summed[0] not in batch:
        left, right = (
            first.aligned([*batch, *(rows or ["-"]), *summed]),
            second.aligned([*batch, *summed, *(columns or ["+"])]),
        )
        product, labels = left @ right, [*batch, *(rows or ["-"]), *(columns or ["+"])]
        # The dimensions that stand for no label are 1.
        axes = [index for index, label in enumerate(labels) if label in "-+"]
        return _Operand(product.squeezed(*axes) if axes else product, "".join([*batch, *rows, *columns]))
    labels = [*batch, *rows, *columns, *(label for label in summed if label not in batch)]
    return _Operand(first.aligned(labels) * second.aligned(labels), "".join(labels)).summed(kept)


# Det ----------------------------------------------------------------------------------------------------------------

unchanged("Det", 22)


@downward("Det", 11)
def expand_by_minors(node: NodeAtBoundary) -> None:
    """Sum the products of each element in the first row and the determinant of the matrix without its row and column,
    with alternating signs.
    """
    dtype, shape = node.known_dtype(), node.input_type(0).shape or ()
    rows = shape[-1] if shape and isinstance(shape[-1], int) else shape[-2] if len(shape) > 1 else None
    if not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise Inexact(f"only a matrix of at most {_MOST_ROWS} rows is written out", "declare the shape of the input")
    f, axis = Formula(node), len(shape) - 2
    data = f.input(0).cast("float32" if dtype == "float16" else dtype)
    lines = [data.take(place, axis) for place in range(rows)]
    f.give(_determinant([[line.take(place, axis) for place in range(rows)] for line in lines]).cast(dtype))


def _determinant(matrix: list[list[Term]]) -> Term:
    """Compute the determinant of a matrix."""
    first, *others = matrix
    if not others:
        return first[0]
    products = [
        element * _determinant([row[:column] + row[column + 1 :] for row in others])
        for column, element in enumerate(first)
    ]
    total = products[0]
    for column, product in enumerate(products[1:], 1):
        total = total - product if column % 2 else total + product
    return total
