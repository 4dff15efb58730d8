"""Find out, inside an engine process, which outputs of the first model change when its weights change ("move").

Each floating-point number grows by about 30 per cent. The factors differ, because normalization would hide a common
factor. All numbers grow, because a saturated function could leave saturation in the other direction.

Weights are also rounded to float16, to compare a model with an IR that stores its weights so.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.model.tensor_data import byte_size, is_external
from splitgraph.verification.comparison import Comparison, is_finite
from splitgraph.verification.engine_settings import DEFAULT, EngineSettings
from splitgraph.verification.engines.engine import load_engine, normalise
from splitgraph.verification.models.dependence import is_weight
from splitgraph.verification.models.model_files import nodes_within, read_elements, save_model
from splitgraph.verification.values import Array, Run, Value, blocks, read_values

# The files with the inputs and the outputs of the first model on one case.
CaseFiles = tuple[Path, Path]


def find_moving(
    engine: str,
    path: Path,
    folder: Path | None,
    ports: Mapping[str, Any] | None,
    probe: Mapping[str, Any],
    ran: Sequence[CaseFiles],
    settings: EngineSettings = DEFAULT,
) -> Iterator[list[int]]:
    """Yield the positions of the outputs that change with the weights, each time a case adds more of them.

    Cases are tried until every output that should change has changed. folder: of the external data of the model.
    probe: see `engine_process.Probe`.
    """
    wanted = set(probe["movable"])
    values = read_values(ran[0][1]).values()
    kinds = [value.dtype.kind if isinstance(value, np.ndarray) else "" for value in values]
    integers = {position for position, kind in enumerate(kinds) if kind in ("i", "u", "b")} & wanted
    comparison = Comparison(probe["rtol"], probe["atol"])
    moving: set[int] = set()
    is_decided = False
    for move in MOVES:
        sought = integers - moving if move.is_for_integers else set() if is_decided else wanted - moving
        if not sought:
            continue
        is_ir = path.suffix == ".xml"
        copy = path if is_ir else move_onnx(path, folder, probe["kept"], move)
        try:
            changes = partial(moved, move=move) if is_ir else None
            run = load_engine(engine, copy, ports, changes, folder=folder, settings=settings).run
        except Exception:  # such as a weight that is out of range; the next move changes the weights less
            continue
        for inputs, outputs in ran:
            changed = _find_changed(run, inputs, outputs, comparison)
            is_decided |= changed is not None and all(changed[position] is not None for position in sought)
            more = {position for position in sought - moving if changed is not None and changed[position]}
            if more:
                moving |= more
                yield sorted(moving)
            if sought <= moving:
                break


def _find_changed(run: Run, inputs: Path, outputs: Path, comparison: Comparison) -> list[bool | None] | None:
    """Return for each output whether it changed (None: undecided); None if the model does not run."""
    try:
        values = normalise(run(read_values(inputs)))
    except Exception:  # engines raise errors of their own types; a run that fails shows no change
        return None
    before = list(read_values(outputs).values())
    return [_has_changed(*pair, comparison) for pair in zip(before, values, strict=True)]


def _has_changed(before: Value, after: Value, comparison: Comparison) -> bool | None:
    """Return whether a value changed; None if no element is finite in both."""
    if isinstance(before, dict) and isinstance(after, dict):
        before, after = list(before.items()), list(after.items())
        return _has_changed([np.asarray(value) for _, value in before], [np.asarray(v) for _, v in after], comparison)
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return True
        changes = [_has_changed(*pair, comparison) for pair in zip(before, after, strict=True)]
        return True if True in changes else None if None in changes else False
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return (before is None) != (after is None)
    if before.shape != after.shape:
        return True
    is_decided = False
    for block in blocks(before, after):
        left, right = before[block], after[block]
        finite = is_finite(left) & is_finite(right)
        if (comparison.wrong(left, right) & finite).any():
            return True
        is_decided |= bool(finite.any())
    return False if is_decided else None


@dataclass(frozen=True, slots=True)
class WeightChange:
    """Says how weights change: each is multiplied by a factor between `least` and `most`.

    smallest: tensors with fewer elements do not change. is_for_integers: only integer and boolean outputs count.
    """

    least: float = 1.2
    most: float = 1.4
    smallest: int = 1
    is_for_integers: bool = False


# Tried in this order, until the copy runs: a deep model may overflow, and a small tensor may be a ratio or a threshold.
# An index, such as that of ArgMax, needs larger factors in both directions.
MOVES = (
    WeightChange(),
    WeightChange(1.02, 1.04),
    WeightChange(smallest=9),
    WeightChange(0.25, 4.0, is_for_integers=True),
)

# At most so many bytes of external weights change.
_MOST_READ = 2**25
_HALF = np.finfo(np.float16)
# OpenVINO compresses no array of which float16 cannot hold this share.
_MOSTLY = 0.75

_FACTORS = np.random.default_rng(0).uniform(size=1009)


def move_onnx(path: Path, folder: Path | None, kept: Collection[str], move: WeightChange) -> Path:
    """Write a copy of an ONNX file with moved weights beside it, and return its path.

    External weights may be large: small ones are moved first, up to a limit. folder: of the external data. kept: names
    of the weights that do not change.
    """
    return _change_weights(path, folder, kept, partial(moved, move=move), _MOST_READ)


def round_onnx(path: Path, folder: Path | None) -> Path:
    """Write a copy of an ONNX file, with weights rounded to float16, beside it, and return its path."""
    return _change_weights(path, folder, (), rounded_to_half, math.inf)


def rounded_to_half(array: Array, name: str) -> Array:
    """Return an array with its elements rounded to float16, as OpenVINO compresses it; the name does not matter.

    OpenVINO keeps an array as it is if float16 cannot hold most of its elements, and cuts the others off.
    """
    if array.dtype.kind != "f" or array.dtype.itemsize <= _HALF.bits // 8:
        return array
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.abs(array)
        is_outside = (sizes > float(_HALF.max)) | ((sizes > 0) & (sizes < float(_HALF.smallest_subnormal)))
        if np.count_nonzero(is_outside) >= _MOSTLY * array.size:
            return array
        halves: Array = np.clip(array, float(_HALF.min), float(_HALF.max)).astype(np.float16)
    return halves.astype(array.dtype)


def _change_weights(
    path: Path, folder: Path | None, kept: Collection[str], change: Callable[[Array, str], Array], most_read: float
) -> Path:
    """Write a copy of an ONNX file with changed weights beside it; at most so many bytes of external ones change."""
    model = onnx.load(str(path), load_external_data=False)
    movable = [(name, tensor) for name, tensor in _tensors(model) if name not in kept and is_weight(tensor)]
    taken = 0
    for name, tensor in sorted(movable, key=lambda pair: byte_size(pair[1]) or 0):
        if is_external(tensor):
            taken += byte_size(tensor) or 0
            if taken > most_read:
                continue
            elements = read_elements(tensor, folder or path.parent)
            tensor.CopyFrom(onnx.numpy_helper.from_array(change(elements, name), tensor.name))
            continue
        array = change(onnx.numpy_helper.to_array(tensor), name)
        if tensor.HasField("raw_data"):  # saves a copy of a large tensor
            tensor.raw_data = array.tobytes()
        else:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in _all_nodes(model):
        if node.op_type == "Constant" and node.output[0] not in kept:
            _change_numbers(node, change)
    return save_model(model, path.with_name(f"moved_{path.name}"))


def moved(array: Array, name: str, move: WeightChange) -> Array:
    """Return the moved array, finite wherever it was finite; the result depends on nothing but the arguments."""
    if array.size < move.smallest:
        return array
    # NumPy has no arithmetic for the narrow types, or a coarse one.
    result = array.astype(array.dtype if array.dtype.kind in "fc" and array.dtype.itemsize > 2 else np.float32).ravel()
    first = zlib.crc32(name.encode("utf-8", "surrogatepass")) % _FACTORS.size
    factors = (move.least + (move.most - move.least) * np.roll(_FACTORS, -first)).astype(result.real.dtype)
    whole = result.size - result.size % factors.size
    with np.errstate(over="ignore", invalid="ignore"):
        result[:whole].reshape(-1, factors.size)[:] *= factors
        result[whole:] *= factors[: result.size - whole]
        narrow = result.astype(array.dtype, copy=False).reshape(array.shape)
    kept = is_finite(narrow)
    return narrow if kept.all() else np.where(kept, narrow, array)


def _all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from nodes_within(model.graph.node)
    for function in model.functions:
        yield from nodes_within(function.node)


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield initializers and the tensors of Constant nodes, with their names."""
    yield from _initializers(model.graph)
    for node in _all_nodes(model):
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
                yield from _initializers(graph)
            if node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], attribute.t
            elif node.op_type == "Constant" and attribute.name == "sparse_value":
                yield node.output[0], attribute.sparse_tensor.values


def _initializers(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    yield from ((sparse.values.name, sparse.values) for sparse in graph.sparse_initializer)


def _change_numbers(node: onnx.NodeProto, change: Callable[[Array, str], Array]) -> None:
    for attribute in node.attribute:
        if attribute.name == "value_float":
            attribute.f = float(change(np.asarray([attribute.f]), node.output[0])[0])
        elif attribute.name == "value_floats":
            attribute.floats[:] = change(np.asarray(attribute.floats), node.output[0]).tolist()
