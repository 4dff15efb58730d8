"""Standard forms of the tree ensembles."""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.operators.machine_learning.post_transforms import transformed
from splitgraph.conversion.operators.machine_learning.tables import texts_of
from splitgraph.conversion.operators.machine_learning.tree_nodes import computed_scores
from splitgraph.conversion.operators.machine_learning.tree_scores import (
    read_plain_ensemble,
    write_classes,
    write_regressor_scores,
)
from splitgraph.conversion.operators.standard import standard
from splitgraph.model.scopes import MACHINE_LEARNING


@standard("TreeEnsembleRegressor", domain=MACHINE_LEARNING)
def regressor(node: NodeAtBoundary) -> None:
    """Compute the scores of the trees level by level."""
    write_regressor_scores(node, computed_scores)


@standard("TreeEnsembleClassifier", domain=MACHINE_LEARNING)
def classifier(node: NodeAtBoundary) -> None:
    """Compute the scores of the trees level by level, and look the label up."""
    write_classes(node, computed_scores, _named)


def _named(f: Formula, position: Term, texts: list[str]) -> Term:
    return texts_of(f, texts).take(position)


@standard("TreeEnsemble", domain=MACHINE_LEARNING)
def ensemble(node: NodeAtBoundary) -> None:
    """Compute the scores of the trees level by level."""
    f = Formula(node)
    plain = read_plain_ensemble(node, f)
    scores = computed_scores(f, plain.data, plain.forest, plain.count, plain.aggregate)
    # With one target, the kernels apply no other transform.
    f.give(transformed(f, scores, plain.post) if plain.count > 1 or plain.post == "PROBIT" else scores)
