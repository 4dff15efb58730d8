"""A result with an error that its source does not have is a fault of splitgraph: exit 70, and nothing is written."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from command_line.conftest import folder, run  # noqa: F401  # the command line in this process
from command_line.program import Run, files, split_model
from onnx import TensorProto, helper

import splitgraph
from splitgraph.findings.exit_codes import INTERNAL_ERROR
from splitgraph.many.job import Job, run_job
from splitgraph.options import Converting, Output
from splitgraph.work.task import FileTask

Spoil = Callable[[onnx.ModelProto], None]


def undefined_input(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "absent"


def output_twice(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Relu", ["x"], ["p0"]))


def unknown_attribute(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("beta", 1))


def other_type(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT8


def wrong_lengths(model: onnx.ModelProto) -> None:
    del model.graph.node[:]
    model.graph.initializer.append(helper.make_tensor("four", TensorProto.INT64, [2], [4, 4]))
    model.graph.node.append(helper.make_node("Split", ["x", "four"], ["p0", "p1"], axis=1))
    model.opset_import[0].version = 13


def no_such_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "absent"


SPOILS: dict[str, Spoil] = {
    spoil.__name__: spoil
    for spoil in (undefined_input, output_twice, unknown_attribute, other_type, wrong_lengths, no_such_output)
}
# By verb: the function that makes the result, and what is asked.
VERBS: dict[str, tuple[str, list[str]]] = {
    "upgrade": ("splitgraph.conversion.opset:convert_opset", ["upgrade", "--opset", "18"]),
    "downgrade": ("splitgraph.conversion.opset:convert_opset", ["downgrade", "--opset", "11"]),
    "opset": ("splitgraph.conversion.opset:convert_opset", ["convert", "--opset", "18"]),
    "split": ("splitgraph.conversion.splits.forms:convert_forms", ["convert", "--to", "split", "--explicit-lengths"]),
    "slice": ("splitgraph.conversion.splits.forms:convert_forms", ["convert", "--to", "slice"]),
    "variadic": ("splitgraph.conversion.splits.forms:convert_forms", ["convert", "--to", "variadic-split"]),
    "target": ("splitgraph.conversion.targets.convert:convert_for_target", ["convert", "--target", "onnx2torch"]),
}


def spoil_results(monkeypatch: pytest.MonkeyPatch, where: str, spoil: Spoil) -> None:
    module, name = where.split(":")
    held = importlib.import_module(module)
    make = getattr(held, name)

    def spoiled(*given: Any, **options: Any) -> Any:
        made = make(*given, **options)
        copy = onnx.ModelProto()
        copy.CopyFrom(made.model)
        spoil(copy)
        return replace(made, held=copy)

    monkeypatch.setattr(held, name, spoiled)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
@pytest.mark.parametrize("verify", [[], ["--no-verify"], ["--verify"]], ids=["", "no-verify", "verify"])
def test_nothing_wrong_is_written(
    run: Run,  # noqa: F811
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    spoil: Spoil,
    verify: list[str],
) -> None:
    where, arguments = VERBS[verb]
    before, content = files(folder), (folder / "model.onnx").read_bytes()
    spoil_results(monkeypatch, where, spoil)
    for output in (["-o", "out.onnx"], ["--in-place"]):
        code, out, err = run(*arguments[:1], "model.onnx", *arguments[1:], *output, *verify)
        assert (code, out) == (INTERNAL_ERROR, "")
        assert err.startswith("internal error: the result has an error that the model does not have: SG")
        assert "please report it" in err
    assert files(folder) == before
    assert (folder / "model.onnx").read_bytes() == content


@pytest.mark.usefixtures("folder")
def test_json_names_the_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    spoil_results(monkeypatch, VERBS["upgrade"][0], undefined_input)
    code, out, _ = run("upgrade", "model.onnx", "--opset", "18", "--json")
    assert code == INTERNAL_ERROR
    assert [found["code"] for found in json.loads(out)["diagnostics"]] == ["SG603"]


def test_infer_writes_no_wrong_model(
    run: Run,  # noqa: F811
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoil_results(monkeypatch, "splitgraph.inference:infer_model", undefined_input)
    assert run("infer", "model.onnx", "-o", "out.onnx")[0] == INTERNAL_ERROR
    with pytest.raises(splitgraph.InternalError):
        splitgraph.infer("model.onnx").save("out.onnx")
    assert files(folder) == {"model.onnx"}


@pytest.mark.usefixtures("folder")
def test_a_batch_tells_whose_fault_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil_results(monkeypatch, VERBS["upgrade"][0], undefined_input)
    spoil_results(monkeypatch, "splitgraph.inference:infer_model", undefined_input)
    works: list[FileTask] = [
        FileTask("upgrade", Path("model.onnx"), wanted=Converting(18), output=Output("out.onnx")),
        FileTask("infer", Path("model.onnx"), output=Output("out.onnx")),
    ]
    for work in works:
        outcome = run_job(Job("model.onnx", work))
        assert (outcome.status, outcome.code, outcome.output) == ("failed", INTERNAL_ERROR, None)
        assert [found.code for found in outcome.diagnostics] == ["SG603"]
    assert not Path("out.onnx").exists()


def test_an_ir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import splitgraph.conversion.openvino_ir as converting

    with zipfile.ZipFile(Path(__file__).parent / "formats/openvino_ir/corpus.zip") as archive:
        archive.extractall(tmp_path)
    (wrong,) = tmp_path.rglob("ovtp_vs_err_rank.xml")
    (valid,) = tmp_path.rglob("ovtp_vs_04_scalar_i16.xml")
    rewrite = splitgraph.convert(valid, "variadic-split")
    assert splitgraph.infer(rewrite.model).ok
    broken = replace(rewrite, held=splitgraph.load(wrong))
    monkeypatch.setattr(converting, "convert_ir", lambda *given, **options: broken)
    with pytest.raises(splitgraph.InternalError, match="SG211"):
        splitgraph.convert(valid, "variadic-split")


def bad_node_before(model: onnx.ModelProto) -> None:
    model.graph.node.insert(0, helper.make_node("Conv", ["x"], ["e"]))


def bad_node_behind(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Conv", ["x"], ["e"], name="new"))


def two_bad_nodes(model: onnx.ModelProto) -> None:
    bad_node_before(model)
    bad_node_behind(model)


def another_moved(model: onnx.ModelProto) -> None:
    """Neither of the accepted nodes has its place."""
    bad_node_before(model)
    next(node for node in model.graph.node if node.name == "bad").name = "renamed"


def of_another_code(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Split", ["x"], ["e", "f"], axis=7))


MORE: dict[str, Spoil] = {
    spoil.__name__: spoil for spoil in (bad_node_before, bad_node_behind, two_bad_nodes, another_moved, of_another_code)
}


@pytest.mark.parametrize("spoil", MORE.values(), ids=MORE)
@pytest.mark.parametrize("verb", ["upgrade", "slice"])
def test_an_error_beside_an_accepted_one_is_new(monkeypatch: pytest.MonkeyPatch, verb: str, spoil: Spoil) -> None:
    options = {"opset": 18} if verb == "upgrade" else {"to": "slice"}
    spoil_results(monkeypatch, VERBS["opset" if verb == "upgrade" else verb][0], spoil)
    with pytest.raises(splitgraph.InternalError, match="the result has an error that the model does not have"):
        splitgraph.convert(accepted_twice(), accept=["SG212"], **options)


def test_a_result_that_is_verified_is_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import splitgraph.conversion.opset
    from splitgraph import inference, verification

    given, verify, infer = list[Any](), verification.verify_models, inference.infer_model
    inferred = list[onnx.ModelProto]()

    def verified(before: Any, after: Any, running: Any, **options: Any) -> Any:
        given.append((after, options["analysis"]))
        return verify(before, after, running, **options)

    def counted(model: onnx.ModelProto, **options: Any) -> Any:
        inferred.append(model)
        return infer(model, **options)

    def walked(*given: Any) -> None:
        raise AssertionError("the result is walked once more")

    monkeypatch.setattr(verification, "verify_models", verified)
    monkeypatch.setattr(inference, "infer_model", counted)
    monkeypatch.setattr(inference, "walk_model", walked)
    assert splitgraph.upgrade(split_model(13), 18, verify=True).verified
    ((after, analysis),) = given
    assert [model for model in inferred if model is after] == [analysis.model]


# Near misses: errors that the source has, too -----------------------------------------------------------------------


def accepted_twice() -> onnx.ModelProto:
    model = split_model(13)
    model.graph.node.append(helper.make_node("Conv", ["x"], ["c"], name="bad"))
    model.graph.node.append(helper.make_node("Conv", ["x"], ["d"]))
    return model


def misdeclared() -> onnx.ModelProto:
    model = split_model(13, (2, 6))
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    for size in (2, 5):
        model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=size)
    return model


def accepted_in_a_function() -> onnx.ModelProto:
    """Two calls; --explicit-lengths writes the node of the body twice."""
    model = split_model(13)
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.ir_version = 8
    body = [helper.make_node("Conv", ["a"], ["b"], name="bad")]
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], body, model.opset_import[:1]))
    model.graph.node.extend(helper.make_node("F", ["x"], [name], domain="own") for name in ("c", "d"))
    return model


WRITTEN_OUT = {"to": "split", "explicit_lengths": True}
KEPT: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "an accepted error": (accepted_twice(), {"accept": ["SG212"]}),
    "an accepted error in a function": (accepted_in_a_function(), {"accept": ["SG212"]}),
    "a wrongly declared shape": (misdeclared(), {}),
    "a default that a caller may replace": (split_model(13), {"assume_defaults": True}),
}


@pytest.mark.parametrize(("model", "options"), KEPT.values(), ids=KEPT)
@pytest.mark.parametrize(
    "wanted", [{"opset": 18}, {"to": "slice"}, {"to": "variadic-split"}, {"target": "onnx2torch"}, WRITTEN_OUT]
)
def test_what_the_source_has_is_kept(model: onnx.ModelProto, options: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert splitgraph.convert(model, **wanted, **options).changes or "target" in wanted
