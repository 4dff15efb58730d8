"""One file per version of each split operator: what it means, how it is read, how it is written.

In: a node, as a `SplitSite` shows it. `infer_split` checks the node against the signature in its `Variant`, and the
variant's `lift` reads it into the canonical split, an axis and lengths (`splits/canonical.py`). Out: the `lower` of any
variant writes a canonical split as a node of that version (`lowering` says with what).

What several versions share is in `shared`; `slices` writes a split as Slice nodes. A new version is one file with a
VARIANT and one line here.
"""

from __future__ import annotations

from splitgraph.splits import (
    openvino_split_1,
    split_1,
    split_2,
    split_11,
    split_13,
    split_18,
    split_to_sequence_11,
    split_to_sequence_24,
    string_split_20,
    variadic_split_1,
)
from splitgraph.splits.variant import Variant, infer_split

VARIANTS: tuple[Variant, ...] = (
    split_1.VARIANT,
    split_2.VARIANT,
    split_11.VARIANT,
    split_13.VARIANT,
    split_18.VARIANT,
    split_to_sequence_11.VARIANT,
    split_to_sequence_24.VARIANT,
    string_split_20.VARIANT,
    openvino_split_1.VARIANT,
    variadic_split_1.VARIANT,
)

SPLIT_OPERATORS = frozenset(variant.op_type for variant in VARIANTS if variant.domain == "")

_BY_VERSION = {(variant.domain, variant.op_type, variant.since_version): variant for variant in VARIANTS}


def variant_of(op_type: str, since_version: int, domain: str = "") -> Variant | None:
    """Return the variant of an operator at exactly this version; None when it is not a split, or a version that
    splitgraph does not know.
    """
    return _BY_VERSION.get((domain, op_type, since_version))


def variant_at(op_type: str, opset: int, domain: str = "") -> Variant | None:
    """Return the newest variant of an operator at or below an opset; None when it does not exist there."""
    candidates = [v for v in VARIANTS if v.op_type == op_type and v.domain == domain and v.since_version <= opset]
    return max(candidates, key=lambda variant: variant.since_version, default=None)


__all__ = ["SPLIT_OPERATORS", "VARIANTS", "Variant", "infer_split", "split_18", "variant_at", "variant_of"]
