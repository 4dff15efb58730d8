"""What is nested too deep is found and named, by every verb and without a RecursionError; what is not, is inferred."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from nested_models import (
    branches,
    calls,
    calls_in_branches,
    calls_twice,
    loops,
    nested_type,
    optional_values,
    out_of_order,
    sequences_in_branches,
    unknown_bodies,
)
from onnx import ModelProto, TensorProto, helper

import splitgraph
from splitgraph.conversion import inlining
from splitgraph.model.scopes import MOST_NESTED, inlined_nodes, nested_depth
from splitgraph.verification.inputs.model_inputs import find_uses
from splitgraph.verification.models.dependence import outputs_of_inputs

Make = Callable[[int], ModelProto]

GRAPHS: list[Make] = [branches, loops, calls_in_branches, unknown_bodies, out_of_order]
TYPES: list[Make] = [partial(nested_type, kind=f"{kind}_type") for kind in ("sequence", "optional", "map")]
DEPTHS = [MOST_NESTED + 1, 250, 600]
# Those that only have to be refused take seconds for the largest depth.
DEPTHS_REFUSED = [MOST_NESTED + 1, 250, pytest.param(600, marks=pytest.mark.slow)]

CONVERSIONS = {
    "upgrade": lambda model: splitgraph.upgrade(model, 21),
    "downgrade": lambda model: splitgraph.downgrade(model, 17),
    "convert": lambda model: splitgraph.convert(model, "split", explicit_lengths=True),
    "convert to variadic-split": lambda model: splitgraph.convert(model, "variadic-split"),
}


def nesting(model: ModelProto) -> list[str]:
    found = splitgraph.infer(model).diagnostics
    return [each.message for each in found if each.code == "SG114" and each.severity == "error"]


@pytest.mark.parametrize("make", [*GRAPHS, *TYPES])
@pytest.mark.sample(3)
def test_what_is_nested_as_deep_as_is_looked_into(make: Make) -> None:
    model = make(MOST_NESTED)
    assert nesting(model) == []
    for convert in CONVERSIONS.values():
        convert(model)


@pytest.mark.parametrize("depth", range(MOST_NESTED - 4, MOST_NESTED + 1))
def test_inferred_types_make_no_file_that_protobuf_does_not_read(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(sequences_in_branches(depth).SerializeToString())
    splitgraph.save(splitgraph.infer(path).model, tmp_path / "typed.onnx")
    assert splitgraph.infer(tmp_path / "typed.onnx").ok


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("make", GRAPHS)
@pytest.mark.sample(5)
def test_graphs_that_are_nested_too_deep(make: Make, depth: int) -> None:
    (message,) = nesting(make(depth))
    assert f"nested {depth:,} levels deep; at most {MOST_NESTED} levels" in message


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("make", TYPES)
def test_types_that_are_nested_too_deep(make: Make, depth: int) -> None:
    ends = f"is nested {depth:,} levels deep; at most {MOST_NESTED} levels are supported"
    assert nesting(make(depth)) == [f"the type of {name!r} {ends}" for name in ("x", "y")]


@pytest.mark.parametrize("depth", DEPTHS_REFUSED)
@pytest.mark.parametrize("make", [*GRAPHS, *TYPES])
@pytest.mark.sample(5)
def test_conversions_refuse_what_is_nested_too_deep(make: Make, depth: int) -> None:
    model = make(depth)
    before = model.SerializeToString()
    for convert in CONVERSIONS.values():
        with pytest.raises(splitgraph.ConversionError) as caught:
            convert(model)
        assert caught.value.diagnostics[0].code == "SG114"
    assert model.SerializeToString() == before


@pytest.mark.parametrize("depth", DEPTHS_REFUSED)
@pytest.mark.parametrize("make", [*GRAPHS, *TYPES])
@pytest.mark.sample(5)
def test_models_that_are_nested_too_deep_are_not_run(make: Make, depth: int) -> None:
    verification = splitgraph.verify(make(depth), make(depth))
    (found,) = verification.diagnostics
    assert (verification.verdict, found.code) == ("not-run", "SG501") and f"{depth:,}" in found.message


@pytest.mark.parametrize("depth", [2, 40, 400, 2000])
def test_values_that_nodes_nest_in_one_another(depth: int) -> None:
    """Which ONNX does not allow, so that each of them but the first is an error."""
    found = splitgraph.infer(optional_values(depth))
    assert {each.code for each in found.diagnostics} == {"SG302"}
    assert (found.types["y"].kind == "unknown") == (depth > MOST_NESTED)


@pytest.mark.parametrize("depth", [1, 250, pytest.param(2000, marks=pytest.mark.slow)])
def test_functions_that_call_each_other_in_no_branch_are_followed(depth: int) -> None:
    model = calls(depth)
    found = splitgraph.infer(model)
    assert found.ok and [str(each) for each in found.types["y"].shape or ()] == ["N"]
    for convert in CONVERSIONS.values():
        convert(model)


MEASURED = [
    (branches(0), 0, 1),
    (branches(5), 5, 11),
    (loops(5), 5, 11),
    (calls(3000), 0, 3001),
    (calls_in_branches(3000), 3000, 9002),
    (calls_twice(60), 0, 2**62 - 2),
]


@pytest.mark.parametrize(("model", "depth", "count"), MEASURED)
def test_depth_and_number_of_nodes(model: ModelProto, depth: int, count: int) -> None:
    assert (nested_depth(model), inlined_nodes(model)) == (depth, count)


def test_depth_of_functions_that_call_themselves() -> None:
    model = calls_in_branches(3)
    # The last function calls the first one.
    model.functions[3].node[0].CopyFrom(model.functions[0].node[0])
    model.functions[3].node[0].attribute[0].g.node[0].op_type = "f0"
    assert 3 <= nested_depth(model) <= 8 and inlined_nodes(model) < 100
    assert "SG102" in [each.code for each in splitgraph.infer(model).diagnostics]


@pytest.mark.parametrize(
    ("make", "depth", "words"),
    [
        (calls_in_branches, MOST_NESTED + 1, f"{MOST_NESTED + 1} graphs would be nested"),
        (calls_twice, 60, "the model would have 4,611,686,018,427,387,902 nodes"),
    ],
)
def test_functions_that_cannot_be_written_out(make: Make, depth: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        inlining.inline_functions(make(depth))


def test_functions_that_onnx_does_not_write_out() -> None:
    """The inliner of newer onnx has a limit for calls in one another; older ones have none."""
    converted = splitgraph.convert(calls(2000), "split", explicit_lengths=True)
    assert [each.code for each in converted.diagnostics] == ["SG413"]
    assert (len(converted.model.functions) > 0) == (converted.diagnostics[0].severity == "warning")


@pytest.mark.parametrize("make", [calls_twice, calls])
def test_what_verification_asks_of_functions_takes_no_longer_than_they_are(make: Make) -> None:
    model = make(1000 if make is calls else 60)
    assert {use.node.op_type for use in find_uses(model)["x"]} >= {"Split"}
    assert [outputs_of_inputs(model, [name]) for name in "xck"] == [{0}, {0}, set()]


@pytest.mark.parametrize(("depth", "is_refused"), [(1, False), (8, False), (25, True), (MOST_NESTED, True)])
def test_branches_that_are_copied_over_each_other(depth: int, is_refused: bool) -> None:
    """Below opset 11 a branch that never runs becomes a copy of the other one, which doubles what is in it."""
    model = branches(depth)
    model.graph.input[1].name = "unused"
    model.graph.initializer.append(helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    if is_refused:
        with pytest.raises(splitgraph.ConversionError, match="which is too many"):
            splitgraph.downgrade(model, 9)
        return
    converted = splitgraph.downgrade(model, 9).model
    assert inlined_nodes(converted) == 2 ** (depth + 1) - 1
