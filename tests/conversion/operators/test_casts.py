"""Cast over opsets 6, 19 and 24."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conversion.operators.execute import build, converted, number_of, operators, refusal, run_reference
from onnx import helper

import splitgraph


def cast(opset: int, source: str, target: str, **attributes: int | str) -> onnx.ModelProto:
    """A cast to a type and on to float32, which tells what came out."""
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=number_of(target), **attributes),
        helper.make_node("Cast", ["narrow"], ["y"], to=number_of("float32")),
    ]
    return build(nodes, opset, {"x": (source, ("n",))}, {"y": ("float32", ("n",))})


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (cast(19, "float32", "float8e5m2", saturate=0), 18, "float8e5m2"),
        (cast(24, "float32", "float8e8m0", round_mode="down"), 23, "float8e8m0"),
        (cast(24, "string", "float8e5m2fnuz"), 23, "a string may mean infinity"),
    ],
)
def test_refused(model: onnx.ModelProto, target: int, words: str) -> None:
    assert words in refusal(model, target)


def test_attributes_without_effect_go() -> None:
    before = cast(24, "float32", "float16", saturate=0, round_mode="nearest")
    after = converted(before, 18)
    assert operators(after) == ["Cast", "Cast"]
    assert [held.name for held in after.graph.node[0].attribute] == ["to"]


NUMBERS = [np.inf, -np.inf, np.nan, 0.0, -1.5, 1e5, -1e5, 300.0]
GREATEST = {"float8e4m3fnuz": 240.0, "float8e5m2fnuz": 57344.0}


def expected(target: str, source: str, opset: int) -> list[float]:
    """The document's table of saturation: infinity gives NaN below 24, the greatest number from then on."""
    greatest = GREATEST[target]
    with np.errstate(all="ignore"):
        numbers = [float(number) for number in np.array(NUMBERS, source)]
    result = []
    for number in numbers:
        kept = np.nan if np.isinf(number) and opset < 24 else float(np.clip(number, -greatest, greatest))
        result.append(kept)
    return result


@pytest.mark.parametrize("target", list(GREATEST))
@pytest.mark.parametrize("source", ["float32", "float16"])
def test_infinity_in_fnuz_types(target: str, source: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(NUMBERS, source)
    down = converted(cast(24, source, target), 23)
    assert {"IsInf", "Where", "Sign"} <= set(operators(down))
    # The reference evaluator casts as opset 24 has it, so that only infinity tells the difference.
    found = run_reference(down, {"x": x})[0]
    inexact = np.array(NUMBERS) == 300.0
    assert np.array_equal(found[~inexact], np.array(expected(target, source, 24), "float32")[~inexact], equal_nan=True)
    up = converted(cast(23, source, target), 24)
    assert {"IsInf", "Where"} <= set(operators(up))
    found = run_reference(up, {"x": x})[0]
    assert np.array_equal(found[~inexact], np.array(expected(target, source, 23), "float32")[~inexact], equal_nan=True)


@pytest.mark.parametrize("way", [(23, 24), (24, 23)])
def test_what_has_no_infinity_is_kept(way: tuple[int, int]) -> None:
    assert operators(converted(cast(way[0], "int32", "float8e5m2fnuz"), way[1])) == ["Cast", "Cast"]
    assert operators(converted(cast(way[0], "float32", "float8e5m2fnuz", saturate=0), way[1])) == ["Cast", "Cast"]
    assert operators(converted(cast(way[0], "float32", "float8e5m2"), way[1])) == ["Cast", "Cast"]


@pytest.mark.parametrize("way", [(23, 24), (24, 23)])
def test_infinity_in_fnuz_types_of_another_input(way: tuple[int, int]) -> None:
    for target, kept in (("float8e5m2fnuz", False), ("float8e5m2", True)):
        node = helper.make_node("CastLike", ["x", "like"], ["y"])
        inputs = {"x": ("float32", ("n",)), "like": (target, (1,))}
        after = converted(build(node, way[0], inputs, {"y": (target, ("n",))}), way[1])
        assert (operators(after) == ["CastLike"]) == kept


@pytest.mark.parametrize("target", [5, 1])
@pytest.mark.parametrize(("op", "kind"), [("Cast", "float32"), ("Flatten", "int32")])
@pytest.mark.parametrize("is_in_branch", [False, True])
def test_types_below_6_are_declared(is_in_branch: bool, op: str, kind: str, target: int) -> None:
    """What Cast-1 gives has no type for onnx, which finds what reads it wrong: a Cast of the model, and one that is
    written, as Flatten takes no integers there.
    """
    attributes = {"to": number_of("int32")} if op == "Cast" else {}
    nodes = [helper.make_node(op, ["x"], ["a"], **attributes), helper.make_node("Unsqueeze", ["a"], ["y"], axes=[0])]
    inputs, outputs = {"x": (kind, (1, 3)), "c": ("bool", ())}, {"y": ("int32", (1, 1, 3))}
    if is_in_branch:
        branch = build(nodes, 9, {}, outputs).graph
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    before = build(nodes, 9, inputs, outputs)
    onnx.checker.check_model(before, full_check=True)
    assert ("Cast" in operators(converted(before, target))) == (not is_in_branch)
    assert not converted(before, 6).graph.value_info


@pytest.mark.parametrize("value", [b"\xff\xfe", 3, "float"], ids=repr)
@pytest.mark.parametrize("op", ["Cast", "Other"])
def test_what_others_call_to_declares_nothing(op: str, value: bytes | int | str) -> None:
    """Operators of other domains have attributes of that name, of any type."""
    before = cast(6, "float32", "int32")
    before.graph.node.append(helper.make_node(op, ["y"], ["other"], domain="other", to=value))
    before.opset_import.append(helper.make_opsetid("other", 1))
    declared = splitgraph.downgrade(before, 5, verify=False).model.graph.value_info
    assert [held.name for held in declared] == ["narrow"]
