"""Models that lead to advice, by the name of their file; none has more than a few nodes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from fake_runtimes import REFUSES, WRONG, fake_python, write_program
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[2]
Value = tuple[str, Sequence[int | str] | None] | tuple[str, Sequence[int | str] | None, int]
node = helper.make_node


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    ir_version: int = 8,
    imports: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Return a model of a graph. Values are float32 unless an element type follows the shape."""
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(
        list(nodes), "g", [_info(*each) for each in inputs], [_info(*each) for each in outputs], initializers
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*each) for each in (imports or {}).items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=list(functions))


def _info(name: str, shape: Sequence[int | str] | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def _ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def _floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def relu(opset: int = 17, ir_version: int = 8, names: Sequence[int | str] = ("N", 4)) -> onnx.ModelProto:
    made = node("Relu", ["x"], ["y"], name="relu")
    return model([made], [("x", names)], [("y", names)], opset=opset, ir_version=ir_version)


def grid_sample() -> onnx.ModelProto:
    made = node("GridSample", ["x", "grid"], ["y"], name="sample")
    return model([made], [("x", ["N", 3, "H", "W"]), ("grid", ["N", 4, 4, 2])], [("y", None)], opset=20, ir_version=9)


def split(opset: int, shape: Sequence[int | str], parts: int, **attributes: object) -> onnx.ModelProto:
    names = [f"p{place}" for place in range(parts)]
    made = node("Split", ["x"], names, name="s", **{"axis": 1, **attributes})
    return model([made], [("x", shape)], [(name, None) for name in names], opset=opset)


def with_default() -> onnx.ModelProto:
    nodes = [node("Reshape", ["x", "shape"], ["y"], name="r")]
    return model(nodes, [("x", ["N", 4]), ("shape", [2], TensorProto.INT64)], [("y", None)], {"shape": _ints(-1, 4)})


def two_questions() -> onnx.ModelProto:
    """Two constants that may say the old size of x."""
    nodes = [
        node("Mul", ["x", "w"], ["m"]),
        node("ConstantOfShape", ["five"], ["z"], name="zeros"),
        node("Identity", ["k"], ["c"], name="k"),
    ]
    outputs: list[Value] = [("m", [1, 5]), ("z", [5]), ("c", [2, 5])]
    return model(nodes, [("x", [1, 5])], outputs, {"w": _floats(1), "five": _ints(5), "k": _floats(2, 5)})


def normalised_over_items() -> onnx.ModelProto:
    nodes = [node("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1), node("Sub", ["x", "m"], ["y"])]
    return model(nodes, [("x", [1, 4])], [("y", [1, 4])])


def counted_integers() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["y"]), node("Identity", ["n"], ["count"], name="count")]
    return model(
        nodes, [("x", [1, 3, 8, 8])], [("y", [1, 3, 8, 8]), ("count", [1], TensorProto.INT64)], {"n": _ints(64)}
    )


def two_first_dimensions() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["y"]), node("Relu", ["u"], ["v"])]
    return model(nodes, [("x", ["N", 4]), ("u", ["M", 4])], [("y", None), ("v", None)])


def old_reduce() -> onnx.ModelProto:
    """ReduceMean in the form of opset 13 at opset 18."""
    made = node("ReduceMean", ["x"], ["y"], name="mean", axes=[1])
    return model([made], [("x", ["N", 4])], [("y", None)], opset=18)


def wrong_declaration() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"], name="relu")], [("x", ["N", 4])], [("y", ["N", 5])])


def not_broadcast() -> onnx.ModelProto:
    return model([node("Add", ["x", "w"], ["y"], name="add")], [("x", ["N", 4])], [("y", None)], {"w": _floats(3)})


def out_of_order() -> onnx.ModelProto:
    nodes = [node("Relu", ["h"], ["y"], name="second"), node("Neg", ["x"], ["h"], name="first")]
    return model(nodes, [("x", ["N", 4])], [("y", ["N", 4])])


def zip_map() -> onnx.ModelProto:
    made = node("ZipMap", ["x"], ["z"], name="zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    found = model([made], [("x", [None, 2])], [], imports={"ai.onnx.ml": 1})
    key = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    found.graph.output.append(helper.make_value_info("z", helper.make_sequence_type_proto(key)))
    return found


def own_operator() -> onnx.ModelProto:
    made = node("Own", ["x"], ["y"], name="own", domain="mine")
    return model([made], [("x", ["N", 4])], [("y", ["N", 4])], imports={"mine": 1})


def newer_operator() -> onnx.ModelProto:
    """An operator that no old opset has, and runtimes hardly have."""
    made = node("StringSplit", ["x"], ["y", "n"], name="s")
    outputs: list[Value] = [("y", None, TensorProto.STRING), ("n", None, TensorProto.INT64)]
    return model([made], [("x", ["N"], TensorProto.STRING)], outputs, opset=20, ir_version=9)


def parsed(text: str, **constants: Any) -> onnx.ModelProto:
    """Return a model of onnx's text form; constants are initializers."""
    found = onnx.parser.parse_model(text)
    found.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()
    )
    return found


def size_rule() -> onnx.ModelProto:
    """Only a vector of one element has the shape that is computed from its elements."""
    return parsed("""<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[K] y) {
        zero = Sub(x, x) sum = ReduceSum(zero) one = Cos(sum) shape = Cast<to = 7>(one) y = Reshape(x, shape)
    }""")


def negative_logarithm() -> onnx.ModelProto:
    """Its outputs are NaN, and with empty inputs its Split gets no values."""
    return parsed("""<ir_version: 8, opset_import: ["": 13]> g (float[N, 4] x) => (float[N, M] a, float[N, L] b) {
        p = Abs(x) n = Neg(p) k = Log(n) a, b = Split<axis = 1>(k)
    }""")


def function_with_the_name_of_an_operator() -> onnx.ModelProto:
    return parsed("""<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float[N] y) { y = Relu(x) }
        <domain: "", opset_import: ["": 13]> Relu (a) => (b) { b = Neg(a) }""")


def default_of_the_length() -> onnx.ModelProto:
    """A default has the length that another input gets anew."""
    return model(
        [node("Add", ["x", "w"], ["y"], name="add")],
        [("x", [1, 5]), ("w", [1, 5])],
        [("y", [1, 5])],
        {"w": np.ones((1, 5), np.float32)},
    )


def one_longer() -> onnx.ModelProto:
    """The mask is one longer than x."""
    nodes = [node("Concat", ["x", "one"], ["longer"], axis=1), node("Add", ["longer", "mask"], ["y"], name="add")]
    return model(nodes, [("x", [1, 5]), ("mask", [1, 6])], [("y", [1, 6])], {"one": _floats(1, 1)})


def unnamed_output() -> onnx.ModelProto:
    """onnxruntime crashes on an output without a name."""
    made = node("Split", ["x"], ["a", ""], name="s", axis=1)
    return model([made], [("x", ["N", 6])], [("a", None)], opset=13)


def newer_parts() -> onnx.ModelProto:
    """Readers of older IR versions skip the configuration of devices."""
    made = relu(21, 11)
    made.configuration.add(name="two", num_devices=2)
    return made


def scaled() -> onnx.ModelProto:
    made = node("Scaler", ["x"], ["y"], name="s", domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    return model([made], [("x", ["N", 4])], [("y", None)], imports={"ai.onnx.ml": 3})


def only_empty() -> onnx.ModelProto:
    """The batch can only be 0: the target of the Reshape has another length than the input."""
    return model(
        [node("Reshape", ["x", "t"], ["y"], name="r")], [("x", ["batch", 5, 4])], [("y", None)], {"t": _ints(0, 28)}
    )


def only_seven_rows() -> onnx.ModelProto:
    return model(
        [node("Reshape", ["x", "t"], ["y"], name="r")], [("x", ["N", "seq", 4])], [("y", None)], {"t": _ints(0, 28)}
    )


def with_weights() -> onnx.ModelProto:
    return model([node("Mul", ["x", "w"], ["y"])], [("x", ["N", 400])], [("y", None)], {"w": _floats(400)})


def wrong_target() -> onnx.ModelProto:
    """The target of a Reshape has rank 2."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Unsqueeze", ["s", "axes"], ["t"]),
        node("Reshape", ["x", "t"], ["y"], name="r"),
    ]
    return model(nodes, [("x", ["N", 4])], [("y", None)], {"axes": _ints(0)})


def default_k() -> onnx.ModelProto:
    """An attribute of opset 9 would hold the k that is a default here."""
    return parsed("""<ir_version: 8, opset_import: ["": 10]>
        g (float[N, M] x, int64[1] k) => (float[N, L] y, int64[N, L] i)
        <int64[1] k = {2}> { y, i = TopK<axis = 1>(x, k) }""")


def input_without_rank() -> onnx.ModelProto:
    return model([node("Gather", ["x", "first"], ["y"], axis=2)], [("x", None)], [("y", None)], {"first": np.int64(0)})


def value_without_rank() -> onnx.ModelProto:
    """How many dimensions are 1 is known only at run time."""
    nodes = [node("Squeeze", ["x"], ["s"]), node("Transpose", ["s"], ["y"], perm=[1, 0])]
    return model(nodes, [("x", list("ABCDE"))], [("y", None)])


def old_initializer() -> onnx.ModelProto:
    """An initializer that is an input is a constant at IR version 3, and a default from 4 on."""
    return model(
        [node("Add", ["x", "w"], ["y"])],
        [("x", ["N", 4]), ("w", [4])],
        [("y", ["N", 4])],
        {"w": _floats(4)},
        opset=8,
        ir_version=3,
    )


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "model.onnx": relu,
    "other.onnx": lambda: relu(18),
    "many/a.onnx": relu,
    "many/b.onnx": relu,
    "pairs/a.onnx": lambda: relu(18),
    "pairs/b.onnx": lambda: relu(18),
    "newest.onnx": lambda: relu(26, 13),
    "unknown.onnx": lambda: relu(17, names=("unk", 4)),
    "grid.onnx": grid_sample,
    "ir10.onnx": lambda: relu(17, 10),
    "chunks.onnx": lambda: split(18, ["N", 5], 4, num_outputs=4),
    "neither.onnx": lambda: split(18, ["N", 6], 2),
    "attribute.onnx": lambda: split(13, ["N", 6], 2, num_outputs=2),
    "even.onnx": lambda: split(13, ["N", 6], 2),
    "uneven18.onnx": lambda: split(18, ["N", 7], 2, num_outputs=2),
    "open18.onnx": lambda: split(18, ["N", "W"], 2, num_outputs=2),
    "default.onnx": with_default,
    "questions.onnx": two_questions,
    "items.onnx": normalised_over_items,
    "integers.onnx": counted_integers,
    "two.onnx": two_first_dimensions,
    "old_form.onnx": old_reduce,
    "declared.onnx": wrong_declaration,
    "broadcast.onnx": not_broadcast,
    "unordered.onnx": out_of_order,
    "zipmap.onnx": zip_map,
    "own.onnx": own_operator,
    "strings.onnx": newer_operator,
    "rule.onnx": size_rule,
    "nan.onnx": negative_logarithm,
    "named.onnx": function_with_the_name_of_an_operator,
    "length.onnx": default_of_the_length,
    "longer.onnx": one_longer,
    "unnamed.onnx": unnamed_output,
    "parts.onnx": newer_parts,
    "ml.onnx": scaled,
    "empty.onnx": only_empty,
    "rows.onnx": only_seven_rows,
    "initializer.onnx": old_initializer,
    "target.onnx": wrong_target,
    "k.onnx": default_k,
    "gather.onnx": input_without_rank,
    "squeeze.onnx": value_without_rank,
}


DATA: Mapping[str, Mapping[str, Any]] = {
    "data.npz": {"x": _floats(3, 4)},
    "none.npz": {"x": _floats(0, 4)},
    "cube.npz": {"x": _floats(2, 3, 4)},
    "one.npz": {"x": _floats(1)},
    "shape.npz": {"x": _floats(3, 4), "shape": _ints(-1, 2)},
}


TEXTS: Mapping[str, str] = {
    "written.onnx": "",
    "r.jsonl": "",
    "r.xml": "",
    "pages/index.html": "",
    "no.jsonl": "{}\n{}\n",
}


def write_files(typed: str, folder: Path) -> None:
    """Write the models and the data that a command names into a folder."""
    for name, make in MODELS.items():
        if name in typed or f"{name.partition('/')[0]}/" in typed:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            onnx.save(make(), path)
    for name in sorted((ROOT / "models").glob("*.[oxb][nmi]*")):
        if f"models/{name.name}" in typed or f"models/{name.stem}." in typed:
            (folder / "models").mkdir(exist_ok=True)
            shutil.copy(name, folder / "models")
    for name, arrays in DATA.items():
        if name in typed:
            np.savez(folder / name, **arrays)
    if "./python" in typed:
        fault = REFUSES if "refuses" in typed else WRONG
        fake_python(folder, write_program(folder, fault.format(operator="Split"), version="5.0.0"))
    for name, text in TEXTS.items():
        if f"{name} exists" in typed:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    if "linked/a.onnx is a link" in typed:
        (folder / "linked").mkdir()
        (folder / "linked" / "a.onnx").symlink_to(folder / "elsewhere.onnx")
    if "outside.onnx" in typed:
        onnx.save(
            with_weights(), folder / "outside.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
        )
