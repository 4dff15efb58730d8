"""TreeEnsembleClassifier and -Regressor: the boundaries between their versions.

Version 3 takes no single row, and its numbers may be tensors of float64. From ai.onnx.ml 5 on, both are deprecated.
"""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, elements_of
from splitgraph.conversion.operators.registry import always, changed, edited_downward, exact_upward, upward
from splitgraph.model.deferred import np

_BOTH = "TreeEnsembleClassifier TreeEnsembleRegressor"
_IN_TENSORS = ("nodes_values", "nodes_hitrates", "target_weights", "class_weights", "base_values")

changed(_BOTH, 3, "it takes tables only from then on, and its numbers may be tensors of float64")
changed(_BOTH, 5, "it is deprecated from then on; TreeEnsemble replaces it", down=always)


@exact_upward(_BOTH, 3)
def reads_a_table(node: NodeAtBoundary) -> bool:
    """Tell whether the input has two dimensions."""
    return node.rank(0) == 2


@upward(_BOTH, 3)
def make_a_table(node: NodeAtBoundary) -> None:
    """Make a row of a vector."""
    if node.known_rank(0) != 1:
        raise Inexact("its input is neither a table nor one row")
    node.inputs[0] = Formula(node).input(0).unsqueezed(0).name


@edited_downward(_BOTH, 3)
def lists_of_numbers(node: NodeAtBoundary) -> None:
    """Write the tensors of numbers as lists of float32, where these are as exact. Sums and comparisons are of the type
    of the input in both versions.
    """
    for name in _IN_TENSORS:
        tensor = node.known_value(f"{name}_as_tensor")
        if tensor is None:
            continue
        numbers = elements_of(tensor).reshape(-1)
        with np.errstate(over="ignore"):
            rounded = numbers.astype(np.float32)
        if name != "nodes_hitrates" and not np.array_equal(rounded, numbers, equal_nan=True):
            raise Inexact
        node.drop(f"{name}_as_tensor", why=f"its numbers are a list {node.side}")
        if len(rounded):
            node.set(name, rounded.tolist(), f"its numbers are a list {node.side}")
