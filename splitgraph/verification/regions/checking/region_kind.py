"""The models of a region in the process of an engine: loaded for the types of the values that reach them, and asked
which of their constants they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.model.deferred import import_whole
from splitgraph.verification.comparison import element_type
from splitgraph.verification.engines.engine import Loaded, normalise
from splitgraph.verification.engines.error_texts import reason_of
from splitgraph.verification.regions.checking.region_job import KindMessage
from splitgraph.verification.regions.drawing.amounts import NamedAxes, OpenAxes
from splitgraph.verification.regions.drawing.rows import Models
from splitgraph.verification.regions.finding.cut import input_name
from splitgraph.verification.values import UnsupportedError, Value, is_same

# A longer list of whole numbers is no list of sizes or axes.
_LONGEST_LIST = 16

Load = Callable[[Path, Path | None], Loaded]


class RegionKind:
    """The models of a region, before and after. They are loaded for the types of the values that reach them."""

    def __init__(self, message: KindMessage, folder: Path, load: Load, *, counts: bool = False) -> None:
        """counts: elements of inputs decide sizes (see `RegionJob`)."""
        self._paths = [folder / file.path for file in message.files]
        self._folders = [None if file.folder is None else Path(file.folder) for file in message.files]
        self._loaded: dict[tuple[Path, tuple[bytes, ...]], Loaded] = {}
        self._load = load
        self.fixed = [input_name(position) for position in message.fixed]
        self.ranges = {input_name(place): each for place, each in enumerate(message.ranges) if each is not None}
        self.signed = message.signed
        open_axes = {input_name(place): set(axes) for place, axes in message.open_axes}
        self.axes: tuple[OpenAxes, NamedAxes] = open_axes, [_by_input(group) for group in message.named_axes]
        # Of a sequence without elements, or an optional without one.
        self.declared: Mapping[str, str] = {}
        self.is_exact, self.regroups, self.has_jumps = message.is_exact, message.regroups, message.has_jumps
        self.must_take_empty = counts and message.has_changes
        # Copies with other elements of constants, by the number of what they ask (see `reading`), and what was read.
        self._asked = message.asked
        self.read: set[int] = set()

    def ask(self, inputs: Mapping[str, Value]) -> None:
        """See which constants are read on these inputs: what reads them gives something else than without the change,
        or fails.
        """
        usual: dict[int, list[Value]] = {}
        for question in self._asked:
            side, number = question.side, question.number
            if number in self.read:
                continue
            try:
                if side not in usual:
                    usual[side] = self.run(side, inputs)
            except Exception:  # drawn values may be invalid; engines raise errors of their own types
                return
            copies = [(Path(path), None if folder is None else Path(folder)) for path, folder in question.files]
            if any(self._reacts(*copy, inputs, usual[side]) for copy in copies):
                self.read.add(number)

    @property
    def is_all_read(self) -> bool:
        """Return True if nothing is left to ask."""
        return len(self.read) == len(self._asked)

    def _reacts(self, path: Path, folder: Path | None, inputs: Mapping[str, Value], usual: Sequence[Value]) -> bool:
        try:
            outputs = self._run(path, folder, inputs)
        except Exception:  # engines raise errors of their own types
            return True
        return not all(map(is_same, outputs, usual))

    def run(self, side: int, inputs: Mapping[str, Value]) -> list[Value]:
        """Return what one side of the region computes. Raises UnsupportedError if it cannot be loaded alone."""
        return self._run(self._paths[side], self._folders[side], inputs)

    def _run(self, path: Path, folder: Path | None, inputs: Mapping[str, Value]) -> list[Value]:
        types = tuple(self._type_of(name, value).SerializeToString() for name, value in inputs.items())
        if (path, types) not in self._loaded:
            self._loaded[path, types] = self._loaded_for(path, folder, inputs, len(self._loaded))
        return normalise(self._loaded[path, types].run(inputs, None))

    def models(self, inputs: Mapping[str, Value]) -> Models:
        """Return both models for inputs of these types, without their external data, and the folders that it is in. The
        nodes of functions are where they are called.
        """
        before, after = (
            (_without_functions(self._typed(path, inputs)), folder or path.parent)
            for path, folder in zip(self._paths, self._folders, strict=True)
        )
        return before, after

    def _loaded_for(self, path: Path, folder: Path | None, inputs: Mapping[str, Value], number: int) -> Loaded:
        typed = path.with_name(f"{path.stem}_{number}.onnx")
        typed.write_bytes(self._typed(path, inputs).SerializeToString())
        try:
            return self._load(typed, folder)
        except Exception as error:  # engines raise errors of their own types
            raise UnsupportedError(f"it cannot be loaded alone: {reason_of(error)}") from error

    def _typed(self, path: Path, inputs: Mapping[str, Value]) -> onnx.ModelProto:
        model = onnx.load(str(path), load_external_data=False)
        for value in model.graph.input:
            value.type.CopyFrom(self._type_of(value.name, inputs[value.name]))
        return model

    def _type_of(self, name: str, value: Value) -> onnx.TypeProto:
        """Return the type of an input: what its value tells, or else what is inferred. The value of an optional is that
        of its element, so that it does not tell.
        """
        declared = onnx.TypeProto.FromString(bytes.fromhex(self.declared.get(name, "")))
        is_optional = declared.WhichOneof("value") == "optional_type"
        if is_optional or (not _tells_type(value) and declared.WhichOneof("value") is not None):
            return declared
        return type_of(value)


def _without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with the nodes of functions where they are called; most have no functions."""
    if not model.functions:
        return model
    import_whole("splitgraph.conversion.inlining")
    from splitgraph.conversion.inlining import without_functions

    return without_functions(model)


def _by_input(group: Iterable[tuple[int, int]]) -> dict[str, set[int]]:
    """Return the axes of inputs. group: positions of inputs, each with an axis."""
    axes: dict[str, set[int]] = {}
    for place, axis in group:
        axes.setdefault(input_name(place), set()).add(axis)
    return axes


def _tells_type(value: Value) -> bool:
    """Return True for a tensor, and for a sequence of which an element tells it."""
    return isinstance(value, np.ndarray) or (isinstance(value, list) and bool(value) and _tells_type(value[0]))


def type_of(value: Value) -> onnx.TypeProto:
    """Return the type of a value: of a tensor its element type and rank. Raises UnsupportedError for a value that does
    not tell its type.
    """
    if isinstance(value, list) and value:
        return onnx.helper.make_sequence_type_proto(type_of(value[0]))
    if not isinstance(value, np.ndarray):
        raise UnsupportedError("the type of an empty sequence, an optional or a map that reaches it is not known")
    # A list of sizes or axes tells a rank by its length.
    is_list = value.ndim == 1 and value.dtype.kind == "i" and value.size <= _LONGEST_LIST
    dims: list[Any] = list(value.shape) if is_list else [None] * value.ndim
    return onnx.helper.make_tensor_type_proto(element_type(value), dims)
