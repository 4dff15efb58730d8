"""What is known of a value as one object, the same object for equal knowledge, and what visiting a node gave.

Models repeat the same few layers: a node whose operator, attributes and inputs are those of an earlier one gives the
same outputs, unless its visit did more than that (a finding, a new symbol, an obligation). With one object for equal
knowledge, finding the earlier visit costs one lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitgraph.contents import Contents, SequenceInfo
from splitgraph.dim import Dim
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import ValueType

if TYPE_CHECKING:
    from splitgraph.inference.state import SplitDetail

# Longer contents are the same only when they are the same object; comparing them would cost more than it saves.
_MOST_COMPARED = 64


class Known:
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


OMITTED = Known(None, None, None, False)


class KnownValues:
    """Every Known of one inference."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Known] = {}
        self._types: dict[ValueType, ValueType] = {}

    def of(
        self,
        type: ValueType,
        contents: Contents | None = None,
        sequence: SequenceInfo | None = None,
        *,
        unread: bool = False,
    ) -> Known:
        """The one object for this knowledge."""
        # Its own type first, which is held here: what it says is hashed and compared once, its identity often.
        type = self._types.setdefault(type, type)
        key = (id(type), None if contents is None else _comparable(contents), sequence, unread)
        found = self._made.get(key)
        if found is None:
            # Contents that are told apart by identity must stay alive, which being held here they do.
            found = self._made[key] = Known(type, contents, sequence, unread)
        return found


def _comparable(contents: Contents) -> object:
    # Numbers of different types compare equal (1 and 1.0), but mean different things.
    if len(contents.items) > _MOST_COMPARED or not all(
        item is None or type(item) is int or isinstance(item, Dim) for item in contents.items
    ):
        return id(contents)
    return contents


class Visit:
    """What visiting a node gave: what is known of each output, and for a split node what is kept of it.

    index: of the node in its graph. only: what is known of the only output, where that is a tensor and no part of a
    split. content: the elements of that, a tensor where nobody has asked for them yet.
    """

    __slots__ = ("content", "index", "only", "outputs", "split", "types")

    def __init__(
        self,
        index: int,
        outputs: Sequence[Known],
        types: Sequence[ValueType],
        split: SplitDetail | None,
        content: Contents | TensorProto | None = None,
    ) -> None:
        self.index = index
        self.outputs = outputs
        self.types = types
        self.split = split
        alone = len(outputs) == 1 and split is None and outputs[0].sequence is None
        self.only = outputs[0] if alone else None
        self.content = outputs[0].contents if alone and content is None else content
