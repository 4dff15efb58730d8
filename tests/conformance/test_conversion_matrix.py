"""The conversion matrix: every Split, however its parts are given and wherever it stands, to every opset.

Each conversion is checker-valid and equal by execution, or refused with a reason; what may be refused is fixed in
matrix_checks. By default a seeded part of the matrix that covers every pair of factors runs, with `-m slow` another, of
about a third of it. SPLITGRAPH_MATRIX=1 makes that all of it, SPLITGRAPH_MATRIX=N one case in N.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import pytest
from known_opsets import known

import splitgraph
from splitgraph.splits import VARIANTS, Variant

from .matrix_checks import check_conversion, check_return, convert, differences, execute, has_run_time_lengths, unsound
from .matrix_models import (
    OPSETS,
    PARTS,
    SCOPES,
    TARGETS,
    VERSIONS,
    Case,
    build,
    feeds_of,
    finish_model,
    value_info,
)
from .matrix_selection import ALL, MANY, covering, pairs, report

GROUPS = [(version, scope) for version in VERSIONS for scope in SCOPES if not (version == 1 and scope == "scan")]


CHOSEN = covering(ALL, 60)


def failures(chosen: Iterable[Case]) -> list[str]:
    """What is wrong with the conversions of these cases to every target, and with the way up and back."""
    found = []
    for case in chosen:
        model, feeds = build(case), feeds_of(case)
        onnx.checker.check_model(model, full_check=True)
        expected = execute(model, feeds)
        for target in TARGETS:
            wrong = check_conversion(case, model, feeds, expected, target)
            upward = target > case.opset and not (case.version == 1 and has_run_time_lengths(case))
            if upward and not wrong:
                wrong = check_return(case, model, feeds, expected, target)
            found += [f"{case} -> {target}: {what}" for what in wrong]
    return found


def in_group(chosen: Iterable[Case], version: int, scope: str) -> list[Case]:
    """The cases of one version in one scope."""
    return [case for case in chosen if (case.version, case.scope) == (version, scope)]


@pytest.mark.parametrize(("version", "scope"), GROUPS)
@pytest.mark.sample(6)
def test_matrix(version: int, scope: str) -> None:
    found = failures(in_group(CHOSEN, version, scope))
    assert not found, report(found)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "scope"), GROUPS)
def test_much_of_the_matrix(version: int, scope: str) -> None:
    found = failures(in_group(covering(ALL, MANY), version, scope))
    assert not found, report(found)


@pytest.mark.parametrize(
    "variant", [variant for variant in VARIANTS if (variant.domain, variant.op_type) == ("", "Split")]
)
def test_every_version_is_in_the_matrix(variant: Variant) -> None:
    assert variant.since_version in PARTS, (
        f"say in PARTS and OPSETS of tests/conformance/matrix_models.py how {variant.label} is given its parts, and at "
        "which opsets; and in matrix_checks.py what may be refused"
    )


def test_chosen_cases_cover_every_pair_of_factors() -> None:
    every, chosen = (set().union(*(pairs(case) for case in group)) for group in (ALL, CHOSEN))
    assert chosen == every
    assert all(in_group(CHOSEN, *group) for group in GROUPS)


# Every pair of opsets, for one model of each kind: the targets above are ten, the sources one for each version.


@pytest.mark.parametrize("source", range(1, onnx.defs.onnx_opset_version() + 1))
@pytest.mark.sample(7)
def test_constant_lengths_go_from_every_opset_to_every_opset(source: int) -> None:
    version = max(version for version in VERSIONS if OPSETS[version][0] <= source)
    parts = "attribute" if version <= 11 else "initializer"
    found = []
    for even in (True, False):
        case = Case(version, source, parts, even, "negative", "main", "symbolic")
        model, feeds = build(case), feeds_of(case)
        expected = execute(model, feeds)
        for target in range(1, onnx.defs.onnx_opset_version() + 1):
            wrong = check_conversion(case, model, feeds, expected, target)
            found += [f"{case} -> {target}: {what}" for what in wrong]
    assert not found, report(found)


# The same model again, where only the form matters -----------------------------------------------------------------


def static_case(version: int, opset: int, parts: str, scope: str = "main") -> Case:
    return Case(version, opset, parts, False, "explicit", scope, "static")


@pytest.mark.parametrize("target", known([13, 17, 18, 28]))
@pytest.mark.parametrize("scope", SCOPES)
def test_attribute_lengths_come_back_as_they_were(target: int, scope: str) -> None:
    model = build(static_case(11, 11, "attribute", scope))
    # The IR version of opset 11 has no functions.
    back = splitgraph.downgrade(convert(model, 11, target).model, 11, ir_version="keep").model
    assert back.ir_version >= model.ir_version
    back.ir_version = model.ir_version
    # What a body of Scan gives is declared on the way, which onnxruntime needs.
    for scan in (node for node in back.graph.node if node.op_type == "Scan"):
        for value in scan.attribute[0].g.output:
            assert value.type.tensor_type.HasField("shape")
            value.type.tensor_type.ClearField("shape")
    assert back == model


@pytest.mark.parametrize("parts", ["initializer", "constant", "graph_input", "overridable", "arithmetic"])
@pytest.mark.parametrize("target", known([18, 21, 28]))
def test_lengths_inputs_come_back_as_they_were(parts: str, target: int) -> None:
    model = build(static_case(13, 13, parts))
    back = convert(convert(model, 13, target).model, target, 13).model
    back.ir_version = model.ir_version
    assert back == model


def test_equal_parts_of_a_divisible_dimension_come_back_as_they_were() -> None:
    model = build(Case(13, 13, "none", True, "explicit", "main", "static"))
    back = convert(convert(model, 13, 18).model, 18, 13).model
    back.ir_version = model.ir_version
    assert back == model


# The forms that the target is given ----------------------------------------------------------------------------------


def splits(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "Split"]


def test_equal_parts_stay_equal_parts() -> None:
    model = build(Case(11, 11, "none", True, "explicit", "main", "symbolic"))
    for target, names in ((2, ["axis"]), (1, ["axis"]), (13, ["axis"]), (18, ["axis", "num_outputs"])):
        (node,) = splits(convert(model, 11, target).model)
        assert list(node.input) == ["data"]
        assert sorted(attribute.name for attribute in node.attribute) == names


def test_lengths_stay_lengths() -> None:
    model = build(static_case(11, 11, "attribute"))
    (up,) = splits(convert(model, 11, 18).model)
    assert len(up.input) == 2
    assert [attribute.name for attribute in up.attribute] == ["axis"]


def test_uneven_chunks_become_static_lengths_below_18() -> None:
    model = build(Case(18, 18, "num_outputs", False, "explicit", "main", "static"))
    converted = convert(model, 18, 17).model
    (node,) = splits(converted)
    lengths = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in converted.graph.initializer}
    assert lengths[node.input[1]].tolist() == [3, 3, 1]


def test_split_1_axis_is_always_written() -> None:
    model = build(Case(2, 2, "attribute", True, "default", "main", "static"))
    (node,) = splits(convert(model, 2, 1).model)
    assert onnx.helper.get_node_attr_value(node, "axis") == 0


# Models that the product above does not hold -------------------------------------------------------------------------


@pytest.mark.parametrize("omitted", [0, 1, 2])
@pytest.mark.parametrize(
    "case", covering((case for case in ALL if case.scope == "main" and case.count == 3), 12), ids=str
)
def test_omitted_outputs_are_named(case: Case, omitted: int) -> None:
    """onnxruntime crashes on a Split with an output left out."""
    model, feeds = build(case), feeds_of(case)
    (node,) = splits(model)
    node.output[omitted] = ""
    for entries in (model.graph.node, model.graph.output):
        kept = [entry for entry in entries if f"after{omitted}" != entry.name != f"out{omitted}"]
        del entries[:]
        entries.extend(kept)
    expected = execute(model, feeds)
    found = []
    for target in TARGETS:
        wrong = check_conversion(case, model, feeds, expected, target)
        found += [f"{case} -> {target}: {what}" for what in wrong]
    assert not found, report(found)


@pytest.mark.parametrize("target", TARGETS)
def test_initializers_that_must_be_inputs(target: int) -> None:
    """Below IR version 4 every initializer is an input, so constants that a rewrite adds are nodes."""
    case = Case(18, 18, "num_outputs", False, "negative", "main", "static")
    model, feeds = build(case), feeds_of(case)
    model.ir_version = 3
    converted = convert(model, 18, target).model
    assert not converted.graph.initializer
    assert not list(unsound(model, converted, target))
    assert not list(differences(execute(model, feeds), execute(converted, feeds)))


@pytest.mark.parametrize(("dims", "count"), [((4, 5), 3), ((5, 3), 4), ((3, 2), 5), ((0, 1), 2), ((12, 7), 5)])
@pytest.mark.parametrize("shape", ["static", "symbolic"])
def test_chunks_that_overrun_the_dimension_are_empty(dims: tuple[int, int], count: int, shape: str) -> None:
    """Runtimes disagree on chunks that overrun; splitgraph writes what the reference evaluator gives, as lengths."""
    for dim in dims:
        model = chunks_model(dim if shape == "static" else "N", count)
        feeds = [{"x": np.arange(dim * 2, dtype=np.float32).reshape(dim, 2)}]
        expected = execute(model, feeds)
        for target in (11, 13, 17, 21):
            converted = convert(model, 18, target).model
            assert not list(differences(expected, execute(converted, feeds))), f"{dim} into {count} at {target}"


def chunks_model(dim: int | str, count: int) -> onnx.ModelProto:
    """Split-18 with num_outputs on the first of two dimensions."""
    names = [f"part{index}" for index in range(count)]
    node = onnx.helper.make_node("Split", ["x"], names, name="split", num_outputs=count)
    outputs = [value_info(name, onnx.TensorProto.FLOAT, [None, 2]) for name in names]
    graph = onnx.helper.make_graph([node], "chunks", [value_info("x", onnx.TensorProto.FLOAT, [dim, 2])], outputs)
    return finish_model(18, graph)
