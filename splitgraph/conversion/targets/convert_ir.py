"""Converting an OpenVINO IR for a release of OpenVINO: its splits, which have two forms."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from splitgraph.conversion.openvino_ir import convert_ir
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.inference.analysis import IR
from splitgraph.inference.walk_results import NodePlace
from splitgraph.options import STRICT, Form, Leeway
from splitgraph.runtimes.check import Examined, check_target, judge_node
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
    check = check_target(examined, target)
    blockers = [finding for finding in check.findings if finding.severity == "error"]
    _raise_blockers(_at_the_users_layers(blockers, source), target, reasons)
    notes = [finding for finding in check.findings if finding.severity != "error"]
    return replace(rewrite, diagnostics=tuple(dict.fromkeys((*rewrite.diagnostics, *notes))))


def _not_read(examined: Examined, target: Target, kind: str, written: Collection[str]) -> set[NodePlace]:
    """Return the places of splits of this kind that the target does not read. written: locations of those that have
    another form already.
    """
    return {
        (node.scope.path, node.index)
        for node in examined.nodes
        if node.node.op_type == kind
        and node.location not in written
        and judge_node(node, target)[0].verdict in ("refuses", "wrong")
    }


def _at_the_users_layers(blockers: Sequence[Diagnostic], source: Examined) -> list[Diagnostic]:
    """Return the blockers with the locations of the user's layers: a layer that a conversion added has the name of the
    split that it was added for, with a name of its own behind a slash.
    """
    own = {node.location for node in source.nodes}
    located = []
    for blocker in blockers:
        location = blocker.location
        while location not in own and "/" in location:
            location = location.rpartition("/")[0]
        located.append(replace(blocker, location=location) if location in own else blocker)
    return located


def _raise_blockers(left: Sequence[Diagnostic], target: Target, reasons: Mapping[str, str]) -> None:
    """Raise ConversionError for what is left. reasons: by location, why a split keeps its form."""
    if not left:
        return
    blockers = []
    for finding in left:
        why = reasons.get(finding.location, "no other form of it is known to be read")
        help = f"Convert the original model with {target.label}, or an older release: it writes layers that it reads."
        blockers.append(diagnostic("SG706", f"{finding.message}; {why}", finding.location, help=help))
    lines = "".join(f"\n  {blocker.code}  {blocker.location}  {blocker.message}" for blocker in blockers)
    count = f"{len(blockers)} blocker" + ("s" if len(blockers) > 1 else "")
    raise ConversionError(f"{target.label} reads no form of the model that is known: {count}{lines}", blockers)
