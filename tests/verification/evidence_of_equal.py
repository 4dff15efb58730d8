"""What an "equal" must show: which parts were compared, on how many values, and that all that differs was read."""

from __future__ import annotations

import onnx

from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.verdict.case_runs import Question
from splitgraph.verification.verification import Region, Verification


def missing_evidence(found: Verification, question: Question) -> str:
    """Return what an "equal" does not show; "" if nothing is missing, and for another verdict."""
    if found.verdict != "equal":
        return ""
    if not found.engine:
        return "no engine is named"
    if not found.cases and not _are_identical(question):
        return "no inputs were run as a whole"
    if question.found is None:
        return "an IR and other models that run as a whole have no regions" if found.regions else ""
    return _missing_in_regions(found.regions, question.found)


def _missing_in_regions(regions: tuple[Region, ...], found: ModelRegions) -> str:
    named = {name for region in regions for name in region.nodes_before}
    lacking = [
        found.before.location(index)
        for region in found.regions
        for index in region.before
        if index not in region.context and found.before.location(index) not in named
    ]
    if lacking:
        return f"no region holds {lacking[0]}"
    if bool(found.regions) != bool(regions):
        return "parts that differ are no regions"
    for region in regions:
        if region.verdict != "equal":
            return f"{region.name} is {region.verdict}"
        if region.unread:
            return f"{region.name} has unread constants"
        if not region.cases and not any(_is_always_empty(each, found) for each in found.regions):
            return f"{region.name} was compared on no values"
    return ""


def _is_always_empty(region: FoundRegion, found: ModelRegions) -> bool:
    """Return True if nothing that a region computes has elements, whatever the inputs are."""
    types = found.before.types
    return all(0 in (types[each.before].shape or ()) for each in region.outputs if each.before in types)


def _are_identical(question: Question) -> bool:
    models = question.before.model, question.after.model
    return all(isinstance(model, onnx.ModelProto) for model in models) and (
        models[0].SerializeToString(deterministic=True) == models[1].SerializeToString(deterministic=True)
    )
