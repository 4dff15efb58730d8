"""Converts an OpenVINO IR for a release of OpenVINO: its splits, which have two forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from splitgraph.conversion.openvino_ir import convert_ir
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.conversion.targets.refusals import in_the_users_words, left_of, refusal_of
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.inference.analysis import IR
from splitgraph.inference.walk_results import NodePlace
from splitgraph.options import STRICT, Form, Leeway
from splitgraph.runtimes.check import Examined, check_target, is_not_read
from splitgraph.runtimes.examine_ir import examine_ir
from splitgraph.runtimes.target import Target, require_reader

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import OpenVINOModel

# The form that a split gets if the target does not read its own.
_OTHER: Mapping[str, Form] = {"VariadicSplit": "split", "Split": "variadic-split"}


def convert_ir_for_target(model: OpenVINOModel, target: Target, leeway: Leeway = STRICT) -> Rewrite:
    """Return a copy of the IR that the target reads; what the target reads stays as it is. leeway: what the user
    permits. Raises ConversionError with every blocker, SplitgraphError for a target that reads no IR.
    """
    require_reader(target)
    source = examine_ir(model, leeway)
    if source.errors:
        lines = "".join(f"\n  {error.code}  {error.location}  {error.message}" for error in source.errors)
        raise ConversionError(f"the model is wrong:{lines}", source.errors)
    version = {IR: model.version}
    rewrite: Rewrite = Rewrite(model.copy(), (), from_opset=version, to_opset=version, accepted=source.walked.accepted)
    examined, reasons = source, dict[str, str]()
    for kind, form in _OTHER.items():
        # A split that has its other form already does not get its first one back.
        written = {change.location for change in rewrite.changes}
        places = _not_read(examined, target, kind, written)
        try:
            further = convert_ir(rewrite.model, form, leeway=leeway, only=places) if places else None
        except ConversionError as refused:
            reasons.update((blocker.location, blocker.message) for blocker in refused.diagnostics)
            continue
        if further is not None:
            rewrite = rewrite.then(further)
            examined = examine_ir(rewrite.model, leeway)
    left = left_of(examined, target)
    if left:
        raise refusal_of(
            in_the_users_words(left, _users_layers(examined, source), source, target), target, reasons, source
        )
    notes = [finding for finding in check_target(examined, target).findings if finding.severity != "error"]
    return replace(rewrite, diagnostics=tuple(dict.fromkeys((*rewrite.diagnostics, *notes))))


def _not_read(examined: Examined, target: Target, kind: str, written: Collection[str]) -> set[NodePlace]:
    """Return the places of splits of this kind that the target does not read. written: locations of those that have
    another form already.
    """
    return {
        (node.scope.path, node.index)
        for node in examined.nodes
        if node.node.op_type == kind and node.location not in written and is_not_read(node, target)
    }


def _users_layers(examined: Examined, source: Examined) -> dict[str, list[str]]:
    """Return the locations of the user's layers by the location of a layer that a conversion added: it has the name of
    the split that it was added for, with a name of its own behind a slash.
    """
    own = {node.location for node in source.nodes}
    added = {node.location for node in examined.nodes} - own
    return {location: [location.rpartition("/")[0]] for location in added}
