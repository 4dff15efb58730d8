"""TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble: the boundaries between their versions.

Version 3 of the first two takes no single row, and its numbers may be tensors of float64. From ai.onnx.ml 5 on, both
are deprecated, and TreeEnsemble is there: scores of trees in the type of the input, without base values and labels.
"""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, elements_of
from splitgraph.conversion.operators.machine_learning.tree_nodes import computed_scores
from splitgraph.conversion.operators.machine_learning.tree_scores import (
    read_plain_ensemble,
    write_classes,
    write_regressor_scores,
)
from splitgraph.conversion.operators.machine_learning.written_trees import write_regressor, written_ensemble
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited_downward,
    exact_upward,
    upward,
)
from splitgraph.model.deferred import np

_BOTH = "TreeEnsembleClassifier TreeEnsembleRegressor"
_IN_TENSORS = ("nodes_values", "nodes_hitrates", "target_weights", "class_weights", "base_values")

changed(_BOTH, 3, "it takes tables only from then on, and its numbers may be tensors of float64")
changed(_BOTH, 5, "it is deprecated from then on; TreeEnsemble replaces it", down=always)


# Versions 1 and 3 -----------------------------------------------------------------------------------------------------


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


@downward("TreeEnsembleRegressor", 3)
def regressor_in_nodes(node: NodeAtBoundary) -> None:
    """Write trees of float64, which have no other form below version 3."""
    write_regressor_scores(node, computed_scores)


@downward("TreeEnsembleClassifier", 3)
def classifier_in_nodes(node: NodeAtBoundary) -> None:
    """Write trees of float64, which have no other form below version 3."""
    # At version 2, where this step ends, LabelEncoder has keys and values already.
    write_classes(node, computed_scores, _named_by_keys)


# TreeEnsemble ---------------------------------------------------------------------------------------------------------


@upward("TreeEnsembleRegressor", 5)
def regressor_of_ensemble(node: NodeAtBoundary) -> None:
    """Write the trees as TreeEnsemble; base values and transforms stand behind."""
    write_regressor_scores(node, written_ensemble)


@upward("TreeEnsembleClassifier", 5)
def classifier_of_ensemble(node: NodeAtBoundary) -> None:
    """Write the trees as TreeEnsemble; a look-up gives the label."""
    write_classes(node, written_ensemble, _named_by_keys)


def _named_by_keys(f: Formula, position: Term, texts: list[str]) -> Term:
    keys = [*range(len(texts))]
    name = f.node.write_own("LabelEncoder", [position.name], "label", keys_int64s=keys, values_strings=texts)
    return f.value(name, "string")


@downward("TreeEnsemble", 5)
def ensemble_as_regressor(node: NodeAtBoundary) -> None:
    """Write the trees as TreeEnsembleRegressor; those of float64, which give float64, with operators of ai.onnx."""
    f = Formula(node)
    plain = read_plain_ensemble(node, f)
    if plain.forest.dtype == "float32":
        write_regressor(node, plain.forest, plain.count, plain.aggregate, plain.post)
        return
    if plain.post != "NONE":
        raise Inexact("its post_transform of float64 has no other form")
    f.give(computed_scores(f, plain.data, plain.forest, plain.count, plain.aggregate))
