"""WeightReader that have an old size: a model in memory, its file and its data files give the same answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.conversion.sizes import weights
from splitgraph.conversion.sizes.needs import Repeated, Triangle
from splitgraph.conversion.sizes.weights import found_along

# Elements of more than 64 KiB stay in a file of more than 1 MiB.
SIZE = 300
LARGE = np.random.default_rng(0).random((SIZE, 1000), np.float32)
MASK = np.triu(np.full((SIZE, SIZE), -1e9, np.float32), 1)
POSITIONS = np.arange(70_000, dtype=np.int64)

# WeightReader, and the axes of "x" that get another size.
FOLLOWING: dict[str, tuple[Any, set[int]]] = {
    "a mask": (MASK, {1, 2}),
    "a mask of float64": (MASK.astype(np.float64), {1, 2}),
    "zeros": (np.zeros((SIZE, SIZE), np.float32), {1, 2}),
    "rows that are alike": (np.tile(np.arange(SIZE, dtype=np.int64), (SIZE, 1)), {1}),
    "positions": (POSITIONS, {1}),
    "few floats": (np.arange(500, dtype=np.float32), {1}),
}
REFUSED: dict[str, tuple[Any, set[int]]] = {
    "random": (LARGE[:, :SIZE], {1}),
    "a mask with a hole": (np.where(np.arange(SIZE) == 7, 3, MASK).astype(np.float32), {1, 2}),
    "positions with a gap": (np.where(POSITIONS < 9, POSITIONS, POSITIONS + 1), {1}),
}


def with_weights(array: Any, *, typed: bool = False) -> ModelProto:
    """Return a model that adds weights to x, and has others that make its file large."""
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[1] x, float[2, {SIZE}] q) => (float[a] y, float[2, 1000] z)
        {{ y = Add (x, w) z = MatMul (q, large) }}"""
    )
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    shape = [1, *array.shape]
    made.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", kind, shape))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, [None] * len(shape)))
    plain = helper.make_tensor("w", kind, array.shape, array.reshape(-1).tolist())
    made.graph.initializer.extend([plain if typed else numpy_helper.from_array(array, "w")])
    made.graph.initializer.append(numpy_helper.from_array(LARGE, "large"))
    return made


def answer(source: Any, shape: list[int | str]) -> ModelProto | tuple[str, ...]:
    """Return the model with another shape, or why there is none."""
    try:
        return splitgraph.reshape(source, {"x": shape}).model
    except splitgraph.ConversionError as error:
        return tuple(finding.message for finding in error.diagnostics)


def saved(made: ModelProto, path: Path, *, external: bool) -> Path:
    onnx.save_model(made, path, save_as_external_data=external, location="weights.data", size_threshold=0)
    return path


@pytest.mark.parametrize("case", FOLLOWING | REFUSED)
@pytest.mark.parametrize("stored", ["raw", "typed", "external"])
def test_a_file_and_memory_give_the_same_answer(case: str, stored: str, tmp_path: Path) -> None:
    array, axes = (FOLLOWING | REFUSED)[case]
    made = with_weights(array, typed=stored == "typed")
    path = saved(made, tmp_path / "model.onnx", external=stored == "external")
    whole = splitgraph.load(path)
    for new in ("S", SIZE - 9):
        shape = [new if axis in axes else size for axis, size in enumerate((1, *array.shape))]
        expected = answer(whole, shape)
        assert isinstance(expected, ModelProto) == (case in FOLLOWING)
        assert answer(path, shape) == expected


def test_a_list_of_indices_in_a_data_file_is_known(tmp_path: Path) -> None:
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 9000] x) => (float[1, n] y)
        { y = Gather <axis = 1> (x, w) }"""
    )
    made.graph.initializer.append(numpy_helper.from_array(np.arange(9000), "w"))
    path = saved(made, tmp_path / "model.onnx", external=True)
    assert answer(path, [1, 8]) == answer(splitgraph.load(path), [1, 8])


def test_a_model_in_memory_does_not_know_where_its_data_file_is(tmp_path: Path) -> None:
    path = saved(with_weights(MASK), tmp_path / "model.onnx", external=True)
    (message,) = answer(onnx.load(path, load_external_data=False), [1, "S", SIZE])
    assert message == (
        f"needs 'w' to be S along axis 0, and the weights 'w' have {SIZE} along axis 0, and are in a data file, whose "
        "folder is not known of a model in memory; give its path"
    )


def test_large_weights_are_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MOST_BYTES", MASK.nbytes - 1)
    (message,) = answer(with_weights(MASK), [1, "S", SIZE])
    assert message.endswith("and have 360,000 bytes; weights of at most 359,999 are read")


# How a constant of three equal numbers is written.
WRITTEN = {
    "initializer": ("<int64[3] w = {2, 2, 2}>", ""),
    "tensor": ("", "w = Constant<value = int64[3] {2, 2, 2}>()"),
    "list": ("", "w = Constant<value_ints = [2, 2, 2]>()"),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_constant_follows_however_it_is_written(written: str) -> None:
    initializer, node = WRITTEN[written]
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (int64[1, 3] x) => (int64[1, n] y)
        {initializer} {{ {node} y = Add(x, w) }}"""
    )
    result = answer(made, [1, "S"])
    assert isinstance(result, ModelProto)
    data = np.arange(5)[None]
    assert (ReferenceEvaluator(result).run(None, {"x": data})[0] == data + 2).all()


def test_weights_that_were_removed_and_defaults_are_named() -> None:
    made = with_weights(MASK)
    for tensor in made.graph.initializer:
        tensor.ClearField("raw_data")
    assert "have no elements in the model" in answer(made, [1, "S", SIZE])[0]
    made.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, MASK.shape))
    assert answer(made, [1, "S", SIZE])[0].endswith(
        "give it S there, too, or make it a constant: --fix-defaults (Python: fix_defaults)"
    )


def test_indices_that_two_nodes_need_to_count_count_once() -> None:
    """The Concat needs as many as there are items, and the GatherND that they count these."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2] y)
        <int64[2, 1] i = {0, 1}> { a = ArgMax <axis = 1> (x) j = Concat <axis = 1> (i, a) y = GatherND (x, j) }""")
    found = splitgraph.reshape(made, batch="N", verify=True)
    assert found.verification is not None and found.verification.verdict == "equal"


def test_weights_of_one_place_are_not_repeated_for_several() -> None:
    """Features of one window are no features of T - 5 windows."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3, 6] x) => (float[2, 2] y)
        <int64[2] s = {2, 3}, float[3, 2] w = {1, 2, 3, 4, 5, 6}>
        { a, i = MaxPool <kernel_shape = [6]> (x) j = Identity (i) f = Reshape (a, s) y = MatMul (f, w) }""")
    with pytest.raises(splitgraph.ConversionError, match="main/MatMul#3"):
        splitgraph.reshape(made, {"x": [2, 3, "T"]})
    assert splitgraph.reshape(made, {"x": ["N", 3, 6]}, verify=True).model


def test_weights_are_looked_at_once() -> None:
    asked = list[str]()

    def read(home: Any, tensor: TensorProto) -> Any:
        asked.append(tensor.name)
        return numpy_helper.to_array(tensor)

    kept = weights.WeightReader(read)
    tensor = numpy_helper.from_array(MASK, "w")
    found = [kept.along((), "w", tensor, axis) for axis in (0, 1, 0, 1)]
    assert found == [Triangle(0, np.float32(0), np.float32(-1e9))] * 4 and len(asked) == 2
    assert found[:2] == [found_along(MASK, axis) for axis in (0, 1)]


ALONG = [
    ([1, 1, 1], Repeated(0)),
    ([2, 4, 6], None),
    ([0, 1, 2], Repeated(0, 0, 1)),
    ([2, 1, 0], Repeated(0, -1, -1, times=1)),
    ([[5, 6], [5, 6]], Repeated(0)),
    ([1, 2, 4], None),
    ([0.5, 1.5, 2.5], None),
    ([[1, 2], [2, 4]], None),
    ([[7, 0], [7, 7]], Triangle(0, 7, 0)),
    (np.tri(5, 5, -1, np.int64), Triangle(-1, 1, 0)),
    # The diagonal may be counted from the other corner.
    (np.tri(5, 5, 3, np.int64), None),
    (np.tri(7, 7, -4, np.int64), None),
]


@pytest.mark.parametrize(("items", "expected"), ALONG)
def test_what_is_found_along_the_first_axis(items: Any, expected: Any) -> None:
    assert found_along(np.array(items), 0) == expected


class Alike(NamedTuple):
    """A model of x[2, 4, 3] with weights that are alike, asked for [2, "T", 3]. answers: to its one question, each with
    what y is then; none where it is not asked.
    """

    inside: str
    answers: dict[str, Callable[[Any], Any]]


def ones(*shape: int) -> str:
    """Return ones as weights."""
    return f"float[{', '.join(map(str, shape))}] w = {{{', '.join(['1'] * int(np.prod(shape)))}}}"


def several(function: Callable[[Any, int], Any], place: str) -> dict[str, Callable[[Any], Any]]:
    """Return the answers to whether a size of weights is 4 or T."""
    return {f"keep {place}": lambda x: function(x, 4), f"follow {place}=T": lambda x: function(x, x.shape[1])}


ALIKE: dict[str, Alike] = {
    "another axis of the result": Alike(
        f"<{ones(4, 4)}> {{ y = MatMul (w, x) }}",
        several(lambda x, size: np.ones((size, x.shape[1])) @ x, "main/MatMul#0[0]"),
    ),
    "places behind": Alike(
        f"<{ones(2, 4, 3)}> {{ y = Concat <axis = 1> (x, w) }}",
        several(lambda x, size: np.concatenate([x, np.ones((2, size, 3))], 1), "main/Concat#0[1]"),
    ),
    "one element many times": Alike(
        "<int64[4] w = {1, 1, 1, 1}> { y = Gather <axis = 1> (x, w) }",
        several(lambda x, size: x[:, [1] * size], "main/Gather#0[0]"),
    ),
    "a mean by weights": Alike(
        "<float[1, 4] w = {0.25, 0.25, 0.25, 0.25}> { y = MatMul (w, x) }",
        {"keep main/MatMul#0[1]": lambda x: 0.25 * x.sum(1, keepdims=True)},
    ),
    "a mean by an Einsum": Alike(
        '<float[4] w = {0.25, 0.25, 0.25, 0.25}> { y = Einsum <equation = "ntc,t->nc"> (x, w) }',
        {"keep main/Einsum#0[0]": lambda x: 0.25 * x.sum(1)},
    ),
    "a sum by weights": Alike(
        f"<{ones(1, 4)}> {{ y = MatMul (w, x) }}", {"": lambda x: x.sum(1, keepdims=True)}
    ),
    "a later node needs it": Alike(
        f"<{ones(4, 4)}> {{ a = MatMul (w, x) y = Add (a, x) }}", {"": lambda x: x.sum(1, keepdims=True) + x}
    ),
    "a mask on the way": Alike(
        "<bool[4] w = {1, 1, 1, 1}, float k = {0}, int64[1] a = {1}> { u = Unsqueeze (w, a) y = Where (u, x, k) }",
        {"": lambda x: x},
    ),
    "scales that are applied": Alike(f"<{ones(4, 3)}> {{ y = Mul (x, w) }}", {"": lambda x: x}),
    "weights that differ": Alike(
        "<float[4, 4] w = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, int64[2] s = {6, 4}> "
        "{ t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (t, w) }",
        {"": lambda x: x.sum(1)[..., None] * np.arange(1, 5)},
    ),
    "features that are as many": Alike(
        "<float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { y = MatMul (x, w) }",
        {"": lambda x: x @ np.arange(1.0, 13).reshape(3, 4)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALIKE)
def test_weights_that_are_alike_are_asked_about_where_two_readings_fit(case: str) -> None:
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 4, 3] x) => (float[a] y) {ALIKE[case].inside}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    answers = ALIKE[case].answers
    if "" not in answers:
        with pytest.raises(splitgraph.ConversionError) as caught:
            splitgraph.reshape(made, {"x": [2, "T", 3]})
        (found,) = caught.value.diagnostics
        told = {f"{option} {text}" for option, text in re.findall('--(follow|keep) "([^"]+)"', found.help)}
        assert found.code == "SG421" and told == answers.keys()
    for text, function in answers.items():
        options = {option: [said] for option, _, said in [text.partition(" ")] if option}
        after = splitgraph.reshape(made, {"x": [2, "T", 3]}, **options).model
        for size in (4, 7):
            data = np.random.default_rng(size).random((2, size, 3), np.float32)
            (result,) = ReferenceEvaluator(after).run(None, {"x": data})
            np.testing.assert_allclose(result, function(data), rtol=1e-5)
