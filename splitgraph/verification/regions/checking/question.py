"""What is asked of the regions of two models: it stays the same from run to run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx

from splitgraph.dim import symbols_of
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.verification.models.dependence import values_of_elements
from splitgraph.verification.models.model_pair import ComparedModel, caller_inputs, default_names
from splitgraph.verification.regions.drawing.axes import RegionAxes
from splitgraph.verification.regions.drawing.ranges import Range, ValueRanges
from splitgraph.verification.regions.finding.find import ModelRegions


@dataclass(frozen=True, eq=False)
class RegionQuestion:
    """Whether two models compute the same in some regions.

    tolerances: (rtol, atol). is_strict: whatever is not the same bit for bit must be rounding. has_jumps: drawn values
    include those at which results jump. drawable: the values of the first model that may change; those that depend on
    its inputs if nothing is given. known: the ranges of inputs of the model.
    """

    found: ModelRegions
    pair: tuple[ComparedModel, ComparedModel]
    tolerances: tuple[float, float]
    seed: int
    is_strict: bool = False
    has_jumps: bool = False
    drawable: Collection[str] | None = None
    known: Mapping[str, Range | None] | None = None

    @cached_property
    def first(self) -> onnx.ModelProto:
        """Return the first model."""
        model = self.pair[0].model
        assert isinstance(model, onnx.ModelProto)
        return model

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Return the inputs of the first model that are always given: one with a default need not be."""
        return frozenset(caller_inputs(self.first).keys() - self.pair[0].left_out - default_names(self.first))

    @cached_property
    def axes(self) -> RegionAxes:
        """Return the axes along which regions may get other sizes."""
        return RegionAxes(self.found, self.inputs)

    @cached_property
    def ranges(self) -> ValueRanges:
        """Return the ranges of the values of the first model."""
        return ValueRanges(self.found.before, self.known or {})

    @cached_property
    def ranges_of_second(self) -> ValueRanges:
        """Return the ranges of the values of the second model."""
        known = self.known or {}
        names = self.found.after.types
        return ValueRanges(self.found.after, {name: known.get(self.found.name_before(name) or "") for name in names})

    @cached_property
    def _changing(self) -> Collection[str]:
        return values_of_elements(self.first) if self.drawable is None else self.drawable

    @property
    def types(self) -> Mapping[str, ValueType]:
        """Return the inferred types of the values of the first model."""
        return self.pair[0].analysis.types

    @property
    def folders(self) -> Sequence[Path | None]:
        """Return the folders of the external data of both models."""
        return [compared.folder for compared in self.pair]

    def is_drawable(self, name: str) -> bool:
        """Return True for a value of the first model that may change."""
        return name in self._changing

    @cached_property
    def _input_symbols(self) -> frozenset[str]:
        declared = (self.types.get(name, UNKNOWN).shape or () for name in caller_inputs(self.first))
        return frozenset(name for shape in declared for dim in shape if dim is not None for name in symbols_of(dim))

    def is_counted(self, name: str) -> bool:
        """Return True for a value of the first model with a dimension that no size of an input gives, or a single whole
        number that is computed from elements: elements of inputs may decide a size.
        """
        kind = self.types.get(name, UNKNOWN)
        if kind.shape in ((), (1,)) and kind.dtype in ("int32", "int64"):
            return name not in self.inputs and self.is_drawable(name)
        dims = (None,) if kind.shape is None else kind.shape
        return any(dim is None or not symbols_of(dim) <= self._input_symbols for dim in dims)

    def is_always_empty(self, name: str) -> bool:
        """Return True for a value of the first model that never has elements."""
        return 0 in (self.types.get(name, UNKNOWN).shape or ())
