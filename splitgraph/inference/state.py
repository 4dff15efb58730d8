"""What one inference of a model shares between all its graphs: functions, findings, reports, generated symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import onnx

from splitgraph.canonical import CanonicalSplit
from splitgraph.diagnostics import Diagnostic
from splitgraph.dim import Dim, DimLike, Obligation, substitute, symbol
from splitgraph.graph.names import dimension_names
from splitgraph.graph.scopes import FunctionKey, GraphPath, function_key, opset_imports
from splitgraph.inference.analysis import SplitReport
from splitgraph.value_type import ValueType
from splitgraph.variants import Variant
from splitgraph.variants.variadic_function import is_variadic_function


@dataclass(frozen=True, slots=True)
class SplitDetail:
    """What conversion needs of a split node.

    variant: its operator version. split: its canonical form, None when invalid. data: type of what is split. divisible:
    the dimension is proved to be a multiple of the number of parts. errors: codes of the errors found at it. repaired:
    what a Split-18 without split and num_outputs must mean. lengths_dtype: element type of its lengths input.
    rest_possible: one of its lengths may be -1 (VariadicSplit).
    """

    variant: Variant
    split: CanonicalSplit | None
    data: ValueType
    divisible: bool
    errors: tuple[str, ...] = ()
    repaired: CanonicalSplit | None = None
    lengths_dtype: str | None = None
    rest_possible: bool = False


@dataclass(slots=True)
class GraphDetail:
    """What was inferred of one graph as written: the types of its values, its split nodes by index, and by index the
    positions at which
    SequenceAt nodes read, where known."""

    types: dict[str, ValueType] = field(default_factory=dict)
    splits: dict[int, SplitDetail] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a model-local function: the types of its inputs."""

    inputs: tuple[ValueType | None, ...]


@dataclass(slots=True)
class State:
    """Shared by every walk of one inference."""

    model: onnx.ModelProto
    empty_chunks: str = "clamp"
    bound: Mapping[str, DimLike] = field(default_factory=dict)
    functions: dict[FunctionKey, onnx.FunctionProto] = field(default_factory=dict)
    variadic: set[FunctionKey] = field(default_factory=set)
    imports: dict[str, int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    reports: list[tuple[SplitReport, tuple[Obligation, ...]]] = field(default_factory=list)
    details: dict[GraphPath, GraphDetail] = field(default_factory=dict)
    calls: dict[FunctionKey, list[FunctionCall]] = field(default_factory=dict)
    calling: list[FunctionKey] = field(default_factory=list)
    generated: set[str] = field(default_factory=set)
    unknown_operators: dict[str, int] = field(default_factory=dict)
    # What the model requires of its symbols, and where; names that the author gave to what is computed, each with what
    # it stands for, or None where two values of one name differ.
    requirements: list[tuple[Obligation, str]] = field(default_factory=list)
    definitions: dict[str, tuple[DimLike, str] | None] = field(default_factory=dict)
    broadcast_cache: dict[frozenset[DimLike], Dim] = field(default_factory=dict)
    # quiet: a body is walked only to see where it settles. muted: what is walked is reported, but never runs.
    quiet: int = 0
    muted: int = 0
    input_dimensions: set[str] = field(default_factory=set)
    _reserved: set[str] = field(default_factory=set)
    _counter: int = 0

    def __post_init__(self) -> None:
        for function in self.model.functions:
            key = function_key(function)
            self.functions[key] = function
            if is_variadic_function(function):
                self.variadic.add(key)
        self.imports = opset_imports(self.model.opset_import)
        self.input_dimensions = {
            dim.dim_param for value in self.model.graph.input for dim in value.type.tensor_type.shape.dim
        }
        self._reserved = dimension_names(self.model)

    def fresh(self) -> Dim:
        """A new generated symbol, of a name that the model does not use."""
        while True:
            name = f"unk{self._counter}"
            self._counter += 1
            if name not in self._reserved:
                self.generated.add(name)
                return symbol(name)

    def report(self, found: Diagnostic) -> None:
        """Keep a finding, once."""
        if not (self.quiet or self.muted) and found not in self.diagnostics:
            self.diagnostics.append(found)

    def note_requirement(self, obligation: Obligation, location: str) -> None:
        """Keep what must hold of the symbols for a node that may run."""
        if not (self.quiet or self.muted):
            self.requirements.append((obligation, location))

    def add_split(self, report: SplitReport, obligations: tuple[Obligation, ...]) -> None:
        """Keep the report of a split and what must hold for it to be valid."""
        if not self.quiet:
            self.reports.append((report, obligations))

    def bind(self, value: ValueType) -> ValueType:
        """The type with the caller's bindings of symbols put in."""
        if not self.bound or value.shape is None:
            return value if value.element is None else replace(value, element=self.bind(value.element))
        return value.with_shape([substitute(dim, self.bound) if isinstance(dim, Dim) else dim for dim in value.shape])
