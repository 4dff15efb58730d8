"""The memo of visits: a node that equals an earlier node gets the results of that node. Models repeat their layers."""

from __future__ import annotations

from splitgraph.inference.walk_results import Visit

# What equal nodes have in common. For a Constant: its attribute. For other nodes: the operator, the number of outputs,
# one object for what is known of each input, and the bytes of each attribute.
Key = bytes | tuple[object, ...]


class VisitMemo:
    """The visits of one graph that may be repeated.

    What a visit may depend on. Its key: the operator, its attributes, how many outputs the node has, and what is known
    of each input: type, elements, members of a sequence, whether it is there at all. What is the same for every node of
    the graph: the imported opsets, the attributes of the call that is walked, the options of the inference. And what is
    known of the symbols (`Facts`). A rule reads nothing else: `NodeContext` offers nothing else, but names and the
    location, which are for messages.

    What makes a visit unrepeatable. An effect: anything but saying what the outputs are, counted in `WalkState.effects`
    (a finding, a new symbol, elements of an input that were not looked at before). A fact that was learnt
    (`Facts.version`). An output that is left out; a body or a call, whose nodes are visits of their own (a call has a
    memo of its own, `call_memo.py`).

    When a visit is forgotten. An answer of Facts that is not a proof may be another one when more is known of the
    symbols; such answers are counted in `Facts.open_questions`. A visit during which none was given is settled: it
    holds to the end of its graph. Every other visit is forgotten as soon as a fact is learnt.
    """

    # False only in the tests that compare an inference with this memo and without it.
    remembers = True

    def __init__(self) -> None:
        # All that may be repeated now, which the walk looks up by itself: a call for every node would cost too much.
        self.visits: dict[Key, Visit] = {}
        self._settled: dict[Key, Visit] = {}

    def keep(self, key: Key, visit: Visit, *, settled: bool) -> None:
        """Remember a visit that only inferred outputs. settled: no question of it stayed open."""
        if not self.remembers:
            return
        self.visits[key] = visit
        if settled:
            self._settled[key] = visit

    def forget_unsettled(self) -> None:
        """Forget visits whose results may change, because more is known of the symbols now."""
        self.visits.clear()
        self.visits.update(self._settled)

    def forget_all(self) -> None:
        """Forget every visit, when the graph has been walked."""
        self.visits.clear()
        self._settled.clear()
