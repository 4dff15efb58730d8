"""The cache of conversions: a node becomes what an earlier node of the same kind became. Models repeat their layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from splitgraph.conversion.nodes.crossing import AttributeEdit
from splitgraph.conversion.nodes.known_values import KnownValues
from splitgraph.conversion.nodes.node_form import NodeForm
from splitgraph.conversion.nodes.omitted_arguments import reads_left_out
from splitgraph.conversion.planning.edits import attribute_edits
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import InPlace
from splitgraph.diagnostics import Diagnostic
from splitgraph.graph.names import FreshNames
from splitgraph.inference.walk_results import Visit
from splitgraph.onnx_proto import AttributeProto, NodeProto

# Equal for nodes of one kind: the visit of inference, and which names of the node are equal.
Key = tuple[Visit, tuple[int, ...]]

# Longer constants are not compared: reading them for every node takes longer than converting the node.
_MOST_CONSTANT_BYTES = 4096
# Entries for one key, which differ in the constants that the nodes read.
_MOST_ENTRIES = 8


@dataclass(frozen=True, slots=True)
class Converted:
    """What a node became at the target opset.

    forms: the nodes that replace it, in order; None where the node itself stays. in_place: the node as another node of
    its kind was edited. edits: edits of its attributes. blockers: why the node cannot be converted; then all else is
    empty. why: the reason of the change, for the user.
    """

    forms: Sequence[NodeForm] | None = None
    in_place: InPlace | None = None
    edits: Sequence[AttributeEdit] = ()
    blockers: Sequence[Diagnostic] = ()
    why: str = ""

    @property
    def is_kept(self) -> bool:
        """True for a node that needs no edit."""
        return self.forms is None and self.in_place is None and not self.edits and not self.blockers


class NameLog(FreshNames):
    """Fresh names, recorded together with the hints that they were made from."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self.hints: dict[str, str] = {}

    def new(self, hint: str) -> str:
        """A new name that begins with the hint."""
        name = self._names.new(hint)
        self.hints[name] = hint
        return name


class _WrittenNode(NamedTuple):
    """A node with numbers in place of names; a constant keeps its name. is_original: the node itself, edited."""

    op_type: str
    inputs: Sequence[int | str]
    outputs: Sequence[int]
    attributes: dict[str, AttributeProto]
    name: int
    is_original: bool


class _EditedEntry(NamedTuple):
    """A node that was edited in place. inputs: numbers of its own inputs and names of constants; None where they stay.

    read: by input, the fingerprint of the constant that the conversion looked at.
    """

    read: dict[int, bytes]
    op_type: str
    inputs: Sequence[int | str] | None
    edits: Sequence[AttributeEdit]
    why: str


class _WrittenEntry(NamedTuple):
    """A node that was replaced by several. The numbers of names: the node's inputs first, then its outputs, then the
    fresh names; -1 is "".

    read: as for `_EditedEntry`. hints: of the fresh names, without the prefix.
    """

    read: dict[int, bytes]
    hints: Sequence[str]
    nodes: Sequence[_WrittenNode]
    why: str


class Entries:
    """What nodes became, by key. unchanged: the node is kept, or only its attributes are edited, whatever it reads.
    others: what an entry says for nodes that read the same constants.
    """

    def __init__(self) -> None:
        self.unchanged: dict[Key, Converted] = {}
        self.others: dict[Key, list[_EditedEntry | _WrittenEntry]] = {}


class ConversionCache:
    """What the nodes of one graph became: kept, edited, or replaced by other nodes.

    What a conversion may depend on. The key: a visit of inference, which stands for operator, attributes, which inputs
    and outputs the node has, and their types (`inference/visit_memo.py`); and which of them have the same name. The
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

    def __init__(self, values: KnownValues, left_out: Collection[str] = (), shared: Entries | None = None) -> None:
        self.values = values
        self.left_out = left_out
        self._own = Entries()
        # Those of other graphs, too; only its own where calls omit inputs, which a visit knows nothing of.
        self._shared = self._own if left_out or shared is None else shared
        # Visits whose nodes are kept. The loop over the nodes reads the set itself: a call for each node is slow.
        self.kept_visits: set[Visit] = set()
        self._stops: dict[Key, int] = {}

    def key_of(self, node: NodeProto, visit: Visit | None) -> Key | None:
        """The key of a node, None for an uncacheable one. visit: that of inference, None where there is none."""
        if visit is None or not self.remembers or reads_left_out(node, self.left_out):
            return None
        names = node.input[:] + node.output[:]
        # Equal names must be equal for the next node, too.
        return visit, () if len(set(names)) == len(names) else tuple(map(names.index, names))

    # Nodes that stay ---------------------------------------------------------------------------------------------

    def keep_visit(self, visit: Visit | None) -> None:
        """Remember that all nodes of a visit are kept, unless calls omit inputs, which a visit knows nothing of."""
        if visit is not None and not self.left_out and self.remembers:
            self.kept_visits.add(visit)

    # Nodes that change -------------------------------------------------------------------------------------------

    def find(self, key: Key | None, node: NodeProto) -> Converted | None:
        """The node kept or edited in place, as an earlier one was; None where no entry says so."""
        if key is None:
            return None
        found = self._own.unchanged.get(key) or self._shared.unchanged.get(key)
        if found is None:
            entry = self._entry(key, node)
            found = _edited(entry, node) if isinstance(entry, _EditedEntry) else None
        return found

    def write(self, key: Key | None, node: NodeProto, emission: Emission) -> Converted | None:
        """The nodes that replace a node, with names of their own, as for an earlier one; None without such an entry."""
        entry = None if key is None else self._entry(key, node)
        return _written(entry, node, emission) if isinstance(entry, _WrittenEntry) else None

    def _entry(self, key: Key, node: NodeProto) -> _EditedEntry | _WrittenEntry | None:
        for entry in chain(self._own.others.get(key, ()), self._shared.others.get(key, ())):
            read = entry.read
            if not read or all(self._fingerprint(node.input[place]) == known for place, known in read.items()):
                return entry
        return None

    def _fingerprint(self, name: str) -> bytes | None:
        return self.values.fingerprint(name, _MOST_CONSTANT_BYTES)

    def keep(
        self, key: Key, node: NodeProto, converted: Converted, emission: Emission, log: NameLog, *, is_sure: bool
    ) -> None:
        """Remember what a node became, unless that depends on more than the key and the constants that it looked at.
        log: all names that were made for it. is_sure: nothing was assumed.
        """
        entries = self._shared if is_sure and not emission.initializers else self._own
        if converted.forms is None:
            entries.unchanged[key] = converted
            return
        read = self._read(node, log) if len(entries.others.get(key, ())) < _MOST_ENTRIES else None
        entry = None if read is None else _entry_of(node, converted, emission, log, read)
        if entry is not None:
            _add(entries, key, entry)

    def _read(self, node: NodeProto, log: NameLog) -> dict[int, bytes] | None:
        """By input, the fingerprints of the constants that the conversion looked at; None where another was."""
        inputs, read = node.input[:], dict[int, bytes]()
        for name in list(self.values.asked):
            if name in log.hints:
                continue
            fingerprint = self._fingerprint(name) if name in inputs else None
            if fingerprint is None:
                return None
            read[inputs.index(name)] = fingerprint
        return read

    def keep_edited(
        self, key: Key, node: NodeProto, written: NodeProto, constants: Callable[[str], bool], why: str
    ) -> None:
        """Remember a node that another took the place of, where that is the node itself, edited. constants: True for
        the names of constants that other nodes may read, too.
        """
        if (written.op_type, written.domain, written.output[:]) != (node.op_type, node.domain, node.output[:]):
            return
        numbers = {name: number for number, name in enumerate(node.input)}
        if not all(name in numbers or constants(name) for name in written.input):
            return
        inputs = [numbers.get(name, name) for name in written.input]
        attributes = {attribute.name: attribute for attribute in written.attribute}
        entries = self._own if any(isinstance(each, str) for each in inputs) else self._shared
        _add(entries, key, _edited_entry({}, node, written.op_type, inputs, attributes, why))

    def stop(self, key: Key | None, find_stop: Callable[[], int]) -> int:
        """The opset where a node that cannot be converted must stop."""
        if key is None:
            return find_stop()
        if key not in self._stops:
            self._stops[key] = find_stop()
        return self._stops[key]


def _add(entries: Entries, key: Key, entry: _EditedEntry | _WrittenEntry) -> None:
    if isinstance(entry, _EditedEntry) and entry.inputs is None and not entry.read:
        entries.unchanged[key] = Converted(in_place=InPlace(entry.op_type, None, entry.edits), why=entry.why)
    else:
        entries.others.setdefault(key, []).append(entry)


def _entry_of(
    node: NodeProto, converted: Converted, emission: Emission, log: NameLog, read: dict[int, bytes]
) -> _EditedEntry | _WrittenEntry | None:
    """The entry for a node that was replaced; None where an entry cannot hold what it became."""
    constants = {tensor.name: tensor.name for tensor in emission.initializers}
    hints = {name: hint for name, hint in log.hints.items() if name not in constants}
    numbers = {name: number for number, name in enumerate([*node.input, *node.output, *hints])}
    numbers[""] = -1
    places: dict[str, int | str] = {**numbers, **constants}
    forms, why = converted.forms or (), converted.why
    names = {name for form in forms for name in (*form.inputs, *form.outputs)}
    names |= {form.name for form in forms if form.original is None}
    if (
        not names <= places.keys()
        or not all(hint.startswith(emission.prefix) for hint in log.hints.values())
        or any(form.wrap is not None or form.has_graphs for form in forms)
        or any(name and repr(name) in why for name in places)
    ):
        return None
    if len(forms) == 1 and forms[0].original is not None and forms[0].outputs == node.output[:]:
        inputs = [places[name] for name in forms[0].inputs]
        return _edited_entry(read, node, forms[0].op_type, inputs, forms[0].attributes, why)
    written = [
        _WrittenNode(
            form.op_type,
            [places[name] for name in form.inputs],
            [numbers[name] for name in form.outputs],
            form.attributes,
            -1 if form.original is not None else numbers[form.name],
            form.original is not None,
        )
        for form in forms
    ]
    return _WrittenEntry(read, [hint[len(emission.prefix) :] for hint in hints.values()], written, why)


def _edited_entry(
    read: dict[int, bytes],
    node: NodeProto,
    op_type: str,
    inputs: Sequence[int | str],
    attributes: Mapping[str, AttributeProto],
    why: str,
) -> _EditedEntry:
    is_same = op_type == node.op_type and inputs == list(range(len(node.input)))
    return _EditedEntry(read, op_type, None if is_same else inputs, attribute_edits(node, attributes, why), why)


def _edited(entry: _EditedEntry, node: NodeProto) -> Converted:
    inputs = None
    if entry.inputs is not None:
        own = node.input[:]
        inputs = ["" if each == -1 else own[each] if isinstance(each, int) else each for each in entry.inputs]
    return Converted(in_place=InPlace(entry.op_type, inputs, entry.edits), why=entry.why)


def _written(entry: _WrittenEntry, node: NodeProto, emission: Emission) -> Converted:
    names = [*node.input[:], *node.output[:]]
    names += [emission.names.new(emission.prefix + hint) for hint in entry.hints]
    # The number of "" is -1, which is the last place.
    names.append("")
    forms = []
    for made in entry.nodes:
        inputs = [names[each] if isinstance(each, int) else each for each in made.inputs]
        outputs = [names[each] for each in made.outputs]
        original, name = (node, node.name) if made.is_original else (None, names[made.name])
        forms.append(NodeForm(made.op_type, inputs, outputs, dict(made.attributes), original, name))
    return Converted(forms, why=entry.why)
