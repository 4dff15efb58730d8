"""One node given to the generic guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from splitgraph.conversion.ladder.guard import NodeFacts, check_node
from splitgraph.conversion.nodes.node import changed_attributes
from splitgraph.diagnostics import Diagnostic


def check(
    op: str,
    source: int,
    target: int,
    inputs: int | Sequence[str] = 1,
    outputs: int | Sequence[str] = 1,
    *,
    dtypes: Sequence[str | None] = ("float32",) * 8,
    out: Sequence[str | None] = ("float32",) * 8,
    kinds: Sequence[str | None] = ("tensor",) * 8,
    out_kinds: Sequence[str | None] = ("tensor",) * 8,
    shapes: Sequence[tuple[int | None, ...] | None] = (),
    in_function: bool = False,
    references: Sequence[tuple[str, int]] = (),
    domain: str = "",
    **attributes: Any,
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Return the attributes that the guard edits, None for those that it removes, and the blockers."""
    names = [
        [f"{letter}{i}" for i in range(n)] if isinstance(n, int) else list(n)
        for letter, n in (("x", inputs), ("y", outputs))
    ]
    node = helper.make_node(op, *names, name="n", domain=domain, **attributes)
    for name, number in references:
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name="outer", type=number))
    before = node.SerializeToString()
    made, why, blockers = check_node(
        NodeFacts(node, source, target, dtypes, out, "main/n", in_function, kinds, shapes, out_kinds)
    )
    assert node.SerializeToString() == before
    assert all(d.severity == "error" and d.location == "main/n" and d.help for d in blockers)
    assert bool(why) == (made is not None)
    return {} if made is None else edited(node, made.attributes), blockers


def edited(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> dict[str, Any]:
    """Return the attributes of a node that are others, or gone (None), among these attributes."""
    changed = changed_attributes(node, attributes)
    return {name: helper.get_attribute_value(attributes[name]) if name in attributes else None for name in changed}
