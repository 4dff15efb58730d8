"""Constants that are results of an IR: what they say and how large they are follows a length, or stays: it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import splitgraph
from splitgraph.formats import open_model

TABLE = np.array([3, 1, 4, 1, 5, 9, 2], np.float32)
ONES = np.ones(7, np.float32)


def constant(array: Any) -> Any:
    return ops.constant(np.asarray(array))


def named(layer: Any, *names: str) -> Any:
    """Give a result of a layer the names, and the layer the first one."""
    layer.set_friendly_name(names[0])
    layer.output(0).set_names(set(names))
    return layer


def saved(folder: Path, *results: Any, halves: bool = False) -> Path:
    """Write a model of x[1, 7, 2] with y = relu(x) before other results."""
    data = named(ops.parameter([1, 7, 2], np.float32), "x")
    model = ov.Model([named(ops.relu(data), "y"), *results], [data])
    ov.save_model(model, folder / "m.xml", compress_to_fp16=halves)
    return folder / "m.xml"


# What makes the result c.
MADE = {
    "constant": lambda: named(constant(TABLE), "c"),
    "computed": lambda: named(ops.exp(constant(TABLE)), "c"),
    "concatenated": lambda: named(ops.concat([constant(TABLE[:3]), constant(TABLE[3:])], 0), "c"),
    "gathered": lambda: named(ops.gather(constant(TABLE[:2]), constant([0, 1, 1, 0, 0, 1, 0]), constant(0)), "c"),
    "integers": lambda: named(constant(TABLE.astype(np.int64)), "c"),
    "alike": lambda: named(constant(ONES), "c"),
    "counted": lambda: named(constant(np.arange(7)), "c"),
}
CAN_FOLLOW = {"alike": [1] * 9, "counted": [*range(9)]}


def _findings(file: Path, **said: Any) -> list[tuple[str, str]]:
    try:
        splitgraph.reshape(file, {"x": [1, "T", 2]}, verify=False, **said)
    except splitgraph.ConversionError as error:
        return [(each.code, each.message) for each in error.diagnostics]
    return []


def _location(file: Path) -> str:
    """Return what the question about the axis of c calls it."""
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(file, {"x": [1, "T", 2]}, verify=False)
    return refused.value.diagnostics[0].location


def _results(file: Path, folder: Path, **said: Any) -> dict[str, Any]:
    """Return the results at a length of 9, by name."""
    splitgraph.reshape(file, {"x": [1, "T", 2]}, verify=False, **said).save(folder / "after.xml")
    after = ov.Core().read_model(folder / "after.xml")
    assert not [each for each in after.get_ops() if each.get_type_name() == "Identity"]
    found = ov.Core().compile_model(after, "CPU")({"x": np.zeros((1, 9, 2), np.float32)})
    return {name: value for output, value in found.items() for name in output.get_names()}


@pytest.mark.parametrize("name", MADE)
def test_axes_are_asked_about_and_answered(name: str, tmp_path: Path) -> None:
    file = saved(tmp_path, MADE[name]())
    before = ov.Core().compile_model(file, "CPU")({"x": np.zeros((1, 7, 2), np.float32)})[1]
    location = _location(file)
    called = location.removeprefix("main/")
    told = f"entry 0 can mean the size 7 of {called!r} whatever the size of the data, or the size T of {called!r}"
    assert _findings(file) == [("SG421", told)]
    assert _results(file, tmp_path, keep=[f"{location}[0]"])["c"].tolist() == before.tolist()
    if name in CAN_FOLLOW:
        assert _results(file, tmp_path, follow=[f"{location}[0]=T"])["c"].tolist() == CAN_FOLLOW[name]
    else:
        assert [code for code, _ in _findings(file, follow=[f"{location}[0]=T"])] == ["SG420"]


def test_a_constant_is_called_as_in_the_model(tmp_path: Path) -> None:
    file = saved(tmp_path, MADE["constant"]())
    assert _location(file) == "main/c"
    told = "needs 'c' to be T along axis 0, and the weights 'c' have 7 along axis 0, and are not the same all along it"
    assert _findings(file, follow=["main/c[0]=T"]) == [("SG420", told)]


def test_numbers_are_asked_about(tmp_path: Path) -> None:
    file = saved(tmp_path, named(constant([2, 7]), "n"))
    assert _findings(file) == [("SG421", "entry 1 can mean 7 whatever the size of the data, or T")]
    assert _results(file, tmp_path, follow=["main/n[1]=T"])["n"].tolist() == [2, 9]
    assert _results(file, tmp_path, keep=["main/n[1]"])["n"].tolist() == [2, 7]


def test_integers_that_stay_are_said(tmp_path: Path) -> None:
    file = saved(tmp_path, named(constant([6]), "n"))
    said = splitgraph.reshape(file, {"x": [1, "T", 2]}, verify=False).diagnostics
    assert [(each.code, each.location) for each in said] == [("SG424", "main/n")]
    assert not splitgraph.reshape(file, {"x": [1, "T", 2]}, keep=["main/n[0]"], verify=False).diagnostics


def test_results_that_share_a_constant(tmp_path: Path) -> None:
    shared = named(constant(ONES), "c", "d")
    file = saved(tmp_path, ops.result(shared.output(0)), ops.result(shared.output(0)))
    assert len(_findings(file)) == 1
    found = _results(file, tmp_path, follow=["main/c[0]=T"])
    assert [found[name].shape for name in ("c", "d")] == [(9,), (9,)]


def test_a_compressed_constant(tmp_path: Path) -> None:
    file = saved(tmp_path, named(constant(np.ones((7, 300), np.float32)), "c"), halves=True)
    location = _location(file)
    assert _results(file, tmp_path, follow=[f"{location}[0]=T"])["c"].shape == (9, 300)
    assert _results(file, tmp_path, keep=[f"{location}[0]"])["c"].shape == (7, 300)


@pytest.mark.parametrize(
    "array", [np.ones(6, np.float32), np.ones((1, 2), np.float32), np.float32(7), np.ones(1, np.float32)]
)
def test_other_constants_stay_as_they_are(array: Any, tmp_path: Path) -> None:
    file = saved(tmp_path, named(constant(array), "c"))
    after = splitgraph.reshape(file, {"x": [1, "T", 2]}, verify=False)
    before = open_model(file).content
    assert [each.type for each in after.model.graph.layers] == [each.type for each in before.graph.layers]
    assert not after.diagnostics


def test_a_batch_of_any_size_leaves_constants(tmp_path: Path) -> None:
    file = saved(tmp_path, named(constant(TABLE), "c"))
    after, before = splitgraph.reshape(file, batch="N", verify=False).model, open_model(file).content
    assert [each.type for each in after.graph.layers] == [each.type for each in before.graph.layers]
