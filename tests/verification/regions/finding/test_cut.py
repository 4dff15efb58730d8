"""Models of regions: the same bytes for layers that repeat, everything that runs alone, and what differs in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.inference import infer_model
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.cut import (
    cut_out,
    has_same_kernels,
    has_same_operators,
    have_other_constants,
)
from splitgraph.verification.regions.finding.find import ModelRegions

from ..model_pairs import Pair

F, I64 = np.float32, np.int64
LINE = "float[N, 3] x => float[N, 3] y"
K: dict[str, Any] = {"c": F(2), "d": F(2), "e": F(3), "w": np.eye(3, dtype=F), "v": np.eye(3, dtype=F)}


def compared(pair: Pair) -> tuple[ComparedModel, ComparedModel]:
    before, after = (ComparedModel(model, model, infer_model(model, fill=False)) for model in pair.models())
    return before, after


def cut(pair: Pair) -> list[tuple[onnx.ModelProto, onnx.ModelProto]]:
    """Return the models of each region, before and after."""
    found = ModelRegions(*compared(pair))
    return [(cut_out(region, found.before, 0), cut_out(region, found.after, 1)) for region in found.regions]


def text(model: onnx.ModelProto) -> str:
    """Return the nodes of a model as text."""
    return "; ".join(f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})" for node in model.graph.node)


def test_layers_that_repeat_give_the_same_bytes() -> None:
    before = "a = MatMul(x, w) b = Relu(a) p = MatMul(b, v) q = Relu(p) y = MatMul(q, w)"
    after = "a = MatMul(x, w) z = Sub(a, a) b = Max(a, z) p = MatMul(b, v) n = Sub(p, p) q = Max(p, n) y = MatMul(q, w)"
    regions = cut(Pair(LINE, before, after, constants=K))
    assert len(regions) == 2
    first, second = (tuple(model.SerializeToString(deterministic=True) for model in models) for models in regions)
    assert first == second
    assert text(regions[0][1]) == "value.0 = Sub(in.0, in.0); out.0 = Max(in.0, value.0)"


def test_layers_of_other_weights_give_other_bytes() -> None:
    before, after = "a = Add(x, c) y = Add(a, {})", "a = Sub(x, c) y = Sub(a, {})"
    for name, are_alike in (("d", True), ("e", False)):
        first, second = cut(Pair(LINE, before.format(name), after.format(name), constants=K))
        assert (first[0].SerializeToString() == second[0].SerializeToString()) is are_alike


CHOICE = (
    "g = Constant<value = bool {{1}}>() a = Exp(x) y = If(g) <then_branch = t () => (float[N, 3] p) "
    "{{ p = Mul(a, {0}) }}, else_branch = e () => (float[N, 3] q) {{ q = Identity(a) }}>"
)
CALL = '<opset_import: ["": 18], domain: "local"> f (a) => (b) {{ k = Constant<value_float = {}>() b = Mul(a, k) }}'
UNUSED = CALL.replace(" f (", " u (").format(1.0)
# What the two models of the only region are.
FOUND: dict[str, tuple[Pair, str, str]] = {
    "constants that are read": (
        Pair(LINE, "a = Mul(x, c) y = Add(a, e)", "a = Mul(x, c) y = Sub(a, e)", constants=K),
        "out.0 = Add(in.0, constant.0)",
        "out.0 = Sub(in.0, constant.0)",
    ),
    "an input of one side alone": (
        Pair("float[N] x, float[N] v => float[N] y", "y = Mul(x, v)", "y = Neg(x)"),
        "out.0 = Mul(in.0, in.1)",
        "out.0 = Neg(in.0)",
    ),
    "an output that is an input of the other side": (
        Pair(LINE, "a = Mul(x, c) b = Neg(a) y = Neg(b)", "a = Mul(x, c) y = Identity(a)", constants=K),
        "value.0 = Neg(in.0); out.0 = Neg(value.0)",
        "out.0 = Identity(in.0)",
    ),
    "values that a body reads": (
        Pair(LINE, CHOICE.format("c"), CHOICE.format("e"), constants=K),
        "out.0 = If(constant.0)",
        "out.0 = If(constant.0)",
    ),
    "a function": (
        Pair(LINE, "y = local.f(x)", "y = local.f(x)", functions=(UNUSED + CALL.format(2.0), CALL.format(3.0))),
        "out.0 = f(in.0)",
        "out.0 = f(in.0)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_models_of_a_region(name: str) -> None:
    pair, before, after = FOUND[name]
    ((first, second),) = cut(pair)
    assert (text(first), text(second)) == (before, after)
    for model in (first, second):
        assert [value.name for value in model.graph.output] == ["out.0"]
        assert not any(node.name for node in model.graph.node)
        assert len(model.functions) == (name == "a function")
        defined = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
        defined |= {output for node in model.graph.node for output in node.output}
        inner = [each for node in model.graph.node for a in node.attribute if a.HasField("g") for each in a.g.node]
        assert {each for node in (*model.graph.node, *inner) for each in node.input} <= defined
    assert [value.name for value in first.graph.input] == [value.name for value in second.graph.input]


# Whether both have the same operators at the same places, the same kernels, and other constants.
ALIKE: dict[str, tuple[Pair, tuple[bool, bool, bool]]] = {
    "another operator": (Pair(LINE, "y = Exp(x)", "y = Log(x)"), (False, False, False)),
    "another attribute": (
        Pair(LINE, "y = LeakyRelu<alpha = 0.1>(x)", "y = LeakyRelu<alpha = 0.2>(x)"),
        (True, True, False),
    ),
    "another opset": (Pair(LINE, "y = Softmax(x)", "y = Softmax(x)", opset=12, opset_after=13), (True, False, False)),
    "another weight": (
        Pair(LINE, "y = MatMul(x, w)", "y = MatMul(x, w)", constants=K, changed={"w": 2 * np.eye(3, dtype=F)}),
        (True, True, True),
    ),
    "a weight within the tolerance": (
        Pair(LINE, "y = Mul(x, c)", "y = Mul(x, c)", constants=K, changed={"c": F(2.00001)}),
        (True, True, False),
    ),
    "a small weight beside a large one": (
        Pair(LINE, "y = Mul(x, r)", "y = Mul(x, r)", constants={"r": F([1e6, 1, 1])}, changed={"r": F([1e6, 1, 1.1])}),
        (True, True, True),
    ),
    "another integer": (
        Pair(
            "int64[N] x => int64[N] y",
            "y = Add(x, i)",
            "y = Add(x, i)",
            constants={"i": I64(10**6)},
            changed={"i": I64(10**6 + 1)},
        ),
        (True, True, True),
    ),
    "another shape": (
        Pair(LINE, "y = Mul(x, c)", "y = Mul(x, c)", constants=K, changed={"c": F([2])}),
        (True, True, True),
    ),
    "NaN in both": (
        Pair(
            LINE,
            "y = Mul(x, r)",
            "y = Mul(x, r)",
            constants={"r": F([np.nan, 1, 1])},
            changed={"r": F([np.nan, 1, 1.0000001])},
        ),
        (True, True, False),
    ),
    "a Constant node": (
        Pair(
            LINE, "k = Constant<value = float {1}>() y = Mul(x, k)", "k = Constant<value = float {2}>() y = Mul(x, k)"
        ),
        (True, True, True),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_differs_in_a_region(name: str) -> None:
    pair, expected = ALIKE[name]
    ((first, second),) = cut(pair)
    found = (
        has_same_operators(first, second),
        has_same_kernels(first, second),
        have_other_constants((first, second), compared(pair), 1e-4),
    )
    assert found == expected


# Whether an engine runs both with the same kernels.
KERNELS: dict[str, tuple[Pair, bool]] = {
    "behind an Identity": (Pair(LINE, "y = Exp(x)", "a = Identity(x) y = Exp(a)"), True),
    "in another order": (Pair(LINE, "a = Exp(x) y = Log(a)", "a = Log(x) y = Exp(a)"), True),
    "more often": (Pair(LINE, "y = Exp(x)", "a = Exp(x) y = Exp(a)"), True),
    "one more": (Pair(LINE, "y = Exp(x)", "a = Exp(x) y = Neg(a)"), False),
    "another version": (Pair(LINE, "y = Softmax(x)", "y = Softmax(x)", opset=12, opset_after=13), False),
    "another opset, the same version": (Pair(LINE, "y = Exp(x)", "y = Log(x)", opset=17, opset_after=18), False),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_same_kernels(name: str) -> None:
    pair, expected = KERNELS[name]
    assert has_same_kernels(*pair.models()) is expected


@pytest.mark.parametrize(("texts", "expected"), [([b"\xff", b"b"], False), ([b"\xff", b"c"], True), ([b"\xff"], True)])
def test_texts_need_not_be_utf_8(texts: list[bytes], expected: bool) -> None:
    held = [[b"\xff", b"b"], texts]
    pair = Pair("string[N] x => bool[N] y", "y = Equal(x, c)", "y = Equal(x, c)", opset=19)
    models = list(pair.models())
    for model, each in zip(models, held, strict=True):
        model.graph.initializer.append(onnx.helper.make_tensor("c", onnx.TensorProto.STRING, [len(each)], each))
    both = [ComparedModel(model, model, infer_model(model, fill=False)) for model in models]
    assert have_other_constants(models, both, 1e-4) is expected


def test_weights_in_another_file_are_read(tmp_path: Path) -> None:
    models = []
    for number, factor in enumerate((1, 1, 2)):
        model = Pair(LINE, "y = MatMul(x, w)", "y = Exp(x)", constants={"w": factor * np.eye(3, dtype=F)}).models()[0]
        path = tmp_path / f"model_{number}.onnx"
        onnx.save(model, path, save_as_external_data=True, location=f"weights_{number}.bin", size_threshold=0)
        models.append(onnx.load(path, load_external_data=False))
    pair = [ComparedModel(model, model, infer_model(model, fill=False), folder=tmp_path) for model in models]
    assert not have_other_constants(models[:2], pair[:2], 1e-4)
    assert have_other_constants(models[1:], pair[1:], 1e-4)
