"""Running a model in this process, by the first engine that can: for models that are known to abort none."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.verification.engines.engine import load_engine, normalise


def outputs_of(
    model: onnx.ModelProto, feeds: Mapping[str, Any], engines: Sequence[str] = ("onnxruntime", "reference")
) -> list[Any]:
    """What the model gives on inputs by name, in the order of its outputs; fails with what each engine says."""
    refusals = []
    with tempfile.TemporaryDirectory(prefix="splitgraph-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        for engine in engines:
            try:
                return normalise(load_engine(engine, path).run(feeds, None))
            except Exception as error:
                refusals.append(f"{engine}: {error}")
    raise AssertionError("no engine runs the model: " + "; ".join(refusals))


def assert_close(expected: Sequence[Any], found: Sequence[Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Each value is of the expected type and shape; floating point within the tolerances, all else the same."""
    assert len(expected) == len(found)
    for want, have in zip(expected, found, strict=True):
        if isinstance(want, list) or want is None:
            assert type(want) is type(have)
            assert_close(want or [], have or [], rtol, atol)
            continue
        mine, theirs = np.asarray(want), np.asarray(have)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(theirs, mine, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(theirs, mine)
