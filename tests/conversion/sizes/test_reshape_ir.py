"""IRs with other sizes, run by OpenVINO: what follows, how it is written, and what is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino import opset15

import splitgraph
from splitgraph.formats import open_model
from splitgraph.formats.openvino_ir import OpenVINOModel

F = np.float32
CORE = ov.Core()


def x(*shape: int) -> Any:
    return given("x", *shape)


def given(name: str, *shape: Any, dtype: Any = F) -> Any:
    made = ops.parameter(ov.PartialShape(list(shape)), dtype, name=name)
    made.output(0).set_names({name})
    return made


def ints(*numbers: int, dtype: Any = np.int64) -> Any:
    return ops.constant(np.array(numbers, dtype))


def weights(*shape: int, dtype: Any = F) -> Any:
    return ops.constant(np.random.default_rng(1).standard_normal(shape).astype(dtype))


def called(layer: Any, name: str) -> Any:
    layer.set_friendly_name(name)
    return layer


def model_of(*outputs: Any) -> ov.Model:
    """Return a model with the parameters that the outputs depend on, by name."""
    found: dict[str, Any] = {}
    waiting = [output.get_node() if isinstance(output, ov.Output) else output for output in outputs]
    while waiting:
        node = waiting.pop()
        if node.get_type_name() == "Parameter":
            found[node.get_friendly_name()] = node
        waiting += [value.get_source_output().get_node() for value in node.inputs()]
    results = []
    for index, output in enumerate(outputs):
        made = ops.relu(output)
        made.output(0).set_names({f"y{index}"})
        results.append(made)
    return ov.Model(results, [found[name] for name in sorted(found)])


def opened(model: ov.Model, folder: Path, *, halves: bool = False) -> OpenVINOModel:
    ov.save_model(model, folder / "m.xml", compress_to_fp16=halves)
    found: OpenVINOModel = open_model(folder / "m.xml").content
    return found


def run(made: OpenVINOModel, folder: Path, **inputs: Any) -> list[Any]:
    splitgraph.save(made, folder / "run.xml")
    compiled = CORE.compile_model(CORE.read_model(folder / "run.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(inputs).values())


def drawn(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(F)


def added(before: OpenVINOModel, after: OpenVINOModel) -> Counter[str]:
    """Return the types of layers of which the second model has more."""
    return Counter(layer.type for layer in after.graph.layers) - Counter(layer.type for layer in before.graph.layers)


def sequence(batch: int) -> ov.Model:
    states = [ops.constant(np.zeros((batch, 1, 3), F)) for _ in range(2)]
    lengths, parts = ints(*[5] * batch), [weights(1, 12, 4), weights(1, 12, 3), weights(1, 12)]
    return model_of(ops.lstm_sequence(x(batch, 5, 4), *states, lengths, *parts, 3, "forward").output(0))


def strided(begin: list[int], end: list[int], dtype: Any = np.int64, **masks: list[int]) -> Any:
    steps = ints(*[1] * len(begin), dtype=dtype)
    given_masks = {"begin_mask": [0] * len(begin), "end_mask": [0] * len(end), **masks}
    return ops.strided_slice(x(2, 4), ints(*begin, dtype=dtype), ints(*end, dtype=dtype), steps, **given_masks)


def sides() -> Any:
    return ops.interpolate(
        x(2, 3, 4, 4), ints(2, 3, 8, 8), "nearest", "sizes", coordinate_transformation_mode="asymmetric"
    )


def transposed() -> ov.Model:
    """The batch of 1 goes to another axis, where only the Concat tells."""
    data = x(1, 1, 4)
    return model_of(ops.concat([ops.reshape(data, ints(1, 1, 4), False), ops.transpose(data, ints(1, 0, 2))], 2))


def carried(batch: int) -> ov.Model:
    """A body that adds up the steps of each item, from a state that is a constant."""
    inner, before = (ops.parameter([batch, 1, 4], F, name=name) for name in ("inner", "before"))
    total = ops.add(inner, before)
    body = ov.Model([ops.result(total)], [inner, before])
    iterator = ops.tensor_iterator()
    iterator.set_body(body)
    iterator.set_sliced_input(inner, x(batch, 3, 4).output(0), 0, 1, 1, -1, 1)
    iterator.set_merged_input(before, ops.constant(np.ones((batch, 1, 4), F)).output(0), body.results[0].output(0))
    return model_of(iterator.get_iter_value(body.results[0].output(0), -1))


def written() -> ov.Model:
    """The greatest row of the only item is written into its third one."""
    data, rows = x(1, 4, 3), ops.constant(np.array([[0, 2]]))
    return model_of(ops.scatter_nd_update(data, rows, ops.reduce_max(data, ints(1), False)))


# Layers that compute each item by itself, and how many layers of each type the result has more. The first dimension is
# the batch.
LAYERS: dict[str, tuple[Callable[[], ov.Model], str]] = {
    "reshape with zeros": (lambda: model_of(ops.reshape(x(2, 3, 4), ints(0, 12), True)), ""),
    "reshape": (lambda: model_of(ops.reshape(x(2, 3, 4), ints(2, 12), False)), ""),
    "reshape of two": (lambda: model_of(ops.reshape(x(2, 3, 4), ints(6, 4), True)), ""),
    "reshape to rows": (
        lambda: model_of(ops.reshape(x(2, 3, 4), ints(6, -1), False)),
        "Concat 1 Const 3 Gather 1 Multiply 1 ShapeOf 1",
    ),
    "slice": (lambda: model_of(ops.slice(x(2, 4), ints(0, 1), ints(2, 3), ints(1, 1))), ""),
    "slice with axes": (lambda: model_of(ops.slice(x(2, 4), ints(1, 0), ints(3, 2), ints(1, 1), ints(1, 0))), ""),
    "strided slice": (lambda: model_of(strided([0, 1], [2, 3])), ""),
    "strided slice of int32": (lambda: model_of(strided([0, 1], [2, 3], np.int32)), ""),
    "strided slice with a mask": (lambda: model_of(strided([0, 1], [0, 3], end_mask=[1, 0])), ""),
    "strided slice, new axis": (lambda: model_of(strided([0, 0, 1], [0, 2, 3], new_axis_mask=[1, 0, 0])), ""),
    "strided slice, shrunk": (lambda: model_of(strided([0, 1], [2, 2], shrink_axis_mask=[0, 1])), ""),
    "strided slice, ellipsis": (lambda: model_of(strided([0, 1], [2, 3], ellipsis_mask=[1, 0])), ""),
    "broadcast": (
        lambda: model_of(ops.broadcast(x(2, 1), ints(2, 4))),
        "Concat 1 Const 2 Gather 1 ShapeOf 1",
    ),
    "broadcast both ways": (
        lambda: model_of(ops.broadcast(x(2, 1), ints(2, 4), broadcast_spec="BIDIRECTIONAL")),
        "Concat 1 Const 2 Gather 1 ShapeOf 1",
    ),
    "broadcast to axes": (
        lambda: model_of(ops.broadcast(x(2), ints(2, 4), ints(0), "EXPLICIT")),
        "Concat 1 Const 2 Gather 1 ShapeOf 1",
    ),
    "sides": (lambda: model_of(sides()), "Concat 1 Const 4 Gather 1 ShapeOf 1"),
    "zeros": (
        lambda: model_of(ops.concat([x(2, 3), ops.broadcast(ops.constant(F(0)), ints(2, 2))], 1)),
        "Concat 1 Const 2 Gather 1 ShapeOf 1",
    ),
    "a token": (
        lambda: model_of(ops.concat([weights(1, 1, 4), x(1, 3, 4)], 1)),
        "Broadcast 1 Concat 1 Const 4 Gather 1 ShapeOf 1",
    ),
    "equal rows": (
        lambda: model_of(ops.concat([ops.constant(np.ones((2, 2), F)), x(2, 3)], 1)),
        "Broadcast 1 Concat 1 Const 5 Gather 2 ShapeOf 1",
    ),
    "rows that are written": (
        written,
        "Add 1 Const 9 Gather 2 Multiply 1 Range 1 Reshape 1 ShapeOf 1 Squeeze 1",
    ),
    "a state of one item": (lambda: carried(1), "Broadcast 1 Concat 1 Const 4 Gather 1 ShapeOf 1"),
    "a state of two items": (lambda: carried(2), "Broadcast 1 Concat 1 Const 6 Gather 2 ShapeOf 1"),
    "lengths of sequences": (
        lambda: model_of(ops.reverse_sequence(x(2, 5, 3), ints(4, 4), np.int64(0), np.int64(1))),
        "Broadcast 1 Const 4 Gather 2 ShapeOf 1",
    ),
    "a sum": (
        lambda: model_of(ops.add(x(2, 3), ops.constant(np.full((2, 1), 3, F)))),
        "Broadcast 1 Concat 1 Const 5 Gather 2 ShapeOf 1",
    ),
    "a choice": (
        lambda: model_of(ops.select(ops.constant(np.ones((2, 1), bool)), x(2, 3), ops.constant(np.zeros((2, 3), F)))),
        "Broadcast 2 Concat 2 Const 8 Gather 3 ShapeOf 1",
    ),
    "a product": (
        lambda: model_of(ops.matmul(x(2, 3, 4), ops.constant(np.ones((2, 5, 4), F)), False, True)),
        "Broadcast 1 Concat 1 Const 6 Gather 2 ShapeOf 1",
    ),
    "tiles": (
        lambda: model_of(ops.concat([x(2, 3), ops.tile(weights(1, 3), ints(2, 1))], 1)),
        "Concat 1 Const 2 Gather 1 ShapeOf 1",
    ),
    "states": (lambda: sequence(1), "Broadcast 3 Concat 2 Const 6 Gather 1 ShapeOf 1"),
    "equal states": (lambda: sequence(3), "Broadcast 3 Concat 2 Const 12 Gather 4 ShapeOf 1"),
    "a transposition as a reshape": (lambda: transposed(), ""),
    "picked in order": (
        lambda: model_of(ops.gather(x(3, 4), ints(0, 1, 2), ops.constant(np.int64(0)))),
        "Const 4 Gather 1 Range 1 ShapeOf 1 Squeeze 1",
    ),
    "the only one": (
        lambda: model_of(ops.gather(x(1, 4), ints(0), ops.constant(np.int64(0)))),
        "Const 4 Gather 1 Range 1 ShapeOf 1 Squeeze 1",
    ),
    "picked by tuples": (
        lambda: model_of(ops.gather_nd(x(3, 4), ops.constant(np.array([[0, 1], [1, 1], [2, 1]])))),
        "Add 1 Const 9 Gather 2 Multiply 1 Range 1 Reshape 1 ShapeOf 1 Squeeze 1",
    ),
    "squeezed": (lambda: model_of(opset15.squeeze(x(2, 1, 4))), "Const 1"),
    "squeezed by no axes": (lambda: model_of(ops.squeeze(x(2, 1, 4), ints())), ""),
}


def items_of(before: OpenVINOModel, after: OpenVINOModel, folder: Path, items: int) -> tuple[list[Any], list[Any]]:
    """Return what the model gives for each group of items, joined, and what the other one gives for all of them."""
    groups = [drawn(*shape_of(before)) + number for number in range(items)]
    wanted = [run(before, folder, x=group) for group in groups]
    found = run(after, folder, x=np.concatenate(groups))
    joined = []
    for index, array in enumerate(found):
        axis = next((axis for axis, size in enumerate(array.shape) if size != wanted[0][index].shape[axis]), 0)
        joined.append(np.concatenate([each[index] for each in wanted], axis))
    return joined, found


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("items", [1, 2, 3])
@pytest.mark.sample(10)
def test_each_item_gives_what_it_gives_alone(name: str, items: int, tmp_path: Path) -> None:
    before = opened(LAYERS[name][0](), tmp_path)
    after = splitgraph.reshape(before, batch="N").model
    for wanted, found in zip(*items_of(before, after, tmp_path, items), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_the_layers_that_are_added(name: str, tmp_path: Path) -> None:
    before = opened(LAYERS[name][0](), tmp_path)
    more = added(before, splitgraph.reshape(before, batch="N").model)
    assert " ".join(f"{type} {count}" for type, count in sorted(more.items())) == LAYERS[name][1]


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_are_written_as_numbers(name: str, tmp_path: Path) -> None:
    before = opened(LAYERS[name][0](), tmp_path)
    after = splitgraph.reshape(before, batch=5).model
    assert not added(before, after).keys() & {"ShapeOf", "Concat"}
    dynamic = splitgraph.reshape(before, batch="N").model
    data = drawn(5, *shape_of(before)[1:])
    for one, other in zip(run(after, tmp_path, x=data), run(dynamic, tmp_path, x=data), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


def shape_of(model: OpenVINOModel) -> list[int]:
    (input,) = [layer for layer in model.graph.layers if layer.type == "Parameter"]
    return [int(size) for size in input.data["shape"].split(",")]


def test_a_constant_stays_for_its_other_readers(tmp_path: Path) -> None:
    target = ints(2, 6)
    fixed = called(ops.reshape(weights(12), target, False), "fixed")
    before = opened(model_of(called(ops.reshape(x(2, 3, 2), target, False), "batch"), fixed), tmp_path)
    # The other result is as long as the batch.
    with pytest.raises(splitgraph.ConversionError) as refusal:
        splitgraph.reshape(before, batch="N")
    (question,) = refusal.value.diagnostics
    after = splitgraph.reshape(before, batch="N", keep=[f"{question.location}[0]"]).model
    one, other = run(after, tmp_path, x=drawn(4, 3, 2))
    assert (one.shape, other.shape) == ((4, 6), (2, 6))


def test_ports_have_the_new_sizes(tmp_path: Path) -> None:
    before = opened(model_of(called(ops.reshape(x(2, 3, 2), ints(2, 6), False), "r")), tmp_path)
    for batch, size in (("N", None), (5, 5)):
        (layer,) = [each for each in splitgraph.reshape(before, batch=batch).model.graph.layers if each.name == "r"]
        assert layer.outputs[0].dims == (size, 6)
    assert shape_of(before) == [2, 3, 2]


def test_weights_in_half_precision(tmp_path: Path) -> None:
    joined = ops.concat([x(2, 3), ops.constant(np.full((2, 3), 0.5, F))], 1)
    before = opened(model_of(ops.add(joined, weights(1, 6))), tmp_path, halves=True)
    after = splitgraph.reshape(before, batch="N").model
    for wanted, found in zip(*items_of(before, after, tmp_path, 2), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4)


@pytest.mark.parametrize(("diagonal", "kind", "halves"), [(0, F, False), (-1, F, True), (2, np.bool_, False)])
def test_a_mask_from_the_file_is_a_triangle_of_any_size(diagonal: int, kind: Any, halves: bool, tmp_path: Path) -> None:
    def masked(size: int) -> Any:
        return np.tri(size, size, diagonal, kind)

    mask = ops.constant(masked(150)[None])
    data = x(2, 150, 150)
    before = opened(
        model_of(ops.select(mask, data, ops.negative(data)) if kind is np.bool_ else ops.add(data, mask)),
        tmp_path,
        halves=halves,
    )
    named = splitgraph.reshape(before, {"x": [2, "S", "S"]}).model
    for size in (1, 151):
        fixed = splitgraph.reshape(before, {"x": [2, size, size]}).model
        data = drawn(2, size, size)
        wanted = np.where(masked(size), data, -data) if kind is np.bool_ else data + masked(size)
        for made in (named, fixed):
            np.testing.assert_allclose(run(made, tmp_path, x=data)[0], np.maximum(wanted, 0), 1e-5, 1e-6)


def test_large_weights_are_read_from_the_file(tmp_path: Path) -> None:
    before = opened(model_of(ops.concat([x(2, 3), ops.constant(np.full((2, 5000), 2, F))], 1)), tmp_path)
    (found,) = run(splitgraph.reshape(before, batch="N").model, tmp_path, x=drawn(3, 3))
    assert found.shape == (3, 5003)
    assert (found[:, 3:] == 2).all()


def test_counted_weights_are_counted_again(tmp_path: Path) -> None:
    positions = ops.constant(np.arange(6, dtype=F).reshape(1, 6))
    before = opened(model_of(ops.add(x(1, 6), positions)), tmp_path)
    after = splitgraph.reshape(before, {"x": [1, "S"]}).model
    np.testing.assert_array_equal(run(after, tmp_path, x=np.zeros((1, 9), F))[0], [list(range(9))])


def parts(*lengths: int) -> ov.Model:
    split = called(ops.variadic_split(x(1, 6), ints(1), ints(*lengths)), "split")
    return model_of(*split.outputs())


SPLIT = {
    "equal parts": ((3, 3), [], 8, [4, 4]),
    "the rest": ((2, -1), [], 8, [2, 6]),
    "the user says": ((2, 4), ["main/split[1]=S - 2"], 9, [2, 7]),
    "the user says twice": ((2, 4), ["main/split[0]=S//3", "main/split[1]=S - S//3"], 9, [3, 6]),
}


@pytest.mark.parametrize("name", SPLIT)
def test_parts(name: str, tmp_path: Path) -> None:
    lengths, follow, size, expected = SPLIT[name]
    after = splitgraph.reshape(opened(parts(*lengths), tmp_path), {"x": [1, "S"]}, follow=follow).model
    assert [part.shape[1] for part in run(after, tmp_path, x=drawn(1, size))] == expected


def test_equal_parts_of_a_split_need_nothing(tmp_path: Path) -> None:
    before = opened(model_of(*ops.split(x(1, 6), ops.constant(np.int64(1)), 2).outputs()), tmp_path)
    after = splitgraph.reshape(before, {"x": [1, "S"]}).model
    assert [part.shape[1] for part in run(after, tmp_path, x=drawn(1, 10))] == [5, 5]
    assert not added(before, after)


def larger() -> Any:
    return ops.interpolate(
        x(1, 1, 4, 4), ints(8, 8), "nearest", "sizes", axes=ints(2, 3), coordinate_transformation_mode="asymmetric"
    )


def test_the_user_says_what_a_size_means(tmp_path: Path) -> None:
    before = opened(model_of(called(larger(), "larger")), tmp_path)
    follow = ["main/larger[0]=2*H"]
    after = splitgraph.reshape(before, {"x": [1, 1, "H", 4]}, follow=follow).model
    assert run(after, tmp_path, x=drawn(1, 1, 5, 4))[0].shape == (1, 1, 10, 8)


def loop(*target: int, last: int = -1, rows: int = 3) -> ov.Model:
    """A body that reshapes each row to a constant size."""
    inner = ops.parameter([1, 4], F, name="inner")
    row = called(ops.reshape(inner, ints(*target), False), "target")
    body = ov.Model([ops.result(row)], [inner])
    iterator = called(ops.tensor_iterator(), "rows")
    iterator.set_body(body)
    iterator.set_sliced_input(inner, x(rows, 4).output(0), 0, 1, 1, last, 0)
    return model_of(iterator.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 0))


def counted_loop() -> ov.Model:
    """A Loop of as many iterations as there are rows."""
    inner = ops.parameter([1, 4], F, name="inner")
    goes_on = ops.constant(np.array(True))
    body = ov.Model([ops.result(ops.relu(inner)), ops.result(goes_on)], [inner])
    made = called(ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True))), "rows")
    made.set_function(body)
    made.set_special_body_ports([-1, 1])
    made.set_sliced_input(inner, x(3, 4).output(0), 0, 1, 1, -1, 0)
    return model_of(made.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 0))


S = [1, "S"]
REFUSED: dict[str, tuple[Callable[[], ov.Model], list[Any], str, str]] = {
    "positions": (
        lambda: model_of(called(ops.add(x(1, 6), weights(1, 6)), "sum")),
        S,
        "SG420 main/sum",
        "are not the same all along it",
    ),
    "half of the dimension": (
        lambda: model_of(called(ops.slice(x(1, 6), ints(0), ints(3), ints(1), ints(1)), "cut")),
        S,
        "SG421 main/cut",
        "3 whatever the size of the data, or S - 3",
    ),
    "half of the dimension, strided": (
        lambda: model_of(called(ops.strided_slice(x(1, 6), ints(0, 3), ints(0, 6), ints(1, 1), [1, 0], [1, 0]), "cut")),
        S,
        "SG421 main/cut",
        "3 whatever the size of the data, or S - 3",
    ),
    "the second half, strided": (
        lambda: model_of(called(ops.strided_slice(x(1, 6), ints(0, 3), ints(0, 0), ints(1, 1), [1, 0], [1, 1]), "cut")),
        S,
        "SG421 main/cut",
        "3 whatever the size of the data, or S - 3",
    ),
    "parts of several lengths": (lambda: parts(2, 4), S, "SG421 main/split", "S - 4 as entry 0, or S - 2 as entry 1"),
    "the rest of equal parts": (
        lambda: parts(3, -1),
        S,
        "SG421 main/split",
        "-1 whatever the size of the data, or S//2",
    ),
    "the size of an image": (lambda: model_of(called(larger(), "larger")), [1, 1, "H", 4], "SG421 main/larger", "2*H"),
    "a 1 that has two places": (
        lambda: model_of(called(ops.reshape(x(6, 1), ints(6, 1, 1), False), "rows")),
        [6, "S"],
        "SG421 main/rows",
        "S as entry 2, or S as entry 1",
    ),
    "a number of iterations": (counted_loop, ["T", 4], "SG421 main/rows", "3 whatever the size of the data, or T"),
    "slices up to a number": (lambda: loop(1, 4, last=2), ["T", 4], "SG420 main/rows", "end at 2, a number"),
    "a shape of several parts": (lambda: loop(2, 2), [3, 8], "SG421 main/rows/body/target", "x[1]//2 as entry"),
    "weights of one size": (
        lambda: model_of(called(ops.matmul(x(1, 6), weights(6, 2), False, False), "product")),
        S,
        "SG420 main/product",
        "to be S along axis 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_in_the_way(name: str, tmp_path: Path) -> None:
    made, shape, place, said = REFUSED[name]
    before = opened(made(), tmp_path)
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(before, {"x": shape})
    found = caught.value.diagnostics[0]
    assert f"{found.code} {found.location}" == place
    assert said in found.message


def test_a_dimension_within_bounds_gets_a_number(tmp_path: Path) -> None:
    bounded = given("x", ov.Dimension(1, 8), 4, 2)
    before = opened(model_of(ops.reshape(bounded, ints(0, 8), True)), tmp_path)
    after = splitgraph.reshape(before, {"x": [3, 4, 2]}, verify=True)
    assert after.verification is not None and after.verification.verdict == "equal"
    assert shape_of(after.model) == [3, 4, 2]


@pytest.mark.parametrize("batch", ["N", 5])
@pytest.mark.parametrize("name", ["a token", "states", "a transposition as a reshape"])
@pytest.mark.sample(3)
def test_a_batch_is_verified(name: str, batch: Any, tmp_path: Path) -> None:
    verification = splitgraph.reshape(opened(LAYERS[name][0](), tmp_path), batch=batch, verify=True).verification
    assert verification is not None and verification.verdict == "equal"
    assert verification.cases >= 9


def less_the_mean(batch: int = 2) -> Any:
    data = x(batch, 4)
    return ops.subtract(data, ops.reduce_mean(data, ints(0), True))


def share(batch: int) -> Any:
    data = x(batch, 4)
    return ops.divide(data, ops.reduce_sum(data, ints(0), True))


def is_the_largest(batch: int) -> Any:
    data = x(batch, 4)
    return ops.convert(ops.equal(data, ops.reduce_max(data, ints(0), True)), "f32")


def shared_rows(batch: int) -> ov.Model:
    """A body that adds up its slices."""
    inner, before = ops.parameter([1, 4], F, name="inner"), ops.parameter([1, 4], F, name="before")
    total = ops.add(inner, before)
    body = ov.Model([ops.result(total)], [inner, before])
    iterator = called(ops.tensor_iterator(), "mixed")
    iterator.set_body(body)
    iterator.set_sliced_input(inner, x(batch, 4).output(0), 0, 1, 1, -1, 0)
    iterator.set_merged_input(before, ops.constant(np.zeros((1, 4), F)).output(0), body.results[0].output(0))
    return model_of(iterator.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 0))


def number_of_items(batch: int) -> Any:
    data = x(batch, 4)
    return data, ops.gather(ops.shape_of(data), ints(0), ops.constant(np.int64(0)))


def per_item(batch: int) -> ov.Model:
    data, items = number_of_items(batch)
    return model_of(called(ops.divide(data, ops.convert(items, "f32")), "mixed"))


def numbered(batch: int) -> ov.Model:
    """The number of each item is data."""
    data, items = number_of_items(batch)
    last = ops.squeeze(items, ints(0))
    count = ops.range(ops.constant(np.int64(0)), last, ops.constant(np.int64(1)), "i64")
    return model_of(called(ops.add(data, ops.convert(ops.unsqueeze(count, ints(1)), "f32")), "mixed"))


def picked(batch: int, *, backwards: bool) -> ov.Model:
    """Each item by its number, in turn or from the end."""
    data, items = number_of_items(batch)
    last, one = ops.squeeze(items, ints(0)), ops.constant(np.int64(1))
    count = ops.range(ops.constant(np.int64(0)), last, one, "i64")
    numbers = called(ops.subtract(ops.subtract(last, one), count), "mixed") if backwards else count
    return model_of(ops.gather(data, numbers, ops.constant(np.int64(0))))


# What mixes items, and the layer that does. Of a batch of 1, most of these are constant.
MIXED: dict[str, tuple[Callable[[int], ov.Model], str]] = {
    "softmax": (lambda batch: model_of(called(ops.softmax(x(batch, 4), 0), "mixed")), "SoftMax computes over N"),
    "a mean": (lambda batch: model_of(less_the_mean(batch)), "ReduceMean computes over N"),
    "a share": (lambda batch: model_of(share(batch)), "ReduceSum computes over N"),
    "sums up to each": (
        lambda batch: model_of(ops.cum_sum(x(batch, 4), ops.constant(np.int64(0)))),
        "CumSum computes over N",
    ),
    "the largest": (lambda batch: model_of(is_the_largest(batch)), "ReduceMax computes over N"),
    "beside another output": (
        lambda batch: model_of(given("z", batch, 4), less_the_mean(batch)),
        "ReduceMean computes over N",
    ),
    "a product over items": (
        lambda batch: model_of(ops.matmul(x(batch, 4), ops.constant(np.ones((batch, 3), F)), True, False)),
        "MatMul computes over N",
    ),
    "a part of the items": (
        lambda batch: model_of(ops.slice(x(batch, 4), ints(0), ints(1), ints(2), ints(0))),
        "Slice computes over N",
    ),
    "the first item": (
        lambda batch: model_of(ops.strided_slice(x(batch, 4), ints(0), ints(1), ints(1), [0], [0], [0], [1])),
        "StridedSlice computes over N",
    ),
    "a turn": (
        lambda batch: model_of(ops.roll(x(batch, 4), ints(1), ints(0))),
        "Roll computes over N",
    ),
    "sums in a body": (shared_rows, "TensorIterator computes over N"),
    "a share by number": (per_item, "Divide computes with the number of N"),
    "the number of an item": (numbered, "Add computes with the number of N"),
    "backwards": (lambda batch: picked(batch, backwards=True), "Subtract computes with the number of N"),
}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", MIXED)
def test_items_that_depend_on_each_other_are_refused(name: str, batch: int, tmp_path: Path) -> None:
    made, said = MIXED[name]
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(opened(made(batch), tmp_path), batch="N")
    assert {found.code for found in caught.value.diagnostics} == {"SG420"}
    assert any(said in found.message for found in caught.value.diagnostics), caught.value


# Each item by itself, so that nothing can be found, and a batch of 1 is enough.
APART: dict[str, Callable[[int], ov.Model]] = {
    "softmax of each": lambda batch: model_of(ops.softmax(x(batch, 4), 1)),
    "an item": lambda batch: model_of(ops.multiply(x(batch, 4), weights(4))),
    "beside a constant output": lambda batch: model_of(given("z", batch, 4), ops.softmax(x(batch, 4, 1), 2)),
    "each item in turn": lambda batch: picked(batch, backwards=False),
    "rows of a body": lambda batch: loop(1, 4, rows=batch),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.sample(2)
def test_items_apart_are_equal(name: str, tmp_path: Path) -> None:
    verification = splitgraph.reshape(opened(APART[name](1), tmp_path), batch="N", verify=True).verification
    assert verification is not None and verification.verdict == "equal" and verification.cases == 12


# Constant at every size: nothing is found, and nothing is proved.
SILENT: dict[str, Callable[[], tuple[ov.Model, list[Any]]]] = {
    "of each": lambda: (model_of(ops.softmax(x(1, 4, 1), 2)), ["N", 4, 1]),
    "a mean of one": lambda: (model_of(ops.relu(ops.softmax(x(1, 1), 1))), ["N", 1]),
    "at a length": lambda: (model_of(ops.softmax(x(4, 1), 1)), [4, "T"]),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_proves_nothing_is_not_verified(name: str, tmp_path: Path) -> None:
    made, shape = SILENT[name]()
    verification = splitgraph.reshape(opened(made, tmp_path), {"x": shape}, verify=True).verification
    assert verification is not None and verification.verdict == "not-run"
    found = next(found for found in verification.diagnostics if found.code == "SG506")
    assert found.message.startswith("at the old sizes: not verified")


def turned(length: int, items: int) -> ov.Model:
    rows = ops.transpose(x(length, items, 4), ints(1, 0, 2))
    return model_of(ops.softmax(ops.reshape(rows, ints(items, 4 * length), False), 1))


def over_length(length: int, items: int) -> ov.Model:
    return model_of(ops.softmax(ops.reshape(x(length, items, 4), ints(length, items, 2, 2), False), 0))


def summed(length: int, items: int) -> ov.Model:
    return model_of(ops.cum_sum(ops.reshape(x(length, items, 4), ints(-1, items, 2, 2), False), ops.constant(0)))


@pytest.mark.parametrize("made", [turned, over_length, summed])
@pytest.mark.sample(1)
def test_a_batch_is_verified_beside_a_length_before_it(made: Callable[[int, int], ov.Model], tmp_path: Path) -> None:
    result = splitgraph.reshape(opened(made(5, 2), tmp_path), {"x": ["T", "N", 4]}, verify=True)
    assert result.verification is not None and result.verification.verdict == "equal"
    assert result.verification.compared == {"N": (2, 4, 6, 10), "T": (5,)}
    for size, items in ((5, 3), (7, 1)):
        folder = tmp_path / str(size)
        folder.mkdir()
        wanted = run(opened(made(size, items), folder), folder, x=drawn(size, items, 4))
        found = run(result.model, tmp_path, x=drawn(size, items, 4))
        np.testing.assert_allclose(found[0], wanted[0], 1e-4, 1e-5)


def test_two_inputs_and_outputs_are_verified(tmp_path: Path) -> None:
    one, other = given("x", 2, 4), given("z", 2, 4)
    total = ops.add(one, other)
    before = opened(model_of(total, ops.concat([total, other], 1), ops.transpose(one, ints(1, 0))), tmp_path)
    verification = splitgraph.reshape(before, batch="N", verify=True).verification
    assert verification is not None and verification.verdict == "equal"


BODIES = {
    "rows": ((1, 4), ["T", 4], (5, 4)),
    "columns": ((1, 4), [3, "C"], (3, 7)),
    "numbers": ((1, 4), [5, 7], (5, 7)),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.sample(1)
def test_bodies(name: str, tmp_path: Path) -> None:
    target, shape, expected = BODIES[name]
    before = opened(loop(*target), tmp_path)
    after = splitgraph.reshape(before, {"x": shape}, verify=True).model
    sizes = [{"T": 5, "C": 7}.get(str(dim), dim) for dim in shape]
    assert run(after, tmp_path, x=drawn(*sizes))[0].shape == expected


def test_a_body_cannot_compute_from_the_inputs(tmp_path: Path) -> None:
    before = opened(loop(1, 2, 2, 1), tmp_path)
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(
            before, {"x": [3, "C"]}, follow=["main/rows/body/target[1]=C//2", "main/rows/body/target[2]=2 + C%2"]
        )
    assert "it is in a body, which cannot read the dimension C" in caught.value.diagnostics[0].message


@pytest.mark.slow
def test_the_user_says_how_many_iterations_there_are(tmp_path: Path) -> None:
    before = opened(counted_loop(), tmp_path)
    after = splitgraph.reshape(before, {"x": ["T", 4]}, follow=["main/rows[0]=T"], verify=True).model
    assert run(after, tmp_path, x=drawn(5, 4))[0].shape == (5, 4)


@pytest.mark.parametrize("shape", [["N", "T", 4], ["N", 9, 4], ["?", "T", 4]])
def test_a_size_that_is_baked_in_follows_a_dimension_without_a_name(shape: list[Any], tmp_path: Path) -> None:
    target = ops.reshape(given("x", -1, -1, 4), ints(0, 7, 2, 2), True)
    before = opened(model_of(ops.softmax(target, 1)), tmp_path)
    after = splitgraph.reshape(before, {"x": shape}).model
    assert run(after, tmp_path, x=drawn(3, 9, 4))[0].shape == (3, 9, 2, 2)


def test_a_dimension_without_a_name_that_fits_any_size_gets_one(tmp_path: Path) -> None:
    before = opened(model_of(ops.reshape(given("x", -1, -1, 4), ints(0, -1, 2, 2), True)), tmp_path)
    result = splitgraph.reshape(before, {"x": ["N", "T", 4]})
    assert not result.changes


@pytest.mark.parametrize("shape", [["N", 5, 4], ["N", "T", 4], [3, 7, 4]])
def test_items_that_an_optimizer_put_beside_a_length_are_not_picked_by_number(shape: list[Any], tmp_path: Path) -> None:
    """Of a batch of 1, a model without the batch is the same: its first step is none of three items."""
    steps = ops.reshape(x(1, 5, 4), ints(5, 4), False)
    first = ops.unsqueeze(ops.gather(steps, ops.constant(np.int64(0)), ops.constant(np.int64(0))), ints(0))
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(opened(model_of(first), tmp_path), {"x": shape})
    assert "SG420" in {found.code for found in caught.value.diagnostics}
