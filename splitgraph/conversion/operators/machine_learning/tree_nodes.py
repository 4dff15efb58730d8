"""Decision trees in operators of ai.onnx: all rows go down all trees at once, a level at a time.

A tensor [rows, trees] holds the node that each row has reached in each tree; leaves are numbered behind all branches. A
level takes the feature and the threshold of these nodes, compares, and takes the next nodes; a row at a leaf stays. At
the end the weights of the leaves are added tree by tree, in the order of the kernels, so that the sums are theirs to
the last digit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.operators.machine_learning.forest import EQ, GT, GTE, LEAF, LEQ, LT, NEQ, Forest
from splitgraph.model.deferred import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# The modes that hold where each comparison of the feature with the threshold holds. NEQ is no "less or greater", as NaN
# is unequal to all numbers.
_COMPARISONS = {LT: (LEQ, LT), EQ: (LEQ, GTE, EQ), GT: (GTE, GT), NEQ: (NEQ,)}


def computed_scores(f: Formula, data: Term, forest: Forest, count: int, aggregate: str) -> Term:
    """Return the scores [rows, count] of the trees for data [rows, features] of their type. A target that no reached
    leaf writes has the score 0.
    """
    forest = _with_leaves_last(forest)
    reached = _walk(f, data, forest) - int((forest.modes != LEAF).sum())
    weights, has = _tables(forest, count)
    if aggregate in ("SUM", "AVERAGE"):
        total = _sum(f, f.term(weights).take(reached), len(forest.roots))
        return total / len(forest.roots) if aggregate == "AVERAGE" else total
    reduction, filler = ("ReduceMin", np.inf) if aggregate == "MIN" else ("ReduceMax", -np.inf)
    weights[~has] = filler
    best = f.term(weights).take(reached).reduced(reduction, [1])
    if forest.always_writes(count).all():
        return best
    return f.where(abs(best).equals(np.inf), 0, best)


def _with_leaves_last(forest: Forest) -> Forest:
    """Return the trees with their leaves behind all branches."""
    is_leaf = forest.modes == LEAF
    order = np.argsort(is_leaf, kind="stable")
    renamed = np.zeros(len(order), np.int64)
    renamed[order] = np.arange(len(order))
    moved = {name: getattr(forest, name)[order] for name in ("features", "modes", "thresholds", "missing")}
    named = {name: renamed[getattr(forest, name)] for name in ("roots", "holders")}
    sides = {name: renamed[getattr(forest, name)[order]] for name in ("true", "false")}
    return replace(forest, **moved, **named, **sides)


def _tables(forest: Forest, count: int) -> tuple[Array, Array]:
    """Return the weights of each leaf and target, 0 where there is none, and whether there is one."""
    branches = int((forest.modes != LEAF).sum())
    weights = np.zeros((len(forest.modes) - branches, count), forest.dtype)
    has = np.zeros(weights.shape, bool)
    weights[forest.holders - branches, forest.targets] = forest.weights
    has[forest.holders - branches, forest.targets] = True
    return weights, has


def _sum(f: Formula, weights: Term, trees: int) -> Term:
    """Add [rows, trees, count] along the trees, one after the other."""
    if trees == 1:
        return weights.squeezed(1)
    more = {"num_outputs": trees} if f.opset >= 18 else {}
    parts = f.write("Split", [weights], *[weights.dtype] * trees, axis=1, **more)
    return f.apply("Sum", *parts).squeezed(1)


def _walk(f: Formula, data: Term, forest: Forest) -> Term:
    """Return the leaf that each row reaches in each tree, [rows, trees]."""
    levels = forest.levels()
    if len(levels) == 1:
        rows = f.shape(data.name).take([0])
        return f.number([forest.roots]).expanded(f.joined([rows, f.number([len(forest.roots)])]))
    branches = int((forest.modes != LEAF).sum())
    nodes, has_leaves = f.term(forest.roots), False
    # At the last level all are leaves.
    for level, here in enumerate(levels[:-1]):
        has_leaves |= bool((here >= branches).any())
        places = _at_most(f, nodes, branches - 1) if has_leaves else nodes
        features = f.term(forest.features[:branches]).take(places)
        values = f.apply("GatherElements", data, features, axis=1) if level else data.take(features, 1)
        is_true = _compared(f, values, places, forest, branches)
        further = f.where(
            is_true, f.term(forest.true[:branches]).take(places), f.term(forest.false[:branches]).take(places)
        )
        nodes = f.where(nodes > branches - 1, nodes, further) if has_leaves else further
    return nodes


def _at_most(f: Formula, nodes: Term, last: int) -> Term:
    """Return the numbers of branches, and that of the last one in place of leaves."""
    return f.apply("Min", nodes, f.number(last))


def _compared(f: Formula, values: Term, nodes: Term, forest: Forest, branches: int) -> Term:
    """Return whether each row goes on to the true side of its branch."""
    thresholds, every = f.term(forest.thresholds[:branches]).take(nodes), forest.modes[:branches]
    modes = np.unique(every)
    if len(modes) == 1:
        holds = _holds(f, int(modes[0]), values, thresholds)
    else:
        parts = []
        for mode, kinds in _COMPARISONS.items():
            if np.isin(kinds, modes).any():
                counts = f.term(np.isin(every, kinds)).take(nodes)
                parts.append(_holds(f, mode, values, thresholds) & counts)
        holds = parts[0]
        for part in parts[1:]:
            holds = holds | part
    for_nan = forest.missing[:branches] & (every != NEQ)
    if for_nan.any():
        is_nan = f.apply("IsNaN", values, gives="bool")
        holds = holds | (is_nan if for_nan.all() else is_nan & f.term(for_nan).take(nodes))
    return holds


def _holds(f: Formula, mode: int, values: Term, thresholds: Term) -> Term:
    if mode in (EQ, NEQ):
        equal = values.equals(thresholds)
        # NaN is unequal to every threshold.
        return ~equal if mode == NEQ else equal
    operators = {LEQ: "LessOrEqual", LT: "Less", GTE: "GreaterOrEqual", GT: "Greater"}
    return f.apply(operators[mode], values, thresholds, gives="bool")
