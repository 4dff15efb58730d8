"""Whether two models differ, as onnxruntime or onnx's reference evaluator says on forty inputs of several kinds.

Belongs to `planted_faults.py`, and shares nothing with the verification that is judged. It runs three models: the
original, its conversion, and the spoiled conversion. A difference counts if the conversion does not have it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

Array = npt.NDArray[Any]
Inputs = dict[str, Array]
Run = Callable[[Inputs], list[Any]]

CASES = 40
KINDS = ("normal", "small integers", "zeros", "large", "unit", "tiny", "ends", "special", "halves", "negative")
# Sizes of dimensions without a number, each first tried for all of them.
_SIZES = (2, 3, 4, 1, 6, 8, 5, 12, 16, 32, 64, 224)
_MOST_TRIALS = 40
_MOST_SIZES = 4
# Relative tolerances by the bytes of a floating-point type.
_RTOL = {8: 1e-9, 4: 1e-4, 2: 2e-2, 1: 0.25}
# A conversion may round differently; a fault must move more than so many times what this moves.
_TIMES = 20


def tell_apart(
    before: str, right: str, after: str, engine: str, seconds: float, feed: str | None = None
) -> dict[str, Any]:
    """Run the models on all cases, until one tells the spoiled one (after) from the original (before).

    right: the conversion that was spoiled. feed: a file of arrays, which are the only case. Returns on how
    many cases the original and the conversion ran ("ran"), on how many of these the spoiled model fails ("fails"), and
    how it differs ("apart").
    """
    deadline = time.monotonic() + seconds
    runs = [_load(path, engine) for path in (before, right)]
    try:
        runs.append(_load(after, engine))
    except Exception:  # as below; the spoiled model does not load where the other two do
        return {"ran": 1, "apart": "", "fails": 1}
    if feed is not None:
        results = _results(runs, dict(np.load(feed)))
        told = "" if results is None or None in results else _difference(*results)
        return {"ran": int(results is not None), "apart": told}
    inputs = _inputs(before)
    kinds = KINDS
    if _has_loop(onnx.load(before).graph):
        # A number of turns at the end of its type would never be reached.
        kinds = tuple(kind for kind in KINDS if kind not in ("ends", "large", "special"))
    sizes = _sizes_that_run(inputs, runs[0], deadline)
    ran, fails = 0, 0
    for case in range(CASES if sizes else 0):
        if time.monotonic() > deadline:
            break
        kind = kinds[case % len(kinds)]
        given = _draw(inputs, sizes[case % len(sizes)], kind, case)
        results = _results(runs, given)
        if results is None or results[1] is None:
            continue
        ran += 1
        fails += results[2] is None
        told = "" if results[2] is None else _difference(*results)
        if told and _is_steady(runs[0], given, results[0]):
            return {"ran": ran, "apart": told, "kind": kind, "case": case}
    return {"ran": ran, "apart": "", "fails": fails}


def _has_loop(graph: onnx.GraphProto) -> bool:
    """Return True if a graph has a loop, or one of its branches does."""
    return any(
        node.op_type == "Loop" or any(_has_loop(each.g) for each in node.attribute if each.HasField("g"))
        for node in graph.node
    )


def _is_steady(run: Run, given: Inputs, before: Any) -> bool:
    """Return True if a model gives the same outputs again: it draws no random numbers."""
    again = _results([run], given)
    return again is not None and not _difference(before, before, again[0])


def _results(runs: Sequence[Run], given: Inputs) -> list[list[Any] | None] | None:
    """Return the outputs of each model, None for one that fails; None at all where the first one fails."""
    found: list[list[Any] | None] = []
    for run in runs:
        try:
            found.append(run(given))
        except Exception:  # an engine raises what it likes; only that it refuses counts
            found.append(None)
    return None if found[0] is None else found


# Engines ----------------------------------------------------------------------------------------------------------


def _load(path: str, engine: str) -> Run:
    if engine == "reference":
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(path)
        return lambda given: list(evaluator.run(None, dict(given)))
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda given: list(session.run(None, given))


# Inputs -----------------------------------------------------------------------------------------------------------


def _inputs(path: str) -> Mapping[str, tuple[npt.DTypeLike, list[int | str]]]:
    """Return type and dimensions of each input without a default."""
    graph = onnx.load(path).graph
    defaults = {tensor.name for tensor in graph.initializer}
    found = {}
    for value in graph.input:
        if value.name in defaults:
            continue
        of_tensor = value.type.tensor_type
        if not of_tensor.elem_type:
            raise ValueError(f"the input {value.name} is no tensor")
        dims = [
            dim.dim_value
            if dim.HasField("dim_value") and dim.dim_value >= 0
            else dim.dim_param or f"{value.name} {number}"
            for number, dim in enumerate(of_tensor.shape.dim)
        ]
        found[value.name] = onnx.helper.tensor_dtype_to_np_dtype(of_tensor.elem_type), dims
    return found


def _sizes_that_run(inputs: Mapping[str, Any], run: Run, deadline: float) -> list[dict[str, int]]:
    """Return the first sizes of the symbols at which the original runs."""
    symbols = sorted({dim for _, dims in inputs.values() for dim in dims if isinstance(dim, str)})
    found: list[dict[str, int]] = []
    for sizes in _trials(symbols):
        if len(found) == _MOST_SIZES or time.monotonic() > deadline:
            break
        if any(
            _results([run], _draw(inputs, sizes, kind, 0)) is not None for kind in ("small integers", "unit", "zeros")
        ):
            found.append(sizes)
    return found


def _trials(symbols: Sequence[str]) -> Iterator[dict[str, int]]:
    if not symbols:
        yield {}
        return
    for size in _SIZES:
        yield dict.fromkeys(symbols, size)
    rng = np.random.default_rng(1)
    for _ in range(_MOST_TRIALS):
        yield {symbol: int(rng.choice(_SIZES)) for symbol in symbols}


def _draw(inputs: Mapping[str, Any], sizes: Mapping[str, int], kind: str, case: int) -> Inputs:
    rng = np.random.default_rng(case)
    found = {}
    for name, (dtype, dims) in inputs.items():
        shape = tuple(sizes.get(dim, 1) if isinstance(dim, str) else dim for dim in dims)
        found[name] = _elements(np.dtype(dtype), shape, kind, rng)
    return found


def _elements(dtype: np.dtype[Any], shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Array:
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "OUS":
        return rng.choice(["", "a", "b c", "1.5"], shape).astype(object)
    if dtype.kind in "iu":
        return _integers(dtype, shape, kind, rng)
    if kind == "special":
        drawn = rng.normal(size=shape)
        mask = rng.random(shape) < 0.2
        return np.where(mask, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), drawn).astype(dtype)
    make: Mapping[str, Callable[[], Any]] = {
        "normal": lambda: rng.normal(size=shape),
        "small integers": lambda: rng.integers(0, 4, shape),
        "zeros": lambda: np.zeros(shape),
        "large": lambda: rng.normal(size=shape) * (1e3 if dtype.itemsize < 4 else 1e6),
        "unit": lambda: rng.random(shape),
        "tiny": lambda: rng.normal(size=shape) * 1e-5,
        "ends": lambda: rng.choice([-1e4, -1, 0, 1, 1e4], shape),
        "halves": lambda: rng.integers(-6, 7, shape) / 2,
        "negative": lambda: -rng.random(shape) * 10,
    }
    return np.asarray(make[kind]()).astype(dtype)


def _integers(dtype: np.dtype[Any], shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Array:
    ends = np.iinfo(dtype)
    if kind == "ends":
        return rng.choice(np.array([ends.min, ends.max, 0, 1], dtype=dtype), shape)
    if kind in ("large", "special"):
        return rng.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)
    if kind in ("zeros", "tiny"):
        return np.zeros(shape, dtype=dtype)
    low = -3 if kind in ("negative", "halves") and ends.min < 0 else 0
    return rng.integers(low, {"normal": 10, "unit": 2}.get(kind, 4), shape).astype(dtype)


# Outputs ----------------------------------------------------------------------------------------------------------


def _difference(before: Any, right: Any, after: Any) -> str:
    """Return how the outputs of the spoiled model differ from the original's where the conversion's do not."""
    if isinstance(before, (list, tuple)):
        if len(before) != len(after):
            return "" if len(before) != len(right) else "another number of values"
        pairs = zip(before, right, after, strict=False)
        return next((f"{number}: {told}" for number, parts in enumerate(pairs) if (told := _difference(*parts))), "")
    if isinstance(before, dict):
        return "" if before == after or before != right else "another map"
    arrays = [np.asarray(each) for each in (before, right, after)]
    forms = [(array.dtype, array.shape) for array in arrays]
    if forms[0] != forms[1]:
        return ""
    if forms[0] != forms[2]:
        return f"{forms[2]} in place of {forms[0]}"
    wrong = _wrong(*arrays)
    if not wrong.any():
        return ""
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    shown = f"{arrays[0][place]} became {arrays[2][place]}"
    return f"at {[int(index) for index in place]} {shown}, {np.count_nonzero(wrong)} of {wrong.size}"[:200]


def _wrong(before: Array, right: Array, after: Array) -> npt.NDArray[np.bool_]:
    """Mark the elements that differ beyond rounding, and beyond what the conversion moves."""
    if before.dtype.kind not in "fV" and "float" not in before.dtype.name:
        return np.asarray((before != after) & (before == right), dtype=np.bool_)
    rtol = _RTOL.get(before.dtype.itemsize, 1e-4)
    values = [array.astype(np.float64) for array in (before, right, after)]
    finite = [np.isfinite(array) for array in values]
    with np.errstate(all="ignore"):
        moved, gap = (np.where(finite[0], np.abs(array - values[0]), 0.0) for array in values[1:])
        moved_most = float(np.max(moved, initial=0.0, where=np.isfinite(moved)))
        size = float(np.max(np.abs(values[0]), initial=0.0, where=finite[0]))
        far = finite[0] & finite[2] & (gap > rtol * np.abs(values[0]) + rtol * 1e-2 * size + _TIMES * moved_most)
    # NaN and an infinity may stand for each other: a sum overflows in one order of its terms and not in another.
    return np.asarray(far | ((finite[0] != finite[2]) & (finite[0] == finite[1])))
