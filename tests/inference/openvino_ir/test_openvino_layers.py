"""What is inferred of OpenVINO's layers, against what OpenVINO infers and computes (recorded by make_layers.py)."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from splitgraph.dim import Dim, DimLike, Facts, evaluate, symbols_of
from splitgraph.formats.openvino_ir import load_ir
from splitgraph.formats.openvino_ir.notation import dtype_of
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.model.value_type import ValueType

HERE = Path(__file__).parent
RECORDED: dict[str, dict[str, Any]] = json.loads((HERE / "layers.json").read_text())
RESULTS = [(group, result) for group, results in RECORDED.items() for result in results]

_EMPTY = "OpenVINO takes for granted that a dimension is not 0"
_SIGNALS = "OpenVINO takes unknown signal sizes for those of the data on all axes but the last"
_IN_COMMON = "OpenVINO requires two inputs to fit each other, which is not followed"
# Where OpenVINO says more, and why.
LOOSER = {
    "reshaping/no_elements_rest": "-1 beside a 0 that is meant is 1 to OpenVINO, and could be any number",
    "reshaping/any_rank": _EMPTY,
    "convolution/spread": _EMPTY,
    "convolution/spread_valid": _EMPTY,
    "convolution/spread_groups": _EMPTY,
    "pooling/valid": _EMPTY,
    "resizing/padded_scales": "9 + 3 times 0.3 is 3 or 4, as the product is rounded",
    "slicing/to_the_end": "OpenVINO takes the largest index for the largest dimension",
    "computed_shapes/remainder": "OpenVINO leaves out that a remainder can be 0",
    "every_interval/rdft_unknown_sizes": _SIGNALS,
    "every_interval/irdft_unknown_sizes": _SIGNALS,
    "every_mixed/rdft_unknown_sizes": _SIGNALS,
    "every_mixed/irdft_unknown_sizes": _SIGNALS,
    "every_mixed/search_sorted": _IN_COMMON,
    "every_mixed/i420_planes": _IN_COMMON,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("layers")
    with zipfile.ZipFile(HERE / "layers.zip") as archive:
        archive.extractall(unpacked)
    return unpacked


@cache
def inferred(path: Path) -> tuple[Analysis, dict[str, str]]:
    """The analysis of an IR, and the name of the value that each of its results gives."""
    model = load_ir(path)
    results = [layer.name for layer in model.graph.layers if layer.type == "Result"]
    values = [value.name for value in mirror(model).model.graph.output]
    return infer_ir(model), dict(zip(results, values, strict=True))


def found_of(folder: Path, group: str, result: str) -> tuple[Analysis, ValueType]:
    analysis, values = inferred(folder / f"{group}.xml")
    return analysis, analysis.types[values[result]]


@pytest.mark.parametrize("group", RECORDED)
def test_nothing_is_wrong_with_what_openvino_accepts(folder: Path, group: str) -> None:
    analysis, _ = inferred(folder / f"{group}.xml")
    assert not analysis.diagnostics


@pytest.mark.parametrize(("group", "result"), RESULTS, ids="/".join)
def test_no_looser_than_openvino(folder: Path, group: str, result: str) -> None:
    analysis, known = found_of(folder, group, result)
    theirs = RECORDED[group][result]
    assert known.dtype == dtype_of(theirs["type"])
    if theirs["shape"] is None:
        return
    assert known.shape is not None
    facts = Facts(analysis.symbols)
    ours = [bounds(facts, dim) for dim in known.shape]
    assert len(ours) == len(theirs["shape"])
    pairs = list(zip(ours, theirs["shape"], strict=True))
    assert all(overlap(mine, other) for mine, other in pairs), f"{known} contradicts {theirs['shape']}"
    is_looser = not all(within(mine, other) for mine, other in pairs)
    assert is_looser == (f"{group}/{result}" in LOOSER), f"{known} against {theirs['shape']}"


def bounds(facts: Facts, dim: DimLike | None) -> tuple[int, int | None]:
    lowest, most = (0, None) if dim is None else facts.range_of(dim)
    return max(lowest or 0, 0), most


def overlap(mine: tuple[int, int | None], other: list[int | None]) -> bool:
    return not above(other[0] or 0, mine[1]) and not above(mine[0], other[1])


def within(mine: tuple[int, int | None], other: list[int | None]) -> bool:
    return mine[0] >= (other[0] or 0) and (other[1] is None or (mine[1] is not None and mine[1] <= other[1]))


def above(lowest: int, most: int | None) -> bool:
    return most is not None and lowest > most


@pytest.mark.parametrize(
    ("group", "result"), [place for place in RESULTS if RECORDED[place[0]][place[1]]["runs"]], ids="/".join
)
def test_what_openvino_computes(folder: Path, group: str, result: str) -> None:
    analysis, known = found_of(folder, group, result)
    assert known.shape is not None
    facts = Facts(analysis.symbols)
    for run in RECORDED[group][result]["runs"]:
        sizes = sizes_of(analysis, run["given"])
        assert len(known.shape) == len(run["shape"])
        for dim, size in zip(known.shape, run["shape"], strict=True):
            assert size == predicted(dim, sizes, size) and overlap(bounds(facts, dim), [size, size]), f"{known}: {run}"


def sizes_of(analysis: Analysis, given: dict[str, list[int]]) -> dict[str, int]:
    """The value of each symbol that is a dimension of an input."""
    return {
        str(dim): size
        for name, shape in given.items()
        for dim, size in zip(analysis.types[name].shape or (), shape, strict=True)
        if isinstance(dim, Dim) and str(dim) in analysis.symbols
    }


def predicted(dim: DimLike | None, sizes: dict[str, int], by_default: int) -> int:
    if dim is None or (isinstance(dim, Dim) and not symbols_of(dim) <= set(sizes)):
        return by_default
    return evaluate(dim, sizes) if isinstance(dim, Dim) else dim


def test_every_exception_is_of_a_result() -> None:
    assert {tuple(name.split("/", 1)) for name in LOOSER} <= set(RESULTS)
