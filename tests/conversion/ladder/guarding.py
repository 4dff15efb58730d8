"""One node given to the generic guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from splitgraph.conversion.ladder.guard import AttributeEdit, NodeFacts, check_node
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
) -> tuple[list[AttributeEdit], list[Diagnostic]]:
    names = [
        [f"{letter}{i}" for i in range(n)] if isinstance(n, int) else list(n)
        for letter, n in (("x", inputs), ("y", outputs))
    ]
    node = helper.make_node(op, *names, name="n", domain=domain, **attributes)
    for name, number in references:
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name="outer", type=number))
    before = node.SerializeToString()
    result = check_node(NodeFacts(node, source, target, dtypes, out, "main/n", in_function, kinds, shapes, out_kinds))
    assert node.SerializeToString() == before
    assert all(d.severity == "error" and d.location == "main/n" and d.help for d in result[1])
    return result


def edited(edits: Sequence[AttributeEdit]) -> dict[str, Any]:
    assert all(edit.why for edit in edits)
    values = {edit.name: None if edit.value is None else helper.get_attribute_value(edit.value) for edit in edits}
    assert all((edit.action == "remove") == (edit.value is None) for edit in edits)
    return values
