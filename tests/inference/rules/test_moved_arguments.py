"""An argument that became an input is read as an input: no rule takes the default of an attribute that is gone.

A rule that is older than the version would claim dimensions that are wrong, without a finding. A newer onnx brings the
node tests that show such a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from node_tests import node_tests

from splitgraph.inference import infer_model
from splitgraph.inference.context import NodeContext
from splitgraph.model.schemas import newest_opset, version_at, versions_of
from splitgraph.model.schemas.table import TABLE


def _moved() -> Iterator[tuple[str, str]]:
    """Yield each operator of ai.onnx with an input that an older version has as an attribute."""
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines())
    for op_type in sorted({row[1] for row in rows if row[0] == ""}):
        newest = version_at("", op_type, newest_opset())
        attributes = {name for version in versions_of("", op_type) for name in version.attributes}
        for formal in () if newest is None else newest.inputs:
            name = formal.name.lower()
            if newest is not None and name in attributes and name not in newest.attributes:
                yield op_type, name


MOVED = list(_moved())


def _asked_names(op_type: str, monkeypatch: pytest.MonkeyPatch) -> set[str] | None:
    """Return the attributes that the rule asks for in the node tests of an operator; None if onnx has no such test."""
    newest, asked = version_at("", op_type, newest_opset()), set[str]()
    assert newest is not None
    read = NodeContext.attribute

    def noting(ctx: NodeContext, name: str, default: Any = None) -> Any:
        if ctx.node.op_type == op_type and ctx.since_version == newest.since_version:
            asked.add(name)
        return read(ctx, name, default)

    monkeypatch.setattr(NodeContext, "attribute", noting)
    cases = [case for case in node_tests() if [node.op_type for node in case.model.graph.node] == [op_type]]
    for case in cases:
        infer_model(case.model)
    return asked if cases else None


def test_the_table_has_moved_arguments() -> None:
    assert {("ReduceSum", "axes"), ("Split", "split"), ("TopK", "k")} <= {*MOVED}


@pytest.mark.parametrize(("op_type", "name"), MOVED, ids=lambda each: str(each))
def test_a_rule_asks_for_no_attribute_that_is_an_input(
    op_type: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked_names(op_type, monkeypatch)
    assert asked is None or name not in asked, (
        f"{name} is an input of {op_type} now: let the rule in splitgraph/inference/rules read that input (`input_of`)"
    )
