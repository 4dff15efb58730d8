"""Which IR version an opset needs."""

from __future__ import annotations

import onnx
from onnx import helper


def minimum_ir_version(opset: int) -> int:
    """The IR version of the onnx release that introduced an ai.onnx opset, the least that such a model may have.

    Opsets that no release stopped at (2, 3 and 4) have that of the next. Raises ValueError for an opset that the
    installed onnx does not know. Source: the table of released versions in onnx.helper.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}, the opsets of the installed onnx")
    released = helper.OP_SET_ID_VERSION_MAP.items()
    # The table of onnx 1.22 lacks that release itself, whose opset 27 is of the IR version that it writes.
    return min(
        (ir for (domain, version), ir in released if domain == "ai.onnx" and version >= opset), default=onnx.IR_VERSION
    )
