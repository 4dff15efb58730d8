"""The memo of visits: a node that equals an earlier node gets the results of that node. Models repeat their layers."""

from __future__ import annotations

from collections.abc import Mapping

from splitgraph.dim import Facts
from splitgraph.inference.walk_results import Visit

# What equal nodes have in common. For a Constant: its attribute. For other nodes: the operator, the number of outputs,
# one object for what is known of each input, and the bytes of each attribute.
Key = bytes | tuple[object, ...]

# What a visit depends on besides its key and what is known of symbols: the opset imports of its graph, and whether
# findings are reported there.
Setting = tuple[object, ...]


def setting_of(imports: Mapping[str, int], is_reported: tuple[bool, bool]) -> Setting:
    """The setting of a graph."""
    return (is_reported, *sorted(imports.items()))


class SettledVisits:
    """The settled visits of graphs that share the same facts: the main graph and the functions that it calls.

    A settled visit holds whatever else becomes known. So it may be repeated in every graph with the same setting and
    with these facts, or with facts of a body, which are on top of these. Visits in a body that has learnt nothing of
    its own are kept with the facts around it. They are forgotten when every graph has been walked.
    """

    def __init__(self, facts: Facts, around: SettledVisits | None) -> None:
        self._facts = facts
        self._around = around
        self._visits: dict[Setting, dict[Key, Visit]] = {}

    def find(self, setting: Setting, key: Key) -> Visit | None:
        """The visit with this key here or around."""
        memo: SettledVisits | None = self
        while memo is not None:
            visits = memo._visits.get(setting)
            if visits is not None and key in visits:
                return visits[key]
            memo = memo._around
        return None

    def keep(self, setting: Setting, key: Key, visit: Visit) -> None:
        """Remember a settled visit."""
        memo, version = self, self._facts.version
        while memo._around is not None and memo._around._facts.version == version:
            memo = memo._around
        memo._visits.setdefault(setting, {})[key] = visit

    def forget(self) -> None:
        """Forget every visit."""
        self._visits.clear()


class VisitMemo:
    """The visits that may be repeated in one graph.

    What a visit may depend on. Its key: the operator, its attributes, how many outputs the node has, and what is known
    of each input: type, elements, members of a sequence, whether it is there at all. What is the same for every node of
    the graph: the imported opsets and whether findings are reported (`Setting`), the attributes of the call that is
    walked, the options of the inference. And what is known of the symbols (`Facts`). A rule reads nothing else:
    `NodeContext` offers nothing else, but names and the location, which are for messages.

    What makes a visit unrepeatable. An effect: anything but saying what the outputs are, counted in `WalkState.effects`
    (a finding, a new symbol, elements of an input that were not looked at before). A fact that was learnt
    (`Facts.version`). An output that is left out; a body or a call, whose nodes are visits of their own (a call has a
    memo of its own, `call_memo.py`).

    When a visit is forgotten. An answer of Facts that is not a proof may be another one when more is known of the
    symbols; such answers are counted in `Facts.open_questions`. A visit during which none was given is settled: it
    is kept for other graphs, too (`SettledVisits`). Every other visit is forgotten as soon as a fact is learnt, and at
    the end of its graph.
    """

    # False only in the tests that compare an inference with this memo and without it.
    remembers = True

    def __init__(self, settled: SettledVisits, setting: Setting) -> None:
        # Visits by key, which the walk looks up by itself: a call for every node would cost too much.
        self.visits: dict[Key, Visit] = {}
        self._settled = settled
        self._setting = setting

    def find(self, key: Key) -> Visit | None:
        """A settled visit that `visits` does not hold yet, or no longer."""
        visit = self._settled.find(self._setting, key)
        if visit is not None:
            self.visits[key] = visit
        return visit

    def keep(self, key: Key, visit: Visit, *, settled: bool) -> None:
        """Remember a visit that only inferred outputs. settled: no question of it stayed open, and it depends on no
        attribute of the call that is walked.
        """
        if not self.remembers:
            return
        self.visits[key] = visit
        if settled:
            self._settled.keep(self._setting, key, visit)

    def forget(self) -> None:
        """Forget visits that are not settled: because more is known of the symbols now, or at the end of the graph."""
        self.visits.clear()
