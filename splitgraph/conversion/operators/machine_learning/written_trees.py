"""Decision trees as attributes: of TreeEnsembleRegressor, and of TreeEnsemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.machine_learning.forest import AGGREGATES, LEAF, MODES, Forest
from splitgraph.model.deferred import np, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# Nodes to which several lead are written for each; more than so many for each node is too much.
_MOST_FOR_EACH = 8


def regressor_attributes(forest: Forest, count: int, aggregate: str, post: str) -> dict[str, object]:
    """Return the attributes of a TreeEnsembleRegressor-1 or -3 whose numbers are float32. count: of the targets."""
    first = np.searchsorted(np.sort(forest.holders), np.arange(len(forest.modes) + 1))
    by_holder = np.argsort(forest.holders, kind="stable")
    columns: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in (
            "treeids",
            "nodeids",
            "featureids",
            "modes",
            "values",
            "truenodeids",
            "falsenodeids",
            "missing_value_tracks_true",
        )
    }
    weights: dict[str, list[Any]] = {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    written, most = 0, _MOST_FOR_EACH * len(forest.modes)
    for tree, root in enumerate(forest.roots):
        order, children = _preorder(forest, int(root), most - written)
        written += len(order)
        true, false = children
        names = [*MODES, "", "LEAF"]
        rows: tuple[Any, ...] = (
            [tree] * len(order),
            [*range(len(order))],
            forest.features[order].tolist(),
            [names[mode] for mode in forest.modes[order]],
            forest.thresholds[order].tolist(),
            true,
            false,
            forest.missing[order].astype(int).tolist(),
        )
        for column, row in zip(columns.values(), rows, strict=True):
            column += row
        for number, place in enumerate(order):
            for weight in by_holder[first[place] : first[place + 1]]:
                row = (tree, number, int(forest.targets[weight]), float(forest.weights[weight]))
                for column, item in zip(weights.values(), row, strict=True):
                    column.append(item)
    kinds = {"aggregate_function": aggregate, "post_transform": post, "n_targets": count}
    return {**columns, **weights, **kinds}


def _preorder(forest: Forest, root: int, most: int) -> tuple[list[int], tuple[list[int], list[int]]]:
    """Return the nodes of a tree from the root on, and the numbers of their children in this list; 0 for leaves. A node
    to which several lead stands there several times.
    """
    order, true, false = list[int](), list[int](), list[int]()
    waiting: list[tuple[int, list[int] | None, int]] = [(root, None, 0)]
    while waiting:
        place, parents, parent = waiting.pop()
        if len(order) >= most:
            raise Inexact("its trees share so many nodes that they would be much larger apart")
        if parents is not None:
            parents[parent] = len(order)
        number = len(order)
        order.append(place)
        true.append(0)
        false.append(0)
        if forest.modes[place] != LEAF:
            waiting.append((int(forest.false[place]), false, number))
            waiting.append((int(forest.true[place]), true, number))
    return order, (true, false)


# TreeEnsemble ---------------------------------------------------------------------------------------------------------


def written_ensemble(f: Formula, data: Term, forest: Forest, count: int, aggregate: str) -> Term:
    """Write a TreeEnsemble and return its scores, [N, count], in the order of sums of the trees. A target that no
    reached leaf writes has the score 0.
    """
    single = _one_weight_for_each_leaf(forest, count)
    copies = len(single.roots) > len(forest.roots)
    kind = "SUM" if aggregate == "AVERAGE" and copies else aggregate
    has_spare = bool(np.any(single.targets == count))
    attributes = _ensemble_attributes(single, count + has_spare, kind)
    scores = f.value(f.node.write_own("TreeEnsemble", [data.name], "trees", **attributes), forest.dtype)
    if has_spare:
        scores = scores.sliced(0, count, 1)
    return scores / len(forest.roots) if kind != aggregate else scores


def _one_weight_for_each_leaf(forest: Forest, count: int) -> Forest:
    """Return trees with one weight in each leaf: a tree for each target of its leaves. A leaf without a weight for the
    target writes a spare target behind the others, which changes no score.
    """
    by_leaf = np.argsort(forest.holders, kind="stable")
    holders, targets, weights = forest.holders[by_leaf], forest.targets[by_leaf], forest.weights[by_leaf]
    first = np.searchsorted(holders, np.arange(len(forest.modes) + 1))
    roots, ends, made_targets, made_weights = [], [], [], []
    for root, leaves in zip(forest.roots, forest.leaves_of_trees(), strict=True):
        counts = first[leaves + 1] - first[leaves]
        # The weights of the tree, and for each the place of its leaf.
        places = np.repeat(np.arange(len(leaves)), counts)
        mine = np.repeat(first[leaves] - np.cumsum(counts) + counts, counts) + np.arange(len(places))
        groups = [mine >= 0] if counts.max() < 2 else [targets[mine] == each for each in np.unique(targets[mine])]
        for chosen in groups:
            goal, weight = np.full(len(leaves), count), np.zeros(len(leaves), weights.dtype)
            goal[places[chosen]], weight[places[chosen]] = targets[mine[chosen]], weights[mine[chosen]]
            roots.append(root)
            ends.append(leaves)
            made_targets.append(goal)
            made_weights.append(weight)
    return _apart(forest, roots, ends, made_targets, made_weights)


def _apart(
    forest: Forest,
    roots: list[int],
    leaves: list[Array],
    targets: list[Array],
    weights: list[Array],
) -> Forest:
    """Return a forest of trees with nodes of their own."""
    arrays: dict[str, list[Array]] = {
        name: [] for name in ("features", "modes", "thresholds", "missing", "true", "false")
    }
    begins, holders, start = [], [], 0
    renamed = np.zeros(len(forest.modes), np.int64)
    for root, ends in zip(roots, leaves, strict=True):
        nodes = _nodes_below(forest, root)
        renamed[nodes] = start + np.arange(len(nodes))
        for name in ("features", "modes", "thresholds", "missing"):
            arrays[name].append(getattr(forest, name)[nodes])
        arrays["true"].append(renamed[forest.true[nodes]])
        arrays["false"].append(renamed[forest.false[nodes]])
        begins.append(renamed[root])
        holders.append(renamed[ends])
        start += len(nodes)
    joined = {name: np.concatenate(parts) for name, parts in arrays.items()}
    return Forest(
        np.array(begins),
        **joined,
        holders=np.concatenate(holders),
        targets=np.concatenate(targets),
        weights=np.concatenate(weights),
    )


def _nodes_below(forest: Forest, root: int) -> Array:
    found, nodes = [np.array([root])], np.array([root])
    while len(nodes):
        branches = nodes[forest.modes[nodes] != LEAF]
        nodes = np.unique(np.concatenate([forest.true[branches], forest.false[branches]]))
        found.append(nodes)
    return np.unique(np.concatenate(found))


def _ensemble_attributes(forest: Forest, count: int, aggregate: str) -> dict[str, object]:
    """Return the attributes of a TreeEnsemble. A tree of a leaf alone gets a branch with this leaf on both sides."""
    is_leaf = forest.modes == LEAF
    leaf_number = np.zeros(len(is_leaf), np.int64)
    leaf_number[forest.holders] = np.arange(len(forest.holders))
    branches = np.flatnonzero(~is_leaf)
    number = leaf_number.copy()
    number[branches] = np.arange(len(branches))
    bare = forest.roots[is_leaf[forest.roots]]
    roots = number[forest.roots]
    roots[is_leaf[forest.roots]] = len(branches) + np.arange(len(bare))

    def with_bare(numbers: Array, fillers: Any = 0) -> Array:
        return np.concatenate([numbers, np.full(len(bare), fillers, numbers.dtype)])

    sides = {"true": forest.true[branches], "false": forest.false[branches]}
    attributes: dict[str, object] = {
        "n_targets": count,
        "aggregate_function": AGGREGATES.index(aggregate),
        "post_transform": 0,
        "tree_roots": roots.tolist(),
        "nodes_featureids": with_bare(forest.features[branches]).tolist(),
        "nodes_modes": numpy_helper.from_array(with_bare(forest.modes[branches])),
        "nodes_splits": numpy_helper.from_array(with_bare(forest.thresholds[branches])),
        "leaf_targetids": forest.targets.tolist(),
        "leaf_weights": numpy_helper.from_array(forest.weights),
    }
    if forest.missing[branches].any():
        attributes["nodes_missing_value_tracks_true"] = with_bare(forest.missing[branches].astype(np.int64)).tolist()
    for side, places in sides.items():
        attributes[f"nodes_{side}nodeids"] = with_bare(number[places], leaf_number[bare]).tolist()
        attributes[f"nodes_{side}leafs"] = with_bare(is_leaf[places].astype(np.int64), 1).tolist()
    return attributes


def write_regressor(node: NodeAtBoundary, forest: Forest, count: int, aggregate: str, post: str) -> None:
    """Make the node a TreeEnsembleRegressor-3 of float32."""
    node.rename("TreeEnsembleRegressor")
    node.attributes.clear()
    for name, value in regressor_attributes(forest, count, aggregate, post).items():
        node.set(name, value, f"the trees are those of TreeEnsemble {node.side}")
