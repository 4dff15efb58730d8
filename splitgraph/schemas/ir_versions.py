"""The IR version that came with each opset of ai.onnx."""

from __future__ import annotations

from splitgraph.onnx_proto import IR_VERSION
from splitgraph.schemas.table import newest_opset

# The newest opset whose first release wrote each IR version.
_RELEASES = (
    (8, 3),
    (9, 4),
    (10, 5),
    (11, 6),
    (14, 7),
    (18, 8),
    (20, 9),
    (22, 10),
    (23, 11),
    (24, 12),
    (27, 13),
    (28, 14),
)


def minimum_ir_version(opset: int) -> int:
    """The IR version of the onnx release that introduced an opset of ai.onnx: the lowest for models of that opset.

    No release ended at opset 2, 3 or 4; these have the version of the next release. Raises ValueError for an unknown
    opset. Source: onnx's table of released versions.
    """
    newest = newest_opset(opset)
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}")
    # Only the installed onnx knows opsets beyond the table; it writes this IR version.
    return next((version for newest, version in _RELEASES if opset <= newest), IR_VERSION)
