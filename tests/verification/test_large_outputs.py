"""Large outputs stay in their files and are compared in pieces, within the time that is left."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from verifying import verify_models

from splitgraph.verification import values, worker
from splitgraph.verification.comparison import Comparison, OutOfTimeError, has_finite
from splitgraph.verification.values import UnsupportedError, are_identical, blocks, read_values, write_values

from .small_models import parsed

DRAWN = np.random.default_rng(0).standard_normal((7, 5, 3)).astype(np.float32)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_BLOCK", 4)
    monkeypatch.setattr(values, "_MAPPED", 1)


SHAPES = [(), (1,), (9,), (2, 2), (7, 5, 3), (1, 1, 9), (0, 4), (3, 0)]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_are_all_elements_in_order(shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape)
    parts = [array[block] for block in blocks(array)]
    assert all(part.size <= 4 for part in parts)
    assert np.concatenate([part.ravel() for part in parts]).tolist() == array.ravel().tolist()


ARRAYS: dict[str, Any] = {
    "float32": DRAWN,
    "float16": DRAWN.astype(np.float16),
    "bfloat16": DRAWN.astype(ml_dtypes.bfloat16),
    "int4": np.arange(6).astype(ml_dtypes.int4),
    "bool": DRAWN > 0,
    "complex": DRAWN.astype(np.complex64),
    "a transposed array": DRAWN.T,
    "without dimensions": np.float32(3).reshape(()),
    "empty": np.zeros((0, 3), np.float32),
    "a sequence": [DRAWN, DRAWN[1]],
    "a text": np.array("a", dtype=object),
    "a map": {"a": np.float32(1)},
    "nothing": None,
}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ARRAYS)
def test_mapped_values_are_those_that_were_written(name: str, tmp_path: Path) -> None:
    write_values(tmp_path / "v.bin", {"first": DRAWN, "second": ARRAYS[name]})
    read = read_values(tmp_path / "v.bin")
    assert list(read) == ["first", "second"]
    assert Comparison(0, 0).compare_outputs(["y"], [ARRAYS[name]], [read["second"]], 0) is None
    if values._MAPS:
        assert not read["first"].flags.owndata and not read["first"].flags.writeable


@pytest.mark.usefixtures("small_pieces")
def test_the_first_difference_and_their_number_do_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = DRAWN.copy()
    changed[3, 4, 1] = changed[6, 0, 2] = 9
    found = Comparison(1e-5, 1e-6).compare_outputs(["y"], [DRAWN], [changed], 0)
    monkeypatch.setattr(values, "_BLOCK", 1000)
    whole = Comparison(1e-5, 1e-6).compare_outputs(["y"], [DRAWN], [changed], 0)
    assert found == whole
    assert found is not None and "at [3, 4, 1]" in found.reason and "(2 of 105 elements differ)" in found.reason
    assert has_finite(np.float32([np.nan] * 9 + [1])) and not has_finite(np.float32([np.nan] * 9))


def test_a_comparison_ends_in_time() -> None:
    late = Comparison(1e-5, 1e-6, deadline=time.monotonic() - 1)
    with pytest.raises(OutOfTimeError):
        late.compare_outputs(["y"], [DRAWN], [DRAWN + 1], 0)


IDENTICAL = {
    "the same": ([DRAWN, np.int64(1)], [DRAWN.copy(), np.int64(1)], True),
    "NaN": ([np.float32([np.nan])], [np.float32([np.nan])], True),
    "-0.0": ([np.float32([0.0])], [np.float32([-0.0])], False),
    "another type": ([np.float32([1])], [np.float64([1])], False),
    "another shape": ([np.float32([1])], [np.float32([[1]])], False),
    "fewer": ([DRAWN], [DRAWN, DRAWN], False),
    "texts, which are compared as texts": ([np.array(["a"], object)], [np.array(["a"], object)], False),
    "sequences": ([[DRAWN]], [[DRAWN]], False),
}


@pytest.mark.parametrize("name", IDENTICAL)
def test_identical_outputs(name: str, tmp_path: Path) -> None:
    written, given, wanted = IDENTICAL[name]
    write_values(
        tmp_path / "v.bin",
        {str(index): np.asarray(v) if not isinstance(v, list) else v for index, v in enumerate(written)},
    )
    assert are_identical(tmp_path / "v.bin", [v if isinstance(v, list) else np.asarray(v) for v in given]) is wanted


MANY: dict[str, Any] = {
    "texts": np.array(["a"] * 11, dtype=object),
    "a long sequence": [np.zeros(1)] * 11,
    "a large map": dict.fromkeys(range(6), np.float32(1)),
    "texts in a sequence": [np.array(["a"] * 10, dtype=object)],
}


@pytest.mark.parametrize("name", MANY)
def test_a_limit_of_objects(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="more than the 10 compared"):
        write_values(tmp_path / "v.bin", {"y": MANY[name]}, 10)
    write_values(tmp_path / "v.bin", {"y": MANY[name]}, 12)


@pytest.mark.usefixtures("in_process")
def test_too_many_bytes_are_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_MOST_WRITTEN", 1000)
    model = parsed("float[N, 1] x => float[N, 400] y", "y = Expand(x, s)", s=np.array([1, 400]))
    found = verify_models(model, model)
    assert found.verdict == "not-run"
    assert "the outputs take more than" in found.diagnostics[0].message


TEXTS = {
    "Identity": "string[] x => string[] y|y = Identity(x)",
    "a sequence": "string[N] x => seq(string[]) y|y = SplitToSequence<axis = 0, keepdims = 0>(x)",
    "an optional": "string[] x => optional(string[]) y|y = Optional(x)",
    "a sequence of one": "string[] x => seq(string[]) y|y = SequenceConstruct(x)",
    "an element": "string[N] x => string[] y|y = Gather(x, i)",
    "a reshaped text": "string[1] x => string[] y|y = Squeeze(x)",
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_without_dimensions(name: str, engine: Any) -> None:
    constants = {"i": np.int64(1)} if name == "an element" else {}
    model = parsed(*TEXTS[name].split("|"), **constants)
    assert verify_models(model, model, engine=engine).verdict == "equal"


@pytest.mark.usefixtures("in_process")
def test_other_texts_without_dimensions() -> None:
    first = parsed("string[N] x => string[] y", "y = Gather(x, i)", i=np.int64(0))
    last = parsed("string[N] x => string[] y", "y = Gather(x, i)", i=np.int64(-1))
    assert verify_models(first, last).verdict == "different"
