"""What TreeEnsembleRegressor and TreeEnsembleClassifier make of the scores of their trees.

Where the specification leaves something open or the kernels of onnxruntime do otherwise, the kernels count: a base
value is lost where no reached leaf writes its target, one target is transformed by PROBIT alone, and with two classes
the label is not that of the greater score. What looks like a mistake of theirs is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.machine_learning.forest import (
    AGGREGATES,
    Forest,
    numbers_of,
    read_ensemble,
    read_forest,
)
from splitgraph.conversion.operators.machine_learning.post_transforms import transformed
from splitgraph.model.deferred import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# The transforms of TreeEnsemble, by their numbers. The specification and onnxruntime disagree about 1 and 2.
_POSTS = {0: "NONE", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
# Returns the scores [rows, count] of trees for data: (f, data, forest, count, aggregate).
Compute = Callable[[Formula, Term, Forest, int, str], Term]
# Returns the labels at positions, when they are strings.
Name = Callable[[Formula, Term, list[str]], Term]


@dataclass(frozen=True)
class Scores:
    """The scores of the trees of a node. numbers: [rows, count]. always: of which targets every row has a score."""

    f: Formula
    data: Term
    forest: Forest
    count: int
    compute: Compute
    aggregate: str = "SUM"

    @property
    def numbers(self) -> Term:
        """The scores, 0 for a target that no reached leaf writes."""
        return self.compute(self.f, self.data, self.forest, self.count, self.aggregate)

    @property
    def always(self) -> Array:
        """Whether each target has a score in every row."""
        return self.forest.always_writes(self.count)

    def has(self) -> Term:
        """Return whether a reached leaf writes each target, [rows, count]."""
        return self.compute(self.f, self.data, self.forest.with_ones(), self.count, "SUM") > 0


@dataclass(frozen=True)
class PlainEnsemble:
    """A TreeEnsemble: its input and trees, the number of targets, and how their weights become scores."""

    data: Term
    forest: Forest
    count: int
    aggregate: str
    post: str


def read_plain_ensemble(node: NodeAtBoundary, f: Formula) -> PlainEnsemble:
    """Return a TreeEnsemble. Raises Inexact where onnxruntime and the specification disagree."""
    count, aggregate = node.known_value("n_targets"), node.known_value("aggregate_function", 1)
    post = node.known_value("post_transform", 0)
    if post in (1, 2):
        raise Inexact("its post_transform 1 is SOFTMAX by the specification and LOGISTIC in onnxruntime, 2 the other")
    if post not in _POSTS or aggregate not in range(len(AGGREGATES)) or not count:
        raise Inexact("its n_targets, aggregate_function or post_transform is missing or does not exist")
    forest = read_ensemble(node)
    data, _ = input_of(node, f, forest)
    if np.any(forest.targets >= count):
        raise Inexact("a leaf is for a target that it does not have")
    return PlainEnsemble(data, forest, count, AGGREGATES[aggregate], _POSTS[post])


def input_of(node: NodeAtBoundary, f: Formula, forest: Forest) -> tuple[Term, Forest]:
    """Return the table of features, and the trees in numbers of its type. Raises Inexact for what no kernel takes."""
    given, rank = node.known_dtype(), node.known_rank()
    if given not in ("float32", "float64"):
        raise Inexact(f"its input is {given}, for which onnxruntime has no kernel", "cast the input to float32")
    if given == "float32" and forest.dtype == "float64":
        raise Inexact("its numbers are float64 and its input is float32, which no kernel takes")
    data = f.input(0)
    if rank == 1:
        data = data.unsqueezed(0)
    elif rank != 2:
        raise Inexact("its input is neither a table nor one row")
    return data, forest.cast(given)


def write_regressor_scores(node: NodeAtBoundary, compute: Compute) -> None:
    """Write a TreeEnsembleRegressor of version 1 or 3 with the scores of its trees."""
    f, count = Formula(node), node.known_value("n_targets")
    aggregate = node.known_value("aggregate_function", "SUM")
    post = node.known_value("post_transform", "NONE")
    data, forest = input_of(node, f, read_forest(node, "target"))
    base = numbers_of(node, "base_values").astype(forest.dtype)
    if count is None or count < 1 or np.any(forest.targets >= count):
        raise Inexact("n_targets is missing, or a weight is for a target beyond it")
    if aggregate not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise Inexact(f"its aggregate_function is {aggregate!r}, which does not exist")
    if len(base) not in (0, count):
        raise Inexact(f"it has {len(base)} base values for {count} targets, which no kernel takes")
    scores = Scores(f, data, forest, count, compute, aggregate)
    numbers = scores.numbers
    if len(base):
        moved = numbers + f.number(base, forest.dtype)
        numbers = moved if scores.always.all() else f.where(scores.has(), moved, 0)
    # With one target, the kernels apply no other transform.
    if count > 1 or post == "PROBIT":
        numbers = transformed(f, numbers, post)
    f.give(numbers.cast("float32"))


# Classes --------------------------------------------------------------------------------------------------------------


def write_classes(node: NodeAtBoundary, compute: Compute, name: Name) -> None:
    """Write a TreeEnsembleClassifier of version 1 or 3 with the scores of its trees."""
    f = Formula(node)
    post = node.known_value("post_transform", "NONE")
    data, forest = input_of(node, f, read_forest(node, "class"))
    texts = [text.decode() if isinstance(text, bytes) else text for text in node.known_value("classlabels_strings", ())]
    labels = list(node.known_value("classlabels_int64s", ()))
    count = len(texts or labels)
    if count < 2 or (texts and labels):
        raise Inexact("it has one class alone, or labels of two types")
    if np.any(forest.targets >= count):
        raise Inexact("a weight is for a class that it does not have")
    base = numbers_of(node, "base_values").astype(forest.dtype)
    scores = Scores(f, data, forest, count, compute)
    if count > 2:
        position, numbers = _of_many_classes(scores, base, post)
    elif len(np.unique(forest.targets)) == 1:
        position, numbers = _of_one_score(scores, base, post)
    else:
        position, numbers = _of_two_scores(scores, base, post)
        # The kernel gives the position of an integer label, and not the label.
        labels = [0, 1]
    label = name(f, position, texts) if texts else f.number(labels).take(position)
    f.give(label, numbers.cast("float32"))


def _of_many_classes(scores: Scores, base: Array, post: str) -> tuple[Term, Term]:
    """Return the positions of labels, and the scores, of three classes or more. A class without a score has 0, and is
    no label.
    """
    f, numbers = scores.f, scores.numbers
    if len(base) not in (0, scores.count):
        raise Inexact(f"it has {len(base)} base values for {scores.count} classes, which no kernel takes")
    compared = numbers
    if len(base):
        compared = numbers = numbers + f.number(base, scores.forest.dtype)
    elif not scores.always.all():
        compared = f.where(scores.has(), numbers, -np.inf)
    position = f.apply("ArgMax", compared, gives="int64", axis=1, keepdims=0)
    return position, transformed(f, numbers, post)


def _of_one_score(scores: Scores, base: Array, post: str) -> tuple[Term, Term]:
    """Return the positions of labels, and the scores, of two classes of which one has all weights."""
    f, which = scores.f, int(scores.forest.targets[0])
    if not scores.always[which]:
        raise Inexact("a leaf of its trees has no weight")
    if len(base) > 1 or (len(base) and which):
        raise Inexact("onnxruntime loses base values of a class without weights, or the score beside them")
    only_positive = bool((scores.forest.weights >= 0).all())
    score = scores.numbers.take([which], 1)
    if len(base):
        score = score + float(base[0])
    position = (score > (0.5 if only_positive else 0.0)).cast("int64").reshape(-1)
    if which:
        return position, transformed(f, f.joined([score * 0.0, score], 1), post)
    if post == "PROBIT":
        raise Inexact("onnxruntime leaves the second score unwritten for PROBIT")
    if post == "LOGISTIC":
        other, score = transformed(f, -score, post), transformed(f, score, post)
        return position, f.joined([other, score], 1)
    return position, f.joined([-score + 1.0 if only_positive else -score, score], 1)


def _of_two_scores(scores: Scores, base: Array, post: str) -> tuple[Term, Term]:
    """Return the positions of labels, and the scores, of two classes that both have weights. The label is the second
    class where its score is positive.
    """
    f, numbers, has_second = scores.f, scores.numbers, bool(scores.always[1])
    if len(base) > 1:
        raise Inexact("onnxruntime loses the score of the second class beside two base values")
    if not has_second and (len(base) or post == "PROBIT" or not scores.always.any()):
        # Without a score of the second class, the first one alone gives both; what the kernel writes is not certain.
        _require_score_in_each_leaf(scores)
        if len(base) or post == "PROBIT":
            raise Inexact("onnxruntime leaves the second score of some rows unwritten")
    first, second = (numbers.take([place], 1) for place in (0, 1))
    if len(base):
        first = first + float(base[0])
        if not scores.always[0]:
            raise Inexact("onnxruntime loses the base value where no leaf writes the first class")
    given = transformed(f, f.joined([first, second], 1), post)
    if has_second:
        return (second > 0.0).cast("int64").reshape(-1), given
    has = scores.has().take([1], 1)
    alone = f.joined([-first, first], 1)
    if post == "LOGISTIC":
        alone = transformed(f, alone, post)
    position = f.where(has, second, first) > 0.0
    return position.cast("int64").reshape(-1), f.where(has, given, alone)


def _require_score_in_each_leaf(scores: Scores) -> None:
    """Raise Inexact for a leaf without a weight: of a row that reaches nothing else, no score is certain."""
    holders = np.unique(scores.forest.holders)
    for leaves in scores.forest.leaves_of_trees():
        if np.isin(leaves, holders).all():
            return
    raise Inexact("a leaf of each of its trees has no weight")
