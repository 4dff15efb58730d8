"""The blockers of a conversion for a target, with the locations of the user's nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.targets.split_ways import is_known_form
from splitgraph.findings.codes import CODES
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import node_label, plain_domain, scopes
from splitgraph.runtimes.advice import NO_OTHER_FORM, has_open_inputs
from splitgraph.runtimes.check import Examined, blamed, check_target, judge_node
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.target import Target, targets

# Runtimes that one message names.
_MOST_NAMED = 3


def left_of(examined: Examined, target: Target, before: Examined | None = None) -> list[Diagnostic]:
    """Return findings about what the target does not read of a converted model.

    before: the user's model, if it has another opset. With it, a form of a split is a finding, too, unless it is known
    that the target reads it, and so is a factor that was to blame for a split of the user.
    """
    left = [finding for finding in check_target(examined, target).findings if finding.severity == "error"]
    if before is not None:
        to_blame = {factor for positions in _forms(before) for factor in blamed(before.nodes[positions[0]], target)}
        reasons: dict[int, str] = {}
        for positions in _forms(examined):
            judged = judge_node(examined.nodes[positions[0]], target)
            if judged.verdict == "unmeasured" and not is_known_form(judged, to_blame):
                reasons.update(dict.fromkeys(positions, judged.why))
        for position, why in sorted(reasons.items()):
            text = f"it is not known whether {target.label} reads this: {why}"
            left.append(diagnostic("SG705", text, examined.nodes[position].location, target=target.key))
    return left


def _forms(examined: Examined) -> Iterator[Sequence[int]]:
    """Yield the positions of the nodes of each kind that is a form of a split."""
    for positions in examined.kinds:
        node = examined.nodes[positions[0]]
        if node.detail is not None or node.takes_part:
            yield positions


def in_the_users_words(
    left: Sequence[Diagnostic], user: Mapping[str, Sequence[str]], source: Examined, target: Target
) -> list[Diagnostic]:
    """Return the findings with the locations of the user's nodes. A finding of the target about the user's node itself
    stands in place of those about the nodes that splitgraph would write for it.
    """
    own: dict[str, list[Diagnostic]] = {}
    for finding in check_target(source, target).findings:
        if finding.severity == "error":
            own.setdefault(finding.location, []).append(finding)
    told: dict[Diagnostic, None] = {}
    for finding in left:
        for location in user.get(finding.location, [finding.location]):
            told.update(dict.fromkeys(own.get(location) or [_at(finding, location)]))
    return list(told)


def _at(finding: Diagnostic, location: str) -> Diagnostic:
    """Return a finding about the node at another location."""
    return finding if location == finding.location else replace(finding, location=location, node=None, operator=None)


class TargetRefusal(ConversionError):
    """The error of a conversion that leaves something in the way of a target.

    opset: of the result, None for the model's own. stuck: the user's nodes that are in the way themselves, and not only
    by what folding computes for them: the kind of each in the model that the conversion began with, by its location.
    """

    opset: int | None = None
    stuck: Mapping[str, object] = MappingProxyType({})


def refusal_of(
    left: Sequence[Diagnostic], target: Target, reasons: Mapping[str, str], source: Examined
) -> TargetRefusal:
    """Return the error for what is left of a model. reasons: by location, why a node stays as it is. source: the
    user's model.
    """
    nodes = {node.location: node for node in source.nodes}
    blockers = [_blocker(each, reasons.get(each.location), nodes.get(each.location)) for each in left]
    if blockers[-1].code == "SG706" and not any(node.is_layer for node in source.nodes):
        # What to do is said once, behind the last one.
        known = f"{blockers[-1].help} {_advice(source.model)}".strip()
        blockers[-1] = replace(blockers[-1], help=known)
    lines = "".join(f"\n  {blocker.code}  {blocker.location}  {blocker.message}" for blocker in blockers)
    count = f"{len(blockers)} blocker" + ("s" if len(blockers) > 1 else "")
    return TargetRefusal(f"{target.label} reads no form of the model that is known: {count}{lines}", blockers)


def stays_blocked(
    refusal: ConversionError, source: Examined, user: Mapping[str, Sequence[str]], target: Target, opset: int
) -> bool:
    """Return True if a node that was in the way of an earlier conversion will be in the way of the next one, too. It
    will if the target is known not to read the node with its operator at the next opset. It also will if a node of
    the same kind was in the way at the same opset.

    refusal: of the earlier conversion. source: the model with which the next conversion begins. user: the locations of
    the user's nodes, by the location of a node of this model; a location that is missing is the user's. opset: the one
    that the next conversion goes to.
    """
    if not isinstance(refusal, TargetRefusal) or not refusal.stuck:
        return False
    for positions in source.kinds:
        node = source.nodes[positions[0]]
        is_refused = _is_refused_at(opset, node, target)
        if not is_refused and opset != refusal.opset:
            continue
        for location in (source.nodes[position].location for position in positions):
            stuck_kinds = [refusal.stuck[own] for own in user.get(location, [location]) if own in refusal.stuck]
            if stuck_kinds and (is_refused or node.kind in stuck_kinds):
                return True
    return False


def _is_refused_at(opset: int, node: NodeTraits, target: Target) -> bool:
    """Return True if a target is known not to read a node with its operator at an opset. Of a split this is not known,
    because it gets another form there.
    """
    if node.gets_other_forms or plain_domain(node.node.domain):
        return False
    version = meant_version(node.node.op_type, opset)
    if version is None:
        return False
    judged = target.judge_version(f"{node.node.op_type}-{version.since_version}", node.own, node.factors)
    return judged.verdict in ("refuses", "wrong")


def lies_behind(refusal: ConversionError, own: int, opset: int) -> bool:
    """Return True if a conversion cannot reach an opset because another one, which was refused, ended on the way there.
    own: the opset at which both begin.
    """
    ends = [blocker.blocking_opset for blocker in refusal.diagnostics if blocker.blocking_opset is not None]
    return any(opset <= end < own or own < end <= opset for end in ends)


def _blocker(finding: Diagnostic, reason: str | None, node: NodeTraits | None) -> Diagnostic:
    """Return the blocker for a finding. node: of the user's model, None where the finding is about no node of it."""
    if not finding.code.startswith("SG70"):
        return finding
    why = NO_OTHER_FORM if reason is None else reason
    text = f"{finding.message}; {why}"
    return diagnostic("SG706", text, finding.location, help=_help(node), target=finding.target)


def _help(node: NodeTraits | None) -> str:
    """Return which runtimes are known to read a node; "" where that says nothing. Of a layer, also what to do."""
    if node is None:
        return ""
    readers = [target.key for target in targets().values() if judge_node(node, target).verdict == "reads"]
    more = f" and {len(readers) - _MOST_NAMED} more" if len(readers) > _MOST_NAMED else ""
    known = f"{node.label} is read by {', '.join(readers[:_MOST_NAMED])}{more}." if readers else ""
    of_a_layer = "Convert the original model again with the release of OpenVINO that is to read it."
    return f"{known} {of_a_layer if node.is_layer else ''}".strip()


def _advice(model: ModelProto) -> str:
    """Return what to do about a model that a target reads in no form. Where all sizes are fixed, none can be."""
    advice = CODES["SG706"].help
    return advice if has_open_inputs(model) else advice.replace("Give the dimensions fixed sizes, change", "Change")


# Names of the user's model --------------------------------------------------------------------------------------------


class UserNames:
    """Finds the node of the user's model that a node of a converted model stands for.

    A conversion keeps the names of values: a node stands for the one that gave its outputs. A node whose outputs are
    new, such as one that computes lengths, stands for what the first node that reads it stands for.
    """

    def __init__(self, source: ModelProto) -> None:
        self._source = source
        # By the identity of a converted model, which is kept so that no other one gets its identity.
        self._locations: dict[int, tuple[ModelProto, Mapping[str, Sequence[str]]]] = {}

    @cached_property
    def _definers(self) -> Mapping[str, str]:
        return _definers(self._source)

    def located(self, changes: Iterable[Change], model: ModelProto) -> list[Change]:
        """Return the changes of a converted model with the locations of the user's nodes."""
        listed = list(changes)
        if not listed or model is self._source:
            return listed
        user = self.locations(model)
        return [replace(change, location=user.get(change.location, [change.location])[0]) for change in listed]

    def own(self, locations: Collection[str], model: ModelProto) -> dict[str, str]:
        """Return the locations of the user's nodes that give the same values as nodes of a converted model do, by the
        locations of these. A node whose outputs are new stands for none.

        locations: of nodes of the converted model.
        """
        return {
            location: known
            for scope in scopes(model)
            for index, node in enumerate(scope.nodes)
            if (location := f"{scope.location}/{node_label(node, index)}") in locations
            for name in node.output
            if (known := self._definers.get(name)) is not None
        }

    def locations(self, model: ModelProto) -> Mapping[str, Sequence[str]]:
        """Return the locations of the user's nodes by the location of a node of the converted model, which must not
        change any more.
        """
        known = self._locations.get(id(model))
        if known is None:
            known = self._locations[id(model)] = model, self._find_locations(model)
        return known[1]

    def _find_locations(self, model: ModelProto) -> dict[str, list[str]]:
        definers = self._definers
        locations: dict[str, list[str]] = {}
        of_readers: dict[str, list[str]] = {}
        for scope in reversed(list(scopes(model))):
            nodes = scope.nodes
            for index in range(len(nodes) - 1, -1, -1):
                node = nodes[index]
                made = list(filter(None, node.output))
                known = list(dict.fromkeys(definers[name] for name in made if name in definers))
                known = known or next((of_readers[name] for name in made if name in of_readers), [])
                if known:
                    locations[f"{scope.location}/{node_label(node, index)}"] = known
                    of_readers.update(dict.fromkeys(filter(None, node.input), known))
        return locations


def _definers(model: ModelProto) -> dict[str, str]:
    """Return the location of the node that gives each value: the first one where several graphs have its name."""
    definers: dict[str, str] = {}
    for scope in scopes(model):
        for index, node in enumerate(scope.nodes):
            for name in filter(None, node.output):
                definers.setdefault(name, f"{scope.location}/{node_label(node, index)}")
    return definers
