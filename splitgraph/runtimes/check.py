"""Check a model for a target: which nodes the runtime refuses or computes wrong, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, overload

from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.input_defaults import findings_about_defaults
from splitgraph.inference.untrue_shapes import untrue_shapes
from splitgraph.model.onnx_proto import ModelProto, TensorShapeProto, ValueInfoProto
from splitgraph.model.scopes import node_label
from splitgraph.options import STRICT, Leeway
from splitgraph.runtimes.measured import imports_label
from splitgraph.runtimes.node_traits import NodeTraits, traits_of
from splitgraph.runtimes.patterns import ends_pattern
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import Factor, Judged, Verdict

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import OpenVINOModel
    from splitgraph.runtimes.runners.result import RuntimeRun

# What a run finds out.
# The domain of the operators that onnxruntime and the tools around it write.
_OF_ONNXRUNTIME = "com.microsoft"
NOT_KNOWN = frozenset({"SG705", "SG707", "SG708"})
# So many things that were not measured are named in one finding.
_MOST_TOLD = 5


@dataclass(frozen=True)
class Examined:
    """A model as checks see it: its inference, and the nodes with their traits.

    model: the ONNX model, or the one that inference walks in place of an IR. ir: the OpenVINO IR, None for an ONNX
    model.
    """

    model: ModelProto
    walked: Walked
    nodes: Sequence[NodeTraits]
    ir: OpenVINOModel | None = None

    @cached_property
    def kinds(self) -> Sequence[Sequence[int]]:
        """The positions of the nodes of each kind, in the order of their first nodes. Models repeat their nodes, so
        that targets judge kinds.
        """
        kinds: dict[object, list[int]] = {}
        for position, node in enumerate(self.nodes):
            kinds.setdefault(node.kind, []).append(position)
        return list(kinds.values())

    def not_read(self, target: Target) -> list[NodeTraits]:
        """Return the nodes that a conversion has to write in another way, in graph order: as `is_not_read`."""
        kinds = [positions for positions in self.kinds if is_not_read(self.nodes[positions[0]], target)]
        return [self.nodes[position] for position in sorted(chain.from_iterable(kinds))]

    @property
    def errors(self) -> list[Diagnostic]:
        """Return the errors of the model itself."""
        return [finding for finding in self.walked.diagnostics if finding.severity == "error"]

    @property
    def notes(self) -> list[Diagnostic]:
        """Return the findings that are no errors: stale acceptances, defaults taken for constants, and equal
        initializers of one name.
        """
        assumed = findings_about_defaults(self.model, assumed=self.walked.leeway.assume_defaults)
        return [*self.walked.stale, *assumed, *self.walked.doubled]

    @property
    def opset(self) -> int:
        """Return the opset of ai.onnx, 0 if none is imported."""
        return self.walked.opset.get("", 0)

    def is_read_by(self, target: Target) -> bool:
        """Return True if the runtime reads models of this format."""
        return self.ir is None or target.reads_ir


def examine(model: ModelProto, leeway: Leeway = STRICT) -> Examined:
    """Infer a model and find the traits of its nodes; the model is not changed. leeway: what the user permits."""
    walked = walk_model(model, leeway)
    return Examined(model, walked, list(traits_of(model, walked)))


class NodeAnswer(NamedTuple):
    """What a target does with a node, and why that is known.

    node: its location, "main/conv1". operator: with its version, "Conv-11". answer: "reads", "refuses", "wrong", "some"
    (cases like it are not all read) or "unmeasured". why: what was measured. target: the key of the target.
    """

    node: str
    operator: str
    answer: Verdict
    why: str
    target: str


class NodeAnswers(Sequence[NodeAnswer]):
    """The answer of a target to each node of a model. They are made when they are asked for: most callers only ask how
    many there are.

    counts: of nodes by answer.
    """

    def __init__(self, examined: Examined, judged: Sequence[Judged], target: Target) -> None:
        self._examined, self._judged, self._target = examined, judged, target
        self.counts = Counter[Verdict]()
        for positions, result in zip(examined.kinds, judged, strict=True):
            self.counts[result.verdict] += len(positions)

    @cached_property
    def _by_position(self) -> Mapping[int, Judged]:
        pairs = zip(self._examined.kinds, self._judged, strict=True)
        return {position: result for positions, result in pairs for position in positions}

    def __len__(self) -> int:
        return len(self._examined.nodes)

    @overload
    def __getitem__(self, position: int) -> NodeAnswer: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[NodeAnswer]: ...
    def __getitem__(self, position: int | slice) -> NodeAnswer | Sequence[NodeAnswer]:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        node = self._examined.nodes[position]
        result = self._by_position[position % len(self)]
        return NodeAnswer(node.location, node.label, result.verdict, result.why, self._target.key)

    @property
    def has_unread(self) -> bool:
        """Return True if a conversion has to write a node in another way: as `is_not_read`."""
        first = (self._examined.nodes[positions[0]] for positions in self._examined.kinds)
        return any(is_not_read(node, self._target) for node in first)

    def by_operator(self) -> Counter[tuple[str, Verdict]]:
        """Return how many nodes of each operator have each answer."""
        found = Counter[tuple[str, Verdict]]()
        for positions, result in zip(self._examined.kinds, self._judged, strict=True):
            found[self._examined.nodes[positions[0]].label, result.verdict] += len(positions)
        return found


class TargetCheck(NamedTuple):
    """A model checked for one target: the answer to each node, and the findings. ran: what became of it in the runtime
    itself, None if it was not to be run. folded: the check of the model folded, which is how a conversion begins; None
    if nothing is in the way of the model as it is, or folding changes nothing. gone: the locations of nodes that are
    not known to be read, and that the folded model does not have.
    """

    target: Target
    nodes: NodeAnswers
    findings: Sequence[Diagnostic]
    ran: RuntimeRun | None = None
    folded: TargetCheck | None = None
    gone: tuple[str, ...] = ()

    @property
    def runs_folded(self) -> bool:
        """Return True if something is in the way of the model as it is, and the folded one is known to run."""
        return self.folded is not None and self.folded.runs is True

    @property
    def has_errors(self) -> bool:
        """Return True if something is known to be in the way."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def is_to_be_converted(self) -> bool:
        """Return True if a conversion says more. What a run here has shown to fail, the table does not mend."""
        is_wanted = self.has_errors or self.nodes.has_unread
        return is_wanted and (self.ran is None or not self.ran.failed)

    @property
    def runs(self) -> bool | None:
        """Return True if the runtime is known to read every node, or ran the model here; False if something is in the
        way; else None.
        """
        if self.has_errors:
            return False
        if self.ran is not None and self.ran.answer == "equal":
            return True
        is_read = self.target.measured is not None and self.nodes.counts["reads"] == len(self.nodes)
        return True if is_read else None


def check_target(examined: Examined, target: Target) -> TargetCheck:
    """Return what a target does with each node; the findings are the errors of the model itself, and then what the
    target does not read, in graph order.
    """
    judged = [_judged_kind(examined, positions, target) for positions in examined.kinds]
    answers = NodeAnswers(examined, [each.result for each in judged], target)
    about_nodes = [*_not_read(judged, target), *_unmeasured(judged, target)]
    about_target = (
        *_standing_for(target),
        *_limits(examined, target),
        *(finding for _, finding in sorted(about_nodes, key=lambda each: each[0])),
        *_empty_at_run_time(examined, target),
    )
    findings = [*examined.errors, *examined.notes, *_against_schema(examined, target)]
    findings += [replace(finding, target=target.key) for finding in about_target]
    return TargetCheck(target, answers, findings)


def with_run(check: TargetCheck, ran: RuntimeRun) -> TargetCheck:
    """Return a check with what became of the model in the runtime, which counts for more than what is known of nodes
    like its own: nothing is in the way of a model that ran.
    """
    findings = list(check.findings)
    if ran.answer == "equal" or ran.failed:
        findings = [finding for finding in findings if finding.code not in NOT_KNOWN]
    if ran.answer == "equal":
        findings = [finding for finding in findings if finding.target is None or finding.severity != "error"]
    else:
        findings.insert(0, replace(found_in_run(ran), target=check.target.key))
    return check._replace(findings=findings, ran=ran)


def found_in_run(ran: RuntimeRun) -> Diagnostic:
    """Return the finding about a model that is not equal in a runtime, or was not run there."""
    if not ran.failed:
        # The message says how to install a runtime; of one that is here, it says why it did not run the model.
        return diagnostic("SG711", ran.told, "main", severity="warning", help="")
    code = "SG709" if ran.answer == "refused" else "SG710"
    first = ran.first_node
    if first is None:
        return diagnostic(code, ran.told, "main", help="")
    label = first.location.removeprefix("main/")
    return diagnostic(code, ran.told, first.location, help="", node=label, operator=first.operator)


def judge_node(node: NodeTraits, target: Target) -> Judged:
    """Return what is known of a node."""
    if node.fault:
        return Judged("refuses", node.fault)
    if node.is_layer:
        return target.layers.judge(node.label, node.own)
    return target.judge(node.operator, node.own, node.factors)


def blamed(node: NodeTraits, target: Target) -> tuple[Factor, ...]:
    """Return the factors of a node because of which a target does not read it."""
    judged = judge_node(node, target)
    return judged.factors if judged.verdict in ("refuses", "wrong") else ()


def failing(target: Target, node: NodeTraits) -> Target:
    """Return a target that reads no node of this kind, because one failed when it was run."""
    # Other nodes like it may run where the pattern that ends with it is what failed.
    kind = node.factors if ends_pattern(node.factors) else None
    return replace(target, failed_here=target.failed_here | {(node.operator, node.own, kind)})


def is_not_read(node: NodeTraits, target: Target) -> bool:
    """Return True for a node that a conversion has to write in another way: the target does not read it; or it is not
    known that the target reads it, and its parts go beyond the dimension, which the specification leaves open, or its
    operator is one of onnxruntime.
    """
    verdict = judge_node(node, target).verdict
    if verdict in ("refuses", "wrong"):
        return True
    is_foreign = node.node.domain == _OF_ONNXRUNTIME and not target.name.startswith("onnxruntime")
    return verdict != "reads" and (is_foreign or ("parts", "beyond") in node.factors)


class _Judged(NamedTuple):
    """The nodes of a kind, their positions, and what is known of them."""

    nodes: Sequence[NodeTraits]
    positions: Sequence[int]
    result: Judged


def _judged_kind(examined: Examined, positions: Sequence[int], target: Target) -> _Judged:
    nodes = [examined.nodes[position] for position in positions]
    return _Judged(nodes, positions, judge_node(nodes[0], target))


# A finding, with what sorts findings: those about nodes that are not read come first, and then graph order counts.
_Placed = tuple[tuple[int, int], Diagnostic]


def _not_read(judged: Iterable[_Judged], target: Target) -> Iterator[_Placed]:
    """Yield the findings about nodes that are not read, or not in every case: one for each split, one for all other
    nodes of an operator and of one reason, because what mends one of them mends all.
    """
    groups: dict[object, list[_Judged]] = {}
    for kind in judged:
        if kind.result.verdict in ("reads", "unmeasured"):
            continue
        if kind.nodes[0].detail is None:
            groups.setdefault((kind.nodes[0].operator, kind.result), []).append(kind)
            continue
        for node, position in zip(kind.nodes, kind.positions, strict=True):
            yield (0, position), _about_kind(_Judged([node], [position], kind.result), 1, target)
    for group in groups.values():
        kind = group[0]
        yield (0, kind.positions[0]), _about_kind(kind, sum(len(each.nodes) for each in group), target)


def _about_kind(kind: _Judged, number: int, target: Target) -> Diagnostic:
    """Return the finding about nodes of an operator, all for one reason. number: how many."""
    node, result = kind.nodes[0], kind.result
    others = f" ({_nodes(number)})" if number > 1 else ""
    if result.verdict == "some":
        text = f"{target.label} does not read every {node.operator}{others}: {result.why}"
        return _about(node, "SG707", text, severity="warning")
    code, verb = _code_and_verb(result)
    # The reason of a measured operator begins with its name.
    said = result.why.removeprefix(node.operator)
    subject = f"{node.operator}{said}{others}" if said != result.why else f"{node.operator}{others}: {result.why}"
    return _about(node, code, f"{target.label} {verb} {subject}")


def _code_and_verb(result: Judged) -> tuple[str, str]:
    """Return the code of what is not read, and the verb of its message."""
    if result.verdict == "wrong":
        return "SG702", "silently computes wrong results of"
    return ("SG703", "dies of") if result.dies else ("SG701", "refuses")


def _about(node: NodeTraits, code: str, message: str, *, severity: Severity = "error", help: str = "") -> Diagnostic:
    """Return a finding about a node. What to do is said once for all findings, by `advice`."""
    label = node_label(node.node, node.index)
    return diagnostic(code, message, node.location, severity=severity, help=help, node=label, operator=node.label)


def _nodes(number: int) -> str:
    return f"{number} nodes"


def _against_schema(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Find nodes with element types or outputs that only the schema forbids: onnxruntime checks the schema, other
    runtimes may not.
    """
    outputs = [
        finding
        for finding in examined.walked.diagnostics
        if finding.code in ("SG209", "SG212") and finding.severity == "warning"
    ]
    for finding in [*examined.walked.lenient, *outputs]:
        if target.name == "onnxruntime":
            advice = "Cast the input, or upgrade the model to an opset that allows the type."
            advice = finding.help if finding in outputs else advice
            text = f"{target.label} refuses the node: {finding.message}"
            yield replace(finding, code="SG701", severity="error", message=text, help=advice, target=target.key)
        else:
            yield finding


def _empty_at_run_time(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Return one note for all parts whose length is known only at run time, if the target does not read empty parts."""
    for node in examined.nodes:
        lengths = () if node.detail is None else node.detail.lengths
        if node.is_layer or all(isinstance(length, int) for length in lengths):
            continue
        if judge_node(node, target).verdict in ("refuses", "wrong"):
            continue
        empty = replace(node, factors=tuple(sorted((*node.factors, ("parts.empty", "yes")))))
        result = judge_node(empty, target)
        if result.verdict in ("refuses", "wrong"):
            code, verb = _code_and_verb(result)
            text = f"{target.label} {verb} {result.why}, which may be so at run time"
            advice = "Run the model with dimensions that leave no part empty."
            yield _about(node, code, text, severity="info", help=advice)
            return


def _standing_for(target: Target) -> Iterator[Diagnostic]:
    """Say so if the target stands for a version that was not measured."""
    if not target.is_measured_version:
        text = f"{target.title} {target.asked} was not measured; the answers are those of {target.label}"
        yield diagnostic("SG708", text, "main", severity="info", help="")


def _limits(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Report the opset and the IR version if the target does not support them yet."""
    if target.newest_opset is not None and examined.opset > target.newest_opset:
        text = f"{target.label} reads opsets up to {target.newest_opset}; the model has opset {examined.opset}"
        yield diagnostic("SG704", text, "main", help="")
    for domain, version in examined.walked.opset.items():
        if target.refuses_import(domain, version):
            said = target.operators.entries[imports_label(domain, version)].said
            text = f"{target.label} refuses models that import {domain} {version}: {said}"
            yield diagnostic("SG704", text, "main", help="")
    unnamed = [value.name for value, _ in unnamed_dimensions(examined.model)] if target.refuses_unnamed else ()
    if unnamed:
        text = f"{target.label} refuses inputs with a dimension that has neither a size nor a name: {unnamed[0]!r}"
        yield diagnostic("SG701", text, "main", help="")
    untrue = list(untrue_shapes(examined.model, examined.walked)) if target.refuses_untrue_shapes else ()
    if untrue:
        text = f"{target.label} believes declared shapes, and that of {untrue[0].name!r} does not hold in every run"
        yield diagnostic("SG701", text, "main", help="")
    newest, own = target.newest_ir_version, examined.model.ir_version
    if newest is not None and own > newest:
        text = f"{target.label} reads IR versions up to {newest}; the model has IR version {own}"
        yield diagnostic("SG704", text, "main", help="")


def unnamed_dimensions(model: ModelProto) -> Iterator[tuple[ValueInfoProto, TensorShapeProto.Dimension]]:
    """Yield the dimensions of the inputs of a model that have neither a size nor a name, each with its input."""
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.dim_param and not dim.HasField("dim_value"):
                yield value, dim


def _unmeasured(judged: Iterable[_Judged], target: Target) -> Iterator[_Placed]:
    """Yield one note about all that was not measured, at the first node that has it: one piece of advice is enough."""
    severity: Severity = "info" if target.measured else "warning"
    groups: dict[str, list[_Judged]] = {}
    for kind in judged:
        if kind.result.verdict == "unmeasured":
            groups.setdefault(kind.result.why, []).append(kind)
    if not groups:
        return
    counts = {why: sum(len(kind.nodes) for kind in kinds) for why, kinds in groups.items()}
    first = next(iter(groups.values()))[0]
    node, number = first.nodes[0], sum(counts.values())
    # What most nodes have is told first.
    named = sorted(counts, key=lambda why: -counts[why])
    told = [why if counts[why] == 1 or len(named) == 1 else f"{why} ({_nodes(counts[why])})" for why in named]
    others = f" ({_nodes(number)})" if number > 1 else ""
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    text = f"it is not known whether {target.label} reads this{others}: {'; '.join(told[:_MOST_TOLD])}{more}"
    yield (1, first.positions[0]), _about(node, "SG705", text, severity=severity)
