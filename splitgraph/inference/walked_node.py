"""A node during the walk: what its rule reads, and what the walk reads afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from splitgraph.attributes import UNRESOLVED, attribute_value
from splitgraph.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbols_of
from splitgraph.graph.scopes import called_function, node_label
from splitgraph.inference.advice import advise
from splitgraph.inference.broadcast_assumptions import is_nonempty, larger_of
from splitgraph.inference.context import Body, Relation
from splitgraph.inference.define_graph import define_graph_values
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.knowledge import OMITTED, Knowledge
from splitgraph.inference.open_branches import OpenBranches
from splitgraph.inference.simplified_types import simplified
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.onnx_proto import AttributeProto, GraphProto, NodeProto
from splitgraph.value_type import MAX_RANK, UNKNOWN, Contents, SequenceInfo, ValueType


class WalkedNode:
    """One node of a walk. `NodeContext` documents the methods that rules use.

    walk: the walk over the node's graph; rules do not read it. given: what is known of each input. errors: codes of the
    errors found at the node. obligations: those that this node was the first to require. contents_out, sequences_out:
    what is known of the outputs, by position. split: the details of a split node.
    """

    __slots__ = (
        "_attributes",
        "_more_outputs",
        "contents_out",
        "errors",
        "given",
        "index",
        "inputs",
        "node",
        "obligations",
        "opset",
        "sequences_out",
        "since_version",
        "split",
        "walk",
    )

    def __init__(
        self, walk: GraphWalk, node: NodeProto, opset: int, since_version: int, index: int, given: list[Knowledge]
    ) -> None:
        self.walk = walk
        self.index = index
        self.errors: list[str] = []
        self.obligations: list[Obligation] = []
        self.node = node
        self.opset = opset
        self.since_version = since_version
        self.given = given
        self.inputs: list[ValueType | None] = [known.type for known in given]
        self.split: SplitDetail | None = None
        self.contents_out: dict[int, Contents] = {}
        self.sequences_out: dict[int, SequenceInfo] = {}
        self._attributes: Mapping[str, AttributeProto] | None = None
        self._more_outputs = 0

    @property
    def location(self) -> str:
        return f"{self.walk.location}/{node_label(self.node, self.index)}"

    @property
    def ir_version(self) -> int:
        return self.walk.state.model.ir_version

    @property
    def facts(self) -> Facts:
        return self.walk.facts

    @property
    def outputs(self) -> Sequence[str]:
        return [*self.node.output, *[""] * self._more_outputs] if self._more_outputs else self.node.output

    @property
    def input_count(self) -> int:
        return len(self.given)

    @property
    def empty_chunks(self) -> str:
        return self.walk.state.empty_chunks

    # Inputs ----------------------------------------------------------------------------------------------------------

    def input(self, index: int) -> ValueType:
        return (self.inputs[index] or UNKNOWN) if index < len(self.inputs) else UNKNOWN

    def has_input(self, index: int) -> bool:
        return index < len(self.given) and self.given[index] is not OMITTED

    def contents(self, index: int, *, needed: bool = False) -> Contents | None:
        if index >= len(self.given):
            return None
        known = self.given[index]
        if known.unread:
            computed = None if needed else self.walk.computed_of(self.node.input[index])
            if computed is not None and computed.is_float:
                self.walk.state.effects += 1
                return None
            known = self.given[index] = self.walk.read(self.node.input[index])
        return known.contents

    def sequence(self, index: int) -> SequenceInfo | None:
        return self.given[index].sequence if index < len(self.given) else None

    def refine_input(self, index: int, contents: Contents) -> None:
        self.given[index] = self.walk.refine(self.node.input[index], contents)

    # Attributes ------------------------------------------------------------------------------------------------------

    def attributes(self) -> Mapping[str, AttributeProto]:
        if self._attributes is None:
            self._attributes = {attribute.name: attribute for attribute in self.node.attribute}
        return self._attributes

    def attribute_names(self) -> Iterable[str]:
        return self.attributes().keys()

    def repair(self, dropped: Iterable[str], added: AttributeProto | None, more_outputs: int) -> None:
        """Read the node as if it were without some of its attributes, with one that it lacks, and with more outputs."""
        self._more_outputs += more_outputs
        kept = {name: held for name, held in self.attributes().items() if name not in dropped}
        self._attributes = kept if added is None else {**kept, added.name: added}

    def attribute(self, name: str, default: Any = None) -> Any:
        if self.is_unresolved(name):
            return UNRESOLVED
        written = self.attributes().get(name)
        given = None if written is None else self.bound(written)
        return default if given is None else attribute_value(given)

    def bound(self, written: AttributeProto) -> AttributeProto | None:
        if not written.ref_attr_name:
            return written
        return (self.walk.bindings or {}).get(written.ref_attr_name)

    def is_unresolved(self, name: str) -> bool:
        written = self.attributes().get(name) if self.walk.bindings is None else None
        return written is not None and bool(written.ref_attr_name)

    def has_attribute(self, name: str) -> bool:
        written, bound = self.attributes().get(name), self.walk.bindings
        if written is None or not written.ref_attr_name:
            return written is not None
        return bound is None or written.ref_attr_name in bound

    # Dimensions ------------------------------------------------------------------------------------------------------

    def fresh(self) -> Dim:
        return self.walk.fresh()

    def is_generated(self, dim: DimLike | None) -> bool:
        return isinstance(dim, Dim) and str(dim) in self.walk.state.generated

    def is_of_inputs(self, dim: DimLike) -> bool:
        return symbols_of(dim) <= self.walk.state.input_dimensions

    def complete(self, value: ValueType) -> ValueType:
        return self.walk.complete(value)

    def require(
        self,
        lhs: DimLike,
        relation: Relation,
        rhs: DimLike,
        *,
        code: str = "SG302",
        message: str | Callable[[], str] | None = None,
    ) -> bool:
        obligation, advise = Obligation(lhs, relation, rhs), partial(self._help, code)
        held = self.walk.require(obligation, self.location, code, message, self.obligations, advise)
        if not held:
            self.errors.append(code)
        return held

    def require_if_possible(self, lhs: DimLike, relation: Relation, rhs: DimLike) -> bool:
        return self.walk.assume(Obligation(lhs, relation, rhs), self.location, self.obligations) != "contradiction"

    def larger_of(self, a: Dim, b: Dim) -> DimLike | None:
        return larger_of(self.walk.state, self.facts, a, b, self.location)

    def is_nonempty(self, dim: Dim) -> bool:
        return is_nonempty(self.walk.state, self.facts, dim, self.location)

    def broadcast_symbol(self, a: Dim, b: Dim) -> Dim | None:
        return self.walk.state.broadcast_cache.get(frozenset((a, b)))

    def note_broadcast(self, a: Dim, b: Dim, made: Dim) -> None:
        self.walk.state.note_broadcast(a, b, made, self.location)

    def broadcast_operands(self, dim: DimLike) -> tuple[Dim, Dim] | None:
        found = self.walk.state.broadcasts.get(str(dim))
        return self.walk.state.larger_ones.get(dim) if found is None else found[:2]

    # What the node gives ---------------------------------------------------------------------------------------------

    def find(self, code: str, message: str, *, severity: Severity = "error") -> Diagnostic:
        if severity == "error":
            self.errors.append(code)
        found = diagnostic(code, message, self.location, severity=severity, help=self._help(code, message))
        self.walk.report(found)
        return found

    def _help(self, code: str, message: str) -> str | None:
        """Advice about this node; None where that of the code fits every finding."""
        return advise(self.node, message) if code == "SG302" else None

    def tolerate(self, code: str, message: str, run_by: str, reading: str = "alike") -> None:
        text = f"{message}. The node runs {reading} in {run_by}; other runtimes may refuse it"
        self.walk.detail.tolerated.append(self.find(code, text, severity="warning"))

    def set_contents(self, index: int, contents: Contents | None) -> None:
        if contents is not None and len(contents.shape) <= MAX_RANK:
            self.contents_out[index] = contents

    def set_sequence(self, index: int, info: SequenceInfo) -> None:
        self.sequences_out[index] = info

    # Bodies ----------------------------------------------------------------------------------------------------------

    def walk_body(
        self,
        attribute: str,
        inputs: Sequence[ValueType | None],
        empty: Iterable[int] = (),
        held: Sequence[Contents | None] = (),
    ) -> Body | None:
        graph = self.attribute(attribute)
        if not isinstance(graph, GraphProto) or not self.walk.may_look_into(self.location):
            return None
        body = self.walk.inner(self.index, attribute, 0, f"{self.location}/{attribute}")
        define_graph_values(body, graph, inputs)
        for position in empty:
            body.sequences[graph.input[position].name] = SequenceInfo(0, ())
        for value, contents in zip(graph.input, held, strict=False):
            if contents is not None:
                body.constants[value.name] = contents
        body.run(graph.node)
        for value in graph.output:
            if not body.is_defined(value.name):
                self.find("SG105", f"nothing in the {attribute} defines its output {value.name!r}")
        names = [value.name for value in graph.output]
        # What must hold in the body is not known around it, so that its dimensions are as plain as they can be here.
        types = [simplified(body.type_of(name), body.facts) for name in names]
        given = [body.type_of(value.name) for value in graph.input]
        return Body(types, [body.contents_of(name) for name in names], given)

    def is_call(self, node: NodeProto) -> bool:
        return called_function(node) in self.walk.state.functions

    @property
    def is_quiet(self) -> bool:
        return self.walk.state.quiet > 0

    def quietly(self) -> AbstractContextManager[None]:
        return self.walk.state.quietly()

    def muted(self, never_runs: bool) -> AbstractContextManager[None]:
        return self.walk.state.muting(never_runs)

    @property
    def branches(self) -> OpenBranches:
        return self.walk.state.branches

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        self.walk.state.avoid(found)

    def release(self, found: Sequence[Diagnostic]) -> None:
        self.walk.state.release(found)
