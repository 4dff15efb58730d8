"""Nodes in the form of another version: exporters write `axes` of ReduceMean as an attribute into models at opset 18.

A form is what the numbers of inputs and outputs and the attributes of a node show. It names a version only if all
versions that the node fits are older than that of its model, or all newer; then the nearest one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.inference.memo import Knowledge
from splitgraph.inference.operators import version_of_ai_onnx
from splitgraph.inference.reading import Bindings, fit
from splitgraph.inference.walk_results import Form
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import OperatorVersion, version_at, versions_of

_WHOLE = "has the inputs, outputs and attributes of this node"


def form_of(
    opset: int,
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    given: Sequence[Knowledge],
    bindings: Bindings | None,
) -> Form | None:
    """Return whose form a node of ai.onnx has that does not fit its version at an opset; None for no version's."""
    own = version_at("", node.op_type, opset)
    since = opset if own is None else own.since_version
    fitting = [
        version
        for version in versions_of("", node.op_type)
        if not version.deprecated and version != own and _fits(version, node, attributes, given, bindings)
    ]
    older = [version for version in fitting if version.since_version < since]
    newer = [version for version in fitting if version.since_version > since]
    if bool(older) == bool(newer):
        return None
    meant = max(older, key=_since) if older else min(newer, key=_since)
    label = f"{meant.op}-{meant.since_version}"
    return Form(meant.since_version, label, _what_shows(meant, own, attributes, given))


def _since(version: OperatorVersion) -> int:
    return version.since_version


def _fits(
    version: OperatorVersion,
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    given: Sequence[Knowledge],
    bindings: Bindings | None,
) -> bool:
    operator = version_of_ai_onnx(node.op_type, version.since_version)
    return operator.finding is None and fit(operator, attributes, node, given, bindings)[1] is None


def _what_shows(
    meant: OperatorVersion,
    own: OperatorVersion | None,
    attributes: Mapping[str, AttributeProto],
    given: Sequence[Knowledge],
) -> str:
    if own is None or own.deprecated:
        return _WHOLE
    if gone := [name for name in attributes if name in meant.attributes and name not in own.attributes]:
        return f"takes {_listed(gone)} as {'an attribute' if len(gone) == 1 else 'attributes'}"
    if changed := [name for name in attributes if name in own.attributes and _kind(own, name) != _kind(meant, name)]:
        return f"takes {_listed(changed)} in another type"
    if len(given) > own.max_inputs:
        more = [formal.name for formal in meant.inputs[own.max_inputs : len(given)]]
        return f"takes {_listed(more)} as {'an input' if len(more) == 1 else 'inputs'}"
    return _WHOLE


def _kind(version: OperatorVersion, name: str) -> object:
    formal = version.attributes.get(name)
    return None if formal is None else formal.type


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
