"""What a pipeline of OpenVINO does with splitgraph; each check runs in the child that `test_in_pipelines` starts."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
from onnx import helper
from openvino import opset13 as op
from openvino.passes import Manager

import splitgraph
import splitgraph.openvino as pipeline
from splitgraph.formats.kinds import RuntimeModel

DIMS = (6, -1, ov.Dimension(3, 12))


def everything(dim: Any = 6) -> ov.Model:
    """Splits of both types: in the main graph, in the branches of an If, in the body of a Loop."""
    x, condition = op.parameter([2, dim], np.float32, name="x"), op.parameter([], np.bool_, name="condition")
    split = op.split(x, -1, 3)
    split.set_friendly_name("split")
    split.set_rt_info("kept", "mine")
    for index, port in enumerate(split.outputs()):
        port.set_names({f"part_{index}", f"alias_{index}"})
    then_x, else_x = (op.parameter([2, dim], np.float32) for _ in range(2))
    inner = op.split(then_x, 1, 2)
    inner.set_friendly_name("inner")
    rest = op.variadic_split(else_x, np.array([1]), np.array([3, -1], np.int32))
    rest.set_friendly_name("rest")
    branches = ov.Model([inner.output(0)], [then_x], "then"), ov.Model([rest.output(1)], [else_x], "else")
    choice = op.if_op(condition)
    choice.set_friendly_name("choice")
    choice.set_then_body(branches[0])
    choice.set_else_body(branches[1])
    choice.set_input(x.output(0), then_x, else_x)
    chosen = choice.set_output(branches[0].results[0], branches[1].results[0])
    body_x = op.parameter([2, dim], np.float32)
    halves = op.split(body_x, 1, 2)
    halves.set_friendly_name("halves")
    swapped = op.concat([halves.output(1), halves.output(0)], 1)
    going = op.constant(True)
    loop = op.loop(op.constant(3), op.constant(True))
    loop.set_friendly_name("loop")
    loop.set_function(ov.Model([going.output(0), swapped.output(0)], [body_x], "body"))
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(body_x, x.output(0), swapped.output(0))
    looped = loop.get_iter_value(swapped.output(0), -1)
    return ov.Model([*split.outputs(), chosen, looped], [x, condition], "everything")


def run(model: ov.Model) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    return [np.array(each) for flag in (True, False) for each in compiled([x, np.array(flag)]).values()]


def assert_same(left: list[np.ndarray], right: list[np.ndarray]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def splits(model: ov.Model) -> dict[str, str]:
    """Name and type of every split, bodies included."""
    found = {}
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind in ("Split", "VariadicSplit"):
            found[node.get_friendly_name()] = kind
        for index in range({"If": 2, "Loop": 1}.get(kind, 0)):
            found |= splits(node.get_function(index) if kind == "If" else node.get_function())
    return found


def variadic(lengths: Any, *, dim: Any = 6, axis: Any = 1, dtype: type = np.int64) -> ov.Model:
    x = op.parameter([2, dim], np.float32, name="x")
    return ov.Model(op.variadic_split(x, axis, np.array(lengths, dtype)).outputs(), [x], "variadic")


def check_splits_become_variadic_and_back_in_every_body() -> None:
    for dim in DIMS:
        model = everything(dim)
        expected = run(model)
        forward = pipeline.SplitToVariadicSplit()
        manager = Manager()
        manager.register_pass(forward)
        manager.run_passes(model)
        assert splits(model) == dict.fromkeys(("split", "inner", "rest", "halves"), "VariadicSplit")
        assert sorted(change.location for change in forward.changes) == [
            "main/choice/then_body/inner",
            "main/loop/body/halves",
            "main/split",
        ]
        assert not forward.diagnostics
        assert_same(expected, run(model))
        assert forward.run_on_model(model) is False
        back = pipeline.VariadicSplitToSplit()
        is_static = dim == 6
        assert back.run_on_model(model) is is_static
        assert set(splits(model).values()) == {"Split" if is_static else "VariadicSplit"}
        assert len(back.diagnostics) == (0 if is_static else 4)
        assert_same(expected, run(model))


def check_names_and_runtime_information_stay() -> None:
    model = everything()
    for each in (pipeline.SplitToVariadicSplit(), pipeline.VariadicSplitToSplit()):
        assert each.run_on_model(model)
        (node,) = (node for node in model.get_ordered_ops() if node.get_friendly_name() == "split")
        assert node.get_rt_info()["mine"].value == "kept"
        assert [port.get_names() for port in node.outputs()] == [
            {f"part_{index}", f"alias_{index}"} for index in range(3)
        ]
        assert model.output("part_2").get_partial_shape() == ov.PartialShape([2, 2])


def check_what_split_cannot_express_stays_with_the_reason() -> None:
    reasons = {
        "these are 2, 4": variadic([2, 4]),
        "these are 2, 3, 1": variadic([2, -1, 1]),
        "cannot pin one that is dynamic": variadic([3, 3], dim=-1),
        "do not sum": variadic([5, 3, -1]),
    }
    x, axis = op.parameter([2, 6], np.float32, name="x"), op.parameter([], np.int64, name="axis")
    of_unknown_axis = ov.Model(op.variadic_split(x, axis, [3, 3]).outputs(), [x, axis], "m")
    reasons["the axis or the rank is known only at run time"] = of_unknown_axis
    lengths = op.parameter([2], np.int64, name="lengths")
    reasons["lengths are known only"] = ov.Model(op.variadic_split(x, 1, lengths).outputs(), [x, lengths], "m")
    for reason, model in reasons.items():
        each = pipeline.VariadicSplitToSplit()
        assert each.run_on_model(model) is False
        assert not each.changes
        assert [found.code for found in each.diagnostics] == ["SG408"]
        assert reason in each.diagnostics[0].message, each.diagnostics


def check_equal_lengths_however_they_are_written() -> None:
    x = op.parameter([2, 6], np.float32, name="x")
    halved = op.divide(op.constant(np.array([6, 6])), op.constant(np.array([2, 2])))
    computed = ov.Model(op.variadic_split(x, 1, halved).outputs(), [x], "computed")
    for model in (
        variadic([3, -1]),
        variadic([-1, 2, 2], dtype=np.int8),
        variadic([3, 3], axis=np.array([-1], np.int32), dtype=np.uint64),
        variadic([-1]),
        computed,
    ):
        (expected,) = (run_plain(model),)
        each = pipeline.VariadicSplitToSplit()
        assert each.run_on_model(model) is True, each.diagnostics
        assert set(splits(model).values()) == {"Split"}
        assert_same(expected, run_plain(model))


def run_plain(model: ov.Model) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(model, "CPU")
    return [np.array(each) for each in compiled([np.arange(12, dtype=np.float32).reshape(2, 6)]).values()]


def check_a_model_goes_to_ir_in_memory_and_back() -> None:
    model = everything()
    read = pipeline.from_ov_model(model)
    assert read.path is None
    assert_same(run(model), run(pipeline.to_ov_model(read)))
    assert_same(run(model), run(pipeline.to_ov_model(pipeline.from_ov_model(pipeline.to_ov_model(read)))))


def check_the_verbs_take_and_give_an_ov_model() -> None:
    model = everything()
    analysis = splitgraph.infer(model)
    assert isinstance(analysis.model, ov.Model)
    assert [split.lengths for split in analysis.splits if split.name == "split"] == [(2, 2, 2)]
    rewrite = splitgraph.convert(model, "variadic-split")
    assert isinstance(rewrite.model, ov.Model)
    assert splits(model)["split"] == "Split"
    assert splits(rewrite.model)["split"] == "VariadicSplit"
    assert_same(run(model), run(rewrite.model))


def check_a_pass_is_given_what_the_verbs_take() -> None:
    """OpenVINO hands a pass its own class of model, not the one that users make."""
    seen: list[Any] = []

    class Looking(ov.passes.ModelPass):
        def run_on_model(self, model: Any) -> bool:
            seen.append(splitgraph.infer(model))
            return False

    manager = Manager()
    manager.register_pass(Looking())
    manager.run_passes(everything())
    assert [len(analysis.splits) for analysis in seen] == [4]


def check_extensions_map_functions_onto_variadic_split() -> None:
    node = helper.make_node("Split", ["x"], ["a", "b", "c"], axis=-1, num_outputs=3)
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, "N"])]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, None]) for name in "abc"]
    plain = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    model = splitgraph.convert(plain, "variadic-split").model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        for given in (None, model, [3]):
            core = ov.Core()
            core.add_extension(pipeline.extensions(given))
            assert list(splits(core.read_model(path)).values()) == ["VariadicSplit"]
        converted = ov.convert_model(path, extension=pipeline.extensions())
    assert list(splits(converted).values()) == ["VariadicSplit"]
    parts = run_plain(converted)
    np.testing.assert_array_equal(np.concatenate(parts, 1), np.arange(12, dtype=np.float32).reshape(2, 6))


def check_wrong_arguments_are_told_in_one_line() -> None:
    for wrong in (5, [0], ["a"], object()):
        try:
            pipeline.extensions(wrong)
        except splitgraph.SplitgraphError as error:
            assert "\n" not in str(error)
        else:
            raise AssertionError(f"extensions takes {wrong!r}")
    try:
        pipeline.from_ov_model("model.xml")
    except splitgraph.ModelError as error:
        assert "ov.Model" in str(error)
    else:
        raise AssertionError("from_ov_model takes a path")


def check_the_examples_of_the_page_on_openvino() -> None:
    page = (Path(__file__).parents[2] / "docs" / "openvino.md").read_text("utf-8")
    models = Path(__file__).parents[2] / "models"
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    here, told = os.getcwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            onnx.save(onnx.load(models / "split18_num_outputs.onnx"), "model.onnx")
            with contextlib.redirect_stdout(told):
                exec("\n".join(blocks), {})
        finally:
            os.chdir(here)
    changed, found = told.getvalue().splitlines()
    assert changed.startswith("[] [")
    assert "Split makes equal parts" in changed
    assert "(3, 3, 1)" in found


def check_type_checkers_are_told_what_a_model_has() -> None:
    """OpenVINO has no types that a type checker would read."""
    told = [name for name in vars(RuntimeModel) if name.startswith("get_")]
    assert told and all(callable(getattr(ov.Model, name)) for name in told), told
