"""What a file in this folder declares of its operator version, and the checks that follow from that alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.canonical import CanonicalSplit, SplitSite
from splitgraph.value_type import UNKNOWN, ValueType
from splitgraph.variants.lowering import LowerRequest
from splitgraph.variants.misplaced_attributes import explain_misplaced

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
    """The types of separate outputs, one for each part; of unknown shape where the split is invalid."""
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


def check_signature(variant: Variant, site: SplitSite) -> bool:
    """Report what the operator's signature forbids: inputs, outputs, attributes, kind and element type of the data.
    True when nothing.
    """
    checks = (_check_counts(variant, site), _check_attributes(variant, site), _check_data(variant, site))
    return all(checks)


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
            known = explain_misplaced(variant.op_type, variant.since_version, name, site)
            site.find("SG212", f"{variant.label} has no attribute {name!r}; it has {allowed}{known}")
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


def infer_split(variant: Variant, site: SplitSite) -> tuple[CanonicalSplit | None, Sequence[ValueType]]:
    """Check a node against its operator version, lift it, and give its canonical form (None when invalid) and its
    outputs' types.
    """
    if not check_signature(variant, site):
        return None, variant.output_types(site, None)
    split = None if variant.lift is None else variant.lift(site)
    return split, variant.output_types(site, split)
