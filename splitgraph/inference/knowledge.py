"""What is known of a value, as an object. Equal knowledge is the same object.

The memo of visits (`memo.py`) looks nodes up by what is known of their inputs. With one object for equal
knowledge, such a lookup compares identities and no types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splitgraph.dim import Dim, DimLike, has_huge_number
from splitgraph.graph.values import tensor_contents
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import Contents, SequenceInfo, Shape, ValueType

# Longer contents are the same only when they are the same object; comparing them would cost more than it saves.
_MOST_COMPARED = 64
# The numbers of a dimension are below this one (`has_huge_number`).
LARGEST = 2**64


class Knowledge:
    """The type of a value, its contents and what is known of it as a sequence; equal only to itself.

    unread: a constant whose elements nobody has asked for yet, so that layers that differ only in their weights are
    alike. type is None for an omitted input only. text: the type without its shape, as schemas write it; None when it
    is not known. is_sound: a tensor with no unknown, impossible or too large dimension.
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
    """Every Knowledge of one inference, each made once."""

    def __init__(self) -> None:
        # Of tensors by element type and shape, of other values by their type; and of those of which more is known.
        self.tensors: dict[tuple[str | None, Shape | None], Knowledge] = {}
        self._others: dict[ValueType, Knowledge] = {}
        self._more: dict[tuple[object, ...], Knowledge] = {}
        self._sound_dims: set[Dim] = set()
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
        plain = self._others.get(type) if type.kind != "tensor" else self.tensors.get((type.dtype, type.shape))
        if plain is None:
            plain = self._of_new(type)
        if contents is None and sequence is None and not unread:
            return plain
        # Contents that are told apart by identity must stay alive, which being held here they do.
        key = (plain, None if contents is None else _comparable(contents), sequence, unread)
        found = self._more.get(key)
        if found is None:
            found = self._more[key] = Knowledge(plain.type, contents, sequence, unread, plain.text, plain.is_sound)
        return found

    def sound(self, types: Sequence[ValueType]) -> list[Knowledge] | None:
        """What is known of tensors of these types; None where one of them is no tensor, or has a dimension that is
        unknown, below 0 or too large.
        """
        found, tensors = [], self.tensors
        for type in types:
            known = tensors.get((type.dtype, type.shape)) if type.kind == "tensor" else None
            if known is None:
                if type.kind != "tensor":
                    return None
                known = self._of_new(type)
            if not known.is_sound:
                return None
            found.append(known)
        return found

    def _of_new(self, type: ValueType) -> Knowledge:
        """What is known of a value by a type that is new here."""
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
    """The type without its shape, as schemas write it with our names of element types; None when it is not known."""
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
    """The type with each symbolic dimension changed; the same object where nothing is."""
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
