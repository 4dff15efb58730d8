"""What is known of a value, as an object. Equal knowledge is the same object.

The memo of visits (`memo.py`) looks nodes up by what is known of their inputs. With one object for equal
knowledge, such a lookup compares identities and no types.
"""

from __future__ import annotations

from splitgraph.contents import Contents, SequenceInfo
from splitgraph.dim import Dim
from splitgraph.graph.tensors import tensor_contents
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import ValueType

# Longer contents are the same only when they are the same object; comparing them would cost more than it saves.
_MOST_COMPARED = 64


class Knowledge:
    """The type of a value, its contents and what is known of it as a sequence; equal only to itself.

    unread: a constant whose elements nobody has asked for yet, so that layers that differ only in their weights are
    alike. type is None for an omitted input only.
    """

    __slots__ = ("contents", "sequence", "type", "unread")

    def __init__(
        self, type: ValueType | None, contents: Contents | None, sequence: SequenceInfo | None, unread: bool
    ) -> None:
        self.type = type
        self.contents = contents
        self.sequence = sequence
        self.unread = unread


OMITTED = Knowledge(None, None, None, False)


class InternedKnowledge:
    """Every Knowledge of one inference, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Knowledge] = {}
        self._types: dict[ValueType, ValueType] = {}
        # Constants of few integers, by the id of the type and by raw data. The type is held, so that no other object
        # has its id.
        self.constants: dict[tuple[int, bytes], tuple[ValueType, Knowledge, Contents]] = {}
        # The elements of other constants, by the identity of the tensor, which is held with them.
        self._elements: dict[int, tuple[TensorProto, Contents | None]] = {}

    def elements_of(self, held: TensorProto) -> Contents | None:
        """The elements of a constant, always as the same object, so that calls with the same constant are equal."""
        if id(held) not in self._elements:
            self._elements[id(held)] = held, tensor_contents(held)
        return self._elements[id(held)][1]

    def of(
        self,
        type: ValueType,
        contents: Contents | None = None,
        sequence: SequenceInfo | None = None,
        *,
        unread: bool = False,
    ) -> Knowledge:
        """The one object for this knowledge."""
        # Its own type first, which is held here: what it says is hashed and compared once, its identity often.
        type = self._types.setdefault(type, type)
        key = (id(type), None if contents is None else _comparable(contents), sequence, unread)
        found = self._made.get(key)
        if found is None:
            # Contents that are told apart by identity must stay alive, which being held here they do.
            found = self._made[key] = Knowledge(type, contents, sequence, unread)
        return found


def _comparable(contents: Contents) -> object:
    # Numbers of different types compare equal (1 and 1.0), but mean different things.
    if len(contents.items) > _MOST_COMPARED or not all(
        item is None or type(item) is int or isinstance(item, Dim) for item in contents.items
    ):
        return id(contents)
    return contents
