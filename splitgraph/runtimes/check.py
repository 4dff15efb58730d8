"""Check a model for a target: which nodes the runtime refuses or computes wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.input_defaults import told_defaults
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.options import STRICT, Leeway
from splitgraph.runtimes.node_traits import NodeTraits, traits_of
from splitgraph.runtimes.target import Answer, Refusal, Target
from splitgraph.runtimes.traits import FORMS, MODIFIERS, title

_CODES: dict[Answer, str] = {"refuses": "SG701", "wrong": "SG702", "rank": "SG702", "dies": "SG703"}
_VERBS: dict[Answer, str] = {
    "refuses": "refuses",
    "wrong": "silently computes wrong results of",
    "rank": "gives results of another rank for",
    "dies": "dies of",
}


class Examined(NamedTuple):
    """A model as checks see it: its inference, and the nodes with their traits."""

    model: ModelProto
    walked: Walked
    nodes: Sequence[NodeTraits]

    @property
    def errors(self) -> list[Diagnostic]:
        """Return the errors of the model itself."""
        return [finding for finding in self.walked.diagnostics if finding.severity == "error"]

    @property
    def notes(self) -> list[Diagnostic]:
        """Return the findings that are no errors: stale acceptances, defaults taken for constants, and equal
        initializers of one name.
        """
        assumed = told_defaults(self.model, assumed=self.walked.leeway.assume_defaults)
        return [*self.walked.stale, *assumed, *self.walked.doubled]

    @property
    def opset(self) -> int:
        """Return the opset of ai.onnx, 0 if none is imported."""
        return self.walked.opset.get("", 0)


def examine(model: ModelProto, leeway: Leeway = STRICT) -> Examined:
    """Infer a model and find the traits of its nodes; the model is not changed. leeway: what the user permits."""
    walked = walk_model(model, leeway)
    return Examined(model, walked, list(traits_of(model, walked)))


def check_model(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Return the errors of the model itself, then what the target does not read in the model, in graph order."""
    yield from examined.errors
    yield from examined.notes
    yield from _against_schema(examined, target)
    yield from _limits(examined, target)
    told: set[frozenset[str]] = set()
    unknown: dict[str, NodeTraits] = {}
    for node in examined.nodes:
        for failure in target.failures_of(node.traits):
            is_split = any(trait in FORMS or trait in MODIFIERS for trait in failure.traits)
            # An operator, or a function, is told of once: what mends one node of it mends all.
            if is_split and "local-function" not in failure.traits:
                yield _finding(node, failure, target)
            elif failure.traits not in told:
                told.add(failure.traits)
                yield _finding(node, failure, target)
        for trait in target.unknown(trait for trait in node.traits if trait in FORMS or trait in MODIFIERS):
            unknown.setdefault(trait, node)
    yield from _not_known(unknown, target)
    yield from _empty_at_run_time(examined, target)


def _against_schema(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Find nodes with element types or numbers of outputs that only the schema forbids: onnxruntime checks the schema,
    other runtimes may not.
    """
    missing = [
        finding for finding in examined.walked.diagnostics if (finding.code, finding.severity) == ("SG209", "warning")
    ]
    for finding in [*examined.walked.lenient, *missing]:
        if target.name == "onnxruntime":
            lacks_outputs = finding.code == "SG209"
            advice = "Cast the input, or upgrade the model to an opset that allows the type."
            advice = finding.help if lacks_outputs else advice
            yield diagnostic(
                "SG701", f"{target.label} refuses the node: {finding.message}", finding.location, help=advice
            )
        else:
            yield finding


def _empty_at_run_time(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Return one note for all parts whose length is known only at run time, if the target does not read empty parts."""
    failure = next((refusal for refusal in target.failures if refusal.traits == {"part-empty"}), None)
    open_lengths = [
        node
        for node in examined.nodes
        if node.detail is not None and not all(isinstance(length, int) for length in node.detail.lengths)
    ]
    if failure is not None and open_lengths:
        text = f"{target.label} {_VERBS[failure.answer]} parts that are empty at run time"
        advice = "Run the model with dimensions of which each part gets something."
        yield diagnostic(_CODES[failure.answer], text, open_lengths[0].location, severity="info", help=advice)


def _limits(examined: Examined, target: Target) -> Iterator[Diagnostic]:
    """Report the opset and the IR version if the target does not support them yet."""
    help = f"Run splitgraph convert --target {target.key}."
    if target.newest_opset is not None and examined.opset > target.newest_opset:
        text = f"{target.label} reads opsets up to {target.newest_opset}; the model has opset {examined.opset}"
        yield diagnostic("SG704", text, "main", help=help)
    newest, own = target.newest_ir_version, examined.model.ir_version
    if newest is not None and own > newest:
        text = f"{target.label} reads IR versions up to {newest}; the model has IR version {own}"
        yield diagnostic("SG704", text, "main", help=help)


def _finding(node: NodeTraits, failure: Refusal, target: Target) -> Diagnostic:
    subject = " + ".join(map(title, sorted(failure.traits, key=lambda trait: (trait not in FORMS, trait))))
    if len(failure.traits) == 1 and subject != node.label and not failure.traits & FORMS.keys():
        subject = f"{node.label} with {subject}"
    text = f"{target.label} {_VERBS[failure.answer]} {subject}"
    if failure.note:
        text += f": {failure.note}"
    return diagnostic(
        _CODES[failure.answer], text, node.location, help=f"Run splitgraph convert --target {target.key}."
    )


def _not_known(unknown: Mapping[str, NodeTraits], target: Target) -> Iterator[Diagnostic]:
    """Yield one note for each trait that was not measured, at the first node that has it."""
    severity: Severity = "info" if target.measured else "warning"
    for trait, node in unknown.items():
        text = f"it is not known whether {target.label} reads this: {title(trait)}"
        yield diagnostic("SG705", text, node.location, severity=severity)
