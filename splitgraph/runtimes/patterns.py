"""Several nodes that runtimes take for one: what such a pattern is told at its last node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from splitgraph.model.onnx_proto import NodeProto
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, Seen

# The factors of the last node of a pattern.
_KEYS = frozenset({"gelu"})


def ends_pattern(kind: Iterable[tuple[str, str]]) -> bool:
    """Return True for the factors of the last node of a pattern. Without the pattern it is a node as any other."""
    return any(key in _KEYS for key, _ in kind)


def factors_of_patterns(node: NodeProto, seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield the patterns that end with a node: `gelu` for x * (0.5 * (1 + erf(x / sqrt(2)))), as torch.onnx writes it;
    as older exporters wrote it, the half comes last, and nothing is told. `data.cast` for a CumSum of what a Cast
    gives.
    """
    if node.op_type == "Mul" and len(node.input) == 2:
        one, other = node.input
        if _is_inner_gelu(other, one, seen) or _is_inner_gelu(one, other, seen):
            yield "gelu", "halved inside"
    maker = seen.maker(node.input[0]) if node.op_type == "CumSum" and node.input else None
    if maker is not None and maker.op_type == "Cast":
        # tract takes what is cast to int64 for sizes.
        yield "data.cast", "yes"


def _is_inner_gelu(name: str, data: str, seen: Seen) -> bool:
    """Return True for 0.5 * (1 + erf(data / sqrt(2)))."""
    for wanted in ("Mul", "Add"):
        name = _operand(name, wanted, seen)
    erf = seen.maker(name) if name else None
    scaled = seen.maker(erf.input[0]) if erf is not None and erf.op_type == "Erf" else None
    return scaled is not None and scaled.op_type in ("Div", "Mul") and data in scaled.input


def _operand(name: str, op_type: str, seen: Seen) -> str:
    """Return what a node of this operator combines with a constant; "" for another value."""
    node = seen.maker(name) if name else None
    if node is None or node.op_type != op_type or len(node.input) != 2:
        return ""
    computed = [each for each in node.input if seen.how(each) not in BEFORE_THE_RUN]
    return computed[0] if len(computed) == 1 else ""
