"""Finds nodes that have the form of another version of their operator.

Exporters write `axes` of ReduceMean as an attribute into models at opset 18, for example.

A form is what the numbers of inputs and outputs, the attributes and the types of a node show. It names a version only
if all versions that the node fits are older than that of its model, or all newer; then the nearest one is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.inference.memo import OMITTED, Knowledge
from splitgraph.inference.operators import version_of_ai_onnx
from splitgraph.inference.reading import Bindings, fit, types_fit
from splitgraph.inference.walk_results import Form
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import OperatorVersion, version_at, versions_of
from splitgraph.model.schemas.fit import misfits

_WHOLE = "has the inputs, outputs and attributes of this node"
# Operators of which a version may be contradicted by more than its schema.
_WITH_LIMITS = frozenset({"DequantizeLinear", "QuantizeLinear", "Resize", "Split"})
# The versions from which on Resize has a region of interest before the scales, a scale may have several elements, and
# the last chunk of Split may be smaller.
_RESIZE_HAS_A_REGION, _SCALES_HAVE_AN_AXIS, _SPLIT_HAS_CHUNKS = 11, 13, 18


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
    fitting = [version for version in fitting if types_fit(version, given)] or fitting
    older = [version for version in fitting if version.since_version < since]
    newer = [version for version in fitting if version.since_version > since]
    if bool(older) == bool(newer):
        return None
    meant = max(older, key=_since) if older else min(newer, key=_since)
    label = f"{meant.op}-{meant.since_version}"
    return Form(meant.since_version, label, _what_shows(meant, own, attributes, given))


def contradicts(
    version: OperatorVersion, node: NodeProto, attributes: Mapping[str, AttributeProto], given: Sequence[Knowledge]
) -> bool:
    """Return True if a node cannot be of a version of ai.onnx whose schema it fits: sizes and inputs show that."""
    if version.op not in _WITH_LIMITS:
        return False
    if version.op == "Resize" and version.since_version >= _RESIZE_HAS_A_REGION:
        return not any(known is not OMITTED for known in given[2:])
    if version.op in ("QuantizeLinear", "DequantizeLinear") and version.since_version < _SCALES_HAVE_AN_AXIS:
        scale = given[1].type if len(given) > 1 else None
        return scale is not None and scale.shape is not None and any(isinstance(n, int) and n > 1 for n in scale.shape)
    if version.op == "Split" and version.since_version < _SPLIT_HAS_CHUNKS and "num_outputs" in attributes:
        return _is_uneven(attributes, given, len(node.output))
    return False


def _is_uneven(attributes: Mapping[str, AttributeProto], given: Sequence[Knowledge], count: int) -> bool:
    shape = given[0].type.shape if given and given[0].type is not None else None
    axis = attributes["axis"].i if "axis" in attributes else 0
    if not shape or not count or not -len(shape) <= axis < len(shape) or attributes["num_outputs"].i != count:
        return False
    total = shape[axis]
    return isinstance(total, int) and total % count != 0


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
    if operator.finding is not None or fit(operator, attributes, node, given, bindings)[1] is not None:
        return False
    return not contradicts(version, node, attributes, given)


def _what_shows(
    meant: OperatorVersion,
    own: OperatorVersion | None,
    attributes: Mapping[str, AttributeProto],
    given: Sequence[Knowledge],
) -> str:
    if own is None or own.deprecated:
        return _WHOLE
    unfit = list(misfits(own, attributes, ("",) * len(given), ()))
    if gone := [each.name for each in unfit if each.what == "more" and each.name in meant.attributes]:
        return f"takes {_listed(gone)} as {'an attribute' if len(gone) == 1 else 'attributes'}"
    if changed := [each.name for each in unfit if each.what == "other"]:
        return f"takes {_listed(changed)} in another type"
    if len(given) > own.max_inputs:
        more = [formal.name for formal in meant.inputs[own.max_inputs : len(given)]]
        return f"takes {_listed(more)} as {'an input' if len(more) == 1 else 'inputs'}"
    return _WHOLE


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
