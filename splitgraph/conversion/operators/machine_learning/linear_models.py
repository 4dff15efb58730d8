"""Standard forms of linear models and support vector machines: what onnxruntime's kernels compute."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.machine_learning.features import floats_of, numeric_input, table_of
from splitgraph.conversion.operators.machine_learning.post_transforms import transformed
from splitgraph.conversion.operators.machine_learning.tables import texts_of
from splitgraph.conversion.operators.standard import standard
from splitgraph.model.deferred import np
from splitgraph.model.scopes import MACHINE_LEARNING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def _rows(node: NodeAtBoundary, f: Formula) -> Term:
    """Return the input as rows of float32."""
    numeric_input(node)
    return table_of(node, f).cast("float32")


def _product(f: Formula, rows: Term, weights: Array) -> Term:
    return rows @ f.term(np.ascontiguousarray(weights))


def labels_of(node: NodeAtBoundary, f: Formula, strings: str, integers: str) -> tuple[Term, int]:
    """Return the labels of a classifier, and their number."""
    texts, numbers = node.known_value(strings, ()), node.known_value(integers, ())
    if bool(texts) == bool(numbers):
        raise Inexact("it has no labels, or labels of two types")
    return (texts_of(f, texts) if texts else f.number(list(numbers))), len(texts or numbers)


@standard("LinearRegressor", domain=MACHINE_LEARNING, targets=1, post_transform="NONE")
def linear_regressor(node: NodeAtBoundary) -> None:
    """X · coefficients + intercepts. One target is transformed by PROBIT alone."""
    f, count, post = Formula(node), node.known_value_or_default("targets"), node.known_value("post_transform", "NONE")
    weights, intercepts = floats_of(node, "coefficients"), floats_of(node, "intercepts")
    if not len(weights) or count < 1 or len(weights) % count or len(intercepts) not in (0, count):
        raise Inexact("its coefficients or intercepts do not fit its targets")
    result = _product(f, _rows(node, f), weights.reshape(count, -1).T)
    if len(intercepts):
        result = result + f.term(intercepts)
    f.give(transformed(f, result, post) if count > 1 or post == "PROBIT" else result)


@standard("LinearClassifier", domain=MACHINE_LEARNING, post_transform="NONE", multi_class=0)
def linear_classifier(node: NodeAtBoundary) -> None:
    """A score for each class, and the label of the greatest one; or one score, whose sign tells one of two labels."""
    f, post = Formula(node), node.known_value_or_default("post_transform")
    weights, intercepts = floats_of(node, "coefficients"), floats_of(node, "intercepts")
    labels, count = labels_of(node, f, "classlabels_strings", "classlabels_ints")
    classes = len(intercepts)
    if not classes or not len(weights) or len(weights) % classes:
        raise Inexact("its coefficients do not fit its intercepts")
    scores = _product(f, _rows(node, f), weights.reshape(classes, -1).T) + f.term(intercepts)
    if classes == count > 1:
        position = f.apply("ArgMax", scores, gives="int64", axis=1, keepdims=0)
        f.give(labels.take(position), transformed(f, scores, post))
        return
    if (classes, count) != (1, 2) or post == "PROBIT":
        raise Inexact(f"it has {classes} scores for {count} labels, with the post_transform {post}")
    position = (scores > 0.0).cast("int64").reshape(-1)
    if post == "LOGISTIC":
        both = f.joined([transformed(f, -scores, post), transformed(f, scores, post)], 1)
    else:
        both = f.joined([-scores + 1.0, scores], 1)
    f.give(labels.take(position), both)


# Support vector machines ----------------------------------------------------------------------------------------------


def _kernel(node: NodeAtBoundary, f: Formula, rows: Term, vectors: Array) -> Term:
    """Return the kernel of each row with each support vector, [rows, vectors]."""
    kind = node.known_value_or_default("kernel_type")
    gamma, constant, degree = (floats_of(node, "kernel_params").tolist() + [0.0] * 3)[:3]
    if kind != "LINEAR" and len(node.known_value("kernel_params", ())) != 3:
        raise Inexact("its kernel_params are not three numbers")
    if kind == "RBF":
        apart = rows.unsqueezed(1) - f.term(vectors)
        return ((apart * apart).reduced("ReduceSum", [2]) * -float(gamma)).exp()
    products = _product(f, rows, vectors.T)
    if kind == "LINEAR":
        return products
    moved = products * gamma + constant
    if kind == "POLY":
        return f.apply("Pow", moved, moved.like(degree))
    if kind == "SIGMOID":
        return f.apply("Tanh", moved)
    raise Inexact(f"its kernel_type is {kind!r}, which does not exist")


def _vectors(node: NodeAtBoundary, count: int) -> Array:
    vectors = floats_of(node, "support_vectors")
    if count < 1 or not len(vectors) or len(vectors) % count:
        raise Inexact("it has no support vectors, or their number does not fit")
    if node.known_value("post_transform", "NONE") != "NONE":
        raise Inexact("its scores are transformed, and what the kernel does then was not measured")
    return vectors.reshape(count, -1)


_SVM: dict[str, Any] = {"kernel_type": "LINEAR", "post_transform": "NONE"}


@standard("SVMRegressor", domain=MACHINE_LEARNING, n_supports=0, one_class=0, **_SVM)
def svm_regressor(node: NodeAtBoundary) -> None:
    """The kernel with each support vector, times its coefficient, and rho; the sign of it for one class."""
    f, count = Formula(node), node.known_value_or_default("n_supports")
    vectors, coefficients, rho = _vectors(node, count), floats_of(node, "coefficients"), floats_of(node, "rho")
    if len(coefficients) != count or len(rho) != 1:
        raise Inexact("its coefficients or rho do not fit its support vectors")
    scores = _product(f, _kernel(node, f, _rows(node, f), vectors), coefficients.reshape(-1, 1)) + float(rho[0])
    f.give(f.where(scores > 0.0, f.number(1.0, "float32"), -1.0) if node.known_is_set("one_class") else scores)


@standard("SVMClassifier", domain=MACHINE_LEARNING, **_SVM)
def svm_classifier(node: NodeAtBoundary) -> None:
    """Each pair of classes has a score, whose sign votes for one of them. The scores are those of the pairs; of two
    classes, the negative of the score and the score itself.
    """
    f, sizes = Formula(node), list(node.known_value("vectors_per_class", ()))
    labels, count = labels_of(node, f, "classlabels_strings", "classlabels_ints")
    vectors, rho = _vectors(node, sum(sizes)), floats_of(node, "rho")
    coefficients = floats_of(node, "coefficients")
    pairs = [*combinations(range(count), 2)]
    if node.known_value("prob_a", ()):
        raise Inexact("it gives probabilities, which are found step by step")
    if len(sizes) != count or count < 2 or len(rho) != len(pairs) or len(coefficients) != (count - 1) * len(vectors):
        raise Inexact("its support vectors, coefficients or rho do not fit its labels")
    kernel = _kernel(node, f, _rows(node, f), vectors)
    scores = _scores_of_pairs(f, kernel, pairs, sizes, coefficients.reshape(count - 1, -1)) + f.term(rho)
    votes = np.zeros((2, len(pairs), count), np.float32)
    for place, (first, second) in enumerate(pairs):
        votes[0, place, first] = votes[1, place, second] = 1
    is_first = (scores > 0.0).cast("float32")
    counts = _product(f, is_first, votes[0]) + _product(f, -is_first + 1.0, votes[1])
    position = f.apply("ArgMax", counts, gives="int64", axis=1, keepdims=0)
    f.give(labels.take(position), f.joined([-scores, scores], 1) if count == 2 else scores)


def _scores_of_pairs(f: Formula, kernel: Term, pairs: list[tuple[int, int]], sizes: list[int], weights: Array) -> Term:
    """Return the scores of pairs of classes, [rows, pairs]. kernel: [rows, vectors]. weights: [classes - 1, vectors]; a
    vector has one for each other class.

    Each class has a product of its own: a weight of 0 for the vectors of other classes would make NaN of an infinite
    kernel.
    """
    if len(sizes) == 2:
        return _product(f, kernel, weights.T)
    ends, others = np.cumsum(sizes), len(weights)
    parts = []
    for size, end in zip(sizes, ends, strict=True):
        mine = range(int(end) - size, int(end))
        if size:
            parts.append(_product(f, kernel.take(list(mine), 1), weights[:, mine].T))
        else:
            shape = f.joined([f.shape(kernel.name).take([0]), f.number([others])])
            parts.append(f.number(0.0, "float32").expanded(shape))
    both = f.joined(parts, 1)
    # The numbers of a class leave out the class itself.
    of_first = [first * others + second - 1 for first, second in pairs]
    of_second = [second * others + first for first, second in pairs]
    return both.take(of_first, 1) + both.take(of_second, 1)
