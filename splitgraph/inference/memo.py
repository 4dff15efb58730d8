"""The memo of the walk: nodes that are alike, with equal knowledge of their inputs, are inferred once.

`Knowledge` is what is known of a value. Equal knowledge is one object, so that the keys of the memo compare objects.
`Memo` holds the results by key. `constant_key` reads the key of a Constant node from its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any

from splitgraph.dim import Dim, DimLike, Facts, has_huge_number
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import Contents, SequenceInfo, Shape, ValueType
from splitgraph.model.values import tensor_contents
from splitgraph.model.wire_format import ONE_BYTE, Malformed, field, tag, varint_at

# What is known of a value ---------------------------------------------------------------------------------------------

# Longer contents are the same only when they are the same object; comparing them would cost more than it saves.
_MOST_COMPARED = 64
# The numbers of a dimension are below this one (`has_huge_number`).
LARGEST = 2**64


class Knowledge:
    """The type of a value, its elements, and what is known of it as a sequence; equal only to itself.

    unread: a constant whose elements nobody has read yet, so that layers that differ only in their weights are alike.
    type: None for an omitted input only. text: the type without its shape, as schemas write it; None if it is not
    known. is_sound: a tensor without an unknown, impossible or too large dimension.
    """

    __slots__ = ("contents", "is_sound", "sequence", "text", "type", "unread")

    def __init__(
        self,
        type: ValueType | None,
        contents: Contents | None,
        sequence: SequenceInfo | None,
        unread: bool,
        text: str | None,
        is_sound: bool,
    ) -> None:
        self.type = type
        self.contents = contents
        self.sequence = sequence
        self.unread = unread
        self.text = text
        self.is_sound = is_sound


OMITTED = Knowledge(None, None, None, False, None, False)


class InternedKnowledge:
    """All knowledge of one inference: equal knowledge is one object."""

    def __init__(self) -> None:
        # By element type and shape for tensors, by type for other values; and with known elements or members.
        self.tensors: dict[tuple[str | None, Shape | None], Knowledge] = {}
        self._others: dict[ValueType, Knowledge] = {}
        self._more: dict[tuple[object, ...], Knowledge] = {}
        self._sound_dims: set[Dim] = set()
        # Constants of few integers, by the id of the type and by raw data. The type is held, so that no other object
        # has its id.
        self.constants: dict[tuple[int, bytes], tuple[ValueType, Knowledge, Contents]] = {}
        # The elements of other constants, by the identity of the tensor, which is held with them.
        self._elements: dict[int, tuple[TensorProto, Contents | None]] = {}

    def elements_of(self, tensor: TensorProto) -> Contents | None:
        """Return the elements of a constant. They are always the same object, so that calls with the same constant are
        equal.
        """
        if id(tensor) not in self._elements:
            self._elements[id(tensor)] = tensor, tensor_contents(tensor)
        return self._elements[id(tensor)][1]

    def of(
        self,
        type: ValueType,
        contents: Contents | None = None,
        sequence: SequenceInfo | None = None,
        *,
        unread: bool = False,
    ) -> Knowledge:
        """Return the one object for this knowledge."""
        plain = self._others.get(type) if type.kind != "tensor" else self.tensors.get((type.dtype, type.shape))
        if plain is None:
            plain = self._of_new(type)
        if contents is None and sequence is None and not unread:
            return plain
        # Contents that are compared by identity must stay alive: this dictionary holds them.
        key = (plain, None if contents is None else _comparable(contents), sequence, unread)
        known = self._more.get(key)
        if known is None:
            known = self._more[key] = Knowledge(plain.type, contents, sequence, unread, plain.text, plain.is_sound)
        return known

    def sound(self, types: Sequence[ValueType]) -> list[Knowledge] | None:
        """Return the knowledge for tensors of these types. Return None if one is no tensor, or has a dimension that is
        unknown, below 0 or too large.
        """
        results, tensors = [], self.tensors
        for type in types:
            known = tensors.get((type.dtype, type.shape)) if type.kind == "tensor" else None
            if known is None:
                if type.kind != "tensor":
                    return None
                known = self._of_new(type)
            if not known.is_sound:
                return None
            results.append(known)
        return results

    def _of_new(self, type: ValueType) -> Knowledge:
        """Make the knowledge for a type that is new here."""
        if type.kind != "tensor":
            known = self._others[type] = Knowledge(type, None, None, False, type_text(type), False)
            return known
        sound = self._sound_dims
        for dim in type.shape or ():
            if isinstance(dim, int):
                if not 0 <= dim < LARGEST:
                    break
            elif dim not in sound:
                if dim is None or dim.const < 0 or has_huge_number(dim):
                    break
                sound.add(dim)
        else:
            return self._of_tensor(type, True)
        return self._of_tensor(type, False)

    def _of_tensor(self, type: ValueType, is_sound: bool) -> Knowledge:
        known = self.tensors[type.dtype, type.shape] = Knowledge(type, None, None, False, type.dtype, is_sound)
        return known


def type_text(known: ValueType) -> str | None:
    """Return the type without its shape, as schemas write it, but with our names of element types. Return None if it is
    not known.
    """
    if known.dtype is None or known.element is not None:
        return None
    if known.kind == "tensor":
        return known.dtype
    return f"{known.kind} of {known.dtype}" if known.kind in ("sequence", "optional") else None


def _comparable(contents: Contents) -> object:
    items = contents.items
    if len(items) > _MOST_COMPARED:
        return id(contents)
    # Numbers of different types compare equal (1 and 1.0), but mean different things.
    for item in items:
        if item is not None and item.__class__ is not int and item.__class__ is not Dim:
            return id(contents)
    return contents.shape, items


def with_dims(value: ValueType, change: Callable[[Dim], DimLike | None]) -> ValueType:
    """Return the type with each symbolic dimension changed; the same object if nothing changes."""
    if value.element is not None:
        element = with_dims(value.element, change)
        if element is not value.element:
            value = ValueType(value.kind, value.dtype, value.shape, element)
    changed: list[DimLike | None] | None = None
    for axis, dim in enumerate(value.shape or ()):
        if isinstance(dim, Dim) and (new := change(dim)) is not dim:
            if changed is None:
                changed = [*(value.shape or ())]
            changed[axis] = new
    return value if changed is None else value.with_shape(changed)


# The memo -------------------------------------------------------------------------------------------------------------

# What equal nodes have in common. For a Constant: its attribute. For other nodes: the operator, the number of outputs,
# one object for what is known of each input, and the bytes of each attribute.
Key = bytes | tuple[object, ...]
# What a visit depends on besides its key and what is known of symbols: the opset imports of its graph, and whether
# findings are reported there.
Setting = tuple[object, ...]


def setting_of(imports: Mapping[str, int], is_reported: tuple[bool, bool]) -> Setting:
    """Return the setting of a graph."""
    return (is_reported, *sorted(imports.items()))


class Memo:
    """The visits of nodes and the calls of functions that may be repeated in graphs with the same facts: the main graph
    and the functions that it calls, or a body and the functions that it calls.

    What a visit may depend on. Its key: the operator, its attributes, how many outputs the node has, and what is known
    of each input: type, elements, members of a sequence, whether it is there at all. What is the same for every node of
    the graph: the imported opsets and whether findings are reported (`Setting`), the attributes of the call that is
    walked, the options of the inference. And what is known of the symbols (`Facts`). A rule reads nothing else:
    `NodeContext` offers nothing else, but names and the location, which are for messages.

    What a call may depend on. Its key: the function, its attributes, whether findings are reported, and what is known
    of each input; of the elements of a constant only where the body looks at them, so that layers that differ in their
    weights are alike. And what is known of the symbols: the rules for visits hold for everything in the body.

    What makes a visit unrepeatable. An effect: anything but saying what the outputs are, counted in `effects` (a
    finding, a new symbol, elements of an input that were not looked at before). A fact that was learnt
    (`Facts.version`). An output that is left out; a body or a call, whose nodes are visits of their own.

    What a repeated call does again, at its own location: findings, splits that are reported, requirements of bodies
    that may not run, operators that nobody knows. Symbols that the call made and gives, or reports, are made anew.

    What makes a call unrepeatable. A fact that was learnt. Symbols that were made and that are reported of a body,
    whose facts may speak of them. What the journal counts as unrepeatable: a symbol for a broadcast, a name that was
    adopted from a declaration, recursion, and a call that is not followed.

    When a result is forgotten. An answer of Facts that is not a proof may be another one when more is known of the
    symbols; such answers are counted in `Facts.open_questions`. A result during which none was given is settled: it
    holds whatever else becomes known. Every other result holds while no fact is learnt. So a settled result may be
    repeated with these facts, and with facts of a body, which are on top of these: `find` looks outward, and `keep`
    goes to the outermost facts of which nothing was learnt since. The other visits are kept in their graph only
    (`Walk`), and forgotten at its end. All are forgotten when every graph has been walked.
    """

    # False only in the tests that compare an inference with this memo and without it.
    remembers = True

    def __init__(self, facts: Facts, around: Memo | None = None) -> None:
        self._facts = facts
        self._around = around
        # Each result with the version of the facts at which it holds; None for a settled one.
        self._kept: dict[Hashable, tuple[Any, int | None]] = {}

    def find(self, key: Hashable) -> Any:
        """Find a result that holds, here or further out; None if there is none."""
        memo: Memo | None = self
        while memo is not None:
            kept = memo._kept.get(key)
            # Equal versions: nothing was learnt since, here or in a body between that memo and this one.
            if kept is not None and (kept[1] is None or kept[1] == self._facts.version):
                return kept[0]
            memo = memo._around
        return None

    def keep(self, key: Hashable, result: Any, *, settled: bool) -> None:
        """Remember the result of a call, or a settled result of a node."""
        if not self.remembers:
            return
        memo = self
        while memo._around is not None and memo._around._facts.version == self._facts.version:
            memo = memo._around
        memo._kept[key] = result, None if settled else self._facts.version

    def forget(self) -> None:
        """Forget every result."""
        self._kept.clear()


# Keys of Constant nodes -----------------------------------------------------------------------------------------------

# The keys of Constant nodes: the bytes of their attribute. A third of the nodes that exporters write are Constants, and
# most of them are equal. Asking protobuf for an output and an attribute makes objects, which takes three times as long
# as writing the whole node as bytes and reading it from there. Source: the fields of NodeProto in onnx.proto.

# How NodeProto's fields begin, and the operator's whole field.
_OUTPUT, _NAME, _ATTRIBUTE = (tag(number)[0] for number in (2, 3, 5))
_OPERATOR = field(4, b"Constant")
# A longer Constant holds weights: comparing them would cost more than it saves.
MOST_BYTES = 4096


def constant_key(written: bytes, earlier: Container[object] = ()) -> tuple[str, bytes] | None:
    """Read the output of a Constant node and its key from the bytes of the node. The key is the attribute as bytes.

    earlier: keys that were read before, among other things. Return None unless the node has exactly these fields in
    this order: an output, perhaps a name, the operator and one attribute. All must be short: output and name have less
    than 128 bytes. Other fields mean something, or are rare.
    """
    if len(written) > MOST_BYTES:
        return None
    head, _, attribute = written.partition(_OPERATOR)
    size = len(head)
    try:
        end = head[1] + 2
        named = end == size or (head[end] == _NAME and head[end + 1] < ONE_BYTE and end + 2 + head[end + 1] == size)
        if not (named and head[0] == _OUTPUT and 2 < end < 2 + ONE_BYTE):
            return None
        if attribute not in earlier and not _is_one_attribute(attribute):
            return None
        return head[2:end].decode(), attribute
    except (IndexError, UnicodeDecodeError):
        return None


def _is_one_attribute(written: bytes) -> bool:
    """Return True for the bytes of one attribute and nothing else."""
    try:
        length, start = varint_at(written, 1, len(written))
    except Malformed:
        return False
    return written[0] == _ATTRIBUTE and start + length == len(written)
