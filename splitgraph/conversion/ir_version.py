"""Which IR version an opset needs."""

from __future__ import annotations

from onnx import helper


def minimum_ir_version(opset: int) -> int:
    """The IR version of the onnx release that introduced an ai.onnx opset, the least that such a model may have.

    Opsets that no release stopped at (2, 3 and 4) have that of the next. Raises ValueError for an opset that the
    installed onnx does not know. Source: the table of released versions in onnx.helper.
    """
    newest = max(version for domain, version in helper.OP_SET_ID_VERSION_MAP if domain == "ai.onnx")
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}, the opsets of the installed onnx")
    return min(
        ir for (domain, version), ir in helper.OP_SET_ID_VERSION_MAP.items() if domain == "ai.onnx" and version >= opset
    )
