"""What of a node does not fit a version of its operator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from splitgraph.model.attributes import make_attribute
from splitgraph.model.schemas.fit import misfits
from splitgraph.model.schemas.history import meant_version

# Operator, opset, attributes, inputs and outputs, and what is said of them.
NODES: list[tuple[str, int, dict[str, object], Sequence[str], Sequence[str], list[str]]] = [
    ("Squeeze", 11, {"axes": [0]}, "x", "y", []),
    ("Squeeze", 13, {"axes": [0]}, "x", "y", ["has no attribute axes"]),
    ("Squeeze", 11, {}, "xa", "y", ["has no input 1"]),
    ("Squeeze", 11, {"axes": 0}, "x", "y", ["has no attribute axes of this type"]),
    ("Concat", 13, {}, "xx", "y", ["needs the attribute axis"]),
    ("Concat", 13, {"axis": 0}, "", "y", ["needs the input inputs"]),
    # One of several inputs is left out.
    ("Concat", 13, {"axis": 0}, ("x", ""), "y", ["needs the input inputs"]),
    ("Resize", 10, {}, "x", "y", ["needs the input scales"]),
    ("Resize", 13, {}, ("x", "", "s"), "y", []),
    # Of several outputs, each may be left out.
    ("Split", 13, {}, "x", ("", "b"), []),
    ("Split", 13, {}, "x", "", ["needs the output outputs"]),
    ("Dropout", 13, {}, ("", "r"), "ymz", ["needs the input data", "has no output 2"]),
    # An attribute of a function, as long as no call tells it.
    ("Concat", 13, {"axis": None}, "x", "y", []),
]


@pytest.mark.parametrize(("op", "opset", "given", "inputs", "outputs", "said"), NODES)
def test_what_does_not_fit(
    op: str, opset: int, given: dict[str, object], inputs: Sequence[str], outputs: Sequence[str], said: list[str]
) -> None:
    version = meant_version(op, opset)
    assert version is not None
    attributes = {name: None if value is None else make_attribute(name, value) for name, value in given.items()}
    assert [str(each) for each in misfits(version, attributes, list(inputs), list(outputs))] == said


def test_what_is_too_many_has_the_name_of_its_own_version() -> None:
    old, own = meant_version("Squeeze", 11), meant_version("Squeeze", 13)
    assert old is not None and own is not None
    assert [str(each) for each in misfits(old, {}, ["x", "a"], ["y"], own)] == ["has no input axes"]
