"""Einsum: below its first opset, written with MatMul, Mul and ReduceSum; MatMul does not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import helper
from splitgraph.value_type import DTYPE_NUMBERS


@dataclass(frozen=True, slots=True)
class _Term:
    """An operand: its name, and one label for each dimension. The dimensions of an ellipsis have the labels "0", "1",
    ... counted from the last.
    """

    name: str
    labels: str


unchanged("MatMul", 9, 13)

unchanged("Einsum", 28)


@downward("Einsum", 12)
def write_einsum_with_products(node: NodeAtBoundary) -> None:
    """Writes Einsum with older operators: takes the diagonals of repeated labels, multiplies two operands at a time (as
    matrices, or elementwise where no label is summed), sums over labels that neither another operand nor the result
    has, and transposes the result.
    """
    dtype = node.known_dtype()
    written = str(node.known_value("equation")).replace(" ", "")
    left, arrow, result = written.partition("->")
    subscripts = left.split(",")
    ranks = [node.known_rank(index) for index in range(len(subscripts))]
    terms = [_Term(name, _labels(text, rank)) for name, text, rank in zip(node.inputs, subscripts, ranks, strict=True)]
    widest = max((sum(label.isdigit() for label in term.labels) for term in terms), default=0)
    ellipsis = "".join(str(index) for index in reversed(range(widest)))
    if arrow:
        wanted = result.replace("...", ellipsis)
    else:
        counts = Counter("".join(text.replace("...", "") for text in subscripts))
        wanted = ellipsis + "".join(sorted(label for label, count in counts.items() if count == 1))
    if arrow and ellipsis and "..." not in result:
        raise Inexact(f"the equation {written!r} sums over its ellipsis")
    _check_sizes(node, terms)
    terms = [_without_repeats(node, term, dtype) for term in terms]
    last = reduce(lambda one, other: _multiply(node, one, other, _needed_labels(terms, one, other, wanted)), terms)
    last = _sum_out(node, last, wanted)
    if set(last.labels) != set(wanted):
        raise Inexact(f"the equation {written!r} gives a label that no operand has")
    perm = [last.labels.index(label) for label in wanted]
    if perm == sorted(perm):
        node.replace("Identity", [last.name])
    else:
        node.replace("Transpose", [last.name], perm=perm)


def _labels(text: str, rank: int) -> str:
    """Gives the labels of an operand; its ellipsis is written out."""
    hidden = rank - len(text.replace("...", ""))
    if not 0 <= hidden <= 9 or (hidden and "..." not in text):
        raise Inexact(f"the subscripts {text!r} do not fit an operand of rank {rank}")
    return text.replace("...", "".join(str(index) for index in reversed(range(hidden))))


def _check_sizes(node: NodeAtBoundary, terms: Sequence[_Term]) -> None:
    """Raises Inexact unless all dimensions with one label are known to be equal: engines broadcast a dimension of 1."""
    sizes: dict[str, object] = {}
    for term in terms:
        shape = node.values.type_of(term.name).shape or ()
        for label, size in zip(term.labels, shape, strict=True):
            if label.isdigit():
                continue
            if label in sizes and (size is None or sizes[label] != size):
                raise Inexact(f"the dimensions of label {label!r} are not known to be equal", "declare the shapes")
            sizes[label] = size


def _without_repeats(node: NodeAtBoundary, term: _Term, dtype: str) -> _Term:
    """Takes the diagonals of an operand: elements off the diagonal become the neutral element of the sum, and one of
    the two dimensions is summed over.
    """
    repeated = next((label for label, count in Counter(term.labels).items() if count > 1), None)
    if repeated is None:
        return term
    first = term.labels.index(repeated)
    second = term.labels.index(repeated, first + 1)
    shape = node.write("Shape", [term.name], "shape")
    size = node.write("Gather", [shape, node.constant([first, second], "places")], "square", axis=0)
    blank = node.write(
        "ConstantOfShape", [size], "blank", value=helper.make_tensor("", DTYPE_NUMBERS["int32"], [1], [0])
    )
    eye = node.write("EyeLike", [blank], "eye", dtype=DTYPE_NUMBERS["int32"])
    sizes = [1] * len(term.labels)
    sizes[first] = sizes[second] = 0
    axes = [index for index in range(len(sizes)) if sizes[index]]
    mask = node.write("Cast", [eye], "is_on_diagonal", to=DTYPE_NUMBERS["bool"])
    if axes:
        mask = node.write("Unsqueeze", [mask], "mask", axes=axes)
    # -0 + x is x, also for x = -0.
    neutral = node.tensor(helper.make_tensor("", DTYPE_NUMBERS[dtype], [], [-0.0 if "float" in dtype else 0]), "none")
    held = node.write("Where", [mask, term.name, neutral], "diagonal")
    name = node.write("ReduceSum", [held], "of_diagonal", axes=[second], keepdims=0)
    return _without_repeats(node, _Term(name, term.labels[:second] + term.labels[second + 1 :]), dtype)


def _multiply(node: NodeAtBoundary, one: _Term, other: _Term, kept: set[str]) -> _Term:
    """Multiplies two operands and sums over the labels that only they have."""
    one = _sum_out(node, one, kept | set(other.labels))
    other = _sum_out(node, other, kept | set(one.labels))
    summed = [label for label in one.labels if label in other.labels and label not in kept]
    batch = [label for label in dict.fromkeys(one.labels + other.labels) if label.isdigit()]
    batch += [label for label in one.labels if label in other.labels and label in kept and label not in batch]
    rows = [label for label in one.labels if label not in other.labels and label not in batch]
    columns = [label for label in other.labels if label not in one.labels and label not in batch]
    if len(summed) == 1 and len(rows) <= 1 and len(columns) <= 1 and summed[0] not in batch:
        left = _align(node, one, [*batch, *(rows or ["-"]), *summed])
        right = _align(node, other, [*batch, *summed, *(columns or ["+"])])
        labels = [*batch, *(rows or ["-"]), *(columns or ["+"])]
        return _squeeze(node, node.write("MatMul", [left, right], "product"), labels)
    labels = [*batch, *rows, *columns, *(label for label in summed if label not in batch)]
    name = node.write("Mul", [_align(node, one, labels), _align(node, other, labels)], "product")
    return _sum_out(node, _Term(name, "".join(labels)), kept)


def _sum_out(node: NodeAtBoundary, term: _Term, kept: set[str] | str) -> _Term:
    """Sums over the labels of an operand that are not needed."""
    axes = [index for index, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    name = node.write("ReduceSum", [term.name], "sum", axes=axes, keepdims=0)
    return _Term(name, "".join(label for label in term.labels if label in kept))


def _align(node: NodeAtBoundary, term: _Term, labels: Sequence[str]) -> str:
    """Puts the dimensions of an operand in this order, with a 1 for each label that the operand lacks."""
    present = [label for label in labels if label in term.labels]
    perm = [term.labels.index(label) for label in present]
    name = term.name
    if perm != sorted(perm):
        name = node.write("Transpose", [name], "ordered", perm=perm)
    axes = [index for index, label in enumerate(labels) if label not in term.labels]
    return node.write("Unsqueeze", [name], "aligned", axes=axes) if axes else name


def _squeeze(node: NodeAtBoundary, name: str, labels: Sequence[str]) -> _Term:
    """Removes the dimensions of a product that stand for no label."""
    axes = [index for index, label in enumerate(labels) if label in "-+"]
    if axes:
        name = node.write("Squeeze", [name], "without_ones", axes=axes)
    return _Term(name, "".join(label for label in labels if label not in "-+"))


def _needed_labels(terms: Sequence[_Term], one: _Term, other: _Term, wanted: str) -> set[str]:
    """Gives the labels that are still needed after two operands are multiplied."""
    position = next(index for index, term in enumerate(terms) if term is other)
    return set(wanted).union(*(term.labels for term in terms[position + 1 :]))
