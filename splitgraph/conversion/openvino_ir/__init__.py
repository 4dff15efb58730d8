"""Rewriting the splits of OpenVINO IR in its own XML; everything else stays as it is written."""

from splitgraph.conversion.openvino_ir.convert import convert_ir

__all__ = ["convert_ir"]
