"""The interface of the walk over one graph, for the modules that infer nodes; `walk.py` implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from splitgraph.diagnostics import diagnostic
from splitgraph.dim import Facts
from splitgraph.graph.nesting import MOST_NESTED
from splitgraph.graph.scopes import GraphPath
from splitgraph.inference.graph_values import GraphValues
from splitgraph.inference.memo import Memo
from splitgraph.inference.steps import Steps, finish
from splitgraph.inference.walk_state import WalkState
from splitgraph.onnx_proto import AttributeProto, FunctionProto, NodeProto

Bindings = Mapping[str, AttributeProto]


class GraphWalk(GraphValues, ABC):
    """The walk over one graph, or over the body of a function for one call.

    parent: the walk over the enclosing graph. bindings: the attributes of the call; None for a function body that is
    walked as written, apart from any call. memo: that of these facts; None for new facts. depth: how many bodies of
    nodes enclose this graph, counting those around calls of functions.
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
        memo: Memo | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(state, path, location, imports, facts, parent)
        self.bindings = bindings
        self.depth = depth
        self.memo: Memo = memo or Memo(facts, None if parent is None else parent.memo)

    @abstractmethod
    def inner(self, index: int, attribute: str, position: int, location: str) -> GraphWalk:
        """The walk over a graph in an attribute of a node; what it requires of symbols stays within it."""

    @abstractmethod
    def called(self, function: FunctionProto, location: str, bindings: Bindings | None) -> GraphWalk:
        """The walk over the body of a function for a call; what it requires of symbols holds here."""

    @abstractmethod
    def steps(self, nodes: Sequence[NodeProto]) -> Steps:
        """As `run`, in steps: the caller walks the bodies of functions."""

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Infer every node in the order of the file; in topological order when the model's nodes are known to be out of
        order.
        """
        finish(self.steps(nodes))

    def may_look_into(self, location: str) -> bool:
        """True unless the bodies of a node are nested too deep, which is reported."""
        if self.depth >= MOST_NESTED:
            self.state.note_too_deep(location)
        return self.depth < MOST_NESTED

    def check_function_outputs(self, function: FunctionProto) -> None:
        """Report an output that the function's body does not define; called once the body has been walked."""
        for name in function.output:
            if not self.is_defined(name):
                text = f"nothing in the body of the function {function.name!r} defines its output {name!r}"
                self.report(diagnostic("SG105", text, self.location))
