"""One graph while it is walked, as the parts of the walk see it; `walk.py` has the walk itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from splitgraph.diagnostics import diagnostic
from splitgraph.dim import Facts
from splitgraph.graph.nesting import MOST_NESTED
from splitgraph.graph.scopes import GraphPath
from splitgraph.inference.call_memo import CallMemo
from splitgraph.inference.graph_values import GraphValues
from splitgraph.inference.steps import Steps, finish
from splitgraph.inference.walk_state import WalkState
from splitgraph.onnx_proto import AttributeProto, FunctionProto, NodeProto

Bindings = Mapping[str, AttributeProto]


class GraphWalk(GraphValues, ABC):
    """One graph, or one call of a function, being inferred.

    parent: as of the values. bindings: attributes of the call for the body of a function; None for a body that is
    walked as written, apart from any call. calls: those that were walked with these facts; None where they are new.
    depth: how many bodies of nodes this is in, those around calls of functions included.
    """

    def __init__(
        self,
        state: WalkState,
        path: GraphPath,
        location: str,
        imports: Mapping[str, int],
        facts: Facts,
        *,
        parent: GraphWalk | None = None,
        bindings: Bindings | None = None,
        calls: CallMemo | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(state, path, location, imports, facts, parent)
        self.bindings = bindings
        self.depth = depth
        self.calls: CallMemo = calls or CallMemo(facts, None if parent is None else parent.calls)

    @abstractmethod
    def inner(self, index: int, attribute: str, position: int, location: str) -> GraphWalk:
        """The walk over a graph in an attribute of a node; what it requires of symbols stays within it."""

    @abstractmethod
    def called(self, function: FunctionProto, location: str, bindings: Bindings | None) -> GraphWalk:
        """The walk over the body of a function for a call; what it requires of symbols holds here."""

    @abstractmethod
    def steps(self, nodes: Sequence[NodeProto]) -> Steps:
        """As `run`, but the bodies of functions are left to the caller."""

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Infer every node in order; in topological order where nodes of the model are known to be out of it."""
        finish(self.steps(nodes))

    def may_look_into(self, location: str) -> bool:
        """False, and a finding, for the bodies of a node that are nested too deep."""
        if self.depth >= MOST_NESTED:
            self.state.note_too_deep(location)
        return self.depth < MOST_NESTED

    def check_function_outputs(self, function: FunctionProto) -> None:
        """Report an output that the function's body does not define; called once the body has been walked."""
        for name in function.output:
            if not self.is_defined(name):
                text = f"the output {name!r} of the function {function.name!r} is defined by nothing in its body"
                self.report(diagnostic("SG105", text, self.location))
