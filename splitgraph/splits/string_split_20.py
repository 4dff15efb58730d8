"""StringSplit-20 (opset 20 on): every string of a tensor into its substrings.

Input: X (string). Attributes: delimiter (string; absent or empty: runs of whitespace, with none at the ends), maxsplit
(int; absent: no limit). Outputs: Y (string, the shape of X and one more dimension: the largest number of substrings,
shorter rows padded with ""), Z (int64, the shape of X: the number of substrings). It has no older form, and it does not
cut a dimension, so it has no canonical split.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.model.value_type import ValueType, tensor
from splitgraph.splits.canonical import CanonicalSplit, SplitSite
from splitgraph.splits.variant import Variant


def output_types(site: SplitSite, split: CanonicalSplit | None) -> Sequence[ValueType]:
    """Y gains a last dimension, known when the strings are constant; Z has the shape of X."""
    data = site.input(0)
    if data.shape is None or data.dtype not in (None, "string"):
        return [tensor("string", None), tensor("int64", None)]
    most = _most_substrings(site)
    return [tensor("string", (*data.shape, site.fresh() if most is None else most)), tensor("int64", data.shape)]


def _most_substrings(site: SplitSite) -> int | None:
    contents = site.contents(0)
    delimiter, limit = site.attribute("delimiter", ""), site.attribute("maxsplit", -1)
    if contents is None or not contents.items or not isinstance(delimiter, str) or not isinstance(limit, int):
        return None
    counts = [_count(item, delimiter, limit) if isinstance(item, str) else None for item in contents.items]
    known = [count for count in counts if count is not None]
    return max(known) if len(known) == len(counts) else None


def _count(text: str, delimiter: str, limit: int) -> int | None:
    # The specification does not say how many substrings "" has with a delimiter, nor which characters beyond ASCII are
    # whitespace; runtimes differ on both, so nothing is claimed.
    if delimiter:
        return len(text.split(delimiter, limit)) if text else None
    return len(text.split(None, limit)) if text.isascii() else None


VARIANT = Variant(
    op_type="StringSplit",
    domain="",
    since_version=20,
    inputs=(1, 1),
    outputs=(2, 2),
    attributes={"delimiter": "string", "maxsplit": "int"},
    dtypes=frozenset({"string"}),
    output_types=output_types,
)
