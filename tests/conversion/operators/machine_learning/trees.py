"""Random decision trees, and their attributes in the versions of their operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from conversion.operators.machine_learning.versions import Array
from onnx import numpy_helper

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
FEATURES = 3


@dataclass(frozen=True)
class Leaf:
    """The weights of a leaf, by target."""

    weights: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Branch:
    """A comparison of a feature with a threshold, or with several members. tracks: where NaN goes to the true side."""

    feature: int
    mode: str
    threshold: float | tuple[float, ...]
    tracks: bool
    true: Branch | Leaf
    false: Branch | Leaf


Tree = Branch | Leaf


class Growing:
    """Makes trees and data from one random generator."""

    def __init__(self, seed: int, modes: Sequence[str] = MODES, *, members: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.modes = modes
        self.members = members

    def number(self) -> float:
        """A number that float32 holds."""
        return float(np.float32(self.random.standard_normal()))

    def tree(self, depth: int, targets: Sequence[Sequence[int]], *, positive: bool = False) -> Tree:
        """A tree whose leaves have weights for one of these sets of targets."""
        random = self.random
        if depth == 0 or random.random() < 0.15:
            chosen = targets[int(random.integers(len(targets)))]
            weights = [(target, abs(self.number()) if positive else self.number()) for target in chosen]
            return Leaf(tuple(weights))
        mode, threshold = self.modes[int(random.integers(len(self.modes)))], float(random.integers(-2, 3) * 0.5)
        held: Any = threshold
        if self.members and random.random() < 0.5:
            mode, held = "BRANCH_MEMBER", tuple(sorted({float(item) for item in random.integers(0, 9, 3)}))
        sides = [self.tree(depth - 1, targets, positive=positive) for _ in range(2)]
        return Branch(int(random.integers(FEATURES)), mode, held, bool(random.integers(2)), *sides)

    def trees(self, count: int, targets: Sequence[Sequence[int]], **more: Any) -> list[Tree]:
        """Several trees."""
        return [self.tree(3, targets, **more) for _ in range(count)]

    def data(self, rows: int, dtype: str) -> Array:
        """Rows of features: many equal to thresholds, some NaN."""
        random, shape = self.random, (rows, FEATURES)
        grid = random.integers(-3, 9, shape) * 0.5
        mixed = np.where(random.random(shape) < 0.6, grid, random.standard_normal(shape))
        return np.where(random.random(shape) < 0.1, np.nan, mixed).astype(dtype)


def old_attributes(trees: Sequence[Tree], prefix: str, dtype: str | None = None) -> dict[str, Any]:
    """Attributes of TreeEnsembleClassifier ("class") or -Regressor ("target"). dtype: of tensors, which version 3 has;
    None for lists.
    """
    nodes: list[list[Any]] = []
    weights: list[tuple[int, int, int, float]] = []
    for number, tree in enumerate(trees):
        begin = len(nodes)

        def add(part: Tree, number: int = number, begin: int = begin) -> int:
            own = len(nodes) - begin
            if isinstance(part, Leaf):
                nodes.append([number, own, 0, "LEAF", 0.0, 0, 0, 0])
                weights.extend((number, own, target, weight) for target, weight in part.weights)
                return own
            row = [number, own, part.feature, part.mode, part.threshold, 0, 0, int(part.tracks)]
            nodes.append(row)
            row[5], row[6] = add(part.true), add(part.false)
            return own

        add(tree)
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    columns = dict(
        zip(
            [*(f"nodes_{name}" for name in names), "nodes_missing_value_tracks_true"],
            map(list, zip(*nodes, strict=True)),
            strict=True,
        )
    )
    columns |= dict(
        zip(
            [f"{prefix}_{name}" for name in ("treeids", "nodeids", "ids", "weights")],
            map(list, zip(*weights, strict=True)),
            strict=True,
        )
    )
    if dtype is not None:
        for name in ("nodes_values", f"{prefix}_weights"):
            columns[f"{name}_as_tensor"] = tensor(columns.pop(name), dtype)
    return columns


def new_attributes(trees: Sequence[Tree], dtype: str) -> dict[str, Any]:
    """Attributes of TreeEnsemble, whose leaves have one weight each."""
    rows: list[list[Any]] = []
    leaves: list[tuple[int, float]] = []
    members: list[float] = []
    roots = []

    def side(part: Tree) -> tuple[int, int]:
        if isinstance(part, Leaf):
            leaves.append(part.weights[0])
            return len(leaves) - 1, 1
        return add(part), 0

    def add(part: Branch) -> int:
        place = len(rows)
        is_set = isinstance(part.threshold, tuple)
        if isinstance(part.threshold, tuple):
            members.extend([*part.threshold, np.nan])
        mode = 6 if is_set else MODES.index(part.mode)
        row = [part.feature, mode, 0.0 if is_set else part.threshold, int(part.tracks), 0, 0, 0, 0]
        rows.append(row)
        row[4], row[5] = side(part.true)
        row[6], row[7] = side(part.false)
        return place

    for tree in trees:
        if isinstance(tree, Leaf):
            place, _ = side(tree)
            rows.append([0, 0, 0.0, 0, place, 1, place, 1])
            roots.append(len(rows) - 1)
        else:
            roots.append(add(tree))
    features, modes, splits, tracks, true, true_leaf, false, false_leaf = map(list, zip(*rows, strict=True))
    attributes = {
        "tree_roots": roots,
        "nodes_featureids": features,
        "nodes_modes": tensor(modes, "uint8"),
        "nodes_splits": tensor(splits, dtype),
        "nodes_missing_value_tracks_true": tracks,
        "nodes_truenodeids": true,
        "nodes_trueleafs": true_leaf,
        "nodes_falsenodeids": false,
        "nodes_falseleafs": false_leaf,
        "leaf_targetids": [target for target, _ in leaves],
        "leaf_weights": tensor([weight for _, weight in leaves], dtype),
    }
    return attributes | ({"membership_values": tensor(members, dtype)} if members else {})


def tensor(values: Any, dtype: str) -> Any:
    """A tensor that is an attribute."""
    return numpy_helper.from_array(np.array(values, dtype), "t")
