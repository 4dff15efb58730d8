"""The factors of splits: their parts, and who reads them.

| keys | values |
|---|---|
| `parts` | of a number or a size: `equal`, `uneven`, `open` (even or not), `overrun`, `beyond`, `smaller last` |
| `parts.empty` | `yes`, or `joined` where only a Concat reads the empty parts; of a Slice, too |
| `sizes.empty` | the same of a Slice whose data is a list of sizes |
| `split` | as of any input, and `unnamed` for lengths that are left out by an empty name |
| `outputs.mixed` | some parts are outputs of the graph, and some are read by nodes |
| `rank` | `1 returned` for parts of rank 1 that are outputs of the graph, to which some runtimes give another rank |
| `keepdims` | `0 beside a size`, where the specification ignores it |

What follows from these is left out: `num_outputs`, and the axis of data of rank 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.runtimes.seen_values import Seen, is_joined
from splitgraph.splits.canonical import CanonicalSplit

# Factors with these keys say how a split, or the slices in its place, are written. The others are of what is split.
_OF_FORMS = frozenset(
    {"split", "parts", "bounds", "starts", "ends", "starts.negative", "ends.negative", "ends.open"},
)


def is_of_form(key: str) -> bool:
    """Return True for the key of a factor that another way to write the same split need not have."""
    return key in _OF_FORMS


def factors_of_split(node: NodeProto, detail: SplitDetail, seen: Seen) -> Iterator[tuple[str, str | None]]:
    """Yield the factors of a split that only its parts tell; None for one that is left out."""
    split = detail.split
    if split is None:
        return
    names = {each.name: each.i for each in node.attribute}
    yield "num_outputs", None
    if split.form == "size" or (split.form == "chunks" and "num_outputs" in names):
        yield "parts", _parts(split, detail.divisible)
    if split.form == "size" and names.get("keepdims") == 0 and len(node.input) > 1:
        yield "keepdims", "0 beside a size"
    if split.form != "chunks" and split.total != 0:
        yield from _empty_parts(node, split, seen)
    if detail.data.rank == 1:
        yield "axis", None
    if node.op_type == "Split":
        yield from _of_readers(node, detail, seen)


def _of_readers(node: NodeProto, detail: SplitDetail, seen: Seen) -> Iterator[tuple[str, str]]:
    if "" in node.input:
        yield "split", "unnamed"
    readers = [seen.readers(name) for name in node.output if name]
    if len({"" in each for each in readers if each}) == 2:
        yield "outputs.mixed", "yes"
    if detail.data.rank == 1 and any("" in each for each in readers):
        yield "rank", "1 returned"


def _parts(split: CanonicalSplit, divisible: bool) -> str:
    """Return how the parts of a split relate of which the node says a number or a size."""
    total, lengths = split.total, split.lengths or ()
    if split.form == "size":
        size = split.size
        is_whole = isinstance(total, int) and isinstance(size, int) and size > 0 and not total % size
        return "equal" if is_whole else "smaller last"
    if divisible or split.count == 1:
        return "equal"
    if not isinstance(total, int):
        return "open"
    if total and 0 in lengths:
        first = lengths[0]
        return "beyond" if isinstance(first, int) and first * (len(lengths) - 1) > total else "overrun"
    return "uneven"


def _empty_parts(node: NodeProto, split: CanonicalSplit, seen: Seen) -> Iterator[tuple[str, str]]:
    empty = [name for name, length in zip(node.output, split.lengths or (), strict=False) if length == 0]
    if empty:
        yield "parts.empty", "joined" if is_joined(empty, seen) else "yes"
