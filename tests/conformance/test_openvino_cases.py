"""The corpus of OpenVINO Split-1 and VariadicSplit-1 cases through the variants' lift and inference rule.

Right is the tightest sound answer where the corpus gives one, else what it expects; an interval is compared by its
bounds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from splitgraph.dim import Dim, DimLike, Facts, Obligation, symbol
from splitgraph.model.value_type import Contents, SequenceInfo, ValueType, tensor, vector
from splitgraph.splits import infer_split, openvino_split_1, variadic_split_1

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "openvino_cases.json").read_text())["cases"]
# OpenVINO takes no lengths at all for a dimension of 6, and gives no outputs; by the specification, which the case
# quotes, the lengths must sum to the dimension.
INVALID_BY_SPECIFICATION = {"e_vs_lens_zero_count_param"}
INVALID = [case for case in CASES if "outputs" not in case["expected"] or case["id"] in INVALID_BY_SPECIFICATION]
VALID = [case for case in CASES if case not in INVALID]

DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "boolean": "bool",
    "dynamic": None,
    "f8e5m2": "float8e5m2",
}
DTYPES |= {"f8e4m3": "float8e4m3fn", "f4e2m1": "float4e2m1", "bf16": "bfloat16", "string": "string", "u1": "u1"}
DTYPES |= {
    f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("u", "uint")) for bits in (2, 4, 8, 16, 32, 64)
}


class LayerSite:
    """An OpenVINO layer with the inputs that a case describes, as a lift sees it."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.facts = Facts()
        self.empty_chunks = "clamp"
        self.outputs: list[str] = []
        self.found: list[str] = []
        self._fresh = 0
        self._attributes = {"num_splits": case["num_splits"]} if "num_splits" in case else {}
        data_type, data_contents = self._data(case["data"])
        self.inputs = [data_type, self._tensor(case["axis"])]
        self._contents = [data_contents, self._constant(case["axis"], "value")]
        if "split_lengths" in case:
            lengths = case["split_lengths"]
            self.inputs.append(self._tensor(lengths))
            self._contents.append(self._lengths(lengths))

    def _data(self, data: dict[str, Any]) -> tuple[ValueType, Contents | None]:
        if data.get("from") == "shapeof":
            items = self._shape(data["of"])
            return tensor(DTYPES[data["type"]], (len(items or ()),)), vector(items or ())
        return tensor(DTYPES[data["type"]], self._shape(data["shape"])), None

    def _shape(self, shape: Any) -> list[DimLike] | None:
        if shape is None:
            return None
        if isinstance(shape, dict):
            return [self.fresh() for _ in range(shape["rank"])]
        return [self._dim(dim) for dim in shape]

    def _dim(self, dim: Any) -> DimLike:
        if isinstance(dim, int):
            return dim
        made = self.fresh()
        if isinstance(dim, list):
            self.facts.require(Obligation(made, ">=", dim[0]))
            if dim[1] is not None:
                self.facts.require(Obligation(dim[1], ">=", made))
        return made

    def _tensor(self, described: dict[str, Any]) -> ValueType:
        return tensor(DTYPES[described["type"]], self._shape(described["shape"]))

    def _constant(self, described: dict[str, Any], key: str) -> Contents | None:
        held = described[key]
        if held is None:
            return None
        items = tuple(held) if isinstance(held, list) else (held,)
        return Contents(tuple(described["shape"]), items)

    def _lengths(self, lengths: dict[str, Any]) -> Contents | None:
        if lengths.get("from") == "shapeof":
            return vector(self._shape(lengths["of"]) or ())
        if lengths.get("from") == "concat":
            return vector([self._part(part) for part in lengths["parts"]])
        return self._constant(lengths, "values")

    def _part(self, part: Any) -> DimLike | None:
        if isinstance(part, dict):
            shape = self.inputs[0].shape
            assert shape is not None
            dim = shape[part["dim_of_data"]]
            assert dim is not None
            return (dim - part.get("minus", 0)) // part.get("div", 1)
        return None if part == "?" else part

    # What lifts use ------------------------------------------------------------------------------------------------

    @property
    def input_count(self) -> int:
        return len(self.inputs)

    def input(self, index: int) -> ValueType:
        return self.inputs[index]

    def has_input(self, index: int) -> bool:
        return index < len(self.inputs)

    def contents(self, index: int) -> Contents | None:
        return self._contents[index]

    def attribute_names(self) -> Iterable[str]:
        return self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        return self._attributes.get(name, default)

    def fresh(self) -> Dim:
        self._fresh += 1
        return symbol(f"u{self._fresh}")

    def require(self, lhs: DimLike, relation: Any, rhs: DimLike, *, code: str, message: str) -> bool:
        if self.facts.require(Obligation(lhs, relation, rhs)) != "contradiction":
            return True
        self.found.append(f"{code} {message}")
        return False

    def find(self, code: str, message: str, *, severity: str = "error") -> None:
        self.found.append(f"{code} {message}")

    def set_contents(self, index: int, contents: Contents | None) -> None: ...

    def set_sequence(self, index: int, info: SequenceInfo) -> None: ...

    def refine_input(self, index: int, contents: Contents) -> None: ...


def run(case: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The inferred output shapes in the corpus's notation, and what was found wrong."""
    site = LayerSite(case)
    variant = variadic_split_1.VARIANT if case["op"] == "VariadicSplit" else openvino_split_1.VARIANT
    split, _ = infer_split(variant, site)
    if split is None or split.lengths is None:
        return [], site.found
    types = [split.part_type(site.input(0), index) for index in range(len(split.lengths))]
    assert all(value.dtype == site.input(0).dtype for value in types)
    return [
        None if value.shape is None else [noted(site.facts, dim) for dim in value.shape] for value in types
    ], site.found


def noted(facts: Facts, dim: DimLike | None) -> Any:
    """A dimension as the corpus writes it: a number, [lo, hi], or "?"."""
    if dim is None or isinstance(dim, int):
        return "?" if dim is None else dim
    lowest, most = facts.range_of(dim)
    if lowest == most:
        return lowest
    return "?" if (lowest or 0) <= 0 and most is None else [max(lowest or 0, 0), most]


@pytest.mark.parametrize("case", VALID, ids=lambda case: case["id"])
def test_valid_case(case: dict[str, Any]) -> None:
    shapes, found = run(case)
    assert not found
    assert shapes == (case.get("tightest_sound") or case["expected"]["outputs"])


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["id"])
def test_invalid_case(case: dict[str, Any]) -> None:
    _, found = run(case)
    assert found, f"{case['expected']} was not found"


# Beyond the corpus: an axis that only run time knows, of dimensions that the parts fit nowhere, or in one place. The
# parts of a Split are their number, those of a VariadicSplit a list of lengths, "?" for one that only run time knows.
AXIS_AT_RUN_TIME: list[tuple[list[Any], int | list[Any], list[Any] | None]] = [
    ([6, 4], [1, 2], None),
    ([6, 4], [7, -1], None),
    ([6, 4], [7, "?"], None),
    ([8, [4, 8], 8], [0], None),
    ([6, 4], [5, -1], [[5, 4], [1, 4]]),
    ([6, 4], [-1, 4, 2], [[0, 4], [4, 4], [2, 4]]),
    ([[1, 3], 6], [4, -1], [[[1, 3], 4], [[1, 3], 2]]),
    ([6, 4], [3, -1], [["?", "?"], ["?", "?"]]),
    ([6, "?"], [7, -1], [[6, 7], [6, "?"]]),
    ([6, 4], 5, None),
    ([[1, 3], 2], 4, None),
    ([[0, 1], 6], 2, [[[0, 1], 3], [[0, 1], 3]]),
]


@pytest.mark.parametrize(("shape", "parts", "outputs"), AXIS_AT_RUN_TIME)
def test_axis_that_only_run_time_knows(shape: list[Any], parts: int | list[Any], outputs: list[Any] | None) -> None:
    case: dict[str, Any] = {
        "data": {"shape": shape, "type": "f32"},
        "axis": {"value": None, "shape": [], "type": "i64"},
    }
    if isinstance(parts, int):
        case |= {"op": "Split", "num_splits": parts}
    else:
        lengths = {"type": "i64", "shape": [len(parts)], "from": "concat", "parts": parts}
        case |= {"op": "VariadicSplit", "split_lengths": lengths}
    shapes, found = run(case)
    assert shapes == (outputs or [])
    assert [text[:5] for text in found] == ([] if outputs else ["SG206" if isinstance(parts, int) else "SG204"])
