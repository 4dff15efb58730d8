"""Draw rows of features that reach every leaf of the decision trees of a region.

Two forests that differ in one leaf, or in where NaN goes at one branch, give equal results on all rows that reach
neither, and rows of random numbers reach few leaves of a deep tree. A row for a leaf has for each feature a number that
all comparisons on the way to the leaf send there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from splitgraph.model.attributes import attribute_value
from splitgraph.model.deferred import import_whole
from splitgraph.model.scopes import MACHINE_LEARNING
from splitgraph.verification.regions.drawing.amounts import OpenAxes
from splitgraph.verification.values import Array

if TYPE_CHECKING:
    from splitgraph.conversion.operators.machine_learning.forest import Forest

# So many rows are made; without a free number of rows, so many cases hold them.
_MOST_ROWS, _MOST_CASES = 2048, 64
# The lists of weights of the operators that number their nodes.
_PREFIXES = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}


def draw_paths(
    models: Sequence[onnx.ModelProto], free: Mapping[str, Array], open_axes: OpenAxes
) -> Iterator[dict[str, Array]]:
    """Yield values for the free inputs of a region that its trees read. open_axes: along which inputs may have other
    sizes.
    """
    for model in models:
        for node in model.graph.node:
            data = free.get(node.input[0]) if node.domain == MACHINE_LEARNING and node.input else None
            forest = None if data is None or data.ndim != 2 or data.dtype.kind != "f" else _forest_of(node)
            if data is None or forest is None:
                continue
            found = [*itertools.islice(_rows(forest, data.shape[1], data.dtype), _MOST_ROWS)]
            # An output may be NaN for a row with NaN, which would hide the others in a sum over rows.
            for rows in (
                [row for row in found if not np.isnan(row).any()],
                [row for row in found if np.isnan(row).any()],
            ):
                size = len(rows) if 0 in open_axes.get(node.input[0], ()) else len(data)
                for begin in range(0, min(len(rows), size * _MOST_CASES), max(1, size)):
                    # The last row stands there again where there are too few.
                    chosen = [rows[min(place, len(rows) - 1)] for place in range(begin, begin + size)]
                    yield {node.input[0]: np.stack(chosen)}


@dataclass(frozen=True)
class _Given:
    """The attributes of a node."""

    node: onnx.NodeProto

    def known_value(self, name: str, absent: Any = None) -> Any:
        """Return the value of an attribute, `absent` without it."""
        found = (attribute_value(attribute) for attribute in self.node.attribute if attribute.name == name)
        return next(found, absent)


def _forest_of(node: onnx.NodeProto) -> Forest | None:
    if node.op_type not in (*_PREFIXES, "TreeEnsemble") or any(each.ref_attr_name for each in node.attribute):
        return None
    import_whole("splitgraph.conversion.operators.machine_learning.forest")
    from splitgraph.conversion.notation.node_at_boundary import Inexact
    from splitgraph.conversion.operators.machine_learning.forest import read_ensemble, read_forest

    try:
        prefix = _PREFIXES.get(node.op_type)
        return read_ensemble(_Given(node)) if prefix is None else read_forest(_Given(node), prefix)
    except (Inexact, LookupError, TypeError, ValueError):
        # A node that no kernel runs.
        return None


# The place of a node on the way, and whether the way goes on to its true side.
_Turn = tuple[int, bool]


def _rows(forest: Forest, features: int, dtype: np.dtype[Any]) -> Iterator[Array]:
    """Yield a row for each leaf, and one with NaN for each branch that a row with NaN reaches; the trees take turns."""
    ways = [_ways(forest, int(root)) for root in forest.roots]
    for way in itertools.chain.from_iterable(itertools.zip_longest(*ways)):
        if way is None:
            continue
        turns, gap = way
        row = _row(forest, turns, gap, features, dtype)
        if row is not None:
            yield row


def _ways(forest: Forest, root: int) -> Iterator[tuple[tuple[_Turn, ...], int | None]]:
    """Yield the turns on the way to each leaf of a tree, and those to each branch with the branch."""
    import_whole("splitgraph.conversion.operators.machine_learning.forest")
    from splitgraph.conversion.operators.machine_learning.forest import LEAF

    waiting: list[tuple[int, tuple[_Turn, ...]]] = [(root, ())]
    while waiting:
        place, turns = waiting.pop()
        is_leaf = forest.modes[place] == LEAF
        yield turns, None if is_leaf else place
        if not is_leaf:
            waiting.append((int(forest.false[place]), (*turns, (place, False))))
            waiting.append((int(forest.true[place]), (*turns, (place, True))))


def _row(forest: Forest, turns: Sequence[_Turn], gap: int | None, features: int, dtype: np.dtype[Any]) -> Array | None:
    """Return a row that takes these turns; None where there is none. gap: a node whose feature is NaN."""
    row = np.zeros(features, dtype)
    by_feature: dict[int, list[_Turn]] = {}
    for place, side in turns:
        by_feature.setdefault(int(forest.features[place]), []).append((place, side))
    missing = None if gap is None else int(forest.features[gap])
    for feature in {*by_feature, *([] if missing is None else [missing])}:
        own = by_feature.get(feature, [])
        candidates = [np.nan] if feature == missing else _numbers(forest.thresholds[[place for place, _ in own]], dtype)
        fitting = (each for each in candidates if all(_holds(forest, place, each) == side for place, side in own))
        number = next(fitting, None)
        if number is None or feature >= features:
            return None
        row[feature] = number
    return row


def _numbers(thresholds: Array, dtype: np.dtype[Any]) -> list[Any]:
    """Return thresholds, the numbers beside them, which tell them from all others, numbers between, and NaN."""
    known = np.unique(thresholds[np.isfinite(thresholds)]).astype(dtype)
    if not len(known):
        return [dtype.type(0), np.nan]
    beyond = [known[0] - 1 - abs(known[0]), known[-1] + 1 + abs(known[-1])]
    middles = (known[1:] + known[:-1]) / 2
    beside = [np.nextafter(known, dtype.type(end)) for end in (-np.inf, np.inf)]
    return [*known, *itertools.chain(*beside), *middles, *beyond, np.nan]


def _holds(forest: Forest, place: int, number: Any) -> bool:
    """Return whether a feature sends a row to the true side of a node."""
    import_whole("splitgraph.conversion.operators.machine_learning.forest")
    from splitgraph.conversion.operators.machine_learning.forest import NEQ

    if np.isnan(number):
        return bool(forest.missing[place]) or forest.modes[place] == NEQ
    threshold = forest.thresholds[place]
    less, equal = bool(number < threshold), bool(number == threshold)
    return (less or equal, less, not less, not less and not equal, equal, not equal)[forest.modes[place]]
