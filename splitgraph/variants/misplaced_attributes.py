"""Attributes that exporters write at versions of an operator that do not have them, and what to do about it."""

from __future__ import annotations

from splitgraph.canonical import SplitSite


def explain_misplaced(op_type: str, since_version: int, name: str, site: SplitSite) -> str:
    """What is known of an attribute that a version does not have, to follow the message; "" when nothing is.

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
