"""Every Split of the matrix from opset 11 on as VariadicSplit and back, and with explicit lengths, by execution.

As with the conversion matrix, a seeded part by default and another with `-m slow`; SPLITGRAPH_MATRIX=1 is all of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx
import onnx.inliner
import pytest

import splitgraph

from .matrix_checks import differences, execute, graphs, unsound
from .matrix_models import SCOPES, Case, build, feeds_of
from .matrix_selection import ALL, MANY, covering, report

FROM_11 = [case for case in ALL if case.opset >= 11]
CHOSEN = covering(FROM_11, 30)


def written_forms(model: onnx.ModelProto) -> list[tuple[object, ...]]:
    """Of each Split its outputs, how many inputs it has, and what is in its attributes but for the axis."""
    return [
        (
            list(node.output),
            len(node.input),
            [
                (attribute.name, attribute.i, list(attribute.ints))
                for attribute in node.attribute
                if attribute.name != "axis"
            ],
        )
        for graph in graphs(model)
        for node in graph.node
        if node.op_type == "Split"
    ]


def variadic_failures(case: Case) -> list[str]:
    """What is wrong with a case as VariadicSplit, and back."""
    model, feeds = build(case), feeds_of(case)
    expected = execute(model, feeds)
    variadic = splitgraph.convert(model, "variadic-split").model
    wrong = [*unsound(model, variadic, case.opset), *differences(expected, execute(variadic, feeds))]
    if written_forms(variadic):
        wrong.append("a Split is left")
    if splitgraph.convert(variadic, "variadic-split").model != variadic:
        wrong.append("converting twice is not converting once")
    back = splitgraph.convert(variadic, "split").model
    wrong += [*unsound(model, back, case.opset), *differences(expected, execute(back, feeds))]
    if written_forms(back) != written_forms(model):
        wrong.append(f"came back as {written_forms(back)} instead of {written_forms(model)}")
    if any(function.domain == "org.splitgraph" for function in back.functions):
        wrong.append("a function is left")
    return wrong


def explicit_failures(case: Case) -> list[str]:
    """What is wrong with a case whose lengths are written out."""
    model, feeds = build(case), feeds_of(case)
    original = model.SerializeToString(deterministic=True)
    try:
        explicit = splitgraph.convert(model, "split", explicit_lengths=True).model
    except splitgraph.ConversionError as error:
        # Below opset 13 lengths are an attribute, so those of a dynamic dimension cannot be written.
        allowed = case.version == 11 and case.parts == "none" and case.shape != "static"
        return [] if allowed and model.SerializeToString(deterministic=True) == original else [f"refused: {error}"]
    # Local functions are inlined, which gives their nodes other names.
    inlined = onnx.inliner.inline_local_functions(model) if model.functions else model
    wrong = [*unsound(inlined, explicit, case.opset), *differences(execute(model, feeds), execute(explicit, feeds))]
    for _, inputs, attributes in written_forms(explicit):
        if inputs != 2 and "split" not in [name for name, *_ in attributes]:
            wrong.append("a Split has no lengths")
    if splitgraph.convert(explicit, "split", explicit_lengths=True).model != explicit:
        wrong.append("converting twice is not converting once")
    return wrong


def slice_failures(case: Case) -> list[str]:
    """What is wrong with a case as slices, and with what these are joined to."""
    model, feeds = build(case), feeds_of(case)
    expected = execute(model, feeds)
    slices = splitgraph.convert(model, "slice").model
    wrong = [*unsound(model, slices, case.opset), *differences(expected, execute(slices, feeds))]
    if written_forms(slices):
        wrong.append("a Split is left")
    joined = splitgraph.convert(slices, "split").model
    return [*wrong, *unsound(model, joined, case.opset), *differences(expected, execute(joined, feeds))]


def failures(chosen: Iterable[Case]) -> list[str]:
    """Everything that is wrong with these cases."""
    checks = (variadic_failures, explicit_failures, slice_failures)
    return [f"{case}: {what}" for case in chosen for check in checks for what in check(case)]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.sample(2)
def test_forms(scope: str) -> None:
    found = failures(case for case in CHOSEN if case.scope == scope)
    assert not found, report(found)


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES)
def test_many_forms(scope: str) -> None:
    found = failures(case for case in covering(FROM_11, MANY) if case.scope == scope)
    assert not found, report(found)


@pytest.mark.parametrize("case", covering((case for case in FROM_11 if case.scope == "main"), 12), ids=str)
def test_variadic_splits_survive_another_opset(case: Case) -> None:
    """The function is written in operators that mean the same at every opset from 11 on."""
    model, feeds = build(case), feeds_of(case)
    variadic = splitgraph.convert(model, "variadic-split").model
    newest = onnx.defs.onnx_opset_version()
    moved = splitgraph.upgrade(variadic, newest).model
    assert not list(unsound(variadic, moved, newest))
    assert not list(differences(execute(model, feeds), execute(moved, feeds)))
    plain = splitgraph.convert(moved, "split").model
    assert not list(differences(execute(model, feeds), execute(plain, feeds)))
