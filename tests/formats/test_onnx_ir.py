"""Models of onnx_ir go in and come out as such, with everything that a ModelProto would have kept, and untouched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.formats import give_back, open_model
from splitgraph.formats.onnx_ir_model import is_onnx_ir

from .tiny_models import add_model, float_value, model_of, write_external_model

CHECKOUT = Path(__file__).parents[2]
WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def everything(ir_version: int = 10) -> onnx.ModelProto:
    """Metadata everywhere, a function with types, a subgraph with weights, a sequence, strings, denotations, and the
    name of a quantization's scale.
    """
    x, y = float_value("x", ("N", 6)), float_value("y", ("N", None))
    x.type.denotation = "TENSOR"
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    inner = numpy_helper.from_array(np.array(5, np.float32), "inner")
    then = helper.make_graph([helper.make_node("Add", ["a", "inner"], ["t"])], "then", [], [float_value("t")], [inner])
    other = helper.make_graph([helper.make_node("Mul", ["b", "b"], ["e"])], "else", [], [float_value("e")])
    body = [
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2, np.float32))),
        helper.make_node("Mul", ["p", "two"], ["q"], name="twice"),
    ]
    function = helper.make_function("d", "F", ["p"], ["q"], body, [helper.make_opsetid("", 13)], overload="o")
    if ir_version >= 10:
        function.value_info.append(float_value("two", ()))
        function.metadata_props.add(key="made by", value="hand")
    nodes = [
        helper.make_node("Split", ["x", "lengths"], ["a", "b"], name="split", axis=1, doc_string="in two"),
        helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other),
        helper.make_node("F", ["i"], ["f"], domain="d", overload="o"),
        helper.make_node("SequenceConstruct", ["f", "w"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=-1),
        helper.make_node("Identity", ["words"], ["z"]),
    ]
    nodes[0].metadata_props.add(key="namespace", value="encoder")
    tensors = [
        numpy_helper.from_array(np.array([3, 3]), "lengths"),
        numpy_helper.from_array(WEIGHTS, "w"),
        numpy_helper.from_array(np.array([b"a", b"\xff"], object), "words"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [x, helper.make_tensor_value_info("c", TensorProto.BOOL, ())],
        [y, helper.make_tensor_value_info("z", TensorProto.STRING, [2])],
        tensors,
        value_info=[
            float_value("a", ("N", 3)),
            helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ("M", None)),
        ],
    )
    graph.value_info[0].metadata_props.add(key="from", value="the exporter")
    scale = graph.quantization_annotation.add(tensor_name="w")
    scale.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="inner")
    model = model_of(graph, 13, functions=[function], producer_name="p", domain="o.e", model_version=7, doc_string="d")
    model.ir_version = ir_version
    model.opset_import.add(domain="d", version=1)
    model.metadata_props.add(key="licence", value="none")
    return model


def split_model() -> onnx.ModelProto:
    """Parts of "N" rows, with lengths from weights."""
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Split", ["s", "l"], ["a", "b"], axis=1)]
    weights = [numpy_helper.from_array(WEIGHTS[0], "w"), numpy_helper.from_array(np.array([1, 2]), "l")]
    outputs = [float_value("a", (None, None)), float_value("b", (None, None))]
    return model_of(helper.make_graph(nodes, "g", [float_value("x", ("N", 3))], outputs, weights), 13)


def written(model: ir.Model) -> bytes:
    return ir.to_proto(model).SerializeToString(deterministic=True)


def as_ir(model: onnx.ModelProto) -> ir.Model:
    """Of a copy: an onnx_ir.Model reads its weights from the ModelProto."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return ir.from_proto(copy)


@pytest.mark.parametrize("value", [None, ir, ir.Model, add_model(), as_ir(add_model()).graph, "m.onnx"])
def test_what_is_no_model(value: object) -> None:
    assert not is_onnx_ir(value)


def test_a_graph_alone_is_refused() -> None:
    with pytest.raises(splitgraph.ModelError, match=r"an onnx_ir\.Model.*not onnx_ir.*Graph"):
        splitgraph.infer(as_ir(add_model()).graph)  # type: ignore[type-var]


@pytest.mark.parametrize("call", ["__all__", "infer(onnx.ModelProto())", "upgrade(sys.argv[1], 20)"])
def test_onnx_ir_is_not_imported_for_other_models(call: str) -> None:
    program = f"import onnx, sys, splitgraph; splitgraph.{call}; print('onnx_ir' in sys.modules)"
    arguments = [sys.executable, "-c", program, str(CHECKOUT / "models" / "split18_num_outputs.onnx")]
    run = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert run.stdout.strip() == "False"


VERBS: dict[str, Callable[[Any], Any]] = {
    "infer": splitgraph.infer,
    "infer with sizes": lambda model: splitgraph.infer(model, bind={"N": 4}),
    "upgrade": lambda model: splitgraph.upgrade(model, 18),
    "upgrade to where it is": lambda model: splitgraph.upgrade(model, 13),
    "downgrade": lambda model: splitgraph.downgrade(model, 11),
    "convert": lambda model: splitgraph.convert(model, "variadic-split"),
    "convert with another opset": lambda model: splitgraph.convert(model, "split", opset=18, explicit_lengths=True),
    "verified": lambda model: splitgraph.upgrade(model, 18, verify=True, samples=1, engine="reference"),
}
MODELS = {
    "splits": split_model(),
    "everything": everything(),
    "a function of an older IR version": everything(9),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("model", MODELS)
def test_the_result_is_that_of_a_model_proto(model: str, verb: str) -> None:
    """Of the ModelProto that onnx_ir writes, as its own changes of form are no business of splitgraph."""
    source = as_ir(MODELS[model])
    before = written(source)
    expected = VERBS[verb](ir.to_proto(source))
    found = VERBS[verb](source)
    assert isinstance(found.model, ir.Model)
    assert written(found.model) == written(ir.from_proto(expected.model))
    assert found.diagnostics == expected.diagnostics
    assert written(source) == before


def test_every_part_comes_back() -> None:
    model = splitgraph.upgrade(as_ir(everything()), 18).model
    (function,) = model.functions.values()
    values = {value.name: value for node in model.graph for value in node.outputs}
    split = next(node for node in model.graph if node.op_type == "Split")
    assert (model.producer_name, model.domain, model.model_version, model.doc_string) == ("p", "o.e", 7, "d")
    assert (model.metadata_props, model.opset_imports[""]) == ({"licence": "none"}, 18)
    assert (split.metadata_props, split.doc_string) == ({"namespace": "encoder"}, "in two")
    assert (function.overload, function.metadata_props) == ("o", {"made by": "hand"})
    assert function[0].outputs[0].type == ir.TensorType(ir.DataType.FLOAT)
    assert values["a"].metadata_props == {"from": "the exporter"}
    assert isinstance(values["s"].type, ir.SequenceType)
    assert model.graph.inputs[0].shape.get_denotation(0) == "DATA_BATCH"
    assert model.graph.initializers["words"].const_value.numpy().tolist() == [b"a", b"\xff"]
    assert np.array_equal(model.graph.initializers["w"].const_value.numpy(), WEIGHTS)


def test_verify_and_save(tmp_path: Path) -> None:
    model = as_ir(split_model())
    rewrite = splitgraph.upgrade(model, 18)
    assert splitgraph.verify(model, rewrite.model, engine="reference", samples=1).verdict == "equal"
    splitgraph.save(rewrite.model, tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == ir.to_proto(rewrite.model)
    with pytest.raises(splitgraph.ModelError, match="OpenVINO IR"):
        splitgraph.formats.save(model, tmp_path / "m.xml")


# Tensors -------------------------------------------------------------------------------------------------------------


def with_weight(tensor: Any) -> ir.Model:
    model = as_ir(split_model())
    model.graph.initializers["w"].const_value = tensor
    return model


def test_names_of_tensors_stay() -> None:
    """onnx_ir gives a tensor the name of its value when it writes it; one tensor may be of two values, and stays so."""
    tensor = ir.tensor(WEIGHTS[0], name="another")
    model = with_weight(tensor)
    model.graph.register_initializer(ir.Value(name="again", const_value=tensor))
    upgraded = splitgraph.upgrade(model, 18).model
    assert (tensor.name, model.graph.initializers["w"].const_value is tensor) == ("another", True)
    one, other = (upgraded.graph.initializers[name].const_value for name in ("w", "again"))
    assert (one is other, one.numpy().tolist()) == (True, [0, 1, 2])


def test_a_lazy_tensor_is_read() -> None:
    lazy = ir.LazyTensor(lambda: ir.tensor(WEIGHTS[0]), dtype=ir.DataType.FLOAT, shape=ir.Shape([3]), name="w")
    upgraded = splitgraph.upgrade(with_weight(lazy), 18).model
    assert upgraded.graph.initializers["w"].const_value.numpy().tolist() == [0, 1, 2]


def large_model(folder: Path) -> ir.Model:
    """Lengths and weights in a file, as `onnx_ir.load` reads them."""
    path = folder / "m.onnx"
    onnx.save(split_model(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    return ir.load(path)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("verb", VERBS)
def test_external_tensors_stay_in_their_file(verb: str, tmp_path: Path) -> None:
    model = large_model(tmp_path)
    before = written(model)
    found = VERBS[verb](model)
    # Its changes are compared, which are the same without verification.
    expected = VERBS["upgrade" if verb == "verified" else verb](split_model())
    weight = found.model.graph.initializers["w"].const_value
    assert (type(weight), weight.path) == (ir.ExternalTensor, str(tmp_path / "m.data"))
    assert weight.numpy().tolist() == [0, 1, 2]
    # Nothing of the caller's is shared: a name that is changed later is that of one model.
    assert weight is not model.graph.initializers["w"].const_value
    assert written(model) == before
    changes = getattr(found, "changes", ())
    assert changes == getattr(expected, "changes", ())


def heavy_model(folder: Path) -> ir.Model:
    """A tied weight of 256 KB in a file, another one of the same file, and lengths."""
    names = {"w": 256, "v": 128}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "tied"], ["i"])]
    nodes += [helper.make_node("MatMul", ["i", "v"], ["s"]), helper.make_node("Split", ["s", "l"], ["a", "b"], axis=1)]
    arrays = {name: np.full((256, columns), columns, np.float32) for name, columns in names.items()}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    weights.append(numpy_helper.from_array(np.array([28, 100]), "l"))
    outputs = [float_value("a", (None, None)), float_value("b", (None, None))]
    proto = model_of(helper.make_graph(nodes, "g", [float_value("x", ("N", 256))], outputs, weights), 13)
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    model = ir.load(folder / "m.onnx")
    tied = ir.Value(name="tied", const_value=model.graph.initializers["w"].const_value)
    model.graph.register_initializer(tied)
    matmul = next(node for node in model.graph if node.outputs[0].name == "i")
    matmul.replace_input_with(1, tied)
    return model


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("verb", VERBS)
def test_large_external_tensors_are_not_read(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = heavy_model(tmp_path)
    monkeypatch.setattr("splitgraph.model.tensor_data.SourceFile.read", None)
    found = VERBS[verb](model).model.graph.initializers
    tensors = {name: found[name].const_value for name in ("w", "tied", "v")}
    assert {(type(each), each.path) for each in tensors.values()} == {(ir.ExternalTensor, str(tmp_path / "m.data"))}
    assert tensors["w"] is tensors["tied"]
    assert [tensors[name].numpy()[0, 0] for name in ("w", "v")] == [256, 128]


def test_a_large_external_tensor_is_copied_when_it_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = heavy_model(tmp_path)
    monkeypatch.setattr("splitgraph.model.tensor_data.SourceFile.read", None)
    splitgraph.save(splitgraph.upgrade(model, 18).model, tmp_path / "new.onnx")
    splitgraph.save(model, tmp_path / "beside.onnx", external_data="beside")
    for name in ("new.onnx", "beside.onnx"):
        held = {each.name: numpy_helper.to_array(each) for each in onnx.load(tmp_path / name).graph.initializer}
        assert [held[name][0, 0] for name in ("w", "tied", "v")] == [256, 256, 128]


def test_a_tensor_that_is_renamed_keeps_its_file(tmp_path: Path) -> None:
    model = heavy_model(tmp_path)
    loaded = open_model(model)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(loaded.model)
    for tensor in renamed.graph.initializer:
        tensor.name += "2"
    for node in renamed.graph.node:
        node.input[1] += "2"
    tensor = give_back(renamed, loaded).graph.initializers["v2"].const_value
    assert (type(tensor), tensor.path, tensor.numpy()[0, 0]) == (ir.ExternalTensor, str(tmp_path / "m.data"), 128)


def test_large_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    model = heavy_model(tmp_path)
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "d").write_bytes(np.full((256, 256), number, np.float32).tobytes())
        value = model.graph.initializers[("w", "tied")[number]]
        value.const_value = ir.ExternalTensor(
            "d", 0, None, ir.DataType.FLOAT, shape=ir.Shape([256, 256]), name="w", base_dir=folder
        )
    found = splitgraph.upgrade(model, 18).model.graph.initializers
    assert [found[name].const_value.numpy()[0, 0] for name in ("w", "tied")] == [0, 1]


def test_what_is_shared_in_memory_stays_shared() -> None:
    tensor = ir.tensor(WEIGHTS[0], name="w")
    model = with_weight(tensor)
    for name in ("again", "other"):
        held = ir.tensor(WEIGHTS[0], name=name) if name == "other" else tensor
        model.graph.register_initializer(ir.Value(name=name, const_value=held))
    found = splitgraph.downgrade(model, 11).model.graph.initializers
    assert found["w"].const_value is found["again"].const_value
    assert found["w"].const_value is not found["other"].const_value


def test_contents_of_external_tensors_are_known(tmp_path: Path) -> None:
    """Lengths in a file are as good as those in the model."""
    analysis = splitgraph.infer(large_model(tmp_path))
    assert analysis.splits[0].lengths == (1, 2)


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    """Nothing but the folder differs, which a ModelProto cannot say."""
    model = as_ir(split_model())
    for number, value in enumerate((model.graph.initializers["w"], ir.Value(name="w2"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "d").write_bytes((WEIGHTS[0] + number).tobytes())
        shape = ir.Shape([3])
        value.const_value = ir.ExternalTensor("d", 0, 12, ir.DataType.FLOAT, shape=shape, name="w", base_dir=folder)
        model.graph.register_initializer(value)
    found = splitgraph.upgrade(model, 18).model.graph.initializers
    assert [found[name].const_value.numpy().tolist() for name in ("w", "w2")] == [[0, 1, 2], [1, 2, 3]]


def test_a_missing_file_matters_to_who_needs_it(tmp_path: Path) -> None:
    model = large_model(tmp_path)
    (tmp_path / "m.data").unlink()
    analysis = splitgraph.infer(model)
    weight = analysis.model.graph.initializers["w"].const_value
    assert (analysis.types["a"].dtype, weight.path) == ("float32", str(tmp_path / "m.data"))
    with pytest.raises(splitgraph.ModelError, match=r"'w' is in m\.data, which is missing"):
        splitgraph.save(model, tmp_path / "out.onnx")


@pytest.mark.parametrize(
    ("location", "words"), [("../secret", "leads outside the model's folder"), ("short", "needs 24 bytes from byte 0")]
)
def test_external_data_that_is_refused(location: str, words: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(24))
    path = write_external_model(folder, "short")
    (folder / "short").write_bytes(bytes(4))
    model = ir.load(path)
    tensor = model.graph.initializers["w"].const_value
    shape = ir.Shape([2, 3])
    model.graph.initializers["w"].const_value = ir.ExternalTensor(
        location, 0, None, tensor.dtype, shape=shape, name="w", base_dir=folder
    )
    with pytest.raises(splitgraph.ModelError, match=words) as caught:
        splitgraph.infer(model)
    assert caught.value.diagnostics[0].code == "SG107"


def test_weights_that_onnx_ir_has_overwritten(tmp_path: Path) -> None:
    model = large_model(tmp_path)
    model.graph.initializers["w"].const_value.invalidate()
    with pytest.raises(splitgraph.ModelError, match=r"'w' is in .*, which onnx_ir has overwritten since"):
        splitgraph.infer(model)


def test_a_model_is_not_written_over_its_own_weights(tmp_path: Path) -> None:
    model = large_model(tmp_path)
    with pytest.raises(splitgraph.ModelError, match="would be lost"):
        splitgraph.save(model, tmp_path / "m.data")
    splitgraph.save(model, tmp_path / "m.onnx")
    assert model.graph.initializers["w"].const_value.numpy().tolist() == [0, 1, 2]
    assert onnx.load(tmp_path / "m.onnx", load_external_data=False) == split_model_as_written()


def split_model_as_written() -> onnx.ModelProto:
    return ir.to_proto(as_ir(split_model()))


# What onnx_ir itself cannot do ---------------------------------------------------------------------------------------


def failing() -> Any:
    raise KeyError("the weights are gone")


def unwritable() -> ir.Model:
    return with_weight(ir.LazyTensor(failing, dtype=ir.DataType.FLOAT, shape=ir.Shape([3]), name="w"))


def without_a_graph() -> ir.Model:
    return ir.Model(None, ir_version=10)  # type: ignore[arg-type]


def with_two_values_of_one_name() -> ir.Model:
    model = as_ir(split_model())
    for node in model.graph:
        node.outputs[0].name = "same"
    return model


BROKEN = [
    (unwritable, "cannot be written as an ONNX model: KeyError: 'the weights are gone'"),
    (without_a_graph, "cannot be written as an ONNX model: "),
    (with_two_values_of_one_name, "cannot be read into an onnx_ir model: ValueError: Output 'same' is redeclared"),
]


@pytest.mark.parametrize(("make", "words"), BROKEN, ids=[make.__name__ for make, _ in BROKEN])
def test_a_broken_model(make: Callable[[], ir.Model], words: str) -> None:
    with pytest.raises(splitgraph.ModelError, match=words) as caught:
        splitgraph.infer(make())
    assert caught.value.diagnostics[0].code == "SG111"
    assert "\n" not in str(caught.value)


def test_what_onnx_ir_logs_is_a_finding(capfd: pytest.CaptureFixture[str]) -> None:
    model = as_ir(split_model())
    model.graph.initializers["w"].const_value = None
    analysis = splitgraph.infer(model)
    assert [(found.code, found.location) for found in analysis.diagnostics][:1] == [("SG105", "main/Add#0")]
    assert capfd.readouterr() == ("", "")


def test_opening_and_giving_back_changes_nothing() -> None:
    model = as_ir(everything())
    loaded = open_model(model)
    assert (loaded.kind, loaded.path) == ("onnx-ir", None)
    assert written(give_back(loaded.model, loaded)) == written(model)
