"""What the file of an operator version declares (`Variant`), and the checks that follow from it.

Also: what can be read of a node that is invalid or not understood (`read_written`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from splitgraph.dim import Dim, DimLike
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.value_type import MAX_ITEMS, MAX_UNKNOWN, UNKNOWN, ValueType
from splitgraph.splits.canonical import CanonicalSplit, SplitSite, dimension_on
from splitgraph.splits.lowering import LowerRequest

FLOAT_TYPES = frozenset({"float16", "float32", "float64"})
# What onnx calls all_tensor_types: everything that existed before bfloat16.
ALL_TYPES = FLOAT_TYPES | {
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "string",
    "complex64",
    "complex128",
}
ALL_TYPES_IR4 = ALL_TYPES | {"bfloat16"}

AttributeKind = Literal["int", "ints", "string"]

Lift = Callable[[SplitSite], "CanonicalSplit | None"]
Lower = Callable[[LowerRequest], None]
OutputTypes = Callable[[SplitSite, "CanonicalSplit | None"], Sequence[ValueType]]


def part_types(site: SplitSite, split: CanonicalSplit | None) -> Sequence[ValueType]:
    """Return the types of separate outputs, one for each part; of unknown shape where the split is invalid."""
    data = site.input(0)
    if data.kind != "tensor":
        return [UNKNOWN for _ in site.outputs]
    if split is None or split.lengths is None:
        return [data.with_shape(None) for _ in site.outputs]
    return [split.part_type(data, index) for index in range(len(split.lengths))]


@dataclass(frozen=True, slots=True)
class Variant:
    """One version of one split operator.

    inputs: fewest and most inputs. outputs: fewest and most (None: any number). attributes: kind of each. dtypes:
    allowed element types of the data, None for any. lift reads a node into the canonical split and reports what is
    wrong with it (None then); lower writes the canonical split as this version; output_types gives the types of the
    outputs. StringSplit has no canonical form, so no lift.
    """

    op_type: str
    domain: str
    since_version: int
    inputs: tuple[int, int]
    outputs: tuple[int, int | None]
    attributes: Mapping[str, AttributeKind]
    dtypes: frozenset[str] | None
    lift: Lift | None = None
    lower: Lower | None = None
    output_types: OutputTypes = part_types

    @property
    def label(self) -> str:
        """The name with the version: "Split-13"."""
        return f"{self.op_type}-{self.since_version}"


_PYTHON_KINDS: dict[str, type] = {"int": int, "ints": tuple, "string": str}


def infer_split(variant: Variant, site: SplitSite) -> tuple[CanonicalSplit | None, Sequence[ValueType]]:
    """Check a node against its operator version and lift it. Return its canonical form, None if the node is invalid,
    and the types of its outputs.
    """
    checks = (_check_counts(variant, site), _check_attributes(variant, site), _check_data(variant, site))
    if not all(checks):
        return None, variant.output_types(site, None)
    split = None if variant.lift is None else variant.lift(site)
    return split, variant.output_types(site, split)


def _check_counts(variant: Variant, site: SplitSite) -> bool:
    fewest, most = variant.inputs
    good = True
    if not fewest <= site.input_count <= most:
        allowed = str(fewest) if fewest == most else f"{fewest} to {most}"
        site.find("SG212", f"{variant.label} takes {allowed} input(s), not {site.input_count}")
        good = False
    elif not all(site.has_input(index) for index in range(fewest)):
        site.find("SG212", f"{variant.label} needs its first {fewest} input(s); an empty name stands in place of one")
        good = False
    fewest_out, most_out = variant.outputs
    if len(site.outputs) < fewest_out or (most_out is not None and len(site.outputs) > most_out):
        site.find(
            "SG212",
            f"{variant.label} has {fewest_out if most_out is None else most_out} output(s) "
            f"{'or more' if most_out is None else 'at most'}, not {len(site.outputs)}",
        )
        good = False
    return good


def _check_attributes(variant: Variant, site: SplitSite) -> bool:
    good = True
    for name in site.attribute_names():
        kind = variant.attributes.get(name)
        if kind is None:
            allowed = ", ".join(variant.attributes) or "no attributes"
            hint = explain_misplaced(variant.op_type, variant.since_version, name, site)
            site.find("SG212", f"{variant.label} has no attribute {name!r}; it has {allowed}{hint}")
            good = False
            continue
        value = site.attribute(name)
        if value is not None and value is not UNRESOLVED and not isinstance(value, _PYTHON_KINDS[kind]):
            site.find("SG212", f"attribute {name!r} of {variant.label} must be of type {kind.upper()}")
            good = False
    return good


def _check_data(variant: Variant, site: SplitSite) -> bool:
    if site.input_count == 0:
        return True
    data = site.input(0)
    if data.kind not in ("tensor", "unknown"):
        site.find("SG213", f"{variant.label} splits a tensor, not a value of kind {data.kind}")
        return False
    if data.dtype is None or variant.dtypes is None or data.dtype in variant.dtypes:
        return True
    site.find("SG210", f"{variant.label} does not take {data.dtype}; it takes {', '.join(sorted(variant.dtypes))}")
    return False


def explain_misplaced(op_type: str, since_version: int, name: str, site: SplitSite) -> str:
    """Return what is known of an attribute that a version does not have, to follow the message; "" if nothing is known.

    Source: models/README.md on c2f.opset17.dynamo.onnx.
    """
    if (op_type, name) != ("Split", "num_outputs") or since_version >= 18:
        return ""
    ways = (
        "export the model again with opset 18",
        "set its opset import to 18 if all of its other operators mean the same there",
    )
    wrong = ""
    if site.attribute(name) != len(site.outputs):
        wrong = f" Here it is not even the number of outputs, {len(site.outputs)}."
    fault = "it exists from Split-18 on, but PyTorch's dynamo exporter is known to write it below"
    return f". A fault of the exporter: {fault}.{wrong} Either {'; or '.join(ways)}"


# Nodes that are invalid or not understood ----------------------------------------------------------------------------


class WrittenSplit(NamedTuple):
    """The axis and the lengths as a node gives them, not checked.

    axis: non-negative where rank and axis fit, else as written; None when unknown. lengths: None for an unknown one;
    empty when nothing gives their number.
    """

    axis: int | None
    lengths: tuple[DimLike | None, ...]


def read_written(variant: Variant, site: SplitSite) -> WrittenSplit:
    """Read what can be read of a split node, whatever is wrong with it; nothing is reported and nothing concluded."""
    if variant.op_type == "StringSplit":
        return WrittenSplit(None, ())
    axis = _axis(variant, site)
    lengths = _given_lengths(variant, site)
    return WrittenSplit(axis, _counted_parts(variant, site, axis) if lengths is None else lengths)


def _axis(variant: Variant, site: SplitSite) -> int | None:
    if "axis" in variant.attributes:
        axis = site.attribute("axis", 0)
    else:
        contents = site.contents(1)
        axis = None if contents is None else contents.scalar
    if not isinstance(axis, int):
        return None
    rank = site.input(0).rank
    return axis if rank is None or not -rank <= axis < rank else axis % rank


def _given_lengths(variant: Variant, site: SplitSite) -> tuple[DimLike | None, ...] | None:
    """Return the lengths of the input or attribute that has them, in any version; None if neither is given."""
    position = 2 if variant.op_type == "VariadicSplit" else 1
    if "num_splits" not in variant.attributes and site.has_input(position):
        contents = site.contents(position)
        shape = site.input(position).shape if contents is None else contents.shape
        if shape is None or (variant.op_type == "SplitToSequence" and not shape):
            # A scalar is the size of each part of a sequence.
            return None
        if contents is not None:
            return tuple(map(_length, contents.items))
        count = shape[0] if len(shape) == 1 else None
        return (None,) * count if isinstance(count, int) and count <= MAX_UNKNOWN else None
    given = site.attribute("split")
    return tuple(map(_length, given)) if isinstance(given, tuple) else None


def _length(item: object) -> DimLike | None:
    if isinstance(item, float) and item.is_integer():
        return int(item)
    return item if isinstance(item, (int, Dim)) else None


def _counted_parts(variant: Variant, site: SplitSite, axis: int | None) -> tuple[DimLike | None, ...]:
    """Return the parts that num_outputs or num_splits counts. They have the same size, as far as the dimension is known
    and has room for them.
    """
    equal = "num_splits" in variant.attributes
    count = site.attribute("num_splits" if equal else "num_outputs")
    if not isinstance(count, int) or not 0 < count <= MAX_ITEMS:
        return ()
    rank = site.input(0).rank
    total = dimension_on(site.input(0), axis) if rank is not None and axis is not None and 0 <= axis < rank else None
    if not isinstance(total, int) or (equal and total % count):
        return (None,) * count
    size = -(-total // count)
    rest = total - (count - 1) * size
    parts = (size if (part + 1) * size <= total else None for part in range(count - 1))
    return (*parts, rest if rest >= 0 else None)
