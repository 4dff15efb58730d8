"""Run the split operators with strict NumPy kernels, transcribed from the specification.

The kernels give `verify` a second opinion. They are written from the text of each operator version, and never import
the canonical split of splitgraph, so that one wrong formula cannot affect both sides of a comparison. Unlike the
kernels of runtimes, they check everything that the specification requires, and raise KernelError for a model that
breaks it.

Source: the operator documentation in `onnx.defs`. Decisions where the specification says nothing:

- A negative axis of Split-1 and Split-2 counts from the back, as in Split-11 and later.
- The axis of Split-1 has no default in the schema; it is 0 if absent, as in Split-2.
- The lengths input of Split-1 has the element type of the data (a floating-point type) and must hold whole numbers. A
  node with this input and the attribute `split` is refused.
- If the last part of a Split-18 with `num_outputs` would have a negative length (5 rows in 4 parts), the parts end at
  the dimension, so that the last parts are empty: 2, 2, 1, 0, as in the reference evaluator of onnx.
- SplitToSequence says both "only positive numbers" and ">= 0" about its lengths: 0 is allowed in a list, but not as the
  size of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class KernelError(Exception):
    """Raised for a node that the specification does not allow; says what was found and what is allowed."""


_FLOATS = frozenset({"float16", "float32", "float64"})
_INTEGERS = frozenset({"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"})
_ALL_UNTIL_11 = _FLOATS | _INTEGERS | {"bool", "string", "complex64", "complex128"}
_ALL_SINCE_13 = _ALL_UNTIL_11 | {"bfloat16"}
# Of each version, the element types and the attributes.
_SPLITS = {
    1: (_FLOATS, {"axis", "split"}),
    2: (_ALL_UNTIL_11, {"axis", "split"}),
    11: (_ALL_UNTIL_11, {"axis", "split"}),
    13: (_ALL_SINCE_13, {"axis"}),
    18: (_ALL_SINCE_13, {"axis", "num_outputs"}),
}
_SEQUENCE_TYPES = {11: _ALL_UNTIL_11, 24: _ALL_SINCE_13}

ONNX_KERNEL_VERSIONS: Mapping[str, tuple[int, ...]] = {
    "Split": tuple(_SPLITS),
    "SplitToSequence": tuple(_SEQUENCE_TYPES),
    "StringSplit": (20,),
}


def run_split(
    since_version: int, inputs: Sequence[Array | None], attributes: Mapping[str, Any], num_outputs: int
) -> list[Array]:
    """Run a version of ai.onnx Split.

    inputs: the data, and the lengths if the version has such an input; None for an omitted one. attributes: by name,
    None for an absent one. num_outputs: outputs of the node, with omitted ones. Raises KernelError for a node that the
    version does not allow.
    """
    if since_version not in _SPLITS:
        raise KernelError(f"Split-{since_version} is not a version of Split")
    types, names = _SPLITS[since_version]
    given = _present(attributes, names, f"Split-{since_version}")
    data, lengths_input = _take_inputs(inputs, 1 if since_version in (2, 11) else 2, f"Split-{since_version}")
    _check_type(data, types, f"Split-{since_version}")
    if num_outputs < 1:
        raise KernelError("Split needs at least one output")
    axis = _check_axis(given.get("axis", 0), data.ndim)
    dim = data.shape[axis]
    lengths: list[int] | None
    if since_version == 18:
        lengths = _lengths_18(lengths_input, given.get("num_outputs"), dim, num_outputs)
    elif since_version == 13:
        lengths = None if lengths_input is None else _int64_lengths(lengths_input)
    else:
        lengths = _lengths_by_attribute(data, lengths_input, given.get("split"))
    if lengths is None:
        lengths = _equal_lengths(dim, num_outputs)
    _check_lengths(lengths, dim, num_outputs)
    return _cut(data, lengths, axis)


def run_split_to_sequence(
    since_version: int, inputs: Sequence[Array | None], attributes: Mapping[str, Any]
) -> list[Array]:
    """Run ai.onnx SplitToSequence-11 or -24; return the sequence as a list.

    Arguments and errors are those of run_split. The second input is a scalar (the size of the chunks; the last one may
    be smaller) or a list of lengths.
    """
    operator = f"SplitToSequence-{since_version}"
    if since_version not in _SEQUENCE_TYPES:
        raise KernelError(f"{operator} is not a version of SplitToSequence")
    given = _present(attributes, {"axis", "keepdims"}, operator)
    data, split = _take_inputs(inputs, 2, operator)
    _check_type(data, _SEQUENCE_TYPES[since_version], operator)
    axis = _check_axis(given.get("axis", 0), data.ndim)
    keepdims = given.get("keepdims", 1)
    if keepdims not in (0, 1):
        raise KernelError(f"keepdims is {keepdims}; it must be 0 or 1")
    dim = data.shape[axis]
    if split is None:
        parts = _cut(data, [1] * dim, axis)
        return parts if keepdims else [part.reshape(part.shape[:axis] + part.shape[axis + 1 :]) for part in parts]
    if dtype_name(split) not in ("int32", "int64"):
        raise KernelError(f"split is of type {dtype_name(split)}; it must be int32 or int64")
    if split.ndim == 0:
        return _cut(data, _chunk_lengths(int(split), dim), axis)
    lengths = _length_list(split)
    _check_lengths(lengths, dim, len(lengths))
    return _cut(data, lengths, axis)


def run_string_split(inputs: Sequence[Array | None], attributes: Mapping[str, Any]) -> tuple[Array, Array]:
    """Run ai.onnx StringSplit-20: return the substrings, padded with "" to the longest list, and their counts (int64).

    Without a delimiter (absent or ""), runs of whitespace separate, and outer whitespace is removed. A delimiter always
    separates: n delimiters give n + 1 substrings, and "" gives one (onnxruntime counts none). Where the specification
    says nothing: whitespace is Unicode whitespace, as in the reference evaluator of onnx (onnxruntime: only ASCII). The
    rest that `maxsplit` leaves loses its trailing whitespace if there is no delimiter, as in onnxruntime. A negative
    `maxsplit` is no limit, as in both. Without any elements, the last dimension is 0.
    """
    given = _present(attributes, {"delimiter", "maxsplit"}, "StringSplit-20")
    (text, *_) = _take_inputs(inputs, 1, "StringSplit-20")
    _check_type(text, frozenset({"string"}), "StringSplit-20")
    delimiter = _text(given.get("delimiter", "")) or None
    maxsplit = given.get("maxsplit", -1)
    parts = [_split_text(_text(element), delimiter, maxsplit) for element in text.ravel().tolist()]
    width = max((len(part) for part in parts), default=0)
    padded = np.full((len(parts), width), "", dtype=object)
    for row, part in enumerate(parts):
        padded[row, : len(part)] = part
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    return padded.reshape((*text.shape, width)), counts.reshape(text.shape)


def run_onnx(
    op_type: str, since_version: int, inputs: Sequence[Array | None], attributes: Mapping[str, Any], num_outputs: int
) -> tuple[Any, ...]:
    """Run an operator of ONNX_KERNEL_VERSIONS; return the tuple of its outputs, with a sequence as a list."""
    runners: dict[str, Callable[[], tuple[Any, ...]]] = {
        "Split": lambda: tuple(run_split(since_version, inputs, attributes, num_outputs)),
        "SplitToSequence": lambda: (run_split_to_sequence(since_version, inputs, attributes),),
        "StringSplit": lambda: run_string_split(inputs, attributes),
    }
    return runners[op_type]()


def filled(inputs: Sequence[Array | None], count: int) -> list[Array | None]:
    """Return the inputs of a node with None for those that are omitted at the end."""
    return [*inputs, *[None] * (count - len(inputs))]


def dtype_name(value: Array) -> str:
    """Return the element type of an array: "string" for objects and text, else the name in NumPy or ml_dtypes."""
    return "string" if value.dtype.kind in "OUST" else value.dtype.name


def _present(attributes: Mapping[str, Any], allowed: set[str], operator: str) -> dict[str, Any]:
    given = {name: value for name, value in attributes.items() if value is not None}
    unknown = sorted(given.keys() - allowed)
    if unknown:
        raise KernelError(f"{operator} has no attribute {unknown[0]!r}; it has {', '.join(sorted(allowed))}")
    return given


def _take_inputs(inputs: Sequence[Array | None], most: int, operator: str) -> tuple[Array, Array | None]:
    if len(inputs) > most:
        raise KernelError(f"{operator} takes at most {most} inputs, not {len(inputs)}")
    if not inputs or inputs[0] is None:
        raise KernelError(f"{operator} needs the tensor to split")
    for value in inputs:
        if value is not None and not isinstance(value, np.ndarray):
            raise KernelError(f"{operator} takes tensors, not a {type(value).__name__}")
    return inputs[0], inputs[1] if len(inputs) > 1 else None


def _check_type(data: Array, allowed: frozenset[str], operator: str) -> None:
    if dtype_name(data) not in allowed:
        raise KernelError(f"{operator} does not take elements of type {dtype_name(data)}")


def _check_axis(axis: int, rank: int) -> int:
    if rank == 0:
        raise KernelError("a scalar has no axis to split on")
    if not -rank <= axis < rank:
        raise KernelError(f"axis {axis} is out of range [{-rank}, {rank - 1}]")
    return axis % rank


def _equal_lengths(dim: int, parts: int) -> list[int]:
    if dim % parts:
        raise KernelError(f"dimension {dim} is not divisible into {parts} equal parts")
    return [dim // parts] * parts


def _lengths_18(split: Array | None, num_outputs: int | None, dim: int, outputs: int) -> list[int]:
    if split is not None and num_outputs is not None:
        raise KernelError("Split-18 has both the input split and the attribute num_outputs; exactly one must be given")
    if split is not None:
        return _int64_lengths(split)
    if num_outputs is None:
        raise KernelError(
            "Split-18 has neither the input split nor the attribute num_outputs; exactly one must be given"
        )
    if num_outputs < 1 or num_outputs != outputs:
        raise KernelError(f"num_outputs is {num_outputs}; it must be the number of outputs, {outputs}")
    chunk = -(-dim // num_outputs)
    ends = [min(chunk * part, dim) for part in range(1, num_outputs + 1)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _lengths_by_attribute(data: Array, split_input: Array | None, split: Sequence[int] | None) -> list[int] | None:
    if split_input is not None and split is not None:
        raise KernelError("Split-1 has its lengths both as input and as attribute")
    if split_input is None:
        return None if split is None else [int(length) for length in split]
    if dtype_name(split_input) != dtype_name(data):
        raise KernelError(
            f"split is of type {dtype_name(split_input)}; Split-1 takes it in the data's type, {dtype_name(data)}"
        )
    if not np.isfinite(split_input).all() or not (split_input == np.round(split_input)).all():
        raise KernelError("split holds a number that is not whole")
    return _length_list(split_input)


def _int64_lengths(split: Array) -> list[int]:
    if dtype_name(split) != "int64":
        raise KernelError(f"split is of type {dtype_name(split)}; it must be int64")
    return _length_list(split)


def _length_list(split: Array) -> list[int]:
    if split.ndim != 1:
        raise KernelError(f"the lengths have rank {split.ndim}; they must be a list, of rank 1")
    return [int(length) for length in split.tolist()]


def _chunk_lengths(chunk: int, dim: int) -> list[int]:
    if chunk < 1:
        raise KernelError(f"split is {chunk}; the size of a chunk must be at least 1")
    return [min(chunk, dim - start) for start in range(0, dim, chunk)]


def _check_lengths(lengths: Sequence[int], dim: int, parts: int) -> None:
    if len(lengths) != parts:
        raise KernelError(f"there are {len(lengths)} lengths for {parts} outputs")
    for length in lengths:
        if length < 0:
            raise KernelError(f"length {length} is negative")
    if sum(lengths) != dim:
        raise KernelError(f"the lengths {list(lengths)} sum to {sum(lengths)}, not to the dimension {dim}")


def _cut(data: Array, lengths: Sequence[int], axis: int) -> list[Array]:
    parts, start = [], 0
    for length in lengths:
        window = (slice(None),) * axis + (slice(start, start + length),)
        parts.append(np.ascontiguousarray(data[window]))
        start += length
    return parts


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _split_text(text: str, delimiter: str | None, maxsplit: int) -> list[str]:
    parts = text.split(delimiter, maxsplit)
    return parts if delimiter is not None else [part.rstrip() for part in parts]
