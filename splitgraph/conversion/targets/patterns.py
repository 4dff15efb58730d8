"""Separates the nodes of a pattern that a runtime takes for one operator, and at which it fails."""

from __future__ import annotations

from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.plan import Plan, opset_of
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.runtimes.node_traits import NodeTraits


def plan_parted(plan: Plan, model: ModelProto, node: NodeTraits, names: FreshNames, why: str) -> None:
    """Plan that the last node of a pattern reads its inputs through Identity nodes, so that no runtime sees it."""
    emission = new_emission(plan, model, node.scope, node.node, node.index, names, opset_of(node.scope.imports))
    inputs = [emission.write("Identity", [name], "alone") for name in node.node.input]
    made = make_node(node.node.op_type, inputs, list(node.node.output))
    made.name, made.doc_string = node.node.name, node.node.doc_string
    made.metadata_props.extend(node.node.metadata_props)
    emission.main(made)
    plan.replace(node.scope, node.index, emission.replacement(why, node.label, node.label))
