"""The result of inference: the analysis of a model, with a report for each split."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic

from splitgraph.dim import Dim, Obligation
from splitgraph.findings.diagnostics import Diagnostic, abridged, findings_phrase
from splitgraph.formats import HeldModel, in_memory, onnx_model, save_held
from splitgraph.formats.kinds import M_co
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import operator_name
from splitgraph.model.value_type import ValueType
from splitgraph.options import ExternalData

if TYPE_CHECKING:
    from splitgraph.inference.costs import Costs

# Where `opset` has the version of a model that is OpenVINO IR.
IR = "openvino"


@dataclass(frozen=True, slots=True, repr=False)
class SplitReport:
    """One split node of a model, as inferred.

    name: the node's name, or operator and index in its graph where it has none. op, domain, since_version: its operator
    ("Split", "", 13). location: graph, subgraphs, function calls and node ("main/encoder/then_branch/Split_4"). axis:
    non-negative where the rank is known, None when unknown. input_name, input: name and type of the split tensor.
    outputs: (name, type) of each output, "" for an omitted one. lengths: of each part along the axis, empty for
    StringSplit and for a sequence of unknown length; of a split with an error, axis and lengths as written.
    obligations: what must hold of the symbols for the split to be valid ("N % 3 == 0").
    """

    name: str
    op: str
    domain: str
    since_version: int
    location: str
    axis: int | None
    input_name: str
    input: ValueType
    outputs: tuple[tuple[str, ValueType], ...]
    lengths: tuple[int | Dim | None, ...]
    obligations: tuple[str, ...]

    def __repr__(self) -> str:
        """Return one short line: "<SplitReport: main/split, Split-13 on axis 1, 3 outputs>"."""
        axis = "an unknown axis" if self.axis is None else f"axis {self.axis}"
        operator = f"{self.op}-{self.since_version}"
        return f"<SplitReport: {abridged(self.location, 80)}, {operator} on {axis}, {len(self.outputs)} outputs>"


@dataclass(frozen=True, slots=True)
class Origin:
    """The first value that is not fully known: the location of the node or input that gives it, the reason, and its
    name.
    """

    location: str
    reason: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Completeness:
    """How many dimensions of a model's values are known, over all graphs.

    dims: the number of dimensions of all values with a known rank. known: how many of these are numbers or expressions.
    symbolic: how many are expressions. unknown_rank: the number of values with an unknown rank. nodes: the number of
    nodes, those of branches, bodies and functions included, each once as written. unknown_operators: the operators
    without a rule and without a schema, with their numbers of nodes. left_open:
    the number of values that are not fully known because they depend on such an operator. first_unknown: where the
    first value with an unknown rank or an unknown dimension comes from; None if there is none. graphs: how many graphs
    the nodes are in.
    """

    dims: int
    known: int
    symbolic: int
    unknown_rank: int
    nodes: int
    unknown_operators: tuple[str, ...]
    left_open: int = 0
    first_unknown: Origin | None = None
    graphs: int = 1


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of splits and symbols; the fields are those of `Analysis`."""

    splits: tuple[SplitReport, ...] = ()
    required_by: Mapping[Obligation, tuple[str, ...]] = field(default_factory=dict)
    assumed_by: Mapping[Obligation, str] = field(default_factory=dict)
    generated: frozenset[str] = frozenset()
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)


class LazyReports:
    """Makes the reports when they are first read: many callers need the types alone. A copy or a pickle holds the
    reports themselves.
    """

    def __init__(self, make: Callable[[], Reports]) -> None:
        self._make: Callable[[], Reports] | None = make
        self._made = Reports()
        # Several threads may read one analysis.
        self._lock = Lock()

    def __call__(self) -> Reports:
        """Return the reports; they are made by the first call."""
        if self._make is not None:
            with self._lock:
                if self._make is not None:
                    self._made = self._make()
                    # It holds the walks over the model.
                    self._make = None
        return self._made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyReports) and self() == other()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[[Reports], LazyReports], tuple[Reports]]:
        return _made, (self(),)


def _made(reports: Reports) -> LazyReports:
    return LazyReports(lambda: reports)


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(Generic[M_co]):
    """What `infer` found.

    held, reports, writer: what the model, and what is told of splits and symbols, are put together from when they are
    first asked for, and what `save` calls; for this package only. diagnostics: every finding. types: of the main
    graph's inputs, initializers and node outputs. inputs, outputs: the types of what a caller gives and gets, in the
    order of the model; inputs with a default are not among them. source: the file that the model was read from, "" for
    a model in memory. opset: imported version of each domain; of OpenVINO IR its version under "openvino".
    completeness: how much is known, over all graphs. graphs: types of each graph by its location, the main graph
    ("main") first, then subgraphs ("main/If_3/then_branch") in node order. accepted: errors that the caller accepts by
    name; they are not among the diagnostics, and nothing is concluded from their nodes.
    """

    held: M_co | HeldModel[M_co]
    reports: LazyReports
    diagnostics: tuple[Diagnostic, ...]
    types: Mapping[str, ValueType]
    opset: Mapping[str, int]
    completeness: Completeness
    graphs: Mapping[str, Mapping[str, ValueType]] = field(default_factory=dict)
    accepted: tuple[Diagnostic, ...] = ()
    inputs: Mapping[str, ValueType] = field(default_factory=dict)
    outputs: Mapping[str, ValueType] = field(default_factory=dict)
    source: str = ""
    # The functions of the API set one that also checks the types, and converts to OpenVINO IR.
    writer: Callable[..., None] = field(default=save_held, compare=False)
    # For conversion and verification, not part of the public API: details of each split node as written.
    details: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return what a notebook shows: what was found, in numbers."""
        known = f"{self.completeness.known:,} of {self.completeness.dims:,} dims known"
        found = findings_phrase(self.diagnostics)
        return f"<Analysis: {self.completeness.nodes:,} nodes, {len(self.splits):,} splits, {known}, {found}>"

    @property
    def model(self) -> M_co:
        """The model with its types, and all of its weights; they are read when it is first asked for. Raises ModelError
        where the file that they are in was changed.
        """
        model: M_co = in_memory(self.held)
        return model

    @property
    def splits(self) -> tuple[SplitReport, ...]:
        """A report for each split in graph order, subgraphs and function bodies (once for each call) included."""
        return self.reports().splits

    @property
    def symbols(self) -> Mapping[str, tuple[int, int | None]]:
        """Known bounds (minimum, maximum or None) of each symbol."""
        return self.reports().symbols

    @property
    def required_by(self) -> Mapping[Obligation, tuple[str, ...]]:
        """Everything that must hold of the symbols for the model to be valid (`N % 3 == 0`), with the locations of the
        nodes that require it.

        What must hold only if a body runs has the body's location among its `branches`. A name that the author declared
        for what is computed stands there with what it is (`half == (N + 1)//2`).
        """
        return self.reports().required_by

    @property
    def assumed_by(self) -> Mapping[Obligation, str]:
        """What was taken for granted so that dimensions have a closed form, with the first node that needs it.

        `P <= 1023`: no side of a broadcast is empty where the other is 1. It may fail in a valid model, and what is
        claimed holds wherever it does not.
        """
        return self.reports().assumed_by

    @property
    def generated(self) -> frozenset[str]:
        """The symbols that are not the author's (`unk0`)."""
        return self.reports().generated

    @property
    def onnx_model(self) -> ModelProto:
        """The model as a ModelProto, of whatever kind it is: a path needs no cast. Raises ModelError for OpenVINO
        IR.
        """
        return onnx_model(self.model)

    def document(self, *, values: bool = False) -> dict[str, Any]:
        """Return what `infer --json` prints, as docs/reference/schemas/infer.schema.json describes it; its `model` is
        `source`. values: with the types of all values, as `--all`.
        """
        from splitgraph.reports.documents.analyses import analysis_json

        return analysis_json(self, self.source, values)

    def save(self, path: str | os.PathLike[str], *, external_data: ExternalData | None = None) -> None:
        """Write the model to a file, as `splitgraph.save` does: weights are copied and never loaded. Raises ModelError
        for what cannot be written.
        """
        self.writer(self, path, external_data=external_data)

    @property
    def operators(self) -> Mapping[str, int]:
        """The number of nodes of each operator, over all graphs: "Add", "com.microsoft::Gelu"."""
        nodes = () if self.details is None else (node for scope in self.details.scopes for node in scope.nodes)
        return Counter(operator_name(node) for node in nodes)

    @property
    def costs(self) -> Costs | None:
        """How large the model is: parameters, bytes, and multiply-adds as an expression of the symbols; None of an IR.
        It is counted when this is asked for.
        """
        from splitgraph.inference.costs import costs_of

        has_none = self.details is None or IR in self.opset
        return None if has_none else costs_of(self.details.scopes, self.details.types)

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """The requirements on symbols, each once, in the order of the nodes."""
        return tuple(self.required_by)

    @property
    def assumptions(self) -> tuple[Obligation, ...]:
        """The assumptions that give dimensions a closed form; a valid model may violate them."""
        return tuple(self.assumed_by)

    @property
    def ok(self) -> bool:
        """True when there is no diagnostic of severity "error"."""
        return all(d.severity != "error" for d in self.diagnostics)
