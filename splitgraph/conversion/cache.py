"""The cache of conversions: a node becomes what an earlier node of the same kind became. Models repeat their layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import NamedTuple

from splitgraph.conversion.builders import prefix_of
from splitgraph.conversion.known_values import KnownValues, reads_left_out
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Replacement
from splitgraph.inference.walk_results import Visit
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import AttributeProto, NodeProto

# Equal for nodes of one kind: the visit of inference, and which names of the node are equal.
Key = tuple[Visit, tuple[int, ...]]

# Longer constants are not compared: reading them for every node takes longer than converting the node.
_MOST_CONSTANT_BYTES = 4096
# Entries for one key, which differ in the constants that the nodes read.
_MOST_ENTRIES = 8
# What a node becomes that needs no edit.
KEPT = Replacement(None)


class NameLog(FreshNames):
    """Fresh names, recorded together with the hints that they were made from."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self.hints: dict[str, str] = {}

    def new(self, hint: str) -> str:
        """Return a new name that begins with the hint."""
        name = self._names.new(hint)
        self.hints[name] = hint
        return name


class _EntryNode(NamedTuple):
    """A node with numbers in place of names; a constant keeps its name. inputs, outputs: None for those of the node
    itself. name: -1 for the node itself, edited.
    """

    op_type: str
    inputs: Sequence[int | str] | None
    outputs: Sequence[int] | None
    attributes: dict[str, AttributeProto]
    name: int
    domain: str = ""


class _Entry(NamedTuple):
    """What a node became. The numbers of names: the node's inputs first, then its outputs, then the fresh names; -1 is
    "".

    read: by input, the fingerprint of the constant that the conversion looked at. hints: of the fresh names, without
    the prefix. nodes: None where the node is kept. why: the reason of the change.
    """

    read: dict[int, bytes]
    hints: Sequence[str]
    nodes: Sequence[_EntryNode] | None
    why: str


# What nodes became, by key: several entries serve nodes that read other constants.
Entries = dict[Key, list[_Entry]]


class ConversionCache:
    """What the nodes of one graph became: kept, edited, or replaced by other nodes.

    What a conversion may depend on. The key: a visit of inference, which stands for operator, attributes, which inputs
    and outputs the node has, and their types (`inference/memo.py`); and which of them have the same name. The
    constants that the conversion looked at (`KnownValues.asked`): an entry holds their fingerprints and serves only
    nodes whose constants have the same. What is the same for all nodes of the graph: both opsets, what inference knows
    of the enclosing graphs, whether the graph belongs to a function. Nothing else: the names of values and nodes, and
    the location appear in results only where an entry has numbers for them.

    What makes a node uncacheable. It has no visit, or reads an input of the function that some call omits. Its
    conversion failed (except for the opset where it must stop), asked who reads an output, looked at a constant that is
    no input of the node or has more than 4096 bytes, wrote subgraphs, or named a value in its reason.

    What the graphs of functions have in common. Functions that import the same opset, and whose calls omit no input,
    share the entries of visits, which inference shares, too: a visit that depends on an attribute of the call is of one
    graph. An entry is not shared if it names a constant of its graph, or if an element type was assumed, which each
    graph reports.

    When an entry is forgotten. Never: inference is complete before conversion begins, so that nothing above changes.
    The cache belongs to one graph and one conversion and ends with them.

    One effect can be seen. Nodes that are replaced by means of an entry share its constants, each of which is otherwise
    written again for each node.
    """

    # False only in the tests that compare conversions with and without the cache.
    remembers = True

    def __init__(
        self,
        values: KnownValues,
        names: FreshNames,
        left_out: Collection[str] = (),
        shared: Entries | None = None,
    ) -> None:
        self.values = values
        self.names = names
        self.left_out = left_out
        self._own: Entries = {}
        # Those of other graphs, too; only its own where calls omit inputs, which a visit knows nothing of.
        self._shared = self._own if left_out or shared is None else shared
        # Visits whose nodes are kept. The loop over the nodes reads the set itself: a call for each node is slow.
        self.kept_visits: set[Visit] = set()
        self._stops: dict[Key, int] = {}

    def key_of(self, node: NodeProto, visit: Visit | None) -> Key | None:
        """Return the key of a node; None for a node that cannot be cached. visit: of inference, if there is one."""
        if visit is None or not self.remembers or reads_left_out(node, self.left_out):
            return None
        names = node.input[:] + node.output[:]
        # Equal names must be equal for the next node, too.
        return visit, () if len(set(names)) == len(names) else tuple(map(names.index, names))

    def find(self, key: Key | None, node: NodeProto, index: int) -> Replacement | None:
        """Return what becomes of a node, with new names, as of an earlier one; None without such an entry."""
        if key is None:
            return None
        for entry in chain(self._own.get(key, ()), self._shared.get(key, ()) if self._shared is not self._own else ()):
            read = entry.read
            if not read or all(self._fingerprint(node.input[place]) == known for place, known in read.items()):
                return self._recalled(entry, node, index)
        return None

    def _recalled(self, entry: _Entry, node: NodeProto, index: int) -> Replacement:
        if entry.nodes is None:
            return Replacement(None, (), entry.why) if entry.why else KEPT
        first = entry.nodes[0] if len(entry.nodes) == 1 else None
        if first is not None and first.inputs is None and first.outputs is None:
            # The usual case, without the detour over names. Nodes of one kind share their attributes: an edited node is
            # not changed any more.
            edited = Node(first.op_type, node.input[:], node.output[:], first.attributes, node, node.name)
            edited.domain = first.domain
            return Replacement([edited], (), entry.why)
        names = [*node.input[:], *node.output[:]]
        if entry.hints:
            prefix = prefix_of(node, index)
            names += [self.names.new(prefix + hint) for hint in entry.hints]
        # The number of "" is -1, which is the last place.
        names.append("")
        nodes = []
        for made in entry.nodes:
            inputs, outputs = made.inputs, made.outputs
            given = node.input[:] if inputs is None else [names[n] if isinstance(n, int) else n for n in inputs]
            results = node.output[:] if outputs is None else [names[number] for number in outputs]
            original, name = (node, node.name) if made.name == -1 else (None, names[made.name])
            nodes.append(Node(made.op_type, given, results, made.attributes, original, name, None, made.domain))
        return Replacement(nodes, (), entry.why)

    def _fingerprint(self, name: str) -> bytes | None:
        return self.values.fingerprint(name, _MOST_CONSTANT_BYTES)

    def keep_visit(self, visit: Visit | None) -> None:
        """Remember that all nodes of a visit are kept, unless calls omit inputs, which a visit knows nothing of."""
        if visit is not None and not self.left_out and self.remembers:
            self.kept_visits.add(visit)

    def keep(
        self,
        key: Key,
        node: NodeProto,
        replacement: Replacement,
        log: NameLog,
        prefix: str,
        *,
        is_sure: bool,
    ) -> None:
        """Remember what a node became, unless that depends on more than the key and the constants that it looked at.
        log: all names that were made for it. prefix: of these. is_sure: nothing was assumed.
        """
        entries = self._shared if is_sure and not replacement.constants else self._own
        read = self._read(node, log) if len(entries.get(key, ())) < _MOST_ENTRIES else None
        entry = None if read is None else _entry_of(node, replacement, log, prefix, read)
        if entry is not None:
            entries.setdefault(key, []).append(entry)

    def _read(self, node: NodeProto, log: NameLog) -> dict[int, bytes] | None:
        """Return the fingerprints of the constants that the conversion looked at, by input; None where it looked at a
        constant that is no input.
        """
        inputs, read = node.input[:], dict[int, bytes]()
        for name in list(self.values.asked):
            if name in log.hints:
                continue
            fingerprint = self._fingerprint(name) if name in inputs else None
            if fingerprint is None:
                return None
            read[inputs.index(name)] = fingerprint
        return read

    def keep_split(
        self, key: Key, node: NodeProto, written: NodeProto, constants: Callable[[str], bool], why: str
    ) -> None:
        """Remember a split that another took the place of, where that is the split itself, edited. constants: True for
        the names of constants that other nodes may read, too.
        """
        if (written.op_type, written.domain, written.output[:]) != (node.op_type, node.domain, node.output[:]):
            return
        numbers = {name: number for number, name in enumerate(node.input)}
        if not all(name in numbers or constants(name) for name in written.input):
            return
        inputs = [numbers.get(name, name) for name in written.input]
        entries = self._own if any(isinstance(item, str) for item in inputs) else self._shared
        attributes = {attribute.name: attribute for attribute in written.attribute}
        is_same = inputs == list(range(len(node.input)))
        edited = _EntryNode(written.op_type, None if is_same else inputs, None, attributes, -1)
        is_kept = is_same and {attribute.name: attribute for attribute in node.attribute} == attributes
        entries.setdefault(key, []).append(_Entry({}, (), None if is_kept else [edited], why))

    def stop(self, key: Key | None, find_stop: Callable[[], int]) -> int:
        """Return the opset where a node that cannot be converted must stop."""
        if key is None:
            return find_stop()
        if key not in self._stops:
            self._stops[key] = find_stop()
        return self._stops[key]


def _entry_of(
    node: NodeProto, replacement: Replacement, log: NameLog, prefix: str, read: dict[int, bytes]
) -> _Entry | None:
    """Return the entry for a node; None where an entry cannot hold what it became."""
    if replacement.nodes is None:
        return _Entry(read, (), None, "")
    constants = {tensor.name: tensor.name for tensor in replacement.constants}
    hints = {name: hint for name, hint in log.hints.items() if name not in constants}
    numbers = {name: number for number, name in enumerate([*node.input, *node.output, *hints])}
    numbers[""] = -1
    places: dict[str, int | str] = {**numbers, **constants}
    nodes, why = [made for made in replacement.nodes if isinstance(made, Node)], replacement.why
    names = {name for made in nodes for name in (*made.inputs, *made.outputs)}
    names |= {made.name for made in nodes if made.original is None}
    if (
        not names <= places.keys()
        or not all(hint.startswith(prefix) for hint in log.hints.values())
        or any(made.wrap is not None or made.has_graphs for made in nodes)
        or any(name and repr(name) in why for name in places)
    ):
        return None
    written = []
    for made in nodes:
        inputs = None if made.inputs == node.input[:] else [places[name] for name in made.inputs]
        number = numbers[made.name] if made.original is None else -1
        outputs = None if made.outputs == node.output[:] else [numbers[name] for name in made.outputs]
        written.append(_EntryNode(made.op_type, inputs, outputs, made.attributes, number, made.domain))
    is_alone = len(nodes) == 1 and nodes[0].original is not None and written[0].outputs is None
    return _Entry(read, () if is_alone else [hint[len(prefix) :] for hint in hints.values()], written, why)
