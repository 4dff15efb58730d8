"""Values survive the way to an engine's process and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.verification.values import UnsupportedError, read_values, write_values

NARROW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int4", "uint4"]
WIDE = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def there_and_back(folder: Path, value: Any) -> Any:
    path = folder / "values.bin"
    write_values(path, {"first": np.arange(3), "value": value, "last": np.array("end", dtype=object)})
    values = read_values(path)
    assert list(values) == ["first", "value", "last"]
    assert (values["first"].tolist(), values["last"].item()) == ([0, 1, 2], "end")
    return values["value"]


@pytest.mark.parametrize("value", [object(), {1, 2}, 3, "text"])
def test_what_is_no_value_of_a_model(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UnsupportedError, match="is not a tensor"):
        there_and_back(tmp_path, value)


@pytest.mark.parametrize("name", WIDE + NARROW)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_a_tensor(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name) if name in NARROW else name)
    array = (np.arange(np.prod(shape, dtype=int)) % 3).astype(dtype).reshape(shape)
    back = there_and_back(tmp_path, array)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_a_tensor_that_is_not_contiguous(tmp_path: Path) -> None:
    array = np.arange(12).reshape(3, 4).T[::2]
    assert there_and_back(tmp_path, array).tolist() == array.tolist()


@pytest.mark.parametrize("array", [np.array(["a", "ü\n\x00é"]), np.array([b"a", "ü\n\x00é".encode()], dtype=object)])
def test_strings_come_back_as_objects(tmp_path: Path, array: Any) -> None:
    back = there_and_back(tmp_path, array)
    assert back.dtype == object
    assert back.tolist() == ["a", "ü\n\x00é"]


@settings(derandomize=True, deadline=None, max_examples=50)
@given(texts=st.lists(st.text(st.characters())))
def test_any_strings(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    array = np.array(texts, dtype=object)
    assert there_and_back(tmp_path_factory.mktemp("values"), array).tolist() == texts


def test_none_sequences_and_maps(tmp_path: Path) -> None:
    value = [[np.arange(2), None], [], {"a": np.float32(1), 7: np.arange(3)}]
    back = there_and_back(tmp_path, value)
    assert (back[0][0].tolist(), back[0][1], back[1]) == ([0, 1], None, [])
    assert {key: item.tolist() for key, item in back[2].items()} == {"a": 1.0, 7: [0, 1, 2]}
