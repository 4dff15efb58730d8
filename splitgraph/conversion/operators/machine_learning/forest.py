"""Decision trees as arrays, whichever version of their operators holds them.

TreeEnsembleClassifier and -Regressor number the nodes of each tree and name branches and leaves alike. TreeEnsemble has
branches and leaves in two lists, one target for each leaf, and sets of members beside thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from splitgraph.conversion.notation.node_at_boundary import Inexact, elements_of
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import TensorProto

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# By the number that TreeEnsemble has for each.
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ = range(6)
_MEMBER = 6
LEAF = 7
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class Attributes(Protocol):
    """The attributes of a node."""

    def known_value(self, name: str, absent: Any = None) -> Any:
        """Return the value of an attribute, `absent` without it. Raises Inexact for one that is not known."""


@dataclass(frozen=True)
class Forest:
    """Decision trees: arrays over all nodes, and over all weights.

    roots: the node where each tree begins. A node compares a feature with a threshold by its mode, and goes on to
    `true` or `false`; to `true` also for NaN where `missing` is set. A leaf has the mode LEAF, and leads to itself.
    holders, targets, weights: of each weight the leaf and the target. Several nodes may lead to one.
    """

    roots: Array
    features: Array
    modes: Array
    thresholds: Array
    missing: Array
    true: Array
    false: Array
    holders: Array
    targets: Array
    weights: Array

    @property
    def dtype(self) -> str:
        """The element type of the thresholds and weights."""
        return str(self.thresholds.dtype)

    def cast(self, dtype: str) -> Forest:
        """Return the trees with numbers of another type that holds them."""
        return replace(self, thresholds=self.thresholds.astype(dtype), weights=self.weights.astype(dtype))

    def with_ones(self) -> Forest:
        """Return the trees with a weight of 1 wherever there is one."""
        return replace(self, weights=np.ones_like(self.weights))

    def levels(self) -> list[Array]:
        """Return the nodes at each depth. Raises Inexact where a node leads back to itself."""
        levels, nodes = [], np.unique(self.roots)
        while len(nodes):
            levels.append(nodes)
            branches = nodes[self.modes[nodes] != LEAF]
            nodes = np.unique(np.concatenate([self.true[branches], self.false[branches]]))
            if len(levels) > len(self.modes):
                raise Inexact("a node of its trees leads back to itself")
        return levels

    def leaves_of_trees(self) -> list[Array]:
        """Return the leaves of each tree, in ascending order."""
        found = []
        for root in self.roots:
            leaves, nodes = [], np.array([root])
            while len(nodes):
                is_leaf = self.modes[nodes] == LEAF
                leaves.append(nodes[is_leaf])
                nodes = np.unique(np.concatenate([self.true[nodes[~is_leaf]], self.false[nodes[~is_leaf]]]))
            found.append(np.unique(np.concatenate(leaves)))
        return found

    def always_writes(self, count: int) -> Array:
        """Return for each of `count` targets whether some tree has a weight for it in all of its leaves."""
        order = np.lexsort((self.holders, self.targets))
        places = self.targets[order] * len(self.modes) + self.holders[order]
        always = np.zeros(count, bool)
        for leaves in self.leaves_of_trees():
            left = np.flatnonzero(~always)
            for target in left:
                wanted = target * len(self.modes) + leaves
                found = np.searchsorted(places, wanted)
                always[target] = bool(np.all(places[np.minimum(found, len(places) - 1)] == wanted)) and len(places) > 0
            if always.all():
                break
        return always


# Versions 1 and 3 -----------------------------------------------------------------------------------------------------


def numbers_of(node: Attributes, name: str) -> Array:
    """Return the numbers of an attribute, which version 3 may have as a tensor."""
    tensor = node.known_value(f"{name}_as_tensor")
    if isinstance(tensor, TensorProto):
        return elements_of(tensor).reshape(-1)
    return np.array(node.known_value(name, ()), np.float32)


def read_forest(node: Attributes, prefix: str) -> Forest:
    """Return the trees of a TreeEnsembleClassifier ("class") or -Regressor ("target")."""
    trees, ids = _integers(node, "nodes_treeids"), _integers(node, "nodes_nodeids")
    modes = _modes(node.known_value("nodes_modes", ()))
    if not len(trees) or not len(trees) == len(ids) == len(modes):
        raise Inexact("its lists of nodes are empty, or of different lengths")
    begins = np.flatnonzero(np.diff(trees, prepend=trees[0] - 1))
    if len(np.unique(trees)) < len(begins):
        raise Inexact("the nodes of its trees are not listed tree by tree")
    places = _NumberedNodes(trees, ids)
    is_leaf, own = modes == LEAF, np.arange(len(modes))
    true, false = own.copy(), own.copy()
    for name, children in (("nodes_truenodeids", true), ("nodes_falsenodeids", false)):
        named = _integers(node, name)
        if len(named) != len(modes):
            raise Inexact("its lists of nodes are of different lengths")
        children[~is_leaf] = places.find(trees[~is_leaf], named[~is_leaf])
    forest = Forest(
        begins,
        _padded(_integers(node, "nodes_featureids"), len(modes)),
        modes,
        _padded(numbers_of(node, "nodes_values"), len(modes)),
        _padded(_integers(node, "nodes_missing_value_tracks_true"), len(modes)) != 0,
        true,
        false,
        *_weights(node, prefix, places, is_leaf),
    )
    if np.isin(begins, np.concatenate([true[~is_leaf], false[~is_leaf]])).any():
        raise Inexact("a tree does not begin with its root")
    if prefix == "target" and node.known_value("n_targets") == 1:
        forest = _with_values_as_weights(forest)
    return _checked(forest)


def _with_values_as_weights(forest: Forest) -> Forest:
    """Return the trees of one target with a weight in each leaf. The kernel keeps the one weight of a leaf in the place
    of its threshold: a leaf without a weight gives its threshold.
    """
    bare = np.setdiff1d(np.flatnonzero(forest.modes == LEAF), forest.holders)
    return replace(
        forest,
        holders=np.concatenate([forest.holders, bare]),
        targets=np.concatenate([forest.targets, np.zeros(len(bare), np.int64)]),
        weights=np.concatenate([forest.weights, forest.thresholds[bare].astype(forest.weights.dtype)]),
    )


def _integers(node: Attributes, name: str) -> Array:
    return np.array(node.known_value(name, ()), np.int64)


def _padded(numbers: Array, count: int) -> Array:
    """Return numbers, zeros if there are none, as kernels take a list that is left out."""
    if not len(numbers):
        return np.zeros(count, numbers.dtype)
    if len(numbers) != count:
        raise Inexact("its lists of nodes are of different lengths")
    return numbers


def _modes(names: Any) -> Array:
    numbers = {**{name: number for number, name in enumerate(MODES)}, "LEAF": LEAF}
    try:
        return np.array([numbers[name] for name in names], np.uint8)
    except KeyError as unknown:
        raise Inexact(f"a node has the mode {unknown.args[0]!r}") from None


class _NumberedNodes:
    """The places of nodes by the number of their tree and their own."""

    def __init__(self, trees: Array, ids: Array) -> None:
        self._order = np.lexsort((ids, trees))
        self._trees, self._ids = trees[self._order], ids[self._order]
        pairs = np.stack([self._trees, self._ids])
        if (pairs[:, 1:] == pairs[:, :-1]).all(axis=0).any():
            raise Inexact("two nodes of a tree have the same number")
        self._starts = np.flatnonzero(np.diff(self._trees, prepend=self._trees[0] - 1))
        self._known = self._trees[self._starts]

    def find(self, trees: Array, ids: Array) -> Array:
        """Return the place of each node. Raises Inexact for a node that does not exist."""
        found = np.zeros(len(ids), np.int64)
        which = np.searchsorted(self._known, trees)
        ends = [*self._starts[1:], len(self._order)]
        for tree in np.unique(which):
            if tree == len(self._known):
                raise Inexact("it names a tree that it does not have")
            start, end, mine = self._starts[tree], ends[tree], which == tree
            place = start + np.searchsorted(self._ids[start:end], ids[mine])
            found[mine] = np.minimum(place, end - 1)
        if not (np.array_equal(self._ids[found], ids) and np.array_equal(self._trees[found], trees)):
            raise Inexact("it names a node that it does not have")
        return self._order[found]


def _weights(node: Attributes, prefix: str, places: _NumberedNodes, is_leaf: Array) -> tuple[Array, Array, Array]:
    weights, targets = numbers_of(node, f"{prefix}_weights"), _integers(node, f"{prefix}_ids")
    trees, ids = _integers(node, f"{prefix}_treeids"), _integers(node, f"{prefix}_nodeids")
    if not len(weights) == len(targets) == len(trees) == len(ids) > 0:
        raise Inexact("its lists of weights are empty, or of different lengths")
    holders = places.find(trees, ids)
    if not is_leaf[holders].all():
        raise Inexact("a branch of its trees has a weight, which no leaf gives")
    return holders, targets, weights


# TreeEnsemble ---------------------------------------------------------------------------------------------------------


def read_ensemble(node: Attributes) -> Forest:
    """Return the trees of a TreeEnsemble; a set of members becomes a row of comparisons."""
    modes = elements_of(node.known_value("nodes_modes")).reshape(-1)
    thresholds = elements_of(node.known_value("nodes_splits")).reshape(-1)
    weights = elements_of(node.known_value("leaf_weights")).reshape(-1)
    features, targets = _integers(node, "nodes_featureids"), _integers(node, "leaf_targetids")
    branches, leaves = len(modes), len(weights)
    if not len(thresholds) == len(features) == branches > 0 or len(targets) != leaves:
        raise Inexact("its lists of nodes are empty, or of different lengths")
    missing = _padded(_integers(node, "nodes_missing_value_tracks_true"), branches) != 0
    of_leaves = np.zeros(leaves, np.int64)
    own = branches + np.arange(leaves)
    forest = Forest(
        roots=_integers(node, "tree_roots"),
        features=np.concatenate([features, of_leaves]),
        modes=np.concatenate([modes.astype(np.uint8), np.full(leaves, LEAF, np.uint8)]),
        thresholds=np.concatenate([thresholds, of_leaves.astype(thresholds.dtype)]),
        missing=np.concatenate([missing, of_leaves != 0]),
        true=np.concatenate([_children(node, "true", branches, leaves), own]),
        false=np.concatenate([_children(node, "false", branches, leaves), own]),
        holders=own,
        targets=targets,
        weights=weights,
    )
    if not len(forest.roots) or np.any((forest.roots < 0) | (forest.roots >= branches)):
        raise Inexact("a tree begins at a node that it does not have")
    return _checked(_with_comparisons(forest, node.known_value("membership_values")))


def _children(node: Attributes, side: str, branches: int, leaves: int) -> Array:
    """Return where each branch leads on one side; leaves stand behind all branches."""
    named, leads_to_leaf = _integers(node, f"nodes_{side}nodeids"), _integers(node, f"nodes_{side}leafs") != 0
    if not len(named) == len(leads_to_leaf) == branches:
        raise Inexact("its lists of nodes are of different lengths")
    if np.any((named < 0) | (named >= np.where(leads_to_leaf, leaves, branches))):
        raise Inexact("it names a node or a leaf that it does not have")
    return named + np.where(leads_to_leaf, branches, 0)


def _with_comparisons(forest: Forest, members: TensorProto | None) -> Forest:
    """Return the trees with a row of comparisons with each member in place of a set; NaN ends each set."""
    holders = np.flatnonzero(forest.modes == _MEMBER)
    if not len(holders):
        return forest
    numbers = np.zeros(0) if members is None else elements_of(members).reshape(-1)
    ends = np.flatnonzero(np.isnan(numbers))
    sets = [each[~np.isnan(each)] for each in np.split(numbers, ends + 1)]
    if len(sets) - (len(sets[-1]) == 0) < len(holders):
        raise Inexact("it has fewer sets of members than branches that test one")
    rows = {name: [getattr(forest, name)] for name in ("features", "modes", "thresholds", "missing", "true", "false")}
    modes, thresholds, false = (rows[name][0].copy() for name in ("modes", "thresholds", "false"))
    rows["modes"], rows["thresholds"], rows["false"] = [modes], [thresholds], [false]
    count = len(forest.modes)
    for holder, members_here in zip(holders, sets, strict=False):
        # Nothing equals NaN: an empty set has no member.
        values = members_here if len(members_here) else np.array([np.nan])
        modes[holder], thresholds[holder] = EQ, values[0]
        more, last = len(values) - 1, forest.false[holder]
        if not more:
            continue
        false[holder] = count
        rows["modes"].append(np.full(more, EQ, np.uint8))
        rows["thresholds"].append(values[1:].astype(thresholds.dtype))
        rows["false"].append(np.array([*range(count + 1, count + more), last]))
        for name in ("features", "missing", "true"):
            rows[name].append(np.full(more, getattr(forest, name)[holder]))
        count += more
    return replace(forest, **{name: np.concatenate(parts) for name, parts in rows.items()})


def _checked(forest: Forest) -> Forest:
    """Return the trees. Raises Inexact for numbers without a kernel, or with a kernel of another meaning."""
    if np.any(forest.modes > LEAF) or np.any(forest.modes == _MEMBER):
        raise Inexact("a branch has a mode that does not exist")
    if forest.thresholds.dtype != forest.weights.dtype or forest.dtype not in ("float32", "float64"):
        kinds = sorted({forest.dtype, str(forest.weights.dtype)})
        raise Inexact(f"its numbers are {' and '.join(kinds)}, and kernels take float32 or float64")
    if not np.isfinite(forest.weights).all():
        raise Inexact("a weight is infinite or NaN")
    if np.any(forest.targets < 0) or np.any(forest.features < 0):
        raise Inexact("a target or a feature has a negative number")
    pairs = forest.holders * (forest.targets.max(initial=0) + 1) + forest.targets
    if len(np.unique(pairs)) < len(forest.weights):
        raise Inexact("a leaf has two weights for one target")
    forest.levels()
    return forest
