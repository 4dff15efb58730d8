"""Find the first node that a runtime refuses or computes wrong, also inside of calls of local functions.

A call that fails says nothing of the functions that a runtime reads: the model with the functions' nodes in place of
the calls is searched, too. If its first node is one of those that the call stands for, that node is in the way. If not,
the calls themselves are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx

from splitgraph.conversion.inlining import called_nodes, without_functions
from splitgraph.inference import infer_model
from splitgraph.runtimes.runners.result import FirstNode
from splitgraph.verification.in_runtime.cases import Case
from splitgraph.verification.in_runtime.first_node import Search
from splitgraph.verification.in_runtime.hosts import Host
from splitgraph.verification.in_runtime.prefixes import CutModel


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches models for their first nodes. Fields as those of `Search`."""

    case: Case
    reference: Host
    host: Host
    seconds: float
    deadline: float

    def first_node(self, model: onnx.ModelProto) -> FirstNode | None:
        """Return the first node, with the location "main/call/node" if it is inside of a call; None if no part of the
        model fails, or the time is over.
        """
        first = self._of_main_graph(model)
        if first is None or not model.functions:
            return first
        inlined = without_functions(model)
        places = called_nodes(model, inlined).locations
        if not any(_is_inside(location, first) for location in places.values()):
            return first
        inner = self._of_main_graph(inlined)
        if inner is None or not _is_inside(places.get(inner.location, ""), first):
            return first
        return replace(
            inner,
            location=places[inner.location],
            number=first.number,
            nodes=first.nodes,
            cause=places.get(inner.cause, inner.cause),
            until=places.get(inner.until, inner.until),
        )

    def _of_main_graph(self, model: onnx.ModelProto) -> FirstNode | None:
        cut = CutModel(model, infer_model(model, fill=False))
        return Search(cut, self.case, self.reference, self.host, self.seconds, self.deadline).find()


def _is_inside(location: str, call: FirstNode) -> bool:
    """Return True for the location of a node that a call stands for."""
    return location.startswith(f"{call.location}/")
