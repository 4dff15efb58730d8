"""Finds several nodes that runtimes take for one operator. Such a pattern is a factor of its last node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.value_type import Item
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, Seen

# The factors of the last node of a pattern.
_KEYS = frozenset({"gelu"})
# So many values are looked at in front of a node.
_MOST_FOLLOWED = 16
# The root of 2 as a float32.
_ROOT = 1.41421353816986083984375


def ends_pattern(kind: Iterable[tuple[str, str]]) -> bool:
    """Return True for the factors of the last node of a pattern. Without the pattern it is a node as any other."""
    return any(key in _KEYS for key, _ in kind)


def factors_of_patterns(node: NodeProto, seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield the patterns that end with a node: `gelu` for x * (0.5 * (1 + erf(x / sqrt(2)))), as torch.onnx writes it;
    as older exporters wrote it, the half comes last, and nothing is told. The half may be any number, and the others
    may not: OpenCV sees no Gelu in a Div by 1.4142, nor in a Mul. `data.cast` for a CumSum of what a Cast gives, and
    for a Mod of what is computed from a Cast to int64.
    """
    if node.op_type == "Mul" and len(node.input) == 2:
        one, other = node.input
        if _is_inner_gelu(other, one, seen) or _is_inner_gelu(one, other, seen):
            yield "gelu", "halved inside"
    maker = seen.maker(node.input[0]) if node.op_type == "CumSum" and node.input else None
    if maker is not None and maker.op_type == "Cast":
        # tract takes what is cast to int64 for sizes.
        yield "data.cast", "yes"
    if node.op_type == "Mod" and node.input and _follows_a_cast(node.input[0], seen):
        yield "data.cast", "yes"


def _follows_a_cast(name: str, seen: Seen) -> bool:
    """Return True for int64 that is computed from what a Cast makes of another type, as far as it stays int64."""
    waiting, looked_at = [name], set[str]()
    while waiting and len(looked_at) < _MOST_FOLLOWED:
        one = waiting.pop()
        if one in looked_at or seen.type_of(one).dtype != "int64" or seen.how(one) != "computed":
            continue
        looked_at.add(one)
        maker = seen.maker(one)
        if maker is None:
            continue
        if maker.op_type == "Cast" and seen.type_of(maker.input[0]).dtype != "int64":
            return True
        waiting += filter(None, maker.input)
    return False


def _is_inner_gelu(name: str, data: str, seen: Seen) -> bool:
    """Return True for 0.5 * (1 + erf(data / sqrt(2)))."""
    halved = _combined(name, "Mul", seen)
    total = None if halved is None else _combined(halved.value, "Add", seen)
    if total is None or _number(total.constant, seen) != 1:
        return False
    erf = seen.maker(total.value)
    scaled = seen.maker(erf.input[0]) if erf is not None and erf.op_type == "Erf" else None
    return scaled is not None and scaled.op_type == "Div" and _is_root(scaled, data, seen)


def _is_root(scaled: NodeProto, data: str, seen: Seen) -> bool:
    value, constant = scaled.input
    return value == data and _number(constant, seen) == _ROOT


class _Operands(NamedTuple):
    """What a node combines with a constant, and the constant."""

    value: str
    constant: str


def _combined(name: str, op_type: str, seen: Seen) -> _Operands | None:
    """Return the inputs of a node of this operator; None for another value, and for two of a kind."""
    node = seen.maker(name)
    if node is None or node.op_type != op_type or len(node.input) != 2:
        return None
    one, other = node.input
    if (seen.how(one) in BEFORE_THE_RUN) == (seen.how(other) in BEFORE_THE_RUN):
        return None
    return _Operands(other, one) if seen.how(one) in BEFORE_THE_RUN else _Operands(one, other)


def _number(name: str, seen: Seen) -> Item:
    """Return the only element of a value; None where it is not known, or where there are several."""
    known = seen.contents(name)
    return known.items[0] if known is not None and len(known.items) == 1 else None
